-- The cache of decisions. `get` tries the LRU of this worker, then the dict of all workers; then it fetches once for
-- all callers (fetch.lua). Entries are in entry.lua, the dict and its marks in dict.lua.
local addresses = require "riskscreen.address"
local decisions = require "riskscreen.policy.decision"
local dicts = require "riskscreen.nginx.cache.dict"
local entries = require "riskscreen.nginx.cache.entry"
local errors = require "riskscreen.errors"
local fetches = require "riskscreen.nginx.cache.fetch"
local generations = require "riskscreen.util.generations"
local runtime = require "riskscreen.runtime"
local tables = require "riskscreen.util.tables"
local time = require "riskscreen.util.time"

local MAX_TIMERS = 128 -- half of what nginx allows by default

---@alias riskscreen.nginx.CacheSource "lru"|"dict"|"redis"|"upstream"|"stale"|"list"|"invalid"

---@class riskscreen.nginx.Cache
---@field under_way table<string, riskscreen.nginx.Fetch> by key; see fetch.lua
---@field private seen_at? number when it last learned of purges
---@field private generation? any of the account's lists
---@field private is_deaf? boolean it has not heard of the fleet's purges for longer than the fleet's `delay`
local Cache = {}

---Learns of purges and of changed lists, once for each value of the clock.
---@private
---@return number now
function Cache:catch_up()
  local now, fleet = self.clock(), self.fleet
  if now == self.seen_at then
    return now
  end
  if fleet then
    fleet:start()
    local heard_at = fleet.purges:heard_at()
    self.is_deaf = not time.age(heard_at, now, time.LAG) or now >= heard_at + fleet.delay
  end
  self.dict:learn()
  self.lists:start()
  self.generation = self.lists:generation()
  self.seen_at = now
  return now
end

-- Whether a machine that does not hear of purges may still use a verdict. A block it always may.
local function is_heard(self, entry, now)
  return not self.is_deaf or entry.verdict.action == "block" or now < entry.at + self.fleet.delay
end

---@private
function Cache:is_fresh(entry, now)
  return now < entry.expires_at and is_heard(self, entry, now)
end

-- Whether an expired decision may be served instead of one about a failure.
local function stands_in(self, entry, failed, now)
  return entry and self.entries:stands_in(entry, failed, now) and is_heard(self, entry, now)
end

---Whether the address of a fetch was purged since the fetch began.
---@private
function Cache:is_purged(fetch)
  return self.dict:key(fetch.network, fetch.address) ~= fetch.key
end

---The expired decision that may be served instead of one about a failure. A purge ends it, also during the fetch.
---@private
function Cache:stand_in(fetch, failed, now)
  if stands_in(self, fetch.expired, failed, now) and not self:is_purged(fetch) then
    return self.entries:stale(fetch.expired, now)
  end
end

-- The decision of an entry, which is made when it is first read, and its source.
local function read(entry, address, network, tier)
  local decision = entry.decision
  if not decision then
    decision = entries.decision(entry, address, network)
    entry.decision = decision
  end
  return decision, entry.kind == entries.STALE and "stale" or tier
end

local function count_lookups(self, tier)
  self.metrics:lookup("lru", tier == "lru")
  if tier ~= "lru" then
    self.metrics:lookup("dict", tier == "dict")
  end
end

---Keeps an entry for this worker.
---@private
function Cache:remember(key, entry, generation)
  entry.generation = generation
  self.lru:set(key, entry)
end

---The newer one of the worker's own entry and the shared one, and its tier. An expired decision that only this worker
---knows outlives another worker's failure.
---@private
function Cache:newest(own, key, now)
  local shared = self.entries:load(key, now)
  if not own then
    return shared, "dict"
  elseif not shared or own.at >= shared.at then
    return own, "lru"
  elseif shared.kind == entries.FAILED and stands_in(self, own, shared.verdict, now) then
    return self.entries:stale(own, shared.at), "lru"
  end
  return shared, "dict"
end

-- Serves an expired block for a moment, and fetches in the background.
local function serve_stale(self, fetch, now)
  local entry = self.entries:stale(fetch.expired, now)
  self:remember(fetch.key, entry, fetch.generation)
  if not fetches.find(self, fetch.key) then
    self.spawn(function()
      fetches.join(fetch)
    end)
  end
  return entry
end

-- The decision of a fetch, of the caller's own or of another one.
local function fetch_once(self, fetch, now)
  local address, network, expired = fetch.address, fetch.network, fetch.expired
  local entry
  if expired and expired.verdict.action == "block" and now < self.entries:usable_until(expired) then
    entry = serve_stale(self, fetch, now)
  else
    local done = fetches.join(fetch)
    if done and done.own and done == fetch then
      return done.own, done.source
    elseif done then
      return read(done.result, address, network, done.source)
    end
    entry = self:stand_in(fetch, nil, self:catch_up())
  end
  if entry then
    return read(entry, address, network)
  end
  local timeout = fetch.deadline - now
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
  local network, now = addresses.network_names[network_name], self:catch_up()
  local key, generation = self.dict:key(network, address), self.generation
  local entry, tier = self.lru:get(key), "lru"
  if not entry or entry.generation ~= generation or not self:is_fresh(entry, now) then
    local on_list = self.lists:find(address, network, now)
    if on_list then
      count_lookups(self, "dict")
      return on_list, "list"
    end
    entry, tier = self:newest(entry, key, now)
    if entry and self:is_fresh(entry, now) then
      self:remember(key, entry, generation)
    else
      tier = nil
    end
  end
  count_lookups(self, tier)
  if tier then
    return read(entry, address, network, tier)
  end
  local decision, source = fetch_once(self, {
    cache = self,
    key = key,
    address = address,
    network = network,
    deadline = now + (timeout or self.timeout),
    generation = generation,
    expired = entry,
    waiting = 0,
  }, now)
  -- The lists may have changed during the fetch.
  local has_changed = self.lists:generation() ~= generation
  local on_list = has_changed and self.lists:find(address, network, self:catch_up())
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
  local now = self:catch_up()
  local on_list = self.lists:find(address, addresses.network_names[network_name], now)
  return on_list and on_list.action == "block" and on_list or nil
end

local function forget(self, spellings)
  local ok, message = self.dict:forget(spellings)
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

---Forgets an address in all workers, which the gate has checked. A list that has the address still counts.
---@param address string
---@param network? string without it, all networks
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Cache:purge(address, network)
  return forget(self, addresses.all_spellings(address, network))
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
---@field exiting? fun(): boolean whether this worker is about to exit
---@field holder? fun(): string|number unique to this worker

local TTL = { allow = 300, review = 300, block = 3600, unknown = 1 }
local STALE = { allow = 0, review = 0, block = 3600, unknown = 0 }

local function nothing() end
local NO_METRICS = { lookup = nothing, took = nothing, count = nothing }
local NO_LISTS = { start = nothing, generation = nothing, find = nothing }
local DEFAULTS = { lru = 10000, timeout = 5, version = "0", metrics = NO_METRICS, lists = NO_LISTS }
local NO_LRU = { get = nothing, set = nothing }

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
    exiting = ngx.worker.exiting,
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
  self.dict = dicts.new(given.dict, self.version, self.is_alone, self.holder)
  self.entries = entries.new(tables.merge(TTL, given.ttl), tables.merge(STALE, given.stale), self.dict)
  self.lru = self.lru > 0 and generations.new(math.ceil(self.lru / 2)) or NO_LRU
  self.under_way = setmetatable({}, { __mode = "v" }) -- a fetch ends with the caller that fetches
  self.shared_prefix = self.fleet and self.fleet:prefix_of(self.version)
  return self
end

return M
