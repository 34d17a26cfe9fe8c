-- One fetch for all callers of this worker that want the same key. The first caller fetches; the others wait for its
-- result by a semaphore, each until its own deadline. What a fetch does is in fetch.lua.
local fetches = require "riskscreen.nginx.cache.fetch"

local TICK, GRACE = fetches.TICK, fetches.GRACE
local START_PATIENCE = 0.05 -- seconds for which a fetch may wait for its timer

---@class riskscreen.nginx.Fetch a caller's request for a decision that is in no tier; if it is the first, a fetch
---@field cache riskscreen.nginx.Cache
---@field key string of the dict
---@field name string of the subject
---@field bucket integer of its address
---@field mark string of the bucket when it began: another one means a purge
---@field address string canonical
---@field network string canonical
---@field deadline number seconds
---@field generation? number of the account's lists that did not have the address
---@field expired? riskscreen.nginx.Entry
---@field waiting integer other callers
---@field semaphore? table
---@field lock string|boolean|nil of all workers; see CacheDict:lock
---@field shared? { key: string, lease: number, purge?: number, mark: string } what Redis has said about it
---@field result? riskscreen.nginx.Entry|false once it is over; false without one
---@field source riskscreen.nginx.CacheSource|false
---@field own riskscreen.Decision|false for the caller that fetches
---@field is_private? boolean the result counts for that caller alone
---@field failure? any the error that ended it
local Fetch = {}
Fetch.__index = Fetch

local M = {}

local function dead_at(fetch)
  return fetch.deadline + GRACE
end

---The fetch to wait for, if there is one.
---@param cache riskscreen.nginx.Cache
---@param key string
---@return riskscreen.nginx.Fetch|nil
function M.find(cache, key)
  local fetch = cache.under_way[key]
  return fetch and dead_at(fetch) - cache.clock() >= TICK and fetch or nil
end

-- Ends a fetch.
local function finish(fetch, result)
  local cache, key = fetch.cache, fetch.key
  if cache.under_way[key] == fetch then
    cache.under_way[key] = nil
  end
  cache.dict:unlock(key, fetch.lock)
  fetch.result = result or false
  if fetch.waiting > 0 then
    fetch.semaphore:post(fetch.waiting)
  end
end

---Ends a fetch whose caller nginx has ended.
function Fetch:abandon()
  finish(self)
end

local function wait(fetch, deadline)
  local cache = fetch.cache
  local remaining = math.min(deadline, dead_at(fetch)) - cache.clock()
  if fetch.result == nil and remaining > 0 then
    fetch.semaphore = fetch.semaphore or cache.new_semaphore()
    fetch.waiting = fetch.waiting + 1
    fetch.semaphore:wait(remaining)
    fetch.waiting = fetch.waiting - 1
  end
end

local function run(fetch)
  local cache = fetch.cache
  local hold = cache.hold(fetch)
  local ok, result, source = cache.pcall(fetches.run, fetch)
  cache.release(fetch, hold)
  if not ok then
    fetch.failure, result = result, nil
  end
  fetch.source = source
  finish(fetch, result)
end

-- Fetches in a timer, for a disconnect may end this request, and other callers may wait for the fetch. Waits for its
-- end. Returns false if the caller must fetch itself.
local function run_outside(fetch)
  local cache, has_begun, is_late = fetch.cache, false, false
  local is_accepted = cache.spawn(function()
    if not is_late then
      has_begun = true
      run(fetch)
    end
  end)
  if is_accepted then
    wait(fetch, cache.clock() + START_PATIENCE)
    is_late = not has_begun
  end
  if has_begun then
    wait(fetch, math.huge)
  end
  return has_begun
end

---Fetches, or waits for the fetch that is under way. Raises the error that ended the caller's own fetch.
---@param own riskscreen.nginx.Fetch
---@return riskscreen.nginx.Fetch|nil fetch with a result; nil when the time is up
function M.join(own)
  local cache = own.cache
  local other = M.find(cache, own.key)
  if other then
    wait(other, own.deadline)
    if other.result and not other.is_private then
      return other
    end
    -- No loop: LuaJIT does not compile a call behind a loop (`./dev bench nginx`).
    return own.deadline - cache.clock() >= TICK and M.join(own) or nil
  end
  setmetatable(own, Fetch)
  cache.under_way[own.key] = own
  if not (cache.may_end() and run_outside(own)) then
    run(own)
  end
  if own.failure then
    error(own.failure, 0)
  end
  return own.result and own or nil
end

return M
