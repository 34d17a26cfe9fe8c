-- The cache of decisions. `get` tries the LRU of this worker, then the dict of all workers; then it fetches once for
-- all callers. Entries are in entry.lua, the dict is in dict.lua. Callers of one worker wait in single_flight.lua;
-- workers wait for each other here (`lock`), by a lock in the dict.
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

local MAX_TIMERS = 128 -- half of what nginx allows by default
local FIRST_PAUSE, GROWTH, LONGEST_PAUSE = 0.002, 1.5, 0.05 -- seconds between looks for another worker's entry

local is_action = tables.set { "allow", "review", "block", "unknown" }

---@alias riskscreen.nginx.CacheSource "lru"|"dict"|"redis"|"upstream"|"stale"|"list"|"invalid"

---@class riskscreen.nginx.Cache
---@field prefix string of keys
---@field under_way table<string, riskscreen.nginx.Flight> by key; see single_flight.lua
---@field private shared table the ngx.shared dict, or one without entries
---@field private seen_at? number when the epoch was last looked up
---@field private epoch? number
---@field private generation? number of the account's lists
---@field private is_deaf? boolean it has not heard of the fleet's purges for longer than the fleet's `delay`
local Cache = {}

-- Learns of purges and of changed lists, once for each value of the clock.
local function catch_up(self)
  local now, fleet, lists = self.clock(), self.fleet, self.lists
  if now == self.seen_at then
    return now
  end
  if fleet then
    fleet:start()
    local heard_at = fleet.purges:heard_at()
    self.is_deaf = not time.age(heard_at, now, time.LAG) or now >= heard_at + fleet.delay
  end
  local epoch = self.dict:epoch(now)
  if epoch ~= self.epoch then
    self.epoch = epoch
    self.lru:clear()
  end
  self.seen_at = now
  if lists then
    lists:start()
    self.generation = lists:generation()
  end
  return now
end

-- Whether a machine that does not hear of purges may still use a verdict. A block it always may.
local function is_heard(self, entry, now)
  return not self.is_deaf
    or entry.source == "list"
    or entry.head.verdict.action == "block"
    or now < entry.at + self.fleet.delay
end

local function is_fresh(self, entry, now)
  return now < entry.expires_at and is_heard(self, entry, now)
end

-- Whether an expired decision may be served instead of one about a failure.
local function stands_in(self, entry, failed, now)
  return entry and self.entries:stands_in(entry, failed, now) and is_heard(self, entry, now)
end

-- The decision of an entry, which is made when it is first read, and its source.
local function read(entry, address, network, tier)
  local decision = entry.decision
  if not decision then
    decision = entries.decision(entry, address, network)
    entry.decision = decision
  end
  return decision, entry.source or tier
end

local function count_lookups(self, tier)
  self.metrics:lookup("lru", tier == "lru")
  if tier ~= "lru" then
    self.metrics:lookup("dict", tier == "dict")
  end
end

local function remember(self, key, entry, generation)
  if generation then
    entry.generation = generation
  end
  self.lru:set(key, entry)
end

local function find_in_lists(self, address, network, now)
  return self.lists:find({ key = network .. ":" .. address, address = address, network = network }, now)
end

-- The decision of the lists about the subject of a key; or nil.
local function listed(self, key, address, network, now)
  local found = self.lists and find_in_lists(self, address, network, now)
  if found then
    local entry = { decision = found.decision, expires_at = found.valid_until, source = "list" }
    remember(self, key, entry, self.generation)
    return found.decision
  end
end

-- The entry that all workers share, unless the address was purged since.
local function entry_in_dict(self, key, address, now)
  local text, flags = self.shared:get(key)
  local entry = text and self.entries:decode(text, flags, now)
  local epoch = entry and entry.head.epoch
  if epoch and (epoch == self.epoch or not self.dict:was_purged(address, epoch)) then
    return entry
  end
end

-- The newer one of the worker's own entry and the shared one, and its tier. An expired decision that only this worker
-- knows outlives another worker's failure.
local function newest(self, own, key, address, now)
  local shared = entry_in_dict(self, key, address, now)
  if not own or own.source == "list" then
    return shared, "dict"
  elseif not shared or own.at >= shared.at then
    return own, "lru"
  elseif shared.head.kind == entries.FAILED and stands_in(self, own, shared.head.verdict, now) then
    return self.entries:stale(own, shared.at), "lru"
  end
  return shared, "dict"
end

-- The expired decision that may be served instead of one about a failure. A purge ends it, also during the fetch.
local function stand_in(self, request, failed, now)
  if stands_in(self, request.expired, failed, now) and not self.dict:was_purged(request.address, request.epoch) then
    return self.entries:stale(request.expired, now)
  end
end

-- Keeps an entry for all workers. In another epoch the address may have been purged.
local function keep(self, request, entry, now)
  local lifetime = self.entries:usable_until(entry) - now
  if lifetime > 0 then
    local is_shared = self.dict:set(request.key, lifetime, entries.encode(entry))
    if self.epoch == request.epoch and (not is_shared or self.lru:takes(request.key)) then
      remember(self, request.key, entry, request.generation)
    end
  end
end

-- Shares an answer with the other machines, or lets them ask.
local function share(self, shared, entry)
  if not shared then
    return
  elseif entry and shared.purge then
    local verdict = entry.head.verdict
    self.fleet:share(shared.key, verdict, entry.at, entry.expires_at, shared.purge, shared.mark, shared.lease)
  else
    self.fleet:release(shared.key, shared.lease)
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

-- The result of a fetch that began later and has ended: after a purge of any address, or where this worker was stopped
-- for longer than its lock. Then an older answer must not take its place.
local function later_entry(self, request, asked_at, now)
  if self.epoch == request.epoch and now < request.deadline + single_flight.GRACE then
    return nil
  end
  local entry, tier = newest(self, self.lru:get(request.key), request.key, request.address, now)
  if entry and entry.head.kind ~= entries.FAILED and entry.at > asked_at and is_fresh(self, entry, now) then
    return entry, tier
  end
end

-- Asks the service, and keeps the answer or the failure. Returns the entry as other workers will read it.
local function ask(flight)
  local self, request = flight.cache, flight.request
  local started = self.clock()
  self.metrics:begin(flight)
  local decision = self.fetch(request.address, request.network, request.deadline - started)
  if type(decision) ~= "table" or not is_action[decision.action] then
    error("fetch must return a decision", 0)
  end
  local failure, now = decision.error, catch_up(self)
  count_fetch(self, failure, now - started)
  local entry, tier = later_entry(self, request, started, now)
  if entry then
    share(self, flight.shared, nil)
    return entry, tier
  end
  local failed, is_kept = failure ~= nil or decision.action == "unknown", true
  if failure then
    is_kept, flight.is_private = entries.is_kept(failure)
  end
  entry = failed and stand_in(self, request, decision, now)
  if not entry then
    flight.own = decision
    -- The ttl counts from the start of the request, because the risk may change while it runs.
    entry = is_kept and self.entries:of(decision, failed and now or started, request.epoch, failed)
  end
  if entry and is_kept then
    keep(self, request, entry, now)
  end
  share(self, flight.shared, not failed and entry)
  return entry or { decision = decision }, failure and failure.kind == "invalid_argument" and "invalid" or "upstream"
end

-- The entry that another machine has fetched; else takes the lease for this fetch, if Redis answers.
local function ask_fleet(flight)
  local self, fleet, request = flight.cache, flight.cache.fleet, flight.request
  local address = request.address
  local key, lease = self.shared_prefix .. request.network .. ":" .. address, 0
  local verdict, refused = fleet:find(key, address)
  local entry = verdict and self.entries:restore(verdict, request.epoch)
  if not entry and refused ~= nil and fleet.purges:number() then
    lease, verdict = fleet:take_lease(key, address, refused, request.deadline - self.clock())
    entry = verdict and self.entries:restore(verdict, request.epoch)
  end
  local now = self.clock()
  if entry and is_fresh(self, entry, now) then
    keep(self, request, entry, now)
    return entry, "redis"
  end
  flight.shared = { key = key, lease = lease, purge = fleet.purges:number(), mark = fleet.purges:mark() }
end

-- Takes the lock of all workers, or waits for the entry that the worker with the lock leaves. Another worker may have
-- had the lock until just now. The lock is false when the time is up.
local function lock(flight, pause)
  local self, request = flight.cache, flight.request
  local now = self.clock()
  local remaining = request.deadline - now
  flight.lock = self.dict:lock(request, now, remaining + single_flight.GRACE)
  local entry = flight.lock ~= nil and entry_in_dict(self, request.key, request.address, now)
  if entry and is_fresh(self, entry, now) then
    if self.epoch == request.epoch then
      remember(self, request.key, entry, request.generation)
    end
    return entry, "dict"
  elseif flight.lock == false and remaining >= single_flight.TICK then
    self.sleep(math.min(pause, remaining))
    return lock(flight, math.min(pause * GROWTH, LONGEST_PAUSE))
  end
end

local function fetch(flight)
  local entry, source = lock(flight, FIRST_PAUSE)
  if not entry and flight.lock ~= false then
    if flight.cache.fleet then
      entry, source = ask_fleet(flight)
    end
    if not entry then
      entry, source = ask(flight)
    end
  end
  return entry, source
end

-- Fetches for all workers, for pcall. Returns nil when the time is up. LuaJIT gives up each trace that returns to
-- pcall, and ends one in good order at the return of a vararg function (spec/in_nginx/traces_nginx.lua).
function Cache.fly(...)
  local entry, source = fetch(...)
  return entry, source
end

-- Serves an expired block for a moment, and fetches in the background.
local function serve_stale(self, request, now)
  local entry = self.entries:stale(request.expired, now)
  remember(self, request.key, entry, request.generation)
  if not single_flight.find(self, request) then
    self.spawn(function()
      single_flight.join(self, request)
    end)
  end
  return entry
end

-- The decision of a fetch, of the caller's own or of another one.
local function fetch_once(self, request, now)
  local address, network, expired = request.address, request.network, request.expired
  local entry
  if expired and expired.head.verdict.action == "block" and now < self.entries:usable_until(expired) then
    entry = serve_stale(self, request, now)
  else
    local flight = single_flight.join(self, request)
    if flight and flight.own and flight.request == request then
      return flight.own, flight.source
    elseif flight then
      return read(flight.result, address, network, flight.source)
    end
    entry = stand_in(self, request, nil, self.clock())
  end
  if entry then
    return read(entry, address, network)
  end
  local timeout = request.deadline - now
  local err = errors.new("timeout", ("no decision within %g seconds"):format(timeout))
  local decision = decisions.unknown(err, address, network)
  decision.elapsed = timeout
  return decision, "upstream"
end

---The decision about an address. It is shared: do not change it. A cached one has no records.
---@param address string canonical
---@param network_name string any name of the network
---@param timeout? number seconds
---@return riskscreen.Decision decision
---@return riskscreen.nginx.CacheSource source
function Cache:get(address, network_name, timeout)
  local network = addresses.network_names[network_name]
  local key = self.prefix .. network .. ":" .. address
  local now, entry, tier = catch_up(self), self.lru:get(key), "lru"
  local generation = self.generation
  if not entry or entry.generation ~= generation or not is_fresh(self, entry, now) then
    local on_list = listed(self, key, address, network, now)
    if on_list then
      count_lookups(self, "dict")
      return on_list, "list"
    end
    local is_taken = self.lru:takes(key)
    entry, tier = newest(self, entry, key, address, now)
    if not entry or not is_fresh(self, entry, now) then
      tier = nil
    elseif is_taken then
      remember(self, key, entry, generation)
    end
  end
  count_lookups(self, tier)
  if tier then
    return read(entry, address, network, tier)
  end
  local decision, source = fetch_once(self, {
    key = key,
    address = address,
    network = network,
    deadline = now + (timeout or self.timeout),
    epoch = self.epoch,
    generation = generation,
    expired = entry,
  }, now)
  -- The lists may have changed during the fetch.
  local has_changed = self.lists and self.lists:generation() ~= generation
  local on_list = has_changed and listed(self, key, address, network, catch_up(self))
  if on_list then
    return on_list, "list"
  end
  return decision, source
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

-- Forgets in all workers; this one learns of it at once.
local function forget(self, spellings, keys)
  local now = self.clock()
  local ok, message = self.dict:forget(now, spellings, keys)
  self.epoch = self.dict:epoch(now)
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
  return forget(self)
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
  return forget(self, spellings, keys)
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
---@field spawn? fun(work: fun()): any runs a function in the background; nil if that is not possible
---@field may_end? fun(): boolean whether nginx may end the request that is served before its work is done
---@field hold? fun(flight: { abandon: fun(self) }): any see runtime/tasks.lua
---@field release? fun(flight: table, hold: any)
---@field is_alone? fun(): boolean whether there is one worker
---@field holder? fun(): string|number unique to this worker

local TTL = { allow = 300, review = 300, block = 3600, unknown = 1 }
local STALE = { allow = 0, review = 0, block = 3600, unknown = 0 }

local function nothing() end
local NO_METRICS = { lookup = nothing, begin = nothing, took = nothing, count = nothing, finish = nothing }
local DEFAULTS = { lru = 10000, timeout = 5, version = "0", metrics = NO_METRICS }
local NO_DICT = { get = nothing }
local NO_LRU = { get = nothing, set = nothing, takes = nothing, clear = nothing }

-- Whether nginx ends the request that is served when its client disconnects. Without the directive
-- lua_check_client_abort, on_abort says so before it looks at its argument.
local function may_end()
  local ok, result, message = pcall(_G.ngx.on_abort, nil)
  return ok and message == "duplicate call" or not ok and tostring(result):find("function expected", 1, true) ~= nil
end

local function of_nginx()
  local ngx = _G.ngx
  return {
    clock = runtime.nginx_time,
    sleep = ngx.sleep,
    pcall = pcall,
    new_semaphore = require("ngx.semaphore").new,
    -- The other timers are left to the rest of nginx's programs.
    spawn = function(work)
      local timer = ngx.timer
      return timer.pending_count() + timer.running_count() < MAX_TIMERS and timer.at(0, work)
    end,
    may_end = may_end,
    is_alone = function()
      return ngx.worker.count() == 1
    end,
    holder = ngx.worker.pid,
    hold = runtime.tasks.hold,
    release = runtime.tasks.release,
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
  self.under_way = setmetatable({}, { __mode = "v" }) -- a fetch ends with the caller that fetches
  self.shared_prefix = self.fleet and self.fleet:prefix_of(self.version)
  return self
end

return M
