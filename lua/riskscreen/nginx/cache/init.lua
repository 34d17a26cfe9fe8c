-- The cache of decisions. `get` tries the LRU of this worker, then the dict of all workers; then it fetches once for
-- all callers. Entries are in entry.lua, the dict is in dict.lua. Callers of one worker wait in single_flight.lua;
-- workers wait for each other here (`fetch_locked`), by a lock in the dict.
local addresses = require "riskscreen.address"
local decisions = require "riskscreen.policy.decision"
local dicts = require "riskscreen.nginx.cache.dict"
local entries = require "riskscreen.nginx.cache.entry"
local errors = require "riskscreen.errors"
local lrus = require "riskscreen.nginx.cache.lru"
local runtime = require "riskscreen.runtime"
local single_flight = require "riskscreen.nginx.cache.single_flight"
local tables = require "riskscreen.util.tables"
local time = require "riskscreen.util.time"

local sub = string.sub

local TICK = single_flight.TICK
local START_PATIENCE = 0.05 -- seconds for which a fetch may wait for its timer
local FIRST_PAUSE, GROWTH, LONGEST_PAUSE = 0.002, 1.5, 0.05 -- seconds between looks for another worker's entry

local is_action = tables.set { "allow", "review", "block", "unknown" }

---@alias riskscreen.nginx.CacheSource "lru"|"dict"|"redis"|"upstream"|"stale"|"list"|"invalid"

---@class riskscreen.nginx.Cache
---@field prefix string of keys
---@field private shared table the ngx.shared dict, or one without entries
---@field private seen_at? number when the epoch was last looked up
---@field private epoch? number
---@field private generation? number of the account's lists
---@field private heard_at? number until which it has heard of the fleet's purges
---@field private is_deaf? boolean it has not heard of them for longer than the fleet's `delay`
local Cache = {}

local Request = { waiting = 0 }
Request.__index = Request

---A caller's request for a decision that is in no tier of the cache. If it leads a flight, it is also that flight and
---its result: separate tables would be garbage of each fetch (`./dev bench nginx`).
---@class riskscreen.nginx.CacheRequest: riskscreen.nginx.Flight
---@field cache riskscreen.nginx.Cache
---@field key string
---@field address string canonical
---@field network string canonical
---@field expired? riskscreen.nginx.Entry
---@field began number
---@field generation? number of the lists that did not have the address
---@field epoch number
---@field lock string|false|nil of all workers, if it has the lock
---@field shared_key? string in Redis
---@field purge? number the last purge that the machine had heard of before it fetched
---@field purge_mark? string of its record
---@field lease? number of Redis for this fetch; 0 without one
---@field decision? riskscreen.Decision for the callers that waited
---@field own? riskscreen.Decision for the caller that fetched
---@field source? riskscreen.nginx.CacheSource
---@field failed? boolean
---@field is_private? boolean the result counts for the caller that fetched alone
---@field slot? integer of the metrics
---@field failure? string the error that ended the fetch

-- Empties the LRU when the machine has not heard of the fleet's purges for too long.
local function hear(self, now)
  local fleet, was_deaf = self.fleet, self.is_deaf
  fleet:start()
  local heard_at = fleet.purges:heard_at()
  self.heard_at = time.age(heard_at, now, time.LAG) and heard_at or -fleet.delay
  self.is_deaf = now >= self.heard_at + fleet.delay
  if self.is_deaf and not was_deaf then
    self.lru:clear()
  end
end

-- The time until which a decision may be served by a machine that does not hear of purges. A block may always be.
local function heard_until(self, entry)
  if not self.is_deaf or entry.decision.action == "block" then
    return math.huge
  end
  return math.max(self.heard_at, entry.at) + self.fleet.delay
end

local function limit(self, entry)
  entry.expires_at = math.min(entry.expires_at, heard_until(self, entry))
  return entry
end

-- Empties the LRU if anything was purged. Checks once per clock value.
local function catch_up(self)
  local now, seen_at = self.clock(), self.seen_at
  if now == seen_at then
    return now
  end
  local epoch = self.dict:epoch()
  self.seen_at = now
  if self.fleet then
    hear(self, now)
  end
  if epoch ~= self.epoch then
    self.epoch = epoch
    self.lru:clear()
  end
  if self.lists then
    if not seen_at then
      self.lists:start()
    end
    self.generation = self.lists:generation()
  end
  return now
end

local function count_lookups(self, in_dict)
  if self.metrics then
    self.metrics:lookup("lru", false)
    self.metrics:lookup("dict", in_dict)
  end
end

local function find_in_lists(self, address, network, now)
  return self.lists:find({ key = network .. ":" .. address, address = address, network = network }, now)
end

-- The decision of the lists about the subject of a key; or nil.
local function listed(self, key, network, now)
  local found = find_in_lists(self, self:address_of(key, network), network, now)
  if found then
    local entry = { decision = found.decision, expires_at = found.valid_until, at = 0, source = "list" }
    entry.generation = self.generation
    self.lru:set(key, entry)
    return found.decision
  end
end

-- The entry that all workers share, unless the address was purged since.
local function entry_in_dict(self, key, network, now)
  local text = self.shared:get(key)
  if not text then
    return nil
  end
  local address = self:address_of(key, network)
  local entry, epoch = self.entries:decode(text, now, address, network)
  if entry and (epoch == self.epoch or not self.dict:was_purged(address, epoch)) then
    return self.is_deaf and limit(self, entry) or entry
  end
end

-- Whether an expired decision may be served instead of one about a failure.
local function stands_in(self, entry, failed, now)
  return self.entries:stands_in(entry, failed, now) and not (self.is_deaf and now >= heard_until(self, entry))
end

-- The newer one of two entries. An expired decision that only this worker knows outlives another worker's failure.
local function newer(self, own, shared, now)
  if not own or not shared then
    return own or shared
  elseif shared.failed and stands_in(self, own, shared.decision, now) then
    return self.entries:stale(own, shared.at)
  end
  return own.at > shared.at and own or shared
end

-- The expired decision that may be served instead of one about a failure. A purge ends it, also during the fetch.
local function stand_in(request, failed, now)
  local self, expired = request.cache, request.expired
  if stands_in(self, expired, failed, now) and not self.dict:was_purged(request.address, request.epoch) then
    return self.entries:stale(expired, now)
  end
end

-- Stores an entry for all workers. It gets its decision only if this worker serves it.
local function store(request, entry, now)
  local self = request.cache
  local lifetime = self.entries:usable_until(entry) - now
  local is_written = lifetime > 0 and self.dict:set(request.key, self.entries:encode(entry, request.epoch), lifetime)
  -- In another epoch the address may have been purged.
  local is_kept = lifetime > 0 and self.epoch == request.epoch and (not is_written or self.lru:takes(request.key))
  if is_kept or request.waiting > 0 then
    self.entries.complete(entry, request.address, request.network)
  end
  if is_kept then
    entry.generation = request.generation
    self.lru:set(request.key, self.is_deaf and limit(self, entry) or entry)
  end
end

-- Stores the answer or the failure. Returns the entry as other workers will decode it.
local function keep(request, decision, failed)
  local self, now = request.cache, request.cache.clock()
  -- The ttl counts from the start of the request, because the risk may change while it runs.
  local entry = failed and stand_in(request, decision, now)
    or self.entries:fresh(decision, failed and now or request.began, failed)
  if entry then
    store(request, entry, now)
  end
  return entry
end

-- Shares the answer with the other machines, or lets them ask.
local function share(request, entry, failed)
  local self = request.cache
  if entry and not failed then
    local valid_until = entry.at + self.entries.ttl[entry.known.action]
    local purge, mark = request.purge, request.purge_mark
    self.fleet:share(request.shared_key, entry.known, entry.at, valid_until, purge, mark, request.lease)
  elseif request.lease > 0 then
    self.fleet:release(request.shared_key, request.lease)
  end
end

local function count_fetch(self, failure, seconds)
  -- If nothing was sent, the service took no time.
  if not failure or (failure.attempts or 0) > 0 then
    self.metrics:took("upstream", seconds)
  end
  -- Callers cause invalid addresses, and must not raise an alarm about the service.
  if failure and failure.kind ~= "invalid_argument" then
    self.metrics:count("errors", failure.kind)
  end
end

-- Puts the decision of an entry into the request, as its result.
local function conclude(request, entry, source)
  request.decision, request.own, request.source = entry.decision, entry.decision, source
  request.failed = entry.failed
  return request
end

-- The result of a fetch that began later and has ended: after a purge of any address, or where this worker was stopped
-- for longer than its lock. Then an older answer must not take its place.
local function overtaken(request)
  local self = request.cache
  if self.epoch == request.epoch and self.clock() < request.dead_at then
    return nil
  end
  local now = self.clock()
  local entry = newer(self, self.lru:get(request.key), entry_in_dict(self, request.key, request.network, now), now)
  if not entry or entry.failed or entry.at <= request.began or now >= entry.expires_at then
    return nil
  end
  if request.purge then
    share(request, nil, true)
  end
  local result = conclude(request, entry, entry.source or "dict")
  return result
end

-- Asks the service, and keeps the answer. `seconds` were left before the deadline when the clock was last read.
local function ask(request, deadline, seconds)
  local self, started = request.cache, deadline - seconds
  if self.metrics then
    self.metrics:begin(request)
  end
  local decision = self.fetch(request.address, request.network, seconds)
  if type(decision) ~= "table" or not is_action[decision.action] then
    error("fetch must return a decision", 0)
  end
  local failure = decision.error
  if self.metrics then
    count_fetch(self, failure, self.clock() - started)
  end
  local result = overtaken(request)
  if result then
    return result
  end
  local failed = failure ~= nil or decision.action == "unknown"
  local is_kept, is_private = true, false
  if failure then
    is_kept, is_private = self.entries.is_kept(failure)
  end
  local entry = is_kept and keep(request, decision, failed) or nil
  if request.purge then
    share(request, entry, failed)
  end
  request.decision, request.own = entry and entry.decision or decision, decision
  request.source = failure and failure.kind == "invalid_argument" and "invalid" or "upstream"
  if failed then
    request.failed, request.is_private = true, is_private
  end
  return request
end

-- The entry that another worker has fetched meanwhile.
local function found(request)
  local self, now = request.cache, request.cache.clock()
  local entry = entry_in_dict(self, request.key, request.network, now)
  if not entry or now >= entry.expires_at then
    return nil
  elseif self.epoch == request.epoch then
    entry.generation = request.generation
    self.lru:set(request.key, entry)
  end
  local result = conclude(request, entry, entry.source or "dict")
  return result
end

-- The decision that another machine has fetched; else takes the lease for this fetch, if Redis answers.
local function fetch_from_fleet(request, seconds)
  local self, fleet = request.cache, request.cache.fleet
  local key, address = self.shared_prefix .. request.network .. ":" .. request.address, request.address
  local verdict, refused = fleet:find(key, address)
  local lease = 0
  local entry = verdict and self.entries:restore(verdict, address, request.network)
  if not entry and refused ~= nil and fleet.purges:number() then
    lease, verdict = fleet:take_lease(key, address, refused, seconds)
    entry = verdict and self.entries:restore(verdict, address, request.network)
  end
  local now = self.clock()
  if entry and now < math.min(entry.expires_at, heard_until(self, entry)) then
    store(request, entry, now)
    local result = conclude(request, entry, "redis")
    return result
  end
  request.shared_key, request.lease = key, lease
  request.purge, request.purge_mark = fleet.purges:number(), fleet.purges:mark()
end

-- Fetches for all workers: takes their lock, or waits for the entry that the worker with the lock leaves. Returns nil
-- when the time is up.
local function fetch_locked(request, deadline, seconds)
  local self, remaining, pause = request.cache, seconds, FIRST_PAUSE
  request.lock = self.dict:lock(request.key, deadline - remaining, remaining + single_flight.GRACE)
  while request.lock == false do
    self.sleep(math.min(pause, remaining))
    pause, remaining = math.min(pause * GROWTH, LONGEST_PAUSE), deadline - self.clock()
    local result = found(request)
    if result or remaining < TICK then
      return result
    end
    request.lock = self.dict:lock(request.key, deadline - remaining, remaining + single_flight.GRACE)
  end
  -- Another worker may have had the lock until just now.
  local result = request.lock and found(request) or nil
  if not result and self.fleet then
    result = fetch_from_fleet(request, remaining)
    remaining = deadline - self.clock()
  end
  return result or ask(request, deadline, remaining)
end

-- For pcall. LuaJIT gives up each trace that returns to pcall, and every side trace behind the fetch would do so. It
-- ends a trace in good order at the return of a vararg function (spec/in_nginx/traces_nginx.lua).
local function fetch_in_pcall(...)
  local result = fetch_locked(...)
  return result
end

-- Ends a fetch. nginx may also have ended the caller that fetched: then nobody waits for it any longer.
local function finish(request, result)
  local self = request.cache
  if request.lock then
    self.dict:unlock(request.key, request.lock)
  end
  if self.metrics then
    self.metrics:finish(request)
  end
  self.flights:finish(request, result)
end

---Ends its fetch: nginx has ended the caller that fetches.
Request.abandon = finish

-- Fetches for all callers in this worker.
local function fly(self, request, deadline, seconds)
  request.is_begun = true
  local hold = self.hold(request)
  local ok, result = self.pcall(fetch_in_pcall, request, deadline, seconds)
  self.release(request, hold)
  if not ok then
    request.failure, result = result, nil
  end
  finish(request, result)
end

-- Begins a fetch in a timer, if a disconnect may end this request: other callers may wait for the fetch by then. Waits
-- for its end. Returns false if the caller must fetch itself.
local function fly_outside(self, request, deadline)
  local background = self.background
  local is_accepted = background.run(function()
    if not request.is_begun then
      fly(self, request, deadline, deadline - self.clock())
    end
  end)
  if not is_accepted then
    return false
  end
  self.flights:wait(request, math.min(deadline, self.clock() + START_PATIENCE))
  if request.is_begun then
    self.flights:wait(request, request.dead_at)
    return true
  end
  background.give_up()
  return false
end

local function lead(self, request, deadline, seconds)
  self.flights:begin(request, deadline)
  local background = self.background
  if not background or not background.is_needed() then
    fly(self, request, deadline, seconds)
  elseif not fly_outside(self, request, deadline) then
    fly(self, request, deadline, deadline - self.clock())
  end
  if request.failure then
    error(request.failure, 0)
  end
  return request.result or nil
end

local function wait(self, request, deadline, flight)
  local remaining = deadline - self.clock()
  while remaining >= TICK do
    if not flight then
      return lead(self, request, deadline, remaining), true
    end
    local result = self.flights:wait(flight, deadline)
    if result and not result.is_private then
      return result, false
    end
    remaining = deadline - self.clock()
    flight = self.flights:find(request.key, request.epoch)
  end
end

-- Fetches, or waits for the fetch that is under way. Returns nil when the time is up. The loop is in another function,
-- because LuaJIT does not compile a call behind a loop (`./dev bench nginx`).
local function lead_or_wait(self, request, timeout)
  local deadline = self.clock() + timeout
  local flight = self.flights:find(request.key, request.epoch)
  if flight or timeout < TICK then
    return wait(self, request, deadline, flight)
  end
  return lead(self, request, deadline, timeout), true
end

local function fetch_once(self, request, timeout)
  local result, has_led = lead_or_wait(self, request, timeout)
  if not result or result.failed then
    local entry = stand_in(request, result and result.decision, self.clock())
    if entry then
      return entry.decision, "stale"
    end
  end
  if not result then
    local err = errors.new("timeout", ("no decision within %g seconds"):format(timeout))
    local decision = decisions.unknown(err, request.address, request.network)
    decision.elapsed = timeout
    return decision, "upstream"
  end
  return has_led and result.own or result.decision, result.source
end

-- Serves an expired block for a moment, and fetches in the background.
local function serve_stale(self, request, timeout, now)
  local entry = self.entries:stale(request.expired, now)
  entry.generation = request.generation
  self.lru:set(request.key, entry)
  if not self.flights:find(request.key, request.epoch) then
    self.spawn(function()
      lead_or_wait(self, request, timeout)
    end)
  end
  return entry.decision, "stale"
end

---The address in a key.
---@param key string
---@param network string canonical
---@return string
function Cache:address_of(key, network)
  return sub(key, #self.prefix + #network + 2)
end

local function hit(self, entry)
  if self.metrics then
    self.metrics:lookup("lru", true)
  end
  return entry.decision, entry.source or "lru"
end

---The decision about the subject of a key: `prefix`, the network, ":" and the canonical address. It is shared: do not
---change it. A cached one has no records.
---@param key string
---@param network string canonical
---@param timeout? number seconds
---@return riskscreen.Decision decision
---@return riskscreen.nginx.CacheSource source
function Cache:get_by_key(key, network, timeout)
  local now, own = catch_up(self), self.lru:get(key)
  if own and now < own.expires_at and own.generation == self.generation then
    return hit(self, own)
  end

  local on_list = self.lists and listed(self, key, network, now)
  if on_list then
    count_lookups(self, true)
    return on_list, "list"
  elseif own and own.source == "list" then
    own = nil
  elseif own and now < own.expires_at then
    own.generation = self.generation
    return hit(self, own)
  end

  -- Asked here, so that LuaJIT compiles one way that makes no entry.
  local is_taken = self.lru:takes(key)
  local entry = newer(self, own, entry_in_dict(self, key, network, now), now)
  if entry and now < entry.expires_at then
    if is_taken then
      entry.generation = self.generation
      self.lru:set(key, entry)
    end
    count_lookups(self, true)
    return entry.decision, entry.source or "dict"
  end
  count_lookups(self, false)

  local request = setmetatable({
    cache = self,
    key = key,
    address = self:address_of(key, network),
    network = network,
    expired = entry,
    began = now,
    epoch = self.epoch,
    generation = self.generation,
    lock = false,
    dead_at = 0,
    is_begun = false,
  }, Request)
  timeout = timeout or self.timeout
  if entry and entry.decision.action == "block" and now < self.entries:usable_until(entry) then
    return serve_stale(self, request, timeout, now)
  end
  local decision, source = fetch_once(self, request, timeout)
  -- The lists may have changed during the fetch.
  if self.lists and self.lists:generation() ~= request.generation then
    on_list = listed(self, key, network, catch_up(self))
    if on_list then
      return on_list, "list"
    end
  end
  return decision, source
end

---The decision about an address, as `get_by_key`.
---@param address string canonical
---@param network_name string any name of the network
---@param timeout? number seconds
---@return riskscreen.Decision decision
---@return riskscreen.nginx.CacheSource source
function Cache:get(address, network_name, timeout)
  local network = addresses.network_names[network_name]
  return self:get_by_key(self.prefix .. network .. ":" .. address, network, timeout)
end

---The decision of the account's blacklist about an address, or nil.
---@param address string canonical
---@param network_name string any name of the network
---@return riskscreen.Decision|nil
function Cache:blacklisted(address, network_name)
  local now = catch_up(self)
  local on_list = self.lists and find_in_lists(self, address, addresses.network_names[network_name], now)
  return on_list and on_list.decision.action == "block" and on_list.decision or nil
end

-- The result of a purge, which this worker learns at once.
local function forgotten(self, ok, message)
  self.epoch = self.dict:epoch()
  self.lru:clear()
  if not ok then
    return nil, errors.new("unsupported", "not every worker could be told to forget the address: " .. message)
  end
  return true
end

---Forgets all addresses in all workers.
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Cache:forget_all()
  return forgotten(self, self.dict:forget_all(self.clock()))
end

---Forgets an address in all workers. A list that has the address still counts.
---@param address string
---@param network? string without it, all networks
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Cache:purge(address, network)
  local spellings, keys = addresses.keys(address, network)
  if not spellings then
    error("purge: expected an address and, at most, a network", 2)
  end
  return forgotten(self, self.dict:purge(spellings, keys, self.clock()))
end

local M = {}

---@class riskscreen.nginx.CacheSettings
---@field fetch fun(address: string, network: string, seconds: number): riskscreen.Decision asks the service
---@field dict? table an ngx.shared dict
---@field lru? integer addresses that each worker caches itself; 0: none
---@field ttl? table<riskscreen.Action, number> seconds
---@field stale? table<riskscreen.Action, number> seconds after that, while the service fails
---@field timeout? number seconds for a decision, if the caller says nothing
---@field version? string decisions depend on it, such as the policy's
---@field lists? riskscreen.nginx.Lists
---@field fleet? riskscreen.nginx.Fleet
---@field metrics? riskscreen.nginx.Recorder
---@field clock? fun(): number monotonic seconds, the same in all workers
---@field sleep? fun(seconds: number)
---@field pcall? fun(fn: function, ...): boolean, any pcall of functions that may wait
---@field new_semaphore? fun(): { wait: fun(self, seconds: number), post: fun(self, count: integer) }
---@field spawn? fun(work: fun()) runs a function in the background
---@field hold? fun(request: { abandon: fun(self) }): any see runtime/tasks.lua
---@field release? fun(request: table, hold: any)
---@field is_alone? fun(): boolean whether there is one worker
---@field holder? fun(): string|number unique to this worker
---@field background? riskscreen.nginx.Background runs fetches outside of requests

local TTL = { allow = 300, review = 300, block = 3600, unknown = 1 }
local STALE = { allow = 0, review = 0, block = 3600, unknown = 0 }

local function nothing() end
local DEFAULTS = { lru = 10000, timeout = 5, version = "0", hold = nothing, release = nothing }
local NO_DICT = { get = nothing }
local NO_LRU = { get = nothing, set = nothing, takes = nothing, clear = nothing }

local function of_nginx()
  local ngx = _G.ngx
  return {
    clock = runtime.nginx_time,
    sleep = ngx.sleep,
    pcall = pcall,
    new_semaphore = require("ngx.semaphore").new,
    spawn = function(work)
      return ngx.timer.at(0, function(premature)
        if not premature then
          work()
        end
      end)
    end,
    is_alone = function()
      return ngx.worker.count() == 1
    end,
    holder = ngx.worker.pid,
    hold = runtime.tasks.hold,
    release = runtime.tasks.release,
    background = require "riskscreen.nginx.cache.background",
  }
end

---A cache for one gate and one policy. Creating it does no I/O, so it can be done in init_by_lua.
---@param given riskscreen.nginx.CacheSettings
---@return riskscreen.nginx.Cache
function M.new(given)
  local self = tables.object(Cache, tables.merge(tables.merge(DEFAULTS, _G.ngx and of_nginx()), given))
  self.entries = entries.new(tables.merge(TTL, given.ttl), tables.merge(STALE, given.stale))
  self.dict = dicts.new(given.dict, self.version, self.is_alone, self.holder)
  self.shared, self.prefix = given.dict or NO_DICT, self.dict.prefix
  self.lru = self.lru > 0 and lrus.new(self.lru) or NO_LRU
  self.flights = single_flight.new(self.clock, self.new_semaphore)
  self.shared_prefix = self.fleet and self.fleet:prefix_of(self.version)
  return self
end

return M
