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
  -- What an operator acts on comes first.
  local sections = {
    map_table("Circuit breaker", status.circuit),
    map_table("Failed fetches", status.upstream.errors),
    map_table("Rate limit", status.rate_limit),
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
