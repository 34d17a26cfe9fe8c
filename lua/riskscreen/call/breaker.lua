-- A circuit breaker: while the service keeps failing, nothing is sent to it but one probe at a time. The circuit is in
-- `memory`, which is the client's own or an ngx.shared dict: then all workers have one circuit. Requests about one
-- subject may fail because of the subject. So they count once, and who asks about it again and again opens no circuit.

local tables = require "riskscreen.util.tables"

local SLOTS = 10 -- parts of the window, each forgotten at once
local MAX_SUBJECTS = 1024 -- bytes of the subjects of a row of failures
local SUBJECT_END = 8 -- bytes that tell the subjects of a row apart; a shared dict may be small

---@class riskscreen.BreakerSettings
---@field failures integer in a row that open the circuit
---@field share number of failed requests within the window that opens it
---@field minimum integer requests within the window from which on the share counts
---@field window number seconds
---@field cooldown number seconds from opening to the first probe
---@field probes integer that must succeed, one after another, to close the circuit

---@class riskscreen.SharedMemory methods of an ngx.shared dict
---@field get fun(self, key: string): any
---@field set fun(self, key: string, value: any, ttl?: number): boolean
---@field incr fun(self, key: string, amount: number, initial?: number, ttl?: number): number|nil

---@class riskscreen.Permit to send one request; the result of the request is reported with it
---@field slots table<integer, riskscreen.BreakerSlot> requests of this worker

---@class riskscreen.BreakerSlot a part of the window
---@field number integer
---@field total integer requests
---@field failed integer requests
---@field subjects table<string, true> of failed requests

---@class riskscreen.Breaker
---@field state "closed"|"open"|"half_open" as last seen
---@field private memory riskscreen.SharedMemory `open_until` is there while the circuit is not closed
---@field private open_until? number as last seen in the memory
---@field private permit riskscreen.Permit of the time since `open_until` changed
---@field private tick fun(): any changes when another worker may have changed the memory
---@field private looked_at? any the tick of the last look for the circuit
---@field private reset_at? number|false when the row of failures was last ended; false after a failure
---@field private lease? number the `open_until` that the last probe of this worker has set
local Breaker = {}

-- The memory of a circuit that is not shared.
local function own_memory()
  local values = {}
  return {
    get = function(_, key)
      return values[key]
    end,
    set = function(_, key, value)
      values[key] = value
      return true
    end,
    incr = function(_, key, amount, initial)
      values[key] = (values[key] or initial) + amount
      return values[key]
    end,
  }
end

-- A dict without room cannot keep the circuit: from then on it is this worker's own.
local function store(breaker, key, value)
  if not breaker.memory:set(key, value) then
    breaker.memory = own_memory()
    breaker.memory:set(key, value)
  end
end

local function count_up(breaker, key)
  local count = breaker.memory:incr(key, 1, 0)
  if not count then
    store(breaker, key, 1)
  end
  return count or 1
end

-- Sets the state and returns the seconds until a probe may be sent; nil while the circuit is closed.
local function look(breaker)
  local open_until = breaker.memory:get(breaker.keys.open_until)
  breaker.looked_at = breaker.tick()
  if type(open_until) ~= "number" then
    open_until = nil
  end
  -- A request that began before a change of state says nothing about the time after it.
  if open_until ~= breaker.open_until then
    breaker.open_until, breaker.permit = open_until, { slots = {} }
  end
  if not open_until then
    breaker.state = "closed"
    return nil
  end
  local wait = open_until - breaker.now()
  breaker.state = (wait <= 0 or open_until == breaker.lease) and "half_open" or "open"
  return wait
end

local function hold_until(breaker, time)
  store(breaker, breaker.keys.open_until, time)
  look(breaker)
end

local function open(breaker)
  local keys = breaker.keys
  count_up(breaker, keys.opened)
  breaker.memory:set(keys.passed, nil)
  hold_until(breaker, breaker.now() + breaker.settings.cooldown)
end

-- The current slot of the window.
local function slot_at(breaker, now)
  local number = math.floor(now / (breaker.settings.window / SLOTS))
  local slots = breaker.permit.slots
  local slot = slots[number % SLOTS]
  if not slot or slot.number ~= number then
    slot = { number = number, total = 0, failed = 0, subjects = {} }
    slots[number % SLOTS] = slot
  end
  return slot
end

-- Counts a failure in the window. Returns whether the share is reached.
local function count_in_window(breaker, slot, subject)
  local total, failed = 1, 1
  for _, other in pairs(breaker.permit.slots) do
    if other.number > slot.number - SLOTS then
      if other.subjects[subject] then
        return false
      end
      total, failed = total + other.total, failed + other.failed
    end
  end
  slot.total, slot.failed = slot.total + 1, slot.failed + 1
  if subject then
    slot.subjects[subject] = true
  end
  return total >= breaker.settings.minimum and failed >= total * breaker.settings.share
end

-- Counts a failure in the row of all workers. Returns the failures of the row; nil if one had the same subject.
local function count_in_row(breaker, subject)
  local memory, keys = breaker.memory, breaker.keys
  local subjects = memory:get(keys.row) and memory:get(keys.subjects) or "\n"
  if subject then
    local line = subject:sub(-SUBJECT_END) .. "\n"
    if subjects:find("\n" .. line, 1, true) then
      return nil
    end
    subjects = (subjects .. line):sub(-MAX_SUBJECTS)
  end
  memory:set(keys.subjects, subjects)
  return count_up(breaker, keys.row)
end

local function never() end

local M = {}

---@param settings riskscreen.BreakerSettings
---@param now fun(): number seconds, by a clock that all users of the memory have in common; a shared memory is looked
---at once for each of its values
---@param shared? riskscreen.SharedMemory
---@param name? string of the circuit in the shared memory
---@return riskscreen.Breaker
function M.new(settings, now, shared, name)
  local prefix = ("riskscreen:circuit:%s:"):format(tostring(name))
  local keys = {}
  for _, key in ipairs { "open_until", "row", "subjects", "passed", "opened" } do
    keys[key] = prefix .. key
  end
  return tables.object(Breaker, {
    settings = settings,
    now = now,
    memory = shared or own_memory(),
    tick = shared and now or never,
    keys = keys,
    state = "closed",
    permit = { slots = {} },
  })
end

---The seconds for which nothing may be sent; nil when a request may be sent now.
---@return number|nil retry_after
function Breaker:refuses()
  local wait = look(self)
  return wait and wait > 0 and wait or nil
end

---Lets a request pass, or not.
---@param longest number seconds that the request may take
---@return riskscreen.Permit|nil permit
---@return number|nil retry_after seconds
function Breaker:admit(longest)
  -- Looking for each request takes a thirtieth of a miss of the gate (`./dev bench nginx`).
  if self.state == "closed" and self.tick() == self.looked_at then
    return self.permit
  end
  local wait = look(self)
  if wait and wait > 0 then
    return nil, wait
  elseif wait then
    -- The request is a probe. Nothing else is sent until it has ended, or should have ended.
    self.lease = self.now() + longest
    hold_until(self, self.lease)
  end
  return self.permit
end

---Takes a permit back. Its request says nothing about the service: it was cancelled, or never left.
---@param permit riskscreen.Permit
function Breaker:forget(permit)
  look(self)
  if permit == self.permit and self.state == "half_open" then
    hold_until(self, self.now())
  end
end

local function learn_from_probe(breaker, failed, subject)
  local memory, keys = breaker.memory, breaker.keys
  if failed and count_in_row(breaker, subject) then
    open(breaker)
  elseif not failed and count_up(breaker, keys.passed) >= breaker.settings.probes then
    memory:set(keys.row, nil)
    memory:set(keys.open_until, nil)
  else
    hold_until(breaker, breaker.now())
  end
end

---Learns how a request ended.
---@param permit riskscreen.Permit
---@param failed boolean
---@param subject? string to which the failure may be due
function Breaker:report(permit, failed, subject)
  -- A success in a closed circuit changes nothing that another worker could have changed.
  if failed or self.state ~= "closed" then
    look(self)
  end
  if permit ~= self.permit then
    return
  elseif self.state == "half_open" then
    learn_from_probe(self, failed, subject)
    return
  end
  local now = self.now()
  local slot = slot_at(self, now)
  if failed then
    self.reset_at = false
    local row, is_reached = count_in_row(self, subject), count_in_window(self, slot, subject)
    if is_reached or row and row >= self.settings.failures then
      open(self)
    end
    return
  end
  slot.total = slot.total + 1
  if self.reset_at ~= now then
    -- Ends the row of failures of all workers.
    self.reset_at = now
    self.memory:set(self.keys.row, nil)
  end
end

---The state, how often the circuit has opened, and the seconds for which nothing is sent.
---@return { state: string, opened: integer, retry_after: number|nil }
function Breaker:status()
  local retry_after = self:refuses()
  return { state = self.state, opened = self.memory:get(self.keys.opened) or 0, retry_after = retry_after }
end

return M
