-- Hedging: when an answer is late, the request is sent a second time, and the first answer wins.

local tables = require "riskscreen.util.tables"

local SAMPLES = 64 -- durations that are kept for each operation
local FEWEST = 20 -- durations that the percentile needs
local PERCENTILE = 0.95

---@class riskscreen.Hedge
---@field delay number|"p95" seconds, or the recent 95th percentile of the operation's durations
---@field private recent table<string, { count: integer, durations: number[] }> by operation
local Hedge = {}
Hedge.__index = Hedge

local function percentile(durations)
  local sorted = tables.copy(durations)
  table.sort(sorted)
  return sorted[math.ceil(#sorted * PERCENTILE)]
end

---Adds the duration of an answer.
---@param operation string
---@param seconds number since its first request was sent
function Hedge:observe(operation, seconds)
  local recent = self.recent[operation]
  if not recent then
    recent = { count = 0, durations = {} }
    self.recent[operation] = recent
  end
  recent.durations[recent.count % SAMPLES + 1] = seconds
  recent.count = recent.count + 1
end

---The seconds after which an answer is late; nil while the percentile has too few durations.
---@param operation string
---@return number|nil
function Hedge:late_after(operation)
  if self.delay ~= "p95" then
    return self.delay
  end
  local recent = self.recent[operation]
  return recent and recent.count >= FEWEST and percentile(recent.durations) or nil
end

-- Whether a result ends the race. After a retryable failure the other request may still succeed.
local function decides(value, err)
  return value ~= nil or not err.retryable
end

-- Sends a request in a task that adds itself to the finished ones at its end.
local function enter(race, number)
  local task = race.tasks.spawn(race.send, number)
  race.entered[number] = task
  race.tasks.on_end(task, function()
    race.finished[#race.finished + 1] = task
    race.changed:notify()
  end)
end

-- The first result that ends the race, else the first failure.
local function winner(race)
  local examined = 0
  while true do
    while examined < #race.finished do
      examined = examined + 1
      local value, other = race.finished[examined]:await()
      if decides(value, other) or #race.entered == 1 then
        return race.finished[examined], value, other
      end
    end
    if examined == #race.entered then
      return race.finished[1], race.finished[1]:await()
    end
    race.changed:wait()
  end
end

local M = {}

---@param settings { delay: number|"p95" }
---@return riskscreen.Hedge
function M.new(settings)
  return setmetatable({ delay = settings.delay, recent = {} }, Hedge)
end

---Sends a request, and a second time when its answer is late. The loser is cancelled.
---@param tasks table the runtime's
---@param late_after number seconds
---@param send fun(number: integer): any, any sends request 1 or 2
---@param may_repeat fun(): boolean called when the answer is late
---@return integer number of the winning request
---@return any value
---@return any other
function M.race(tasks, late_after, send, may_repeat)
  local race = { tasks = tasks, send = send, entered = {}, finished = {}, changed = tasks.signal() }
  enter(race, 1)
  race.changed:wait(late_after)
  if #race.finished == 0 and may_repeat() then
    enter(race, 2)
  end
  local won, value, other = winner(race)
  for _, task in ipairs(race.entered) do
    if task ~= won then
      task:cancel()
    end
  end
  return won == race.entered[1] and 1 or 2, value, other
end

return M
