-- riskscreen explore: runs a program that pays under every schedule of faults.

local progress = require "riskscreen.cli.progress"
local riskscreen = require "riskscreen"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

-- The options of explore.run that a user of the command sets, without defaults: the program may set them, too.
local options = {}
for _, option in ipairs(riskscreen.explore.options) do
  options[#options + 1] = option.unit and tables.without(option, "default") or nil
end

local function summary(explored)
  local drawn = explored.random > 0 and (", %s of them drawn at random"):format(text.grouped(explored.random)) or ""
  return ("%s with at most %s%s"):format(
    text.count(explored.schedules, "schedule"),
    text.count(explored.faults, "fault"),
    drawn
  )
end

local function run(context)
  local path, latest = context.arguments.program, { schedules = 0, faults = 0, random = 0 }
  local loaded, program = pcall(function()
    return assert(loadfile(path))(path)
  end)
  if not loaded then
    status.fail(status.unknown, (tostring(program):gsub("^%S+/explore%.lua:%d+: ", "")))
  end
  local line = progress.line(context)
  context.options.on_progress = function(explored)
    latest = explored
    line.draw(summary(explored))
  end
  local ok, finding, explored = pcall(riskscreen.explore.run, program, context.options)
  line.clear()
  local code, message = status.of_failure(finding)
  if not ok and code ~= status.interrupted then
    status.misuse((message:gsub("^failed: ", "")))
  end
  context:tell((ok and "" or "explored so far: ") .. summary(explored or latest))
  if not ok then
    error(finding, 0)
  elseif finding and context.format == "table" then
    status.ensure_written(context:stream():write(tostring(finding), "\n"))
  elseif finding then
    context:write_record({ "problem", "id", "message", "schedule", "steps" }, finding)
  end
  return finding and status.block or status.done
end

return {
  name = "explore",
  summary = "Run a program that pays under every schedule of faults.",
  description = "The file returns function(client, world), or a table of options with the function as `program`. "
    .. "The output is the shortest schedule after which it pays without an allow, twice or never.",
  arguments = { { name = "program", doc = "The Lua file." } },
  options = options,
  examples = {
    { line = "explore payouts.lua", what = "Every schedule with at most two faults" },
    { line = "explore payouts.lua --faults 1 --random 0", what = "A quick look" },
  },
  statuses = {
    done = "no schedule was found after which the program goes wrong",
    block = "there is one",
    unknown = "the program cannot be read",
  },
  run = run,
}
