-- A circuit breaker: while the service keeps failing, nothing is sent to it but a probe now and then. It belongs to one
-- client, which has one host. Pure but for the clock it is given.

local SLOTS = 10 -- parts of the window, each forgotten at once

---@class riskscreen.BreakerSettings
---@field failures integer in a row that open the circuit
---@field share number of failed requests within the window that opens it
---@field minimum integer requests within the window from which on the share counts
---@field window number seconds
---@field cooldown number seconds from opening to the first probe
---@field probes integer that must succeed to close it, and at most are under way

---@class riskscreen.Permit to send one request; its outcome is reported with it
---@field period table the time between two changes of state
---@field expires number when a probe of which nothing was heard counts no longer

---@class riskscreen.Breaker
---@field state "closed"|"open"|"half_open"
---@field private period { in_a_row: integer, slots: table, probing: riskscreen.Permit[], passed: integer }
---@field private opened integer how often it has opened
local Breaker = {}
Breaker.__index = Breaker

-- What was reported before a change of state says nothing about the time after it: that begins with a new period.
local function enter(breaker, state)
  breaker.state = state
  breaker.period = { in_a_row = 0, slots = {}, probing = {}, passed = 0 }
end

local function open(breaker)
  enter(breaker, "open")
  breaker.opened = breaker.opened + 1
  breaker.reopens_at = breaker.now() + breaker.settings.cooldown
end

local function count(breaker, failed)
  local number = math.floor(breaker.now() / (breaker.settings.window / SLOTS))
  local slots = breaker.period.slots
  local slot = slots[number % SLOTS]
  if not slot or slot.number ~= number then
    slot = { number = number, total = 0, failed = 0 }
    slots[number % SLOTS] = slot
  end
  slot.total = slot.total + 1
  slot.failed = slot.failed + (failed and 1 or 0)
  return number
end

local function share_is_reached(breaker, number)
  local total, failed = 0, 0
  for _, slot in pairs(breaker.period.slots) do
    if slot.number > number - SLOTS then
      total, failed = total + slot.total, failed + slot.failed
    end
  end
  return total >= breaker.settings.minimum and failed >= total * breaker.settings.share
end

-- The probes under way, without those of which nothing will be heard.
local function probes_under_way(breaker)
  local now, live = breaker.now(), {}
  for _, permit in ipairs(breaker.period.probing) do
    if permit.expires > now then
      live[#live + 1] = permit
    end
  end
  breaker.period.probing = live
  return live
end

local function settle(breaker)
  if breaker.state == "open" and breaker.now() >= breaker.reopens_at then
    enter(breaker, "half_open")
  end
end

local M = {}

---@param settings riskscreen.BreakerSettings
---@param now fun(): number seconds
---@return riskscreen.Breaker
function M.new(settings, now)
  local breaker = setmetatable({ settings = settings, now = now, opened = 0 }, Breaker)
  enter(breaker, "closed")
  return breaker
end

---Whether nothing may be sent now: then the seconds after which to ask again.
---@return number|nil retry_after
function Breaker:refuses()
  settle(self)
  if self.state == "open" then
    return self.reopens_at - self.now()
  elseif self.state == "half_open" then
    local probing = probes_under_way(self)
    if #probing + self.period.passed >= self.settings.probes then
      local soonest = math.huge
      for _, permit in ipairs(probing) do
        soonest = math.min(soonest, permit.expires)
      end
      return soonest - self.now()
    end
  end
end

---Lets a request pass, or not.
---@param longest number seconds after which nothing more is heard of it
---@return riskscreen.Permit|nil permit
---@return number|nil retry_after seconds
function Breaker:admit(longest)
  local retry_after = self:refuses()
  if retry_after then
    return nil, retry_after
  end
  local permit = { period = self.period, expires = self.now() + longest }
  if self.state == "half_open" then
    table.insert(self.period.probing, permit)
  end
  return permit
end

---Takes a permit back whose request says nothing about the service: it was cancelled, or never left.
---@param permit riskscreen.Permit
function Breaker:forget(permit)
  permit.expires = -math.huge
end

---How a request ended.
---@param permit riskscreen.Permit
---@param failed boolean
function Breaker:report(permit, failed)
  if permit.period ~= self.period then
    return
  end
  local period = self.period
  if self.state == "half_open" then
    self:forget(permit)
    period.passed = period.passed + 1
    if failed then
      open(self)
    elseif period.passed >= self.settings.probes then
      enter(self, "closed")
    end
    return
  end
  local number = count(self, failed)
  period.in_a_row = failed and period.in_a_row + 1 or 0
  if failed and (period.in_a_row >= self.settings.failures or share_is_reached(self, number)) then
    open(self)
  end
end

---How it stands.
---@return { state: string, opened: integer, retry_after: number|nil }
function Breaker:standing()
  local retry_after = self:refuses()
  return { state = self.state, opened = self.opened, retry_after = retry_after }
end

return M
