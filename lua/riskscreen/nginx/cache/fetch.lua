-- One fetch for all callers and workers. It takes the lock of all workers, and asks Redis, then the service. It keeps
-- the answer.
local entries = require "riskscreen.nginx.cache.entry"
local tables = require "riskscreen.util.tables"

local TICK = 0.001 -- seconds; nginx's clock shows no shorter time, and a shorter wait does not let time pass
local GRACE = 0.25 -- seconds after its deadline until a fetch counts as dead
local FIRST_PAUSE, GROWTH, LONGEST_PAUSE = 0.002, 1.5, 0.05 -- seconds between looks for another worker's entry

local is_action = tables.set { "allow", "review", "block", "unknown" }

local M = { TICK = TICK, GRACE = GRACE }

-- Keeps an entry: in the dict only under the lock, so that no older answer takes the place of a newer one.
local function keep(self, fetch, entry, now)
  local lifetime = self.entries:usable_until(entry) - now
  if lifetime > 0 then
    local is_shared = fetch.lock and self.dict:set(fetch.key, lifetime, entries.encode(entry))
    if not is_shared or self.lru:takes(fetch.name) then
      self:remember(fetch.name, entry, fetch.mark, fetch.generation)
    end
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
-- than what the other has found, and is not kept.
local function is_latest(self, fetch)
  local key = fetch.key
  return self.under_way[key] == fetch and self.dict:holds(key, fetch.lock) and self:mark_of(fetch.bucket) == fetch.mark
end

-- The result of a later fetch that has ended. It takes the place of this answer for its callers, too.
local function later_entry(self, fetch, asked_at, now)
  local name, mark = fetch.name, self:mark_of(fetch.bucket)
  local entry, tier = self:newest(self:own_entry(name, mark), self:key_of(name, mark), now)
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
  local later, tier = nil, nil
  if not latest then
    later, tier = later_entry(self, fetch, started, now)
  end
  if later then
    share(self, fetch.shared)
    return later, tier
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
  local key, lease = self.shared_prefix .. fetch.name, 0
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
  local entry = fetch.lock ~= nil and fetch.lock ~= true and self.entries:decode(self.dict:get(key), now)
  if entry and self:is_fresh(entry, now) then
    self:remember(fetch.name, entry, fetch.mark, fetch.generation)
    return entry, "dict"
  elseif fetch.lock == false and remaining >= TICK then
    self.sleep(math.min(pause, remaining))
    return lock(self, fetch, math.min(pause * GROWTH, LONGEST_PAUSE))
  end
end

local function run(fetch)
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

---Fetches for all workers, for pcall. Returns nil when the time is up. LuaJIT gives up each trace that returns to
---pcall, and ends one in good order at the return of a vararg function (spec/in_nginx/traces_nginx.lua).
function M.run(...)
  local entry, source = run(...)
  return entry, source
end

return M
