-- Writes docs/performance.md and the images in docs/performance/ from the saved reports of the benchmarks; see
-- report.lua. Usage: lua bench/support/page.lua DIRECTORY [OUTPUT], OUTPUT being "docs" by default.

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/../?.lua;" .. package.path

local cjson = require("cjson")
local bars = require("support.bars")
local figures = require("support.report")

local directory, docs = arg[1], arg[2] or "docs"
assert(directory, "usage: lua bench/support/page.lua DIRECTORY [OUTPUT]")

local ORDER = { nginx = 1, fleet = 2, screen_all = 3, frames = 4, http = 5, layers = 6, instructions = 7, decode = 8 }

local function output_of(command)
  local pipe = assert(io.popen(command))
  local output = pipe:read("*a")
  pipe:close()
  return (output:gsub("%s+$", ""))
end

local function read(path)
  local file = assert(io.open(path))
  local content = file:read("*a")
  file:close()
  return content
end

local function write(path, content)
  local file = assert(io.open(path, "w"))
  file:write(content)
  file:close()
end

local function saved_reports()
  local list = {}
  for path in output_of(("ls %s/*.json"):format(directory)):gmatch("[^\n]+") do
    list[#list + 1] = cjson.decode(read(path))
  end
  table.sort(list, function(a, b)
    if a.name ~= b.name then
      local left, right = ORDER[a.name] or math.huge, ORDER[b.name] or math.huge
      return left < right or left == right and a.name < b.name
    end
    return a.runtime < b.runtime
  end)
  return list
end

-- "Lua 5.4" becomes "lua-5.4", and "LuaJIT 2.1.0-beta3" becomes "luajit-2.1".
local function slug(runtime)
  return ((runtime:match("^%a+ %d+%.%d+") or runtime:match("^%w+")):lower():gsub(" ", "-"))
end

local function table_row(cells)
  return "| " .. table.concat(cells, " | ") .. " |"
end

local function add_chart(lines, report, index, chart)
  local image = ("performance/%s-%s-%d.svg"):format(report.name, slug(report.runtime), index)
  write(docs .. "/" .. image, bars.svg(chart, figures.significant))
  local head, rule = { chart.title, chart.unit, "ratio" }, { "---", "--:", "--:" }
  for _, column in ipairs(chart.columns or {}) do
    head[#head + 1], rule[#rule + 1] = column, "--:"
  end
  lines[#lines + 1] = ("![%s, %s](%s)\n"):format(chart.title, report.runtime, image)
  lines[#lines + 1] = table_row(head)
  lines[#lines + 1] = table_row(rule)
  local group
  for _, row in ipairs(chart.rows) do
    if row.group ~= group then
      group = row.group
      local cells = { "*" .. group .. "*" }
      for column = 2, #head do
        cells[column] = ""
      end
      lines[#lines + 1] = table_row(cells)
    end
    local cells = {
      row.ours and "**" .. row.what .. "**" or row.what,
      figures.significant(row.value),
      ("%.2f"):format(row.ratio),
    }
    for column in ipairs(chart.columns or {}) do
      cells[#cells + 1] = figures.significant(row.others[column])
    end
    lines[#lines + 1] = table_row(cells)
  end
  lines[#lines + 1] = ""
end

local function add_goals(lines, goals)
  if goals[1] == nil then
    return
  end
  lines[#lines + 1] = table_row({ "goal", "measured", "bound", "verdict" })
  lines[#lines + 1] = table_row({ "---", "--:", "---", "---" })
  for _, goal in ipairs(goals) do
    local verdict = goal.met and goal.verdict or "**" .. goal.verdict .. "**"
    lines[#lines + 1] = table_row({ goal.what, ("%.2f"):format(goal.value), goal.bound, verdict })
  end
  lines[#lines + 1] = ""
end

local function machine()
  local processor = output_of("sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1")
  local cores = output_of("getconf _NPROCESSORS_ONLN")
  local system = output_of('. /etc/os-release; echo "$PRETTY_NAME"')
  return ("%s, %s cores, %s, Linux %s"):format(processor, cores, system, output_of("uname -r"))
end

local HEAD = [[
# Performance

After reading this page you know what calls, gates and decoding cost beside hand-written code, and can measure it
yourself. `./dev bench --report` runs the benchmarks and writes this page; do not edit it.

Measured on %s: %s.

- Each figure stands beside its peer's, from the same run. Rounds of both alternate; figures are medians.
- Times are CPU time. *ratio* is the cost divided by that of the first row; less is better. Blue bars are this library.
- The machine may have had other work. Trust ratios, not microseconds.
- `./dev bench NAME` repeats one part, with the name in its heading; `RISKSCREEN_LUA=luajit` selects LuaJIT.

%d of %d goals are met.

## Code that is longer for speed

Each place gives a tenth of a row at least, and a comment there says so. A figure is the time without it, divided by the
time with it.

| place | without it |
| --- | --- |
| a Lua constructor for each steady object, on LuaJIT: [plan.c](../csrc/lua/plan.c) | p1 1.32, p2 1.22, p3 1.28 |
| plans that fail too often are removed | p4 1.19 |
| the expected key is compared with the text first: [builder.c](../csrc/lua/builder.c) | p2 1.13, p5 1.11 on Lua 5.4 |
| short values that occur again are not hashed again | p1 and p2 1.09 on Lua 5.4, in instructions |
| UTF-8 is checked in blocks of 16 bytes: [scan.c](../csrc/json/scan.c) | foreign 3.0 |
| the digits of an escape are read at once | escapes 2 |
| digits are read in blocks of eight: [number.h](../csrc/json/number.h) | fractions 1.15 |
]]

local reports = saved_reports()
local met, all = 0, 0
for _, report in ipairs(reports) do
  for _, goal in ipairs(report.goals) do
    met, all = met + (goal.met and 1 or 0), all + 1
  end
end

output_of(("rm -rf %s/performance && mkdir -p %s/performance"):format(docs, docs))
local lines = { HEAD:format(os.date("!%Y-%m-%d"), machine(), met, all) }
local section
for _, report in ipairs(reports) do
  if report.name ~= section then
    section = report.name
    lines[#lines + 1] = ("## %s: `./dev bench %s`\n"):format(report.title, report.name)
  end
  lines[#lines + 1] = ("### %s on %s\n"):format(report.title, report.runtime)
  lines[#lines + 1] = report.method .. "."
  if report.peers then
    lines[#lines + 1] = "Peers: " .. table.concat(report.peers, "; ") .. "."
  end
  lines[#lines + 1] = ""
  for index, chart in ipairs(report.charts) do
    add_chart(lines, report, index, chart)
  end
  add_goals(lines, report.goals)
end
write(docs .. "/performance.md", (table.concat(lines, "\n"):gsub("%s+$", "\n")))
