-- One fetch for all callers of this worker that want the same key. The first caller fetches; the others wait for its
-- result by a semaphore, each until its own deadline. The lock across workers is in init.lua (`lock`).
local TICK = 0.001 -- seconds; nginx's clock shows no shorter time, and a shorter wait does not let time pass
local GRACE = 0.25 -- seconds after its deadline until a fetch counts as dead
local START_PATIENCE = 0.05 -- seconds for which a fetch may wait for its timer

---@class riskscreen.nginx.CacheRequest a caller's request for a decision that is in no tier of the cache
---@field key string
---@field address string canonical
---@field network string canonical
---@field deadline number seconds
---@field epoch number in which it began
---@field generation? number of the account's lists that did not have the address
---@field expired? riskscreen.nginx.Entry

---@class riskscreen.nginx.Flight a fetch under way
---@field cache riskscreen.nginx.Cache
---@field request riskscreen.nginx.CacheRequest of the caller that fetches
---@field waiting integer callers
---@field semaphore? table
---@field lock string|false|nil of all workers; false while another worker has it, nil if there is nothing to lock
---@field shared? { key: string, lease: number, purge?: number, mark: string } what Redis has said about it
---@field slot integer|false of the metrics
---@field result? riskscreen.nginx.Entry|false once it is over; false without one
---@field source riskscreen.nginx.CacheSource|false
---@field own riskscreen.Decision|false for the caller that fetches
---@field is_private? boolean the result counts for that caller alone
---@field failure? any the error that ended it
local Flight = {}
Flight.__index = Flight

local M = { TICK = TICK, GRACE = GRACE }

local function dead_at(flight)
  return flight.request.deadline + GRACE
end

---The flight to wait for, if there is one. A fetch of an earlier epoch may return an answer from before a purge.
---@param cache riskscreen.nginx.Cache
---@param request riskscreen.nginx.CacheRequest
---@return riskscreen.nginx.Flight|nil
function M.find(cache, request)
  local flight = cache.under_way[request.key]
  if flight and flight.request.epoch == request.epoch and dead_at(flight) - cache.clock() >= TICK then
    return flight
  end
end

-- Ends a fetch.
local function finish(flight, result)
  local cache, request = flight.cache, flight.request
  if cache.under_way[request.key] == flight then
    cache.under_way[request.key] = nil
  end
  if flight.lock then
    cache.dict:unlock(request, flight.lock)
  end
  cache.metrics:finish(flight)
  flight.result = result or false
  if flight.waiting > 0 then
    flight.semaphore:post(flight.waiting)
  end
end

---Ends its fetch: nginx has ended the caller that fetches.
function Flight:abandon()
  finish(self)
end

local function wait(flight, deadline)
  local cache = flight.cache
  local remaining = math.min(deadline, dead_at(flight)) - cache.clock()
  if flight.result == nil and remaining > 0 then
    flight.semaphore = flight.semaphore or cache.new_semaphore()
    flight.waiting = flight.waiting + 1
    flight.semaphore:wait(remaining)
    flight.waiting = flight.waiting - 1
  end
end

local function fly(flight)
  local cache = flight.cache
  local hold = cache.hold(flight)
  local ok, result, source = cache.pcall(cache.fly, flight)
  cache.release(flight, hold)
  if not ok then
    flight.failure, result = result, nil
  end
  flight.source = source
  finish(flight, result)
end

-- Fetches in a timer, for a disconnect may end this request, and other callers may wait for the fetch. Waits for its
-- end. Returns false if the caller must fetch itself.
local function fly_outside(flight)
  local cache, has_begun, is_late = flight.cache, false, false
  local is_accepted = cache.spawn(function()
    if not is_late then
      has_begun = true
      fly(flight)
    end
  end)
  if is_accepted then
    wait(flight, cache.clock() + START_PATIENCE)
    is_late = not has_begun
  end
  if has_begun then
    wait(flight, math.huge)
  end
  return has_begun
end

---Fetches, or waits for the fetch that is under way. Raises the error that ended the caller's own fetch.
---@param cache riskscreen.nginx.Cache
---@param request riskscreen.nginx.CacheRequest
---@return riskscreen.nginx.Flight|nil flight with a result; nil when the time is up
function M.join(cache, request)
  local flight = M.find(cache, request)
  if flight then
    wait(flight, request.deadline)
    if flight.result and not flight.is_private then
      return flight
    end
    -- No loop: LuaJIT does not compile a call behind a loop (`./dev bench nginx`).
    return request.deadline - cache.clock() >= TICK and M.join(cache, request) or nil
  end
  flight = { cache = cache, request = request, waiting = 0, lock = false, slot = false, own = false, source = false }
  setmetatable(flight, Flight)
  cache.under_way[request.key] = flight
  if not (cache.may_end() and fly_outside(flight)) then
    fly(flight)
  end
  if flight.failure then
    error(flight.failure, 0)
  end
  return flight.result and flight or nil
end

return M
