-- Verdicts from memory: what this worker remembers, what all workers remember in the shared dict, then the service.
-- Here it is decided which entries are fresh, stale or gone; how they are kept and asked for is beside it.
local errors = require "riskscreen.errors"
local expiries = require "riskscreen.nginx.cache.expiry"
local flights = require "riskscreen.nginx.cache.single_flight"
local inquiries = require "riskscreen.nginx.cache.fetch"
local memories = require "riskscreen.nginx.cache.lru"
local stores = require "riskscreen.nginx.cache.dict"
local subjects = require "riskscreen.nginx.cache.subject"

local CLOCK_STEP = 1 -- seconds: a clock that goes back by more was set

local function nothing() end
local WITHOUT_LRU = { get = nothing, set = nothing, delete = nothing, flush_all = nothing }

---@alias riskscreen.nginx.Source "lru"|"dict"|"upstream"|"stale"|"list"

---@class riskscreen.nginx.Cache
---@field private seen_at? number when the dict was last asked whether something was purged
local Cache = {}
Cache.__index = Cache

-- What is answered until then, without a further thought.
local function show(remembered, decision, source, shown_until)
  remembered.shown, remembered.source, remembered.shown_until = decision, source, shown_until
end

-- Unless it concerns some and not others.
local function show_failure(self, remembered, failure)
  if not failure.patience then
    show(remembered, failure.decision, "lru", self.expiry:failure_until(failure))
  end
end

local function show_verdict(self, remembered, entry)
  show(remembered, entry.decision, "lru", self.expiry:fresh_until(entry.decision, entry.at))
end

local function newer(entry, other)
  if not entry or (other and other.at > entry.at) then
    return other, true
  end
  return entry, false
end

-- Once for every new time: forgets what this worker remembers when anything was purged, or the clock was set back.
local function catch_up(self, now)
  local before = self.seen_at
  self.seen_at = now
  if self.store:catch_up() or (before and now < before - CLOCK_STEP) then
    self.memory:clear()
  end
  if not before and self.lists then
    self.lists:start()
  end
end

local function caught_up(self)
  local now = self.now()
  if now ~= self.seen_at then
    catch_up(self, now)
  end
  return now
end

-- Takes over what the other workers know; whether the verdict is theirs.
local function recollect(self, subject, remembered, now)
  local theirs
  remembered.verdict, theirs = newer(remembered.verdict, self.store:entry("verdict", subject, now))
  local entry = remembered.verdict
  if not (entry and now < self.expiry:fresh_until(entry.decision, entry.at)) then
    remembered.failure = newer(remembered.failure, self.store:entry("failure", subject, now))
  end
  return theirs and entry ~= nil
end

---The verdict that a list gives, or a fresh one, or the failure that asking again would come to.
---@param subject riskscreen.nginx.Subject
---@param remembered riskscreen.nginx.Remembered
---@param seconds number that there are for asking
---@return riskscreen.Decision|nil
---@return riskscreen.nginx.Source|nil
---@return riskscreen.nginx.Entry|nil failure
function Cache:recall(subject, remembered, seconds)
  local now = caught_up(self)
  local listed = self.lists and self.lists:find(subject, now)
  if listed then
    show(remembered, listed.decision, "list", listed.valid_until)
    return listed.decision, "list"
  end
  local theirs = recollect(self, subject, remembered, now)
  local entry = remembered.verdict
  if entry and now < self.expiry:fresh_until(entry.decision, entry.at) then
    show_verdict(self, remembered, entry)
    return entry.decision, theirs and "dict" or "lru"
  end
  local failure = self.expiry:recent_failure(remembered, now, seconds)
  if failure then
    return failure.decision, "dict", failure
  end
end

local function stale_copy(entry)
  if not entry.stale then
    local copy = {}
    for name, value in pairs(entry.decision) do
      copy[name] = value
    end
    copy.stale = true
    entry.stale = copy
  end
  return entry.stale
end

-- It is shown to the next ones, too, if they need no attempt, however much time they have.
local function use_stale(self, remembered, entry, now)
  local decision = stale_copy(entry)
  if self.expiry:needs_no_attempt(entry, remembered.failure, math.huge) then
    local shown_until = math.min(now + self.expiry.ttl.unknown, self.expiry:stale_until(entry))
    show(remembered, decision, "stale", shown_until)
  end
  return decision, "stale"
end

---Takes up what the service said.
---@param subject riskscreen.nginx.Subject
---@param network any as it was given
---@param kind "verdict"|"failure"
---@param entry riskscreen.nginx.Entry
---@param checksum integer|nil of what the dict has
function Cache:remember(subject, network, kind, entry, checksum)
  local remembered = self.memory:of(subject, network)
  if not remembered then
    if kind == "verdict" and not self.memory:admits(checksum) then
      return
    end
    remembered = { shown_until = 0 }
    self.memory:keep(subject, network, remembered)
  end
  remembered[kind] = entry
  if self.lists and self.lists:find(subject, self.now()) then
    -- It has come onto a list meanwhile, and that is asked first.
    return
  elseif kind == "verdict" then
    show_verdict(self, remembered, entry)
  elseif not self.expiry:usable(remembered, self.now()) then
    show_failure(self, remembered, entry)
  end
end

-- Asks while nobody waits; what was known is answered meanwhile. Of too many timers nginx drops some when they are due:
-- one of which nothing was heard in its time holds up no other.
local function refresh(self, subject, remembered, address, network, timeout, now)
  if now < (remembered.refreshing_until or now) then
    return
  end
  local spawned = self.spawn(function()
    local inquiry = inquiries.new(self, subject, remembered, address, network)
    local ok, failure = self.waits.contain(self.flights.try, self.flights, inquiry, timeout)
    remembered.refreshing_until = nil
    if not ok then
      error(failure, 0)
    end
  end)
  remembered.refreshing_until = spawned and now + timeout or nil
end

local function out_of_time(subject, timeout)
  local err = errors.new("timeout", ("no verdict within %g seconds"):format(timeout))
  return {
    action = "unknown",
    reasons = { { action = "unknown", message = tostring(err), error = err } },
    address = subject.address,
    network = subject.network,
    error = err,
    degraded = false,
    cached = false,
    stale = false,
    elapsed = timeout,
  }
end

-- Asks, or waits for whoever asks.
local function inquire(self, subject, remembered, address, network, timeout)
  local inquiry = inquiries.new(self, subject, remembered, address, network)
  local outcome, joined = self.flights:join(inquiry, timeout)
  if not outcome or outcome.failed then
    local now = self.now()
    local entry = self.expiry:usable(remembered, now)
    if entry and self.expiry:replaces(entry, outcome and outcome.decision.action or "unknown") then
      return use_stale(self, remembered, entry, now)
    end
  end
  if not outcome then
    return out_of_time(subject, timeout), "upstream"
  end
  return not joined and outcome.own or outcome.decision, outcome.source
end

-- What is fresh in the dict, where no list can say otherwise and this worker has nothing else to go by: most of what
-- this worker does not remember is found here, and a decision is all that this makes. Without one: whether there may be
-- something else.
local function recall_quickly(self, address, network, now)
  local canonical_address, canonical_network = subjects.canonical(address, network)
  if not canonical_address then
    return nil, true
  end
  local decision, at, _, checksum = self.store:get("verdict", canonical_network, canonical_address, now)
  if not decision or now >= self.expiry:fresh_until(decision, at) then
    return nil, decision ~= nil or self.store.has_failures
  end
  if self.memory:admits(checksum) then
    local remembered, entry = { shown_until = 0 }, { decision = decision, at = at }
    remembered.verdict = entry
    show_verdict(self, remembered, entry)
    self.memory:keep(subjects.of(address, network), network, remembered)
  end
  return decision
end

local function count_lookup(self, source)
  if self.metrics then
    self.metrics:lookup("lru", source == "lru")
    self.metrics:lookup("dict", source == "dict" or source == "list")
  end
end

local function decide_slowly(self, address, network, timeout, now)
  local subject = subjects.of(address, network)
  if not subject then
    return inquiries.consult(self, {}, address, network, timeout), "upstream"
  end
  local remembered = self.memory:of(subject, network)
  local is_new = not remembered
  remembered = remembered or { shown_until = 0 }
  local decision, source, failure = self:recall(subject, remembered, timeout)
  count_lookup(self, source)
  if is_new and (decision or remembered.verdict) then
    self.memory:keep(subject, network, remembered)
  end
  if decision and not failure then
    return decision, source
  end
  local entry = self.expiry:usable(remembered, now)
  if entry and self.expiry:needs_no_attempt(entry, remembered.failure, timeout) then
    if not failure then
      refresh(self, subject, remembered, address, network, timeout, now)
    end
    return use_stale(self, remembered, entry, now)
  elseif failure then
    show_failure(self, remembered, failure)
    return decision, source
  end
  return inquire(self, subject, remembered, address, network, timeout)
end

---The decision about an address. It is shared: nobody may change it. A remembered one carries no records.
---@param address any
---@param network any
---@param timeout? number seconds
---@return riskscreen.Decision decision
---@return riskscreen.nginx.Source source
function Cache:decide(address, network, timeout)
  local now = caught_up(self)
  local remembered = self.memory:find(address, network)
  if remembered then
    if now < remembered.shown_until then
      if self.metrics then
        self.metrics:lookup("lru", true)
      end
      return remembered.shown, remembered.source
    end
  elseif not self.lists then
    local decision, may_have_more = recall_quickly(self, address, network, now)
    if decision then
      count_lookup(self, "dict")
      return decision, "dict"
    elseif not may_have_more then
      count_lookup(self, nil)
      local subject = subjects.of(address, network)
      return inquire(self, subject, { shown_until = 0 }, address, network, timeout or self.timeout)
    end
  end
  return decide_slowly(self, address, network, timeout or self.timeout, now)
end

---Forgets an address, in all workers, before anything else is answered there. What a list says of it stays.
---@param address string
---@param network? string every network without it; of the others, too, nothing may be left
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Cache:purge(address, network)
  local list = {}
  for index, name in ipairs(network and { network } or subjects.networks) do
    list[index] = subjects.of(address, name) or error("purge: expected an address and, at most, a network", 2)
  end
  self.memory:forget(list[1])
  local ok, message = self.store:purge(list, self.time())
  catch_up(self, self.now())
  if not ok then
    return nil, errors.new("unsupported", "not every worker could be told to forget the address: " .. message)
  end
  return true
end

local M = {}

local function waits_of_nginx()
  local ngx = _G.ngx
  local function time()
    ngx.update_time()
    return ngx.now()
  end
  return { now = ngx.now, time = time, sleep = ngx.sleep, semaphore = require("ngx.semaphore").new, contain = pcall }
end

local function spawn_in_nginx(work)
  local ok, message = _G.ngx.timer.at(0, function(premature)
    if not premature then
      work()
    end
  end)
  return ok, message
end

---@class riskscreen.nginx.CacheSettings
---@field look_up fun(address: any, network: any, seconds: number): riskscreen.Decision
---@field dict? table an ngx.shared dict
---@field lru? integer addresses that each worker remembers; 0: none
---@field ttl? { allow?: number, review?: number, block?: number, unknown?: number } seconds
---@field stale? { allow?: number, review?: number, block?: number } seconds for which a verdict may be used after that
---@field timeout? number seconds for a decision, where none are given
---@field version? string what the verdicts depend on beside the service, such as the policy's
---@field lists? riskscreen.nginx.Lists
---@field metrics? table a recorder
---@field now? fun(): number Unix seconds, by which entries expire
---@field waits? riskscreen.nginx.Waits
---@field spawn? fun(work: fun()): boolean runs what nobody waits for
---@field new_lru? fun(size: integer): table
---@field checksum? fun(text: string): number
---@field digest? fun(text: string): string 20 bytes
---@field is_alone? fun(): boolean whether there is one worker
---@field identity? fun(): string|number what no other worker has

local DEFAULTS = {
  lru = 10000,
  timeout = 5,
  version = "0",
  ttl = { allow = 300, review = 300, block = 3600, unknown = 1 },
  stale = { allow = 0, review = 0, block = 3600, unknown = 0 },
}

local function with_defaults(given, defaults)
  local all = {}
  for name, default in pairs(defaults) do
    all[name] = (given or {})[name] or default
  end
  return all
end

---A cache for one gate. Nothing is asked or waited for: it can be made before there are workers.
---@param settings riskscreen.nginx.CacheSettings
---@return riskscreen.nginx.Cache
function M.new(settings)
  local ngx = _G.ngx
  local size = settings.lru or DEFAULTS.lru
  local waits = settings.waits or waits_of_nginx()
  local is_alone = settings.is_alone or function()
    return ngx.worker.count() == 1
  end
  local expiry = expiries.new(with_defaults(settings.ttl, DEFAULTS.ttl), with_defaults(settings.stale, DEFAULTS.stale))
  local store = stores.new {
    dict = settings.dict,
    version = settings.version or DEFAULTS.version,
    checksum = settings.checksum or ngx.crc32_long,
    digest = settings.digest or ngx.sha1_bin,
    is_alone = is_alone,
    longest = expiry:longest(),
  }
  return setmetatable({
    look_up = settings.look_up,
    expiry = expiry,
    timeout = settings.timeout or DEFAULTS.timeout,
    lists = settings.lists,
    metrics = settings.metrics,
    now = settings.now or waits.now,
    time = settings.now or waits.time,
    waits = waits,
    spawn = settings.spawn or spawn_in_nginx,
    store = store,
    memory = memories.new(size > 0 and (settings.new_lru or require("resty.lrucache").new)(size) or WITHOUT_LRU, size),
    flights = flights.new {
      waits = waits,
      dict = settings.dict,
      prefix = store.lock_prefix,
      identity = settings.identity or ngx.worker.pid,
      is_alone = is_alone,
    },
  }, Cache)
end

return M
