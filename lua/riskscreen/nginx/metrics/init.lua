-- The metrics of a gate. Each worker has a recorder; the shared dict adds up their counts. Recording costs a few
-- additions. status.lua shows the same counts to a person.
local errors = require "riskscreen.errors"
local definitions = require "riskscreen.nginx.metrics.definitions"
local prometheus = require "riskscreen.nginx.metrics.prometheus"
local stats = require "riskscreen.call.stats"
local totals = require "riskscreen.nginx.metrics.totals"

local FLUSH_INTERVAL = 1 -- seconds
local GAUGE_LIFETIME = 5 -- seconds after which the gauge of a silent worker is dropped

local ACTIONS = { "allow", "review", "block", "unknown" }
-- The sources of decisions: those of the cache, and two without a lookup.
local SOURCES = { "lru", "dict", "upstream", "stale", "list", "invalid", "exempt" }
local TIERS = { "lru", "dict" }
local REFRESHES = { "success", "failure" }
local CLASSES = { "1xx", "2xx", "3xx", "4xx", "5xx" }
-- The statuses that an inbox answers with; any other counts as the last.
local DELIVERY_STATUSES = { 200, 400, 401, 403, 405, 413, 503, 500 }

---@class riskscreen.nginx.Recorder
---@field name string
---@field decisions table<string, table<string, riskscreen.nginx.Counter>> by action and source
---@field private open table<table, true> fetches of this worker under way
---@field private flushing boolean whether a timer flushes the counts
local Recorder = {}
Recorder.__index = Recorder

-- Counters by name.
local function counters_of(all, prefix, names)
  local map = {}
  for _, name in ipairs(names) do
    map[name] = all:counter(prefix .. name)
  end
  return map
end

local function error_kinds()
  local names = {}
  for index, entry in ipairs(errors.kinds) do
    names[index] = entry.kind
  end
  return names
end

local function client_counters()
  local names = {}
  for index, counter in ipairs(stats.counters) do
    names[index] = counter.name
  end
  return names
end

local function new_histogram(all, prefix)
  local histogram = { buckets = {}, sum = all:counter(prefix .. "sum") }
  for index = 1, #stats.bounds + 1 do
    histogram.buckets[index] = all:counter(prefix .. index)
  end
  return histogram
end

-- Takes over the counts of the client. A client that is not of this library may have fewer.
local function copy_client(self)
  local snapshot = self.client:stats()
  for name, counter in pairs(self.client_counters) do
    counter.value = snapshot[name] or 0
  end
  local answers = {}
  for status, count in pairs(snapshot.statuses or {}) do
    local class = math.floor(status / 100) .. "xx"
    answers[class] = (answers[class] or 0) + count
  end
  for class, counter in pairs(self.answers) do
    counter.value = answers[class] or 0
  end
  return snapshot
end

-- Fetches of this worker.
local function under_way(self)
  local count = 0
  for _ in pairs(self.open) do
    count = count + 1
  end
  return count
end

-- Adds the counts to the totals, and returns the stats of the client.
local function flush(self, all)
  local snapshot = self.client and copy_client(self)
  self.totals:flush(all)
  if self.dict then
    self.dict:set(self.gauge_prefix .. self.slot(), under_way(self), GAUGE_LIFETIME)
  end
  return snapshot
end

-- Starts the timer that flushes. An exiting worker gets no timer: there, every change is flushed at once.
local function start_flushing(self)
  if not self.dict then
    self.flushing = true
    return
  end
  self.flushing = self.every(FLUSH_INTERVAL, function(premature)
    if premature then
      self.flushing = false
    end
    flush(self, true)
  end) and true or false
  if not self.flushing then
    flush(self, false)
  end
end

---Counts a decision.
---@param action "allow"|"review"|"block"|"unknown"
---@param source riskscreen.nginx.Source|"invalid"|"exempt"
function Recorder:decided(action, source)
  local counter = self.decisions[action][source]
  counter.value = counter.value + 1
  if not self.flushing then
    start_flushing(self)
  end
end

---Counts a lookup in a tier of the cache.
---@param tier "lru"|"dict"
---@param hit boolean
function Recorder:lookup(tier, hit)
  local counter = (hit and self.hits or self.misses)[tier]
  counter.value = counter.value + 1
end

---Counts a fetch that failed.
---@param kind riskscreen.ErrorKind
function Recorder:error(kind)
  local counter = self.errors[kind]
  counter.value = counter.value + 1
end

---Counts the duration of a fetch.
---@param seconds number
function Recorder:upstream(seconds)
  local counter, sum = self.upstream_time.buckets[stats.bucket_of(seconds)], self.upstream_time.sum
  counter.value, sum.value = counter.value + 1, sum.value + seconds
end

---Counts a webhook delivery by the status of the answer.
---@param status integer
function Recorder:delivered(status)
  local counter = self.deliveries[status] or self.deliveries[500]
  counter.value = counter.value + 1
  if not self.flushing then
    start_flushing(self)
  end
end

---Counts a refresh of the lists.
---@param result "success"|"failure"
function Recorder:refreshed(result)
  local counter = self.refreshes[result]
  counter.value = counter.value + 1
  if not self.flushing then
    start_flushing(self)
  end
end

---Counts a fetch as under way.
---@param lookup table for `finish`; the fetch of an aborted request is collected, and then no longer counted
function Recorder:begin(lookup)
  self.open[lookup] = true
  if not self.flushing then
    start_flushing(self)
  end
end

---Ends `begin`.
---@param lookup table
function Recorder:finish(lookup)
  self.open[lookup] = nil
  if not self.flushing then
    start_flushing(self)
  end
end

local function room_of(dict)
  return dict and { capacity = dict:capacity(), free = dict:free_space() }
end

-- Fetches of all workers, exiting ones included.
local function all_under_way(self)
  if not self.dict then
    return under_way(self)
  end
  local sum = 0
  for slot = 0, self.worker_count() - 1 do
    for _, state in ipairs { "", "ending:" } do
      sum = sum + (tonumber((self.dict:get(self.gauge_prefix .. state .. slot))) or 0)
    end
  end
  return sum
end

local function values_of(self, map)
  local values = {}
  for name, counter in pairs(map) do
    values[name] = self.totals:of(counter)
  end
  return values
end

-- The time in the dict may be older than this worker: counts survive a reload.
local function counted_since(self)
  if self.dict then
    self.dict:add(self.since_key, self.since)
    return tonumber((self.dict:get(self.since_key))) or self.since
  end
  return self.since
end

---@class riskscreen.nginx.Snapshot
---@field name string of the gate
---@field since number Unix seconds at which counting began
---@field worker? string set where the counts are those of one worker
---@field decisions table<string, table<string, integer>> by action and source
---@field hits table<string, integer> by tier
---@field misses table<string, integer> by tier
---@field errors table<string, integer> by kind
---@field upstream { buckets: integer[], sum: number }
---@field in_flight integer
---@field client? table<string, integer> the counters of the client
---@field answers? table<string, integer> by class of their status
---@field breaker? table the status of the circuit breaker
---@field rate_limit? table the status of the rate limit
---@field dict? { capacity: integer, free: integer } bytes
---@field deliveries? table<integer, integer> of webhooks, by the status of the answer
---@field lists? riskscreen.nginx.ListFacts
---@field refreshes? table<string, integer> of the lists, by result
---@field events? { capacity: integer, free: integer } bytes of the webhooks' own dict

---The counts of all workers; those of the other workers are up to a second old.
---@return riskscreen.nginx.Snapshot
function Recorder:snapshot()
  local client = flush(self, true)
  local snapshot = {
    name = self.name,
    since = counted_since(self),
    worker = not self.dict and tostring(self.slot()) or nil,
    decisions = {},
    hits = values_of(self, self.hits),
    misses = values_of(self, self.misses),
    errors = values_of(self, self.errors),
    upstream = { buckets = values_of(self, self.upstream_time.buckets), sum = self.totals:of(self.upstream_time.sum) },
    in_flight = all_under_way(self),
  }
  for action, sources in pairs(self.decisions) do
    snapshot.decisions[action] = values_of(self, sources)
  end
  if client then
    snapshot.client, snapshot.answers = values_of(self, self.client_counters), values_of(self, self.answers)
    snapshot.breaker, snapshot.rate_limit = client.breaker, client.rate_limit
  end
  snapshot.dict = room_of(self.dict)
  if self.lists then
    snapshot.lists, snapshot.refreshes = self.lists:facts(), values_of(self, self.refreshes)
  end
  if self.inbox then
    snapshot.deliveries, snapshot.events = values_of(self, self.deliveries), room_of(self.inbox.dict)
  end
  return snapshot
end

local M = { CONTENT_TYPE = prometheus.CONTENT_TYPE }

---The text of several recorders together: each metric appears once, with the names of the recorders as label `gate`.
---@param recorders riskscreen.nginx.Recorder[] of different names
---@return string
function M.render(recorders)
  local snapshots = {}
  for index, recorder in ipairs(recorders) do
    snapshots[index] = recorder:snapshot()
  end
  return prometheus.text(definitions.of(snapshots))
end

---The text for Prometheus.
---@return string
function Recorder:render()
  return M.render { self }
end

-- The privileged agent has no id, and must not be taken for worker 0.
local function slot_of_worker()
  local worker = _G.ngx.worker
  return (worker.exiting() and "ending:" or "") .. (worker.id() or "agent")
end

---@class riskscreen.nginx.RecorderSettings
---@field dict? table an ngx.shared dict; without it each worker counts for itself
---@field name? string of the gate: recorders of one name and one dict count together
---@field client? { stats: fun(self): table }
---@field inbox? { dict?: table }
---@field lists? { facts: fun(self): riskscreen.nginx.ListFacts }
---@field every? fun(seconds: number, callback: fun(premature: boolean)): any ngx.timer.every
---@field slot? fun(): string|integer the id of this worker, after "ending:" where it is about to exit
---@field worker_count? fun(): integer
---@field time? fun(): number Unix seconds

---A recorder for one gate. It can be made before there are workers.
---@param settings riskscreen.nginx.RecorderSettings
---@return riskscreen.nginx.Recorder
function M.new(settings)
  local ngx = _G.ngx
  local name = settings.name or "default"
  local prefix = "riskscreen:metrics:" .. name .. ":"
  local all = totals.new(settings.dict, prefix)
  local decisions = {}
  for _, action in ipairs(ACTIONS) do
    decisions[action] = counters_of(all, "decided:" .. action .. ":", SOURCES)
  end
  return setmetatable({
    name = name,
    dict = settings.dict,
    client = settings.client,
    inbox = settings.inbox,
    lists = settings.lists,
    refreshes = counters_of(all, "refresh:", REFRESHES),
    every = settings.every or ngx.timer.every,
    slot = settings.slot or slot_of_worker,
    worker_count = settings.worker_count or ngx.worker.count,
    totals = all,
    since = (settings.time or ngx.time)(),
    since_key = prefix .. "since",
    gauge_prefix = prefix .. "in_flight:",
    decisions = decisions,
    hits = counters_of(all, "hit:", TIERS),
    misses = counters_of(all, "miss:", TIERS),
    errors = counters_of(all, "error:", error_kinds()),
    upstream_time = new_histogram(all, "upstream:"),
    client_counters = settings.client and counters_of(all, "client:", client_counters()),
    deliveries = counters_of(all, "delivery:", DELIVERY_STATUSES),
    answers = settings.client and counters_of(all, "answers:", CLASSES),
    open = setmetatable({}, { __mode = "k" }),
    flushing = false,
  }, Recorder)
end

return M
