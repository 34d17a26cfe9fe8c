-- One fetch for all callers and workers that want the same key. The first caller of a worker fetches; the others wait
-- for its result by a semaphore, each until its own deadline. A fetch takes the lock of all workers, and asks Redis,
-- then the service. It keeps the answer.
local entries = require "riskscreen.nginx.cache.entry"
local is_action = require("riskscreen.policy.decision").severity

local TICK = 0.001 -- seconds; nginx's clock shows no shorter time, and a shorter wait does not let time pass
local GRACE = 0.25 -- seconds after its deadline until a fetch counts as dead
local FIRST_PAUSE, GROWTH, LONGEST_PAUSE = 0.002, 1.5, 0.05 -- seconds between looks for another worker's entry
local START_PATIENCE = 0.05 -- seconds for which a fetch may wait for its timer

---@class riskscreen.nginx.Fetch a caller's request for a decision that is in no tier; if it is the first, a fetch
---@field cache riskscreen.nginx.Cache
---@field key string of the subject when it began: another one means a purge
---@field address string canonical
---@field network string canonical
---@field deadline number seconds
---@field generation? any of the account's lists that did not have the address
---@field expired? riskscreen.nginx.Entry
---@field waiting integer other callers
---@field semaphore? table
---@field lock string|boolean|nil of all workers; see CacheDict:lock
---@field shared? { key: string, lease: number, purge?: number, mark: string } what Redis has said about it
---@field result? riskscreen.nginx.Entry|false once it is over; false without one
---@field source? riskscreen.nginx.CacheSource
---@field own? riskscreen.Decision for the caller that fetches
---@field is_private? boolean the result counts for that caller alone
---@field failure? any the error that ended it
local Fetch = {}
Fetch.__index = Fetch

-- Keeps an entry: in the dict only under the lock, so that no older answer takes the place of a newer one.
local function keep(self, fetch, entry, now)
  if now < self.entries:usable_until(entry) then
    if fetch.lock then
      self.entries:save(fetch.key, entry, now)
    end
    self:remember(fetch.key, entry, fetch.generation)
  end
end

-- Shares an answer with the other machines, or lets them ask.
local function share(self, shared, entry)
  if not shared then
    return
  elseif entry and shared.purge then
    self.fleet:share(shared.key, entry.verdict, entry.at, entry.expires_at, shared.purge, shared.mark, shared.lease)
  else
    self.fleet:release(shared.key, shared.lease)
  end
end

local function count(self, failure, seconds)
  -- If nothing was sent, the service took no time.
  if not failure or (failure.attempts or 0) > 0 then
    self.metrics:took("upstream", seconds)
  end
  -- Callers cause invalid addresses, and must not raise an alarm about the service.
  if failure and failure.kind ~= "invalid_argument" then
    self.metrics:count("errors", failure.kind)
  end
end

-- Whether no other fetch about the address has begun since, and no purge has come. Otherwise this answer may be older
-- than the other one's, and is not kept.
local function is_latest(self, fetch)
  local key = fetch.key
  return self.under_way[key] == fetch and self.dict:holds(key, fetch.lock) and not self:is_purged(fetch)
end

-- The result of a later fetch that has ended. It takes the place of this answer for its callers, too.
local function later_entry(self, fetch, asked_at, now)
  local key = self.dict:key(fetch.network, fetch.address)
  local entry, tier = self:newest(self.lru:get(key), key, now)
  if entry and entry.kind ~= entries.FAILED and entry.at > asked_at and self:is_fresh(entry, now) then
    return entry, tier
  end
end

-- Asks the service, and keeps the answer or the failure. Returns the entry as other workers will read it.
local function ask(self, fetch)
  local started = self.clock()
  local decision = self.fetch(fetch.address, fetch.network, fetch.deadline - started)
  if type(decision) ~= "table" or not is_action[decision.action] then
    error("fetch must return a decision", 0)
  end
  local failure, now = decision.error, self:catch_up()
  count(self, failure, now - started)
  local latest = is_latest(self, fetch)
  -- A single worker takes no lock, but after a reload there is a new one beside it.
  if not latest or self.exiting() then
    local later, tier = later_entry(self, fetch, started, now)
    if later then
      share(self, fetch.shared)
      return later, tier
    end
  end
  local failed, is_kept = failure ~= nil or decision.action == "unknown", true
  if failure then
    is_kept, fetch.is_private = entries.is_kept(failure)
  end
  local entry = failed and self:stand_in(fetch, decision, now)
  if not entry then
    fetch.own = decision
    -- The ttl counts from the start of the request, because the risk may change while it runs.
    entry = is_kept and self.entries:of(decision, failed and now or started, failed)
  end
  if entry and is_kept and latest then
    keep(self, fetch, entry, now)
  end
  share(self, fetch.shared, not failed and latest and entry)
  return entry or { decision = decision }, failure and failure.kind == "invalid_argument" and "invalid" or "upstream"
end

-- The entry that another machine has fetched; else takes the lease for this fetch, if Redis answers.
local function ask_fleet(self, fetch)
  local fleet, address = self.fleet, fetch.address
  local key, lease = self.shared_prefix .. fetch.network .. ":" .. address, 0
  local verdict, refused = fleet:find(key, address)
  local entry = verdict and self.entries:restore(verdict)
  if not entry and refused ~= nil and fleet.purges:number() then
    lease, verdict = fleet:take_lease(key, address, refused, fetch.deadline - self.clock())
    entry = verdict and self.entries:restore(verdict)
  end
  local now = self:catch_up()
  if entry and self:is_fresh(entry, now) then
    if is_latest(self, fetch) then
      keep(self, fetch, entry, now)
    end
    return entry, "redis"
  end
  fetch.shared = { key = key, lease = lease, purge = fleet.purges:number(), mark = fleet.purges:mark() }
end

-- Takes the lock of all workers, or waits for the entry that the worker with the lock leaves. Another worker may have
-- had the lock until just now. The lock is false when the time is up.
local function lock(self, fetch, pause)
  local now, key = self.clock(), fetch.key
  local remaining = fetch.deadline - now
  fetch.lock = self.dict:lock(key, now, remaining + GRACE)
  local entry = fetch.lock ~= nil and fetch.lock ~= true and self.entries:load(key, now)
  if entry and self:is_fresh(entry, now) then
    self:remember(fetch.key, entry, fetch.generation)
    return entry, "dict"
  elseif fetch.lock == false and remaining >= TICK then
    self.sleep(math.min(pause, remaining))
    return lock(self, fetch, math.min(pause * GROWTH, LONGEST_PAUSE))
  end
end

local function find_and_keep(fetch)
  local self = fetch.cache
  local entry, source = lock(self, fetch, FIRST_PAUSE)
  if not entry and fetch.lock ~= false then
    if self.fleet then
      entry, source = ask_fleet(self, fetch)
    end
    if not entry then
      entry, source = ask(self, fetch)
    end
  end
  return entry, source
end

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
  local ok, result, source = cache.pcall(find_and_keep, fetch)
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
