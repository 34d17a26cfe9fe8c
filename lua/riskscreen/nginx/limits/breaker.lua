-- The circuit breaker of breaker.lua for all workers together, in a shared dict: what one has learnt of the service
-- all know, and over all of them no more probes are under way than there shall be.
--
-- The dict knows no transactions. Time is therefore divided into numbered periods, each with keys of its own: a period
-- begins closed and stays so, or begins with the time at which the circuit opened. Of several workers that see the
-- same, the first writes it and the others write nothing else; one that dies on the way leaves a step that the next one
-- takes again. What the dict has lost closes the circuit.
--
-- Nearly always nothing has failed: then a request costs one look at the number of the period and one at whether there
-- is trouble, and what succeeds is counted here for a moment before all are told. From the first failure until a window
-- after the last one everything is counted in the dict as it happens.
local breakers = require "riskscreen.call.breaker"

local SLOTS = 10 -- parts of the window, each forgotten at once
local MOST_PROBES = 100 -- at once; more are as many
local SHORTEST_LIFETIME = 0.001 -- seconds
local CLOCK_STEP = 1 -- seconds by which the clock may seem to go back
local MOMENT = 0.01 -- seconds for which successes are counted here at most while more of them come

---@class riskscreen.nginx.SharedPermit to send one request
---@field number number of the period
---@field slot? integer of a probe
---@field expires number when a probe of which nothing was heard counts no longer
---@field own? riskscreen.Permit of the worker's own circuit, while the dict is of no use

---@class riskscreen.nginx.SharedBreaker
---@field state "closed"|"open"|"half_open" as this worker last saw it
---@field private own riskscreen.Breaker used while the dict is of no use
---@field private names table<string, string> keys of the period that is going on
---@field private closed? riskscreen.nginx.SharedPermit of that period, if it is known to be closed
---@field private untold integer requests in its `slot` that the dict does not know of
---@field private told_at number when it was last told of all
local Breaker = {}
Breaker.__index = Breaker

-- The number of the period; nil when the dict is of no use. A number that was lost is not used again.
local function period_of(self)
  local number = self.dict:get(self.period_key)
  if number == nil then
    self.dict:add(self.period_key, math.floor(self.now() * 1000))
    number = self.dict:get(self.period_key)
  end
  return type(number) == "number" and number or nil
end

local function prefix_of(self, number)
  return ("%s%.0f:"):format(self.prefix, number)
end

local function names_of(self, number)
  if self.number ~= number then
    local prefix = prefix_of(self, number)
    self.number, self.slot, self.closed, self.untold = number, nil, nil, 0
    self.names = {
      opened = prefix .. "opened",
      row = prefix .. "row",
      trouble = prefix .. "trouble",
      passed = prefix .. "passed",
      probe = prefix .. "probe:",
      total = prefix .. "total:",
      failed = prefix .. "failed:",
    }
  end
  return self.names
end

-- The next period. Whoever says this of the same period says the same.
local function finish(self, number)
  local names = names_of(self, number)
  if self.dict:get(self.period_key) == number then
    self.dict:set(self.period_key, number + 1)
  end
  for _, name in ipairs { "opened", "row", "trouble", "passed" } do
    self.dict:delete(names[name])
  end
end

-- Opens the circuit in a new period: what began in this one says nothing any more. Where the dict has no room for that,
-- the next failure tries again.
local function open(self, number)
  local first, message = self.dict:add(prefix_of(self, number + 1) .. "opened", self.now())
  if first then
    self.dict:incr(self.opened_key, 1, 0)
  end
  if first or message == "exists" then
    finish(self, number)
  end
  self.state = "open"
end

local function close(self, number)
  finish(self, number)
  self.state = "closed"
end

-- The number of the period, and the seconds for which the circuit stays open if it is. Sets the state.
local function look(self)
  local number = period_of(self)
  if not number then
    return nil
  end
  local names = names_of(self, number)
  if self.closed then
    self.state = "closed"
    return number
  end
  local opened_at = self.dict:get(names.opened)
  if type(opened_at) ~= "number" then
    self.state, self.closed = "closed", { number = number }
    return number
  end
  local since = self.now() - opened_at
  if since < self.settings.cooldown and since > -CLOCK_STEP then
    self.state = "open"
    return number, self.settings.cooldown - since
  end
  self.state = "half_open"
  if (tonumber((self.dict:get(names.passed))) or 0) >= self.probes then
    close(self, number)
    number = number + 1
  end
  return number
end

-- Seconds after which one of the probes under way counts no longer; nil where there may be another.
local function soonest_end(self, names)
  local soonest = math.huge
  for slot = 1, self.probes do
    local expires = self.dict:get(names.probe .. slot)
    if type(expires) ~= "number" then
      return nil
    end
    soonest = math.min(soonest, expires)
  end
  return math.max(SHORTEST_LIFETIME, soonest - self.now())
end

---Whether nothing may be sent now: then the seconds after which to ask again.
---@return number|nil retry_after
function Breaker:refuses()
  local number, open_for = look(self)
  if not number then
    local retry_after = self.own:refuses()
    self.state = self.own.state
    return retry_after
  elseif open_for then
    return open_for
  elseif self.state == "half_open" then
    return soonest_end(self, names_of(self, number))
  end
end

local function admit_by_own(self, longest)
  local permit, retry_after = self.own:admit(longest)
  self.state = self.own.state
  if not permit then
    return nil, retry_after
  end
  return { own = permit }
end

-- A probe, if there is a free place for one. A dict without room for it must not hold it up for ever.
local function admit_probe(self, number, longest)
  local expires, names = self.now() + longest, names_of(self, number)
  for slot = 1, self.probes do
    local taken, message = self.dict:add(names.probe .. slot, expires, math.max(longest, SHORTEST_LIFETIME))
    if taken or message ~= "exists" then
      return { number = number, slot = slot, expires = expires }
    end
  end
  return nil, soonest_end(self, names) or SHORTEST_LIFETIME
end

---Lets a request pass, or not.
---@param longest number seconds after which nothing more is heard of it
---@return riskscreen.nginx.SharedPermit|nil permit
---@return number|nil retry_after seconds
function Breaker:admit(longest)
  local number, open_for = look(self)
  if not number then
    return admit_by_own(self, longest)
  elseif open_for then
    return nil, open_for
  elseif self.state == "half_open" then
    return admit_probe(self, number, longest)
  end
  return self.closed or { number = number }
end

---Takes a permit back whose request says nothing about the service: it was cancelled, or never left.
---@param permit riskscreen.nginx.SharedPermit
function Breaker:forget(permit)
  if permit.own then
    self.own:forget(permit.own)
  elseif permit.slot then
    local key = prefix_of(self, permit.number) .. "probe:" .. permit.slot
    -- Of a probe that took too long, another may have the place.
    if self.dict:get(key) == permit.expires then
      self.dict:delete(key)
    end
  end
end

local function probe_ended(self, number, permit, failed)
  if failed then
    open(self, number)
    return
  end
  local names, cooldown = names_of(self, number), self.settings.cooldown
  if (self.dict:incr(names.passed, 1, 0) or self.probes) >= self.probes then
    close(self, number)
  else
    -- One that has passed keeps its place: so many are wanted in all.
    self.dict:set(names.probe .. permit.slot, self.now() + cooldown, cooldown)
  end
end

-- Tells the dict what it does not know yet of the slot.
local function tell(self)
  if self.untold > 0 then
    self.dict:incr(self.total_key, self.untold, 0, self.settings.window * 2)
    self.untold = 0
  end
end

-- The slot that is going on.
local function enter_slot(self, names, at)
  local slot = math.floor(at / (self.settings.window / SLOTS))
  if self.slot ~= slot then
    tell(self)
    self.slot = slot
    self.total_key, self.failed_key = ("%s%.0f"):format(names.total, slot), ("%s%.0f"):format(names.failed, slot)
  end
end

local function share_is_reached(self, names)
  local total, failed = 0, 0
  for slot = self.slot - SLOTS + 1, self.slot do
    total = total + (tonumber((self.dict:get(("%s%.0f"):format(names.total, slot)))) or 0)
    failed = failed + (tonumber((self.dict:get(("%s%.0f"):format(names.failed, slot)))) or 0)
  end
  return total >= self.settings.minimum and failed >= total * self.settings.share
end

-- Who fails says so after counting it, and who clears does so before: no row is left without its trouble.
local function request_failed(self, number)
  local names, dict, at = names_of(self, number), self.dict, self.now()
  enter_slot(self, names, at)
  self.untold = self.untold + 1
  tell(self)
  dict:incr(self.failed_key, 1, 0, self.settings.window * 2)
  local in_a_row = dict:incr(names.row, 1, 0) or 0
  dict:set(names.trouble, at)
  if in_a_row >= self.settings.failures or share_is_reached(self, names) then
    open(self, number)
  end
end

local function request_succeeded(self, number)
  local names, at = names_of(self, number), self.now()
  enter_slot(self, names, at)
  self.untold = self.untold + 1
  local trouble = self.dict:get(names.trouble)
  if trouble ~= nil then
    tell(self)
    if type(trouble) ~= "number" or at - trouble > self.settings.window then
      self.dict:delete(names.trouble)
    end
    if self.dict:get(names.row) ~= nil then
      self.dict:delete(names.row)
    end
  elseif at - self.told_at >= MOMENT or at < self.told_at then
    tell(self)
    self.told_at = at
  end
end

---How a request ended.
---@param permit riskscreen.nginx.SharedPermit
---@param failed boolean
function Breaker:report(permit, failed)
  if permit.own then
    self.own:report(permit.own, failed)
    return
  elseif permit == self.closed and not failed then
    request_succeeded(self, permit.number)
    return
  end
  local number = look(self)
  -- What began before a change of state says nothing about the time after it.
  if number ~= permit.number then
    return
  elseif permit.slot and self.state == "half_open" then
    probe_ended(self, number, permit, failed)
  elseif not permit.slot and self.state == "closed" then
    local ended = failed and request_failed or request_succeeded
    ended(self, number)
  end
end

---How it stands.
---@return { state: string, opened: integer, retry_after: number|nil }
function Breaker:standing()
  local retry_after = self:refuses()
  local opened = (tonumber((self.dict:get(self.opened_key))) or 0) + self.own:standing().opened
  return { state = self.state, opened = opened, retry_after = retry_after }
end

local M = {}

---@param settings riskscreen.BreakerSettings
---@param now fun(): number seconds, by a clock that all workers have in common
---@param dict table an ngx.shared dict
---@param name string circuits of one name are one circuit
---@return riskscreen.nginx.SharedBreaker
function M.new(settings, now, dict, name)
  local prefix = "riskscreen:circuit:" .. name .. ":"
  return setmetatable({
    settings = settings,
    now = now,
    dict = dict,
    state = "closed",
    own = breakers.new(settings, now),
    probes = math.min(settings.probes, MOST_PROBES),
    prefix = prefix,
    period_key = prefix .. "period",
    opened_key = prefix .. "opened",
    untold = 0,
    told_at = -math.huge,
  }, Breaker)
end

return M
