-- The report of one benchmark: charts of costs, each beside a peer's, and goals with their verdicts. It is printed, and
-- saved for page.lua beside this file if RISKSCREEN_BENCH_RESULTS names a directory.

local cjson = require("cjson")

local M = {}

---@class riskscreen.bench.Cost
---@field what string
---@field value number in the chart's unit; less is better
---@field group? string rows of one group stand together; the first one of a group is its base
---@field ours? boolean this library, not a peer
---@field others? number[] one for each of the chart's further columns

---@class riskscreen.bench.Chart
---@field title string
---@field unit string
---@field columns? string[] names of further columns
---@field rows riskscreen.bench.Cost[] the first one, or the first one of each group, is the base of the ratios

---@class riskscreen.bench.Goal
---@field what string
---@field value number
---@field at_most? number
---@field at_least? number

---@class riskscreen.bench.Options
---@field name string the benchmark's file without ".lua"
---@field title string
---@field method string how the figures come about: rounds, sizes, what is left out
---@field runtime? string the Lua that runs the code; this one by default
---@field peers? string[] names and versions

---@class riskscreen.bench.Report
local Report = {}
Report.__index = Report

local function this_runtime()
  local jit = rawget(_G, "jit")
  return jit and jit.version or _VERSION
end

---@param options riskscreen.bench.Options
function M.new(options)
  local report = { charts = {}, goals = {}, runtime = this_runtime() }
  for name, value in pairs(options) do
    report[name] = value
  end
  return setmetatable(report, Report)
end

---Few rounds for `./dev bench --quick`, else many.
---@param many integer
---@param few integer
function M.rounds(many, few)
  return os.getenv("RISKSCREEN_BENCH_QUICK") and few or many
end

---@param chart riskscreen.bench.Chart
function Report:chart(chart)
  local base, group
  for _, row in ipairs(chart.rows) do
    if base == nil or row.group ~= group then
      base, group = row.value, row.group
    end
    row.ratio = row.value / base
  end
  self.charts[#self.charts + 1] = chart
end

---@param goal riskscreen.bench.Goal
function Report:goal(goal)
  local limit = goal.at_most or goal.at_least
  local excess = goal.at_most and goal.value / limit - 1 or 1 - goal.value / limit
  goal.bound = (goal.at_most and "at most %.4g" or "at least %.4g"):format(limit)
  goal.met = excess <= 0
  goal.verdict = goal.met and "met" or ("missed by %.0f %%"):format(math.max(1, excess * 100))
  self.goals[#self.goals + 1] = goal
end

---A figure with about three digits.
---@param number number
---@return string
function M.significant(number)
  if number >= 100 then
    return ("%.0f"):format(number)
  end
  return (number >= 10 and "%.1f" or "%.2f"):format(number)
end

local function print_chart(chart)
  local columns = chart.columns or {}
  local width = 0
  for _, row in ipairs(chart.rows) do
    width = math.max(width, #row.what + (row.group and 2 or 0))
  end
  local head = { ("%-" .. width .. "s %10s %7s"):format("", chart.unit, "ratio") }
  for _, column in ipairs(columns) do
    head[#head + 1] = (" %12s"):format(column)
  end
  io.write("\n", chart.title, "\n", table.concat(head), "\n")
  local group
  for _, row in ipairs(chart.rows) do
    if row.group ~= group then
      group = row.group
      io.write(group, "\n")
    end
    local what = (group and "  " or "") .. row.what
    local line = {
      ("%-" .. width .. "s %" .. math.max(10, #chart.unit) .. "s %7.2f"):format(
        what,
        M.significant(row.value),
        row.ratio
      ),
    }
    for index in ipairs(columns) do
      line[#line + 1] = (" %12s"):format(M.significant(row.others[index]))
    end
    io.write(table.concat(line), "\n")
  end
end

local function print_goals(goals)
  if goals[1] then
    io.write("\ngoals\n")
  end
  for _, goal in ipairs(goals) do
    io.write(("  %-68s %6.2f  %-13s %s\n"):format(goal.what, goal.value, goal.bound, goal.verdict))
  end
end

local function save(report, directory)
  local name = (report.name .. "-" .. report.runtime):gsub("[^%w.-]", "_")
  local file = assert(io.open(directory .. "/" .. name .. ".json", "w"))
  file:write(cjson.encode(report))
  file:close()
end

---Prints the report, and saves it where a page is wanted.
function Report:finish()
  io.write(self.title, "; ", self.runtime, "; ", self.method, "\n")
  if self.peers then
    io.write("beside ", table.concat(self.peers, ", "), "\n")
  end
  for _, chart in ipairs(self.charts) do
    print_chart(chart)
  end
  print_goals(self.goals)
  local directory = os.getenv("RISKSCREEN_BENCH_RESULTS")
  if directory then
    save(self, directory)
  end
end

return M
