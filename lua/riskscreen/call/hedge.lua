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

---Adds the duration of an answer.
---@param operation string
---@param seconds number since its first request was sent
function Hedge:observe(operation, seconds)
  local recent = self.recent[operation] or { count = 0, durations = {} }
  self.recent[operation] = recent
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
  if not recent or recent.count < FEWEST then
    return nil
  end
  local sorted = tables.copy(recent.durations)
  table.sort(sorted)
  return sorted[math.ceil(#sorted * PERCENTILE)]
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
  local entered, ended, changed = {}, {}, tasks.signal()
  local function enter(number)
    entered[number] = tasks.spawn(send, number)
    tasks.on_end(entered[number], function()
      ended[#ended + 1] = number
      changed:notify()
    end)
  end
  enter(1)
  changed:wait(late_after)
  if #ended == 0 and may_repeat() then
    enter(2)
  end
  -- A value or a final failure ends the race. After a failure that may pass the other request may still succeed.
  local won, value, other
  for position = 1, #entered do
    while not ended[position] do
      changed:wait()
    end
    local its_value, its_other = entered[ended[position]]:await()
    if not won or its_value ~= nil or not its_other.retryable then
      won, value, other = ended[position], its_value, its_other
    end
    if value ~= nil or not other.retryable then
      break
    end
  end
  for number, task in ipairs(entered) do
    if number ~= won then
      task:cancel()
    end
  end
  return won, value, other
end

return M
