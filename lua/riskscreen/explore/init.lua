-- Explores a program: runs it against the sandbox under every schedule of faults, the shortest first. It reports the
-- first schedule after which the program paid wrongly or not at all. world.lua makes one run.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local digest = require "riskscreen.address.digest"
local random = require "riskscreen.util.random"
local sandbox = require "riskscreen.sandbox"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local world = require "riskscreen.explore.world"

local MOST_FAULTS = 20
local MOST = 1000000000
local TOLD_EVERY = 250 -- schedules
local LONGEST_SUBJECT = 60 -- bytes of a step's text

---@class riskscreen.explore.Input a payment to decide about
---@field id string
---@field address string the receiver
---@field network string
---@field hash string of the transaction

---@class riskscreen.explore.Fault
---@field at string the step that it strikes, such as "request 2"
---@field fault string

---@class riskscreen.explore.Explored
---@field schedules integer
---@field faults integer of those that were explored last, unless they were drawn at random
---@field random integer the number of those that were drawn at random

local input_fields = {
  build.required(build.text("id", build.forms.not_empty, "Its name for `pay` and `hold`.")),
  build.required(build.text("address", build.forms.not_empty, "The receiver.")),
  { name = "network", type = "string", default = "eth", doc = "The chain." },
  { name = "hash", type = "string", doc = "The transaction's hash; by default one of the id." },
}

local function check_inputs(inputs)
  local known = {}
  for _, input in ipairs(inputs) do
    if known[input.id] then
      return nil, "has two inputs " .. text.show(input.id)
    end
    input.hash = input.hash or "0x" .. text.hex(digest.sha256(input.id))
    known[input.id] = true
  end
  return inputs[1] and inputs, "must be a list of inputs"
end

-- A store, an inbox or a journal belongs to one run, and would be shared by all of them here.
local function check_client(value)
  for _, name in ipairs { "store", "inbox", "journal", "runtime", "transport" } do
    if value[name] ~= nil then
      return nil, ("must not have %s; the program can give it to world.client"):format(name)
    end
  end
  return tables.copy(value)
end

local M = {}

local function default_input(id, scenario)
  return { id = id, address = sandbox.scenario(scenario).address, network = "eth" }
end

local inputs = build.list(
  "inputs",
  build.group("input", input_fields, "A payment."),
  "The payments, each with `id`, `address`, `network`, `hash`; by default one for each of allow, block and review.",
  check_inputs {
    default_input("good", "clean-eth"),
    default_input("bad", "high-eth"),
    default_input("doubtful", "generally-high-eth"),
  },
  check_inputs
)

---@type riskscreen.Option[]
M.options = {
  build.required {
    name = "program",
    type = "function",
    doc = "program(client, world): pays with `world.pay(id)` what the client allows.",
  },
  inputs,
  build.dictionary("client", check_client, "Options of the client.", {}),
  build.flag("accept_degraded", false, "Whether an `allow` that is degraded is one."),
  build.count("faults", "faults", 2, 0, MOST_FAULTS, "Every schedule with at most so many faults is explored."),
  build.count(
    "random",
    "schedules",
    1000,
    0,
    MOST,
    "How many schedules are then drawn at random, with any number of faults."
  ),
  build.count("seed", "", 1, 0, MOST, "The seed of these."),
  build.notice("on_progress", "on_progress(explored): called now and then, with `schedules`, `faults`, `random`."),
}

-- The checked plan. Misuse raises at the caller of the public function.
local function plan_of(what, program, given)
  local of_program = type(program) == "table" and program or { program = program }
  local plan, wrong = check.options(M.options, type(given) == "table" and tables.merge(of_program, given) or given)
  local message = wrong and wrong.message or world.find_truth(plan)
  return not message and plan or error(what .. ": " .. message, 3)
end

local messages = {
  unallowed = "paid %s without an allow",
  twice = "paid %s twice",
  never = "never paid %s, although it is allowed",
  unheld = "neither paid nor held %s, whose decision is review",
}

---A schedule after which a program goes wrong.
---@class riskscreen.explore.Finding
---@field problem "unallowed"|"twice"|"never"|"unheld"
---@field id string of the input
---@field message string
---@field schedule riskscreen.explore.Fault[] for `replay`
---@field steps string[] the steps of the run, each with its fault
local Finding = { __name = "riskscreen.explore.Finding" }
Finding.__index = Finding

local function place(step)
  return step.kind .. " " .. step.count
end

function Finding:__tostring()
  local faults = {}
  for index, fault in ipairs(self.schedule) do
    faults[index] = ("{ at = %q, fault = %q }"):format(fault.at, fault.fault)
  end
  local lines = tables.concat({ self.message }, self.steps, { "schedule: { " .. table.concat(faults, ", ") .. " }" })
  return table.concat(lines, "\n")
end

local function show_line(line)
  return text.printable(line:gsub("\t", "  "), math.huge)
end

local function finding_of(run)
  local schedule, steps = {}, {}
  for _, step in ipairs(run.steps) do
    if step.fault then
      schedule[#schedule + 1] = { at = place(step), fault = step.fault }
    end
    local struck = step.fault and "  <- " .. step.fault or ""
    steps[#steps + 1] = ("  %-11s %s%s"):format(place(step), text.printable(step.subject, LONGEST_SUBJECT), struck)
  end
  local crash = run.crash and "; the program failed: " .. run.crash:gsub("[^\n]+", show_line) or ""
  return setmetatable({
    problem = run.problem,
    id = run.id,
    message = messages[run.problem]:format(text.show(run.id)) .. crash,
    schedule = schedule,
    steps = steps,
  }, Finding)
end

local function count(plan, explored)
  explored.schedules = explored.schedules + 1
  if plan.on_progress and explored.schedules % TOLD_EVERY == 0 then
    plan.on_progress(tables.copy(explored))
  end
end

-- Runs the program under faults by the number of their step.
local function run_with(plan, chosen)
  return world.run(plan, function(number)
    return chosen[number]
  end)
end

-- The first run that goes wrong among those with `left` faults more than `chosen`, at the step `first` or later.
local function search(plan, explored, chosen, first, left)
  local run = run_with(plan, chosen)
  if run.struck ~= explored.faults - left or left > 0 and run.problem then
    error("explore: the program does not repeat its steps: time and chance must come from `world`", 0)
  elseif left == 0 then
    count(plan, explored)
    return run.problem and run
  end
  for number = first, #run.steps do
    for _, fault in ipairs(run.steps[number].faults) do
      chosen[number] = fault
      local found = search(plan, explored, chosen, number + 1, left - 1)
      if found then
        return found
      end
    end
    chosen[number] = nil
  end
end

-- A run with less faults that goes wrong as well, as long as there is one.
local function shrink(plan, run)
  for number, step in ipairs(run.steps) do
    if step.fault then
      local fewer = {}
      for other, its in ipairs(run.steps) do
        fewer[other] = other ~= number and its.fault or nil
      end
      local smaller = run_with(plan, fewer)
      if smaller.problem and smaller.struck < run.struck then
        return shrink(plan, smaller)
      end
    end
  end
  return run
end

local function search_at_random(plan, explored)
  local draw = random.new(plan.seed)
  for _ = 1, plan.random do
    local share = draw() / 2
    local run = world.run(plan, function(_, step)
      return draw() < share and step.faults[1 + math.floor(draw() * #step.faults)] or nil
    end)
    explored.random = explored.random + 1
    count(plan, explored)
    if run.problem then
      return shrink(plan, run)
    end
  end
end

---Explores a program.
---@param program fun(client: riskscreen.Client, world: riskscreen.explore.World)|table the program, or the options with
---the program among them
---@param options? table
---@return riskscreen.explore.Finding|nil finding the shortest schedule that goes wrong; nil if none does
---@return riskscreen.explore.Explored explored
function M.run(program, options)
  local plan = plan_of("explore.run", program, options or {})
  local explored = { schedules = 0, faults = -1, random = 0 }
  local found
  repeat
    explored.faults = explored.faults + 1
    found = search(plan, explored, {}, 1, explored.faults)
  until found or explored.faults == plan.faults
  found = found or search_at_random(plan, explored)
  return found and finding_of(found) or nil, explored
end

---Runs a program once, under one schedule.
---@param program fun(client: riskscreen.Client, world: riskscreen.explore.World)|table
---@param schedule riskscreen.explore.Fault[] a fault whose step is not reached, or cannot fail so, does not strike
---@param options? table
---@return riskscreen.explore.Finding|nil finding
function M.replay(program, schedule, options)
  local plan, by_place = plan_of("explore.replay", program, options or {}), {}
  text.expect("explore.replay: schedule", schedule, "table")
  for _, fault in ipairs(schedule) do
    by_place[fault.at] = fault.fault
  end
  local run = world.run(plan, function(_, step)
    return by_place[place(step)]
  end)
  return run.problem and finding_of(run) or nil
end

return M
