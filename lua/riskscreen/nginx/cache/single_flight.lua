-- Single flight: whoever asks the same at the same time waits for one answer, in a worker by a semaphore and over all
-- workers by a lock in the shared dict. Everyone keeps a deadline of their own. What is asked is not known here.
-- Nearly always nobody has to wait. What waits is a loop, so it has a function of its own: LuaJIT compiles a function
-- together with what that calls, but not with a loop on the way.

local MORE = 1.1 -- times the seconds of one that ran out of time are more time
local GRACE = 0.25 -- seconds after its deadline for which a leader may still be believed to be alive
local TICK = 0.001 -- seconds; nginx waits for less without letting time pass, and its clock shows no less
local FIRST_PAUSE, GROWTH, LONGEST_PAUSE = 0.002, 1.5, 0.05 -- seconds between looks at what another worker does

---How a worker waits; nginx has it, and specs have one in which no time passes.
---@class riskscreen.nginx.Waits
---@field now fun(): number seconds
---@field time fun(): number the same, at this very moment
---@field sleep fun(seconds: number)
---@field semaphore fun(): { wait: fun(self, seconds: number), post: fun(self, count: integer) }
---@field contain fun(fn: function, ...): boolean, any pcall, where that lets what it calls wait

---@class riskscreen.nginx.Outcome what a flight brought
---@field decision riskscreen.Decision
---@field patience? number of a failure that more time might have avoided: the seconds that were too few

---@class riskscreen.nginx.Request
---@field key string
---@field may_join fun(self, earlier: riskscreen.nginx.Request): boolean whether the outcome of that is one of this
---@field ask fun(self, seconds: number): riskscreen.nginx.Outcome asks for at most so long; remembers what it learns
---@field recall fun(self, seconds: number): riskscreen.nginx.Outcome|nil what others have learnt, if it helps one
---who has so much time left

---@class riskscreen.nginx.Flights
---@field private waits riskscreen.nginx.Waits
---@field private dict? table
---@field private under_way table<string, table> by key; a flight is kept by who leads it, and goes with a swept request
local Flights = {}
Flights.__index = Flights

-- Takes the lock: its token, false where there is nothing to lock, nil while another has it.
local function lock(self, key, seconds)
  if not self.dict or self.is_alone() then
    return false
  end
  self.serial = self.serial + 1
  local token = self.identity() .. ":" .. self.serial
  local ok, message = self.dict:add(self.prefix .. key, token, seconds + GRACE)
  if ok then
    return token
  elseif message == "exists" then
    return nil
  end
  -- A dict that has no room for a lock must not hold up anyone.
  return false
end

local function unlock(self, key, token)
  -- A lock that has expired may be another's by now.
  if self.dict:get(self.prefix .. key) == token then
    self.dict:delete(self.prefix .. key)
  end
end

-- Someone else may have had the lock just before.
local function ask_locked(request, seconds)
  return request:recall(seconds) or request:ask(seconds)
end

-- Asks if nobody else does; true when somebody does.
local function ask_alone(self, request, seconds)
  local token = lock(self, request.key, seconds)
  if token == nil then
    return nil, true
  end
  if not token then
    return request:ask(seconds), false
  end
  local ok, outcome = self.waits.contain(ask_locked, request, seconds)
  unlock(self, request.key, token)
  if not ok then
    error(outcome, 0)
  end
  return outcome, false
end

-- Looks again and again at what another worker does, and asks if that comes to nothing. Nil when the time is up.
local function wait_for_another(self, request, remaining)
  local deadline, pause = self.waits.now() + remaining, FIRST_PAUSE
  while remaining >= TICK do
    self.waits.sleep(math.min(pause, remaining))
    pause, remaining = math.min(pause * GROWTH, LONGEST_PAUSE), deadline - self.waits.now()
    local outcome, taken = request:recall(remaining), true
    if not outcome and remaining >= TICK then
      outcome, taken = ask_alone(self, request, remaining)
    end
    if outcome or not taken then
      return outcome
    end
  end
end

-- For all of this worker's: asks, or waits for the worker that does. Nil when the time is up.
local function ask_or_wait(self, request, seconds)
  local outcome, taken = ask_alone(self, request, seconds)
  if taken then
    return wait_for_another(self, request, seconds)
  end
  return outcome
end

local function lead(self, request, deadline, fly, seconds)
  local flight = { request = request, waiting = 0, dead_at = deadline + GRACE }
  self.under_way[request.key] = flight
  local ok, outcome = self.waits.contain(fly, self, request, seconds)
  if self.under_way[request.key] == flight then
    self.under_way[request.key] = nil
  end
  flight.outcome = ok and outcome or nil
  if flight.waiting > 0 then
    flight.semaphore:post(flight.waiting)
  end
  if not ok then
    error(outcome, 0)
  end
  return outcome
end

local function wait_for(self, flight, deadline)
  local now = self.waits.now()
  flight.waiting = flight.waiting + 1
  flight.semaphore = flight.semaphore or self.waits.semaphore()
  flight.semaphore:wait(math.min(deadline, flight.dead_at) - now)
  flight.waiting = flight.waiting - 1
  return flight.outcome
end

local function live_flight(self, request)
  local flight = self.under_way[request.key]
  if flight and flight.dead_at - self.waits.now() >= TICK and request:may_join(flight.request) then
    return flight
  end
end

local M = {}

---Whether a failure says something to one who has so much time left: one for lack of time does not, if there is more.
---@param outcome { patience?: number }
---@param remaining number seconds
---@return boolean
function M.concerns(outcome, remaining)
  return not outcome.patience or remaining <= outcome.patience * MORE
end

-- Waits for those of this worker who ask the same, one after another: the outcome, and the time that is left.
local function wait_for_others(self, request, flight, deadline, remaining)
  while flight and remaining >= TICK do
    local outcome = wait_for(self, flight, deadline)
    remaining = deadline - self.waits.now()
    if outcome and M.concerns(outcome, remaining) then
      return outcome, remaining
    end
    flight = live_flight(self, request)
  end
  return nil, remaining
end

---The outcome of a request that is made once for everyone who wants it now. Nil when the time is up.
---@param request riskscreen.nginx.Request
---@param timeout number seconds
---@return riskscreen.nginx.Outcome|nil outcome
---@return boolean|nil joined whether another asked
function Flights:join(request, timeout)
  local deadline, remaining = self.waits.now() + timeout, timeout
  local flight = live_flight(self, request)
  if flight then
    local outcome
    outcome, remaining = wait_for_others(self, request, flight, deadline, timeout)
    if outcome then
      return outcome, true
    end
  end
  if remaining >= TICK then
    return lead(self, request, deadline, ask_or_wait, remaining), false
  end
end

---Makes a request unless somebody is making it already; for work that nobody waits for.
---@param request riskscreen.nginx.Request
---@param timeout number seconds
function Flights:try(request, timeout)
  if not live_flight(self, request) then
    lead(self, request, self.waits.now() + timeout, ask_alone, timeout)
  end
end

---@class riskscreen.nginx.FlightSettings
---@field waits riskscreen.nginx.Waits
---@field dict? table an ngx.shared dict
---@field prefix string of the locks' keys
---@field identity fun(): string|number what no other worker has
---@field is_alone fun(): boolean whether there is one worker

---@param settings riskscreen.nginx.FlightSettings
---@return riskscreen.nginx.Flights
function M.new(settings)
  return setmetatable({
    waits = settings.waits,
    dict = settings.dict,
    prefix = settings.prefix,
    identity = settings.identity,
    is_alone = settings.is_alone,
    under_way = setmetatable({}, { __mode = "v" }),
    serial = 0,
  }, Flights)
end

return M
