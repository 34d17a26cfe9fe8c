-- The status of a gate as a small page: no script, and no resource from elsewhere. Pure.
local definitions = require "riskscreen.nginx.metrics.definitions"
local tables = require "riskscreen.util.tables"

local PAGE = [[
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="10">
<title>riskscreen: %s</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin-top: 1.5em; }
/* A table that is wider than a phone scrolls by itself, the page does not. */
div { overflow-x: auto; } h1, p, td:first-child { overflow-wrap: anywhere; }
table { border-collapse: collapse; } td, th { padding: .2em .8em .2em 0; text-align: right; }
td:first-child, th:first-child { text-align: left; } tr + tr { border-top: 1px solid #8884; }
.note { border-left: 4px solid #d80; padding-left: .6em; }
section { display: grid; grid-template-columns: repeat(auto-fill, minmax(13em, 1fr)); gap: 1em 2em; }
figure { margin: 0; } figcaption { font-size: .9em; }
svg { display: block; width: 100%%; height: 3em; } path { fill: none; stroke: #48c; } .bad path { stroke: #c60; }
</style>
</head>
<body>
%s
</body>
</html>
]]

local escapes = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

local function escape(value)
  return (tostring(value):gsub("[&<>\"']", escapes))
end

local function number(value)
  if type(value) ~= "number" then
    return value == nil and "–" or tostring(value)
  elseif value == math.floor(value) then
    return ("%.0f"):format(value)
  end
  return ("%.3g"):format(value)
end

-- A table of rows of cells. With a head the first row has the names of the columns.
local function html_table(title, rows, head)
  local lines = {}
  for index, cells in ipairs(rows) do
    local tag, parts = head and index == 1 and "th" or "td", {}
    for column = 1, #rows[1] do
      parts[column] = ("<%s>%s</%s>"):format(tag, escape(number(cells[column])), tag)
    end
    lines[index] = "<tr>" .. table.concat(parts) .. "</tr>"
  end
  local rows_text = table.concat(lines, "\n")
  return lines[1] and ('<h2>%s</h2>\n<div tabindex="0"><table>%s</table></div>'):format(title, rows_text) or ""
end

local function decision_table(decisions)
  local rows = { tables.concat({ "action", "total" }, definitions.SOURCES) }
  for _, action in ipairs(definitions.ACTIONS) do
    local cells = { action, decisions[action].total }
    for _, source in ipairs(definitions.SOURCES) do
      cells[#cells + 1] = decisions[action].by_source[source] or 0
    end
    rows[#rows + 1] = cells
  end
  return html_table("Decisions", rows, true)
end

local function cache_table(cache)
  local rows = { { "tier", "hits", "misses", "hit ratio" } }
  for index, tier in ipairs(definitions.TIERS) do
    rows[index + 1] = { tier, cache[tier].hits, cache[tier].misses, cache[tier].hit_ratio }
  end
  return html_table("Cache", rows, true)
end

local function local_lists_table(lists)
  local rows = { { "list", "file", "entries", "age in days", "stale", "invalid rows" } }
  for index, list in ipairs(lists) do
    local days = list.age_seconds and list.age_seconds / 86400
    rows[index + 1] = { list.kind, list.file, list.entries, days, list.stale, list.invalid }
  end
  return rows[2] and html_table("Local lists", rows, true) or ""
end

-- A table of a map's fields, sorted by name, without the fields that are tables.
local function map_table(title, map)
  local rows = {}
  for _, name in ipairs(tables.sorted_keys(map or {})) do
    if type(map[name]) ~= "table" then
      rows[#rows + 1] = { (name:gsub("_", " ")), map[name] }
    end
  end
  return html_table(title, rows)
end

local CHARTS = {
  { field = "unknown", title = "Unknown", class = "bad" },
  { field = "failed_fetches", title = "Failed fetches", class = "bad" },
  { field = "block", title = "Block" },
  { field = "review", title = "Review" },
  { field = "allow", title = "Allow" },
  { field = "fetches", title = "Fetches" },
  -- Minutes without fetches have no mean.
  { field = "mean_fetch_seconds", title = "Mean fetch in seconds", recorded = "fetches" },
}

local BAR, HEIGHT = 4, 40 -- the width of a minute and the height of a chart, in units of the drawing

local CHART = [[
<figure class="%s"><svg role="img" aria-label="%s: %s" viewBox="0 0 %d %d" preserveAspectRatio="none">
<path stroke-width="2" d="%s"/><path stroke-width="%d" d="%s"/></svg>
<figcaption><b>%s</b>: %s</figcaption></figure>]]

-- A chart with a bar for each minute. There is no line below a minute without records.
local function chart(minutes, kind)
  local bars, line, total, most = {}, {}, 0, 0
  for _, minute in ipairs(minutes) do
    local value = minute[kind.field] or 0
    total, most = total + value, math.max(most, value)
  end
  for index, minute in ipairs(minutes) do
    local value, left = minute[kind.field] or 0, (index - 1) * BAR
    if minute[kind.recorded or kind.field] then
      line[#line + 1] = ("M%d %dh%d"):format(left, HEIGHT, BAR)
    end
    if value > 0 then
      bars[#bars + 1] = ("M%d %dv-%.1f"):format(left + BAR / 2, HEIGHT, value / most * (HEIGHT - 1))
    end
  end
  local all = kind.recorded and "" or number(total) .. " in all, "
  local figures = line[1] and all .. "at most " .. number(most) .. " in a minute" or "no records"
  local title, lines, columns = kind.title, table.concat(line), table.concat(bars)
  local width = #minutes * BAR
  return CHART:format(kind.class or "", title, figures, width, HEIGHT, lines, BAR - 1, columns, title, figures)
end

local CHARTS_SECTION = [[
<h2>Last 60 minutes</h2>
<p>From %s to %s UTC. The last bar is the current minute. A gap in the line under the bars is a minute without records:
nginx was not running, or the gate had not counted anything since its start.</p>
<section>%s</section>]]

local function minute_charts(minutes)
  local parts = {}
  for index, kind in ipairs(CHARTS) do
    parts[index] = chart(minutes, kind)
  end
  local first, last = os.date("!%H:%M", minutes[1].time), os.date("!%H:%M", minutes[#minutes].time)
  return CHARTS_SECTION:format(first, last, table.concat(parts, "\n"))
end

local M = {}

---@param status table of status.lua
---@param now number Unix seconds
---@return string html
function M.of(status, now)
  local hours = math.max(0, now - status.counted_since) / 3600
  local intro = "<h1>%s</h1>\n<p>riskscreen %s; %s decisions in the last %.1f hours.</p>"
  local parts = {
    intro:format(escape(status.gate), escape(status.version), number(status.decisions.total), hours),
  }
  for _, note in ipairs(status.notes) do
    parts[#parts + 1] = '<p class="note">' .. escape(note) .. "</p>"
  end
  local redis = status.redis or {}
  -- First the sections on which an operator acts.
  local sections = {
    map_table("Circuit breaker", status.circuit),
    map_table("Failed fetches", status.upstream.errors),
    map_table("Rate limit", status.rate_limit),
    map_table("Redis", redis),
    map_table("Unanswered commands of Redis", redis.errors),
    map_table("Refused verdicts of Redis", redis.refused),
    map_table("Purges of the fleet", redis.purges),
    status.minutes and minute_charts(status.minutes) or "",
    decision_table(status.decisions),
    cache_table(status.cache),
    map_table("Fetches from the service", status.upstream),
    map_table("Answers of the service", status.upstream.answers),
    map_table("Client", status.upstream.client),
    map_table("Lists of the account", status.account_lists),
    local_lists_table(status.lists or {}),
    map_table("Shared dict", status.dict),
    map_table("Effective actions", status.outcomes),
  }
  return PAGE:format(escape(status.gate), table.concat(tables.concat(parts, sections), "\n"))
end

return M
