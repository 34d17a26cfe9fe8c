-- The status of a gate as a small page: no script, and no resource from elsewhere. Pure.

local ACTIONS = { "allow", "review", "block", "unknown" }
local SOURCES = { "lru", "dict", "upstream", "stale", "list", "invalid", "exempt" }
local SECONDS = { "mean_seconds", "p50_seconds_at_most", "p95_seconds_at_most", "p99_seconds_at_most" }

local PAGE = [[
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="10">
<title>riskscreen: %s</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin-top: 1.5em; }
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

local function row(cells, tag)
  local parts = {}
  for index = 1, cells.n or #cells do
    parts[index] = ("<%s>%s</%s>"):format(tag or "td", escape(number(cells[index])), tag or "td")
  end
  return "<tr>" .. table.concat(parts) .. "</tr>"
end

local function decision_table(status)
  local head = { "verdict", "total" }
  for _, source in ipairs(SOURCES) do
    head[#head + 1] = source
  end
  local rows = { row(head, "th") }
  for _, action in ipairs(ACTIONS) do
    local decided = status.decisions[action]
    local cells = { action, decided.total }
    for _, source in ipairs(SOURCES) do
      cells[#cells + 1] = decided.by_source[source] or 0
    end
    rows[#rows + 1] = row(cells)
  end
  return "<h2>Decisions</h2>\n<table>" .. table.concat(rows, "\n") .. "</table>"
end

-- A table of a map's fields, sorted by name.
local function map_table(title, map)
  local names = {}
  for name in pairs(map or {}) do
    names[#names + 1] = name
  end
  if not names[1] then
    return ""
  end
  table.sort(names)
  local rows = {}
  for index, name in ipairs(names) do
    rows[index] = row { (name:gsub("_", " ")), map[name] }
  end
  return ("<h2>%s</h2>\n<table>%s</table>"):format(title, table.concat(rows, "\n"))
end

local function cache_table(cache)
  local rows = { row({ "tier", "hits", "misses", "hit ratio" }, "th") }
  for _, tier in ipairs { "lru", "dict" } do
    local asked = cache[tier]
    rows[#rows + 1] = row { tier, asked.hits, asked.misses, asked.hit_ratio, n = 4 }
  end
  return "<h2>Cache</h2>\n<table>" .. table.concat(rows, "\n") .. "</table>"
end

local function upstream_table(upstream)
  local times = { lookups = upstream.lookups, in_flight = upstream.in_flight }
  for _, name in ipairs(SECONDS) do
    times[name] = upstream[name]
  end
  return map_table("Fetches from the service", times)
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
  parts[#parts + 1] = decision_table(status)
  parts[#parts + 1] = cache_table(status.cache)
  parts[#parts + 1] = upstream_table(status.upstream)
  parts[#parts + 1] = map_table("Failed fetches", status.upstream.errors)
  parts[#parts + 1] = map_table("Answers of the service", status.upstream.answers)
  parts[#parts + 1] = map_table("Client", status.upstream.client)
  parts[#parts + 1] = map_table("Circuit breaker", status.circuit)
  parts[#parts + 1] = map_table("Rate limit", status.rate_limit)
  parts[#parts + 1] = map_table("Lists of the account", status.lists)
  parts[#parts + 1] = map_table("Shared dict", status.dict)
  parts[#parts + 1] = map_table("Effective actions", status.outcomes)
  return PAGE:format(escape(status.gate), table.concat(parts, "\n"))
end

return M
