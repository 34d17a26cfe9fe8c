-- The status of a gate as a small page: no script, and no resource from elsewhere. Pure.
local definitions = require "riskscreen.nginx.metrics.definitions"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local PAGE = [[
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>riskscreen: %s</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin-top: 1.5em; }
/* A table that is wider than a phone scrolls by itself, the page does not. */
div { overflow-x: auto; } h1, p, td:first-child { overflow-wrap: anywhere; }
table { border-collapse: collapse; } td, th { padding: .2em .8em .2em 0; text-align: right; }
td:first-child, th:first-child { text-align: left; } tr + tr { border-top: 1px solid #8884; }
a { color: inherit; } .note { border-left: 4px solid #d80; padding-left: .6em; }
section { display: grid; grid-template-columns: repeat(auto-fill, minmax(13em, 1fr)); gap: 1em 2em; }
figure { margin: 0; } figcaption { font-size: .9em; }
svg { display: block; width: 100%%; height: 3em; } path { stroke: #48c; stroke-width: 3; } .bad path { stroke: #c60; }
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

-- The largest unit that fits twice or more.
local function span(seconds)
  local size, unit = 1, "second"
  for _, larger in ipairs { { 60, "minute" }, { 3600, "hour" }, { 86400, "day" } } do
    if seconds >= 2 * larger[1] then
      size, unit = larger[1], larger[2]
    end
  end
  return text.count(math.floor(math.max(0, seconds) / size), unit)
end

-- A table of rows of cells, if there are any. With a head the first row has the names of the columns.
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
  local is_empty = not lines[head and 2 or 1]
  return is_empty and "" or ('<h2>%s</h2>\n<div tabindex="0"><table>%s</table></div>'):format(title, rows_text)
end

-- A table with a row for each map, and a column for each of some fields.
local function map_rows(title, fields, maps)
  local rows = { {} }
  for column, field in ipairs(fields) do
    rows[1][column] = field:gsub("_", " ")
    for index, map in ipairs(maps) do
      rows[index + 1] = rows[index + 1] or {}
      rows[index + 1][column] = map[field]
    end
  end
  return html_table(title, rows, true)
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
  { field = "mean_fetch_seconds", title = "Mean fetch in seconds", is_mean = true },
}

local BAR, HEIGHT = 4, 40 -- the width of a minute and the height of a chart, in units of the drawing

local CHART = [[
<figure class="%s"><svg role="img" aria-label="%s: %s" viewBox="0 0 %d %d" preserveAspectRatio="none">
<path d="%s"/></svg><figcaption><b>%s</b>: %s</figcaption></figure>]]

-- A chart with a bar for each minute.
local function chart(minutes, kind)
  local bars, total, most = {}, 0, 0
  for _, minute in ipairs(minutes) do
    local value = minute[kind.field] or 0
    total, most = total + value, math.max(most, value)
  end
  for index, minute in ipairs(minutes) do
    local value = minute[kind.field] or 0
    if value > 0 then
      bars[#bars + 1] = ("M%d %dv-%.1f"):format((index - 0.5) * BAR, HEIGHT, value / most * (HEIGHT - 1))
    end
  end
  local figures = (kind.is_mean and "" or number(total) .. " in all, ") .. "at most " .. number(most) .. " in a minute"
  local title, width = kind.title, #minutes * BAR
  return CHART:format(kind.class or "", title, figures, width, HEIGHT, table.concat(bars), title, figures)
end

local CHARTS_SECTION = [[
<h2>Last 60 minutes</h2>
<p>From %s to %s UTC. The last bar is the current minute.</p>
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
  local intro = '<h1>%s</h1>\n<p>riskscreen %s; %s in the last %s. Show it <a href="?">once</a>, or '
    .. '<a href="?refresh=10">again every 10 seconds</a>.</p>'
  local decided = text.count(status.decisions.total, "decision")
  local since = span(now - status.counted_since)
  local parts = { intro:format(escape(status.gate), escape(status.version), decided, since) }
  for _, note in ipairs(status.notes) do
    parts[#parts + 1] = '<p class="note">' .. escape(note) .. "</p>"
  end
  local redis, decisions, tiers, lists = status.redis or {}, {}, {}, {}
  for index, action in ipairs(definitions.ACTIONS) do
    local counts = status.decisions[action]
    decisions[index] = tables.merge({ action = action, total = counts.total }, counts.by_source)
  end
  for index, tier in ipairs(definitions.TIERS) do
    tiers[index] = tables.merge({ tier = tier }, status.cache[tier])
  end
  for index, list in ipairs(status.lists or {}) do
    lists[index] = tables.merge(list, { age = list.age_seconds and span(list.age_seconds) })
  end
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
    map_rows("Decisions", tables.concat({ "action", "total" }, definitions.SOURCES), decisions),
    map_rows("Cache", { "tier", "hits", "misses", "hit_ratio" }, tiers),
    map_table("Fetches from the service", status.upstream),
    map_table("Answers of the service", status.upstream.answers),
    map_table("Client", status.upstream.client),
    map_table("Lists of the account", status.account_lists),
    map_rows("Local lists", { "kind", "file", "entries", "age", "stale", "invalid" }, lists),
    map_table("Shared dict", status.dict),
    map_table("Effective actions", status.outcomes),
  }
  return PAGE:format(escape(status.gate), table.concat(tables.concat(parts, sections), "\n"))
end

return M
