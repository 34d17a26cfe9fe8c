-- Verdicts from memory: what this worker remembers, what all workers remember in the shared dict, then the service.
-- Here it is decided which entries are fresh, stale or gone; how they are kept and asked for is beside it.
local entries = require "riskscreen.nginx.entry"
local errors = require "riskscreen.errors"
local flights = require "riskscreen.nginx.flight"
local memories = require "riskscreen.nginx.memory"
local stores = require "riskscreen.nginx.store"
local subjects = require "riskscreen.nginx.subject"
local verdict = require "riskscreen.verdict"

local FAILURE_MEMORY = 60 -- seconds for which it is known that the service could not be asked
local CLOCK_STEP = 1 -- seconds: a clock that goes back by more was set
local WITHOUT_LRU = { get = function() end, set = function() end, delete = function() end, flush_all = function() end }

-- Failures that one with more time need not share.
local is_lack_of_time = { timeout = true, rate_limited = true, cancelled = true }

-- Failures that say nothing about the service: they cost nothing and are not remembered.
local is_refusal = { invalid_argument = true, unsupported = true }

local is_action = { allow = true, review = true, block = true, unknown = true }

---@alias riskscreen.nginx.Source "lru"|"dict"|"upstream"|"stale"|"list"

---@class riskscreen.nginx.Cache
---@field private seen_at? number when the dict was last asked whether something was purged
local Cache = {}
Cache.__index = Cache

-- What is answered until then, without a further thought.
local function show(remembered, decision, source, shown_until)
  remembered.shown, remembered.source, remembered.shown_until = decision, source, shown_until
end

local function fresh_until(self, entry)
  return entry.at + self.ttl[entry.decision.action]
end

local function newer(entry, other)
  if not entry or (other and other.at > entry.at) then
    return other, true
  end
  return entry, false
end

local function is_recent_failure(self, failure, now, seconds)
  return failure and now < failure.at + self.ttl.unknown and flights.concerns(failure, seconds)
end

-- Takes over what the other workers know; whether the verdict is theirs.
local function recollect(self, subject, remembered, now)
  local theirs
  remembered.verdict, theirs = newer(remembered.verdict, self.store:get(subject, "verdict", now))
  if not (remembered.verdict and now < fresh_until(self, remembered.verdict)) then
    remembered.failure = newer(remembered.failure, self.store:get(subject, "failure", now))
  end
  return theirs and remembered.verdict ~= nil
end

-- The verdict that a list gives, or a fresh one, or the failure that asking again would come to.
local function recall(self, subject, remembered, now, seconds)
  local listed = self.lists and self.lists:find(subject, now)
  if listed then
    show(remembered, listed.decision, "list", listed.valid_until)
    return listed.decision, "list"
  end
  local theirs = recollect(self, subject, remembered, now)
  local entry, failure = remembered.verdict, remembered.failure
  if entry and now < fresh_until(self, entry) then
    show(remembered, entry.decision, "lru", fresh_until(self, entry))
    return entry.decision, theirs and "dict" or "lru"
  elseif is_recent_failure(self, failure, now, seconds) then
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

-- The verdict that may still be used although it has expired, if the service cannot be asked.
local function stale_verdict(self, remembered, now)
  local entry = remembered.verdict
  if entry and now < fresh_until(self, entry) + self.stale[entry.decision.action] then
    return entry
  end
end

-- Whether an expired verdict takes the place of what a failure came to: unless the policy makes something worse of it.
local function is_no_milder(entry, action)
  return action == "unknown" or verdict.worst(entry.decision.action, action) == entry.decision.action
end

-- A block need not wait for the service; anything milder must have tried since it expired, with as much time.
local function needs_no_attempt(self, entry, failure, seconds)
  if entry.decision.action == "block" then
    return true
  end
  return failure ~= nil
    and failure.at >= fresh_until(self, entry)
    and flights.concerns(failure, seconds)
    and is_no_milder(entry, failure.decision.action)
end

-- It is shown to the next ones, too, if they need no attempt, however much time they have.
local function use_stale(self, remembered, entry, now)
  local decision = stale_copy(entry)
  if needs_no_attempt(self, entry, remembered.failure, math.huge) then
    local stale_until = fresh_until(self, entry) + self.stale[entry.decision.action]
    show(remembered, decision, "stale", math.min(now + self.ttl.unknown, stale_until))
  end
  return decision, "stale"
end

local function checked(decision)
  if type(decision) ~= "table" or not is_action[decision.action] then
    error("look_up must return a decision", 0)
  end
  return decision
end

-- Asks the service, and has that counted.
local function consult(self, address, network, seconds)
  local metrics, started = self.metrics, self.waits.now()
  local under_way = metrics and metrics:begin()
  local ok, decision = self.waits.contain(self.look_up, address, network, seconds)
  if metrics then
    local failure = ok and type(decision) == "table" and decision.error or nil
    metrics:finish(under_way)
    -- Where nothing was sent, the service took no time.
    if not failure or (failure.attempts or 0) > 0 then
      metrics:upstream(self.waits.now() - started)
    end
    if failure then
      metrics:error(failure.kind)
    end
  end
  if not ok then
    error(decision, 0)
  end
  return checked(decision)
end

-- What a decision is remembered as: kind, and the seconds that were too few. Nil where it is not remembered.
local function kind_of(decision, seconds)
  local failure = decision.error and decision.error.kind
  if is_refusal[failure] then
    return nil
  elseif failure or decision.action == "unknown" then
    return "failure", is_lack_of_time[failure] and seconds or nil
  end
  return "verdict"
end

local function lifetime(self, kind, decision)
  if kind == "failure" then
    return math.max(self.ttl.unknown, FAILURE_MEMORY)
  end
  return self.ttl[decision.action] + self.stale[decision.action]
end

-- Unless it concerns some and not others.
local function show_failure(self, remembered, failure)
  if not failure.patience then
    show(remembered, failure.decision, "lru", failure.at + self.ttl.unknown)
  end
end

local function remember(self, subject, network, kind, entry)
  local remembered = self.memory:place(subject, network)
  remembered[kind] = entry
  if self.lists and self.lists:find(subject, self.now()) then
    -- It has come onto a list meanwhile, and that is asked first.
    return
  elseif kind == "verdict" then
    show(remembered, entry.decision, "lru", fresh_until(self, entry))
  elseif not stale_verdict(self, remembered, self.now()) then
    show_failure(self, remembered, entry)
  end
end

-- Asks the service about a subject and remembers what it says, unless that was purged meanwhile.
local function ask(self, subject, asked, seconds)
  local at = self.now()
  local decision = consult(self, asked.address, asked.network, seconds)
  local kind, patience = kind_of(decision, seconds)
  -- A verdict is as old as the question; a failure counts from when it is known, or a slow one would never be kept.
  at = kind == "failure" and self.now() or at
  local text = kind and entries.encode(subject.key, decision, at, patience)
  local entry = text and entries.decode(text, subject.key, subject.address, subject.network)
  if entry and self.store:mark(subject.address) == asked.mark then
    self.store:set(subject.key, kind, text, lifetime(self, kind, decision))
    -- Again: the purge may have come in between.
    if self.store:mark(subject.address) == asked.mark then
      remember(self, subject, asked.network, kind, entry)
    else
      self.store:forget(subject.key, kind)
    end
  end
  return {
    decision = entry and entry.decision or decision,
    own = decision,
    source = "upstream",
    failed = kind ~= "verdict",
    patience = patience,
  }
end

---What flights are asked for.
---@class riskscreen.nginx.Inquiry: riskscreen.nginx.Request
---@field cache riskscreen.nginx.Cache
---@field subject riskscreen.nginx.Subject
---@field remembered riskscreen.nginx.Remembered
---@field address any as it was given
---@field network any as it was given
local Inquiry = {}
Inquiry.__index = Inquiry

function Inquiry:ask(seconds)
  return ask(self.cache, self.subject, self, seconds)
end

function Inquiry:recall(seconds)
  local cache = self.cache
  local decision, source, failure = recall(cache, self.subject, self.remembered, cache.now(), seconds)
  return decision
    and {
      decision = decision,
      source = source,
      failed = failure ~= nil,
      patience = failure and failure.patience,
    }
end

local function request_for(self, subject, remembered, address, network)
  return setmetatable({
    cache = self,
    key = subject.key,
    mark = self.store:mark(subject.address),
    subject = subject,
    remembered = remembered,
    address = address,
    network = network,
  }, Inquiry)
end

-- Asks while nobody waits; what was known is answered meanwhile.
local function refresh(self, subject, remembered, address, network, timeout)
  if remembered.refreshing then
    return
  end
  remembered.refreshing = self.spawn(function()
    local request = request_for(self, subject, remembered, address, network)
    local ok, failure = self.waits.contain(self.flights.try, self.flights, request, timeout)
    remembered.refreshing = false
    if not ok then
      error(failure, 0)
    end
  end)
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
  local outcome, joined = self.flights:join(request_for(self, subject, remembered, address, network), timeout)
  local now = self.now()
  if not outcome or outcome.failed then
    local entry = stale_verdict(self, remembered, now)
    if entry and is_no_milder(entry, outcome and outcome.decision.action or "unknown") then
      return use_stale(self, remembered, entry, now)
    end
  end
  if not outcome then
    return out_of_time(subject, timeout), "upstream"
  end
  return not joined and outcome.own or outcome.decision, outcome.source
end

local function decide_slowly(self, address, network, timeout, now)
  local subject = subjects.of(address, network)
  if not subject then
    return consult(self, address, network, timeout), "upstream"
  end
  local remembered = self.memory:place(subject, network)
  local decision, source, failure = recall(self, subject, remembered, now, timeout)
  if self.metrics then
    self.metrics:lookup("lru", source == "lru")
    self.metrics:lookup("dict", source == "dict" or source == "list")
  end
  if decision and not failure then
    return decision, source
  end
  local entry = stale_verdict(self, remembered, now)
  if entry and needs_no_attempt(self, entry, remembered.failure, timeout) then
    if not failure then
      refresh(self, subject, remembered, address, network, timeout)
    end
    return use_stale(self, remembered, entry, now)
  elseif failure then
    show_failure(self, remembered, failure)
    return decision, source
  end
  return inquire(self, subject, remembered, address, network, timeout)
end

-- Once for every new time: forgets what this worker remembers when anything was purged, or the clock was set back.
local function catch_up(self, now)
  local before, epoch = self.seen_at, self.store:epoch()
  self.seen_at = now
  if epoch ~= self.epoch or (before and now < before - CLOCK_STEP) then
    self.epoch = epoch
    self.memory:clear()
  end
  if not before and self.lists then
    self.lists:start()
  end
end

---The decision about an address. It is shared: nobody may change it. A remembered one carries no records.
---@param address any
---@param network any
---@param timeout? number seconds
---@return riskscreen.Decision decision
---@return riskscreen.nginx.Source source
function Cache:decide(address, network, timeout)
  local now = self.now()
  if now ~= self.seen_at then
    catch_up(self, now)
  end
  local remembered = self.memory:find(address, network)
  if remembered and now < remembered.shown_until then
    if self.metrics then
      self.metrics:lookup("lru", true)
    end
    return remembered.shown, remembered.source
  end
  return decide_slowly(self, address, network, timeout or self.timeout, now)
end

---Forgets an address, in all workers, before anything else is answered there. What a list says of it stays.
---@param address string
---@param network? string every network without it; of the others, too, nothing may be left
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Cache:purge(address, network)
  local now, list = self.now(), {}
  for index, name in ipairs(network and { network } or subjects.networks) do
    list[index] = subjects.of(address, name) or error("purge: expected an address and, at most, a network", 2)
  end
  self.memory:forget(list[1])
  local deleted, why_not = self.store:purge(list, now)
  local told, message = self.store:next_epoch(now)
  if not (deleted and told) then
    message = why_not or message
    return nil, errors.new("unsupported", "not every worker could be told to forget the address: " .. message)
  end
  return true
end

local M = {}

local function waits_of_nginx()
  local ngx = _G.ngx
  return { now = ngx.now, sleep = ngx.sleep, semaphore = require("ngx.semaphore").new, contain = pcall }
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
  local ttl, stale = with_defaults(settings.ttl, DEFAULTS.ttl), with_defaults(settings.stale, DEFAULTS.stale)
  local longest = 0
  for action, seconds in pairs(ttl) do
    longest = math.max(longest, seconds + stale[action])
  end
  local store = stores.new {
    dict = settings.dict,
    version = settings.version or DEFAULTS.version,
    checksum = settings.checksum or ngx.crc32_long,
    is_alone = is_alone,
    longest = longest,
  }
  return setmetatable({
    look_up = settings.look_up,
    ttl = ttl,
    stale = stale,
    timeout = settings.timeout or DEFAULTS.timeout,
    lists = settings.lists,
    metrics = settings.metrics,
    now = settings.now or waits.now,
    waits = waits,
    spawn = settings.spawn or spawn_in_nginx,
    store = store,
    memory = memories.new(size > 0 and (settings.new_lru or require("resty.lrucache").new)(size) or WITHOUT_LRU),
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
