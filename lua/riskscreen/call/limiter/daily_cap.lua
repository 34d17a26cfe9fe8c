-- The cap of a day (UTC): the tokens that its calls have taken. Workers of nginx share it.
local DAY = 86400 -- seconds

---@class riskscreen.DailyCap
---@field private cap number
---@field private day? integer
---@field private began number monotonic seconds when that day began here
---@field private taken number on that day
local DailyCap = {}
DailyCap.__index = DailyCap

-- The tokens taken today.
function DailyCap:today()
  local day, now = math.floor(self.clock() / DAY), self.now()
  -- A date that is set back does not give the day's tokens a second time, unless a day has passed.
  if not self.day or day > self.day or now - self.began >= DAY then
    self.day, self.began, self.taken = day, now, 0
  end
  local key = self.shared and ("%s%.0f"):format(self.prefix, self.day)
  local taken = key and self.shared:get(key)
  return type(taken) == "number" and taken or self.taken, key
end

function DailyCap:left()
  return self.cap - self:today()
end

function DailyCap:take(cost)
  local _, key = self:today()
  self.taken = self.taken + cost
  if key then
    self.shared:incr(key, cost, 0, 2 * DAY)
  end
end

-- The seconds until the next day.
function DailyCap:rest()
  return math.min(DAY, (self.day + 1) * DAY - self.clock())
end

local M = {}

---@param cap number tokens
---@param clock fun(): number Unix seconds
---@param now fun(): number monotonic seconds
---@param shared? riskscreen.SharedMemory of all workers
---@param name? string of the bucket in the shared memory
---@return riskscreen.DailyCap
function M.new(cap, clock, now, shared, name)
  local prefix = ("riskscreen:daily:%s:"):format(tostring(name))
  return setmetatable({ cap = cap, clock = clock, now = now, shared = shared, prefix = prefix, taken = 0 }, DailyCap)
end

return M
