-- The metrics of a gate. Each worker has a recorder, which counts in plain numbers and adds them to the shared dict now
-- and then. A total never decreases while nginx runs, reloads included. status.lua shows the same counts to a person.
local definitions = require "riskscreen.nginx.metrics.definitions"
local prometheus = require "riskscreen.nginx.metrics.prometheus"
local stats = require "riskscreen.call.stats"
local tables = require "riskscreen.util.tables"
local version = require "riskscreen.version"

local FLUSH_INTERVAL = 1 -- seconds
local SHOWN = 60 -- minutes, the one under way included
local MINUTE_LIFETIME = (SHOWN + 1) * 60 -- seconds
local GAUGE_LIFETIME = 5 -- seconds after which the gauge of a silent worker is dropped

---@class riskscreen.nginx.Counter
---@field value number of this worker
---@field key string in the dict
---@field flushed number the part of `value` that was added to the dict
---@field seen number the last known total

---@class riskscreen.nginx.Recorder
---@field name string
---@field private counts table<string, table> counters, by name and then by label values
---@field private counters riskscreen.nginx.Counter[] the same as a list
---@field private flushing boolean whether a timer flushes the counts
---@field private added table<string, number> the part of each figure that was added to the minutes in the dict
local Recorder = {}

local function new_counter(self, key)
  local counter = { key = key, value = 0, flushed = 0, seen = 0 }
  table.insert(self.counters, counter)
  return counter
end

-- A table of counters by the values of the last label, of tables by those of the labels before it.
local function new_counts(self, key, labels, depth)
  if not labels[depth] then
    return new_counter(self, key)
  end
  local counts = {}
  for _, value in ipairs(labels[depth]) do
    if value ~= "redis" or self.has_redis then
      counts[value] = new_counts(self, key .. ":" .. value, labels, depth + 1)
    end
  end
  return counts
end

local function new_histogram(self, key)
  local histogram = { sum = new_counter(self, key .. ":sum"), buckets = {} }
  for index = 1, #stats.bounds + 1 do
    histogram.buckets[index] = new_counter(self, key .. ":" .. index)
  end
  return histogram
end

-- Adds a new count to the dict. A count for which the dict has no room is kept for the next time. When the dict has
-- lost the counter, it continues from the total that this worker saw last.
local function flush_counter(dict, counter)
  local counted = counter.value - counter.flushed
  local total = dict:incr(counter.key, counted, counter.seen)
  if not total then
    return
  end
  local known = counter.seen + counted
  if total < known then
    -- Another worker has restored it from an older total.
    total = dict:incr(counter.key, known - total) or total
  end
  counter.flushed, counter.seen = counter.value, total
end

-- The totals at the last flush, plus the counts since then.
local function totals_of(counts)
  if counts.key then
    return counts.seen + counts.value - counts.flushed
  end
  local totals = {}
  for name, inner in pairs(counts) do
    totals[name] = totals_of(inner)
  end
  return totals
end

-- The sum of this worker's counters in a table of counters or of such tables.
local function sum_of(counts)
  local sum = counts.value or 0
  for _, inner in pairs(counts.value and {} or counts) do
    sum = sum + sum_of(inner)
  end
  return sum
end

-- The figures of this worker that are also kept by the minute.
local function figures_of(counts)
  local figures = {
    fetches = sum_of(counts.upstream.buckets),
    failed_fetches = sum_of(counts.errors),
    fetch_seconds = counts.upstream.sum.value,
  }
  for action, sources in pairs(counts.decided) do
    figures[action] = sum_of(sources)
  end
  return figures
end

local function minute_key(self, minute, figure)
  return ("%s%d:%s"):format(self.minute_prefix, minute, figure)
end

-- Adds to the current minute what the figures have grown by. Zeros are written, too: they are the record of a minute
-- without decisions. If the dict is full, the figures are kept for the next time.
local function add_to_minute(self)
  local minute, added = math.floor(self.time() / 60), self.added
  for figure, total in pairs(figures_of(self.counts)) do
    if self.dict:incr(minute_key(self, minute, figure), total - (added[figure] or 0), 0, MINUTE_LIFETIME) then
      added[figure] = total
    end
  end
end

-- Takes over the counts of the client. A client that is not of this library may have fewer.
local function copy_client(self)
  local snapshot, counts = self.client:stats(), self.counts
  for name, counter in pairs(counts.client) do
    counter.value = snapshot[name] or 0
  end
  local answers = {}
  for status, count in pairs(snapshot.statuses or {}) do
    local class = math.floor(status / 100) .. "xx"
    answers[class] = (answers[class] or 0) + count
  end
  for class, counter in pairs(counts.answers) do
    counter.value = answers[class] or 0
  end
  return snapshot
end

-- Adds the counts to the totals, and returns the stats of the client. It touches every counter, so that a full dict
-- pushes out other entries first.
local function flush(self)
  local snapshot, dict = self.client and copy_client(self), self.dict
  if dict then
    for _, counter in ipairs(self.counters) do
      flush_counter(dict, counter)
    end
    add_to_minute(self)
    dict:add(self.since_key, self.since)
    dict:set(self.gauge_prefix .. self.slot(), snapshot and snapshot.in_flight or 0, GAUGE_LIFETIME)
  end
  return snapshot
end

-- Starts the timer that flushes, or flushes at once where there is none. An exiting worker gets no timer, and
-- exit_worker_by_lua raises.
local function start_flushing(self)
  local may_start, started = pcall(self.every, FLUSH_INTERVAL, function(premature)
    if premature then
      self.flushing = false
    end
    flush(self)
  end)
  self.flushing = may_start and started and true or false
  if not self.flushing then
    flush(self)
  end
end

-- Sees to it that a change is flushed. LuaJIT does not compile a function whose variable a closure has: in one with
-- `start_flushing`, every hit of the gate took 6,000 instructions more.
local function changed(self)
  if not self.flushing and self.dict then
    start_flushing(self)
  end
end

local function count_up(self, counter, number)
  counter.value = counter.value + (number or 1)
  changed(self)
end

---Counts a decision.
---@param action "allow"|"review"|"block"|"unknown"
---@param source riskscreen.nginx.Source|"invalid"|"exempt"
function Recorder:decided(action, source)
  count_up(self, self.counts.decided[action][source])
end

---Counts a lookup in a tier of the cache.
---@param tier "lru"|"dict"|"redis"
---@param hit boolean
function Recorder:lookup(tier, hit)
  count_up(self, self.counts.lookups[tier][hit and "hit" or "miss"])
end

---@param name string of the counters: errors, recorded, refreshes, redis_errors and the like
---@param label string one that is not known is not counted: a client that is not of this library may have other errors
---@param number? integer
function Recorder:count(name, label, number)
  local counter = self.counts[name][label]
  if counter then
    count_up(self, counter, number)
  end
end

---Counts a duration.
---@param name "upstream"|"redis"
---@param seconds number
function Recorder:took(name, seconds)
  local histogram = self.counts[name]
  histogram.sum.value = histogram.sum.value + seconds
  count_up(self, histogram.buckets[stats.bucket_of(seconds)])
end

---Counts a webhook delivery by the status of the answer.
---@param status integer
function Recorder:delivered(status)
  local deliveries = self.counts.deliveries
  count_up(self, deliveries[status] or deliveries[500])
end

local function room_of(dict)
  return dict and { capacity_bytes = dict:capacity(), free_bytes = dict:free_space() }
end

-- Calls of all workers' clients, exiting workers included.
local function all_under_way(self)
  local sum = 0
  for slot = 0, self.worker_count() - 1 do
    for _, state in ipairs { "", "ending:" } do
      sum = sum + (tonumber((self.dict:get(self.gauge_prefix .. state .. slot))) or 0)
    end
  end
  return sum
end

-- The time in the dict may be older than this worker: counts survive a reload.
local function counted_since(self)
  return self.dict and tonumber((self.dict:get(self.since_key))) or self.since
end

---@class riskscreen.nginx.Snapshot
---@field name string of the gate
---@field info table<string, 1> by the version of the library
---@field since number Unix seconds at which counting began
---@field worker? string set where the counts are those of one worker
---@field decided table<string, table<string, integer>> by action and source
---@field lookups table<string, { hit: integer, miss: integer }> by tier
---@field errors table<string, integer> by kind
---@field upstream { buckets: integer[], sum: number }
---@field in_flight? integer
---@field client? table<string, integer> the counters of the client
---@field answers? table<string, integer> by class of their status
---@field breaker? table the status of the circuit breaker
---@field fleet? riskscreen.nginx.RedisFacts
---@field redis? { buckets: integer[], sum: number }
---@field rate_limit? table the status of the rate limit
---@field dict? { capacity_bytes: integer, free_bytes: integer }
---@field deliveries? table<integer, integer> of webhooks, by the status of the answer
---@field lists? riskscreen.nginx.ListFacts
---@field refreshes? table<string, integer> of the lists, by result
---@field local_lists? riskscreen.ListFacts[] of the worker that answers
---@field recorded? table<string, integer> decisions for the journal, by result
---@field events? { capacity_bytes: integer, free_bytes: integer } of the webhooks' own dict

---The counts of all workers; those of the other workers are up to a second old.
---@return riskscreen.nginx.Snapshot
function Recorder:snapshot()
  local client = flush(self) or {}
  local snapshot = totals_of(self.counts)
  snapshot.name, snapshot.info, snapshot.since = self.name, { [version] = 1 }, counted_since(self)
  snapshot.worker = not self.dict and tostring(self.slot()) or nil
  snapshot.in_flight = client.in_flight and self.dict and all_under_way(self) or client.in_flight
  snapshot.breaker, snapshot.rate_limit = client.breaker, client.rate_limit
  snapshot.fleet = self.fleet and self.fleet:facts()
  snapshot.lists = self.lists and self.lists:facts()
  snapshot.local_lists = self.local_lists and self.local_lists:facts()
  snapshot.dict, snapshot.events = room_of(self.dict), room_of(self.inbox and self.inbox.dict)
  return snapshot
end

---@class riskscreen.nginx.Minute a figure is absent where it was not recorded
---@field time integer Unix seconds at which the minute began
---@field allow? integer decisions
---@field review? integer
---@field block? integer
---@field unknown? integer
---@field fetches? integer
---@field failed_fetches? integer
---@field mean_fetch_seconds? number

---The figures of the last 60 minutes, of all workers, oldest first; nil without a dict.
---@return riskscreen.nginx.Minute[]|nil
function Recorder:minutes()
  if not self.dict then
    return nil
  end
  local list, last = {}, math.floor(self.time() / 60)
  for minute = last - SHOWN + 1, last do
    local entry = { time = minute * 60 }
    for figure in pairs(figures_of(self.counts)) do
      entry[figure] = tonumber((self.dict:get(minute_key(self, minute, figure))))
    end
    entry.mean_fetch_seconds = (entry.fetches or 0) > 0 and (entry.fetch_seconds or 0) / entry.fetches or nil
    entry.fetch_seconds = nil
    list[#list + 1] = entry
  end
  return list
end

---The text for Prometheus.
---@return string
function Recorder:render()
  return prometheus.text(definitions.list, self:snapshot())
end

local M = { CONTENT_TYPE = prometheus.CONTENT_TYPE }

-- The privileged agent has no id, and must not be taken for worker 0.
local function slot_of_worker()
  local worker = _G.ngx.worker
  return (worker.exiting() and "ending:" or "") .. (worker.id() or "agent")
end

local function of_nginx()
  local ngx = _G.ngx
  return ngx and { every = ngx.timer.every, slot = slot_of_worker, worker_count = ngx.worker.count, time = ngx.time }
end

---@class riskscreen.nginx.RecorderSettings
---@field dict? table an ngx.shared dict; without it each worker counts for itself
---@field name? string of the gate: recorders of one name and one dict count together
---@field client? { stats: fun(self): table }
---@field inbox? { dict?: table }
---@field lists? { facts: fun(self): riskscreen.nginx.ListFacts }
---@field local_lists? { facts: fun(self): riskscreen.ListFacts[] }
---@field has_journal? boolean
---@field has_redis? boolean
---@field every? fun(seconds: number, callback: fun(premature: boolean)): any ngx.timer.every
---@field slot? fun(): string|integer the id of this worker, after "ending:" where it is about to exit
---@field worker_count? fun(): integer
---@field time? fun(): number Unix seconds

---A recorder for one gate. It can be made before there are workers.
---@param settings riskscreen.nginx.RecorderSettings
---@return riskscreen.nginx.Recorder
function M.new(settings)
  local self = tables.object(Recorder, tables.merge(tables.merge({ name = "default" }, of_nginx()), settings))
  local prefix = "riskscreen:metrics:" .. self.name .. ":"
  self.since, self.since_key = self.time(), prefix .. "since"
  self.gauge_prefix, self.minute_prefix = prefix .. "in_flight:", prefix .. "minute:"
  self.flushing, self.added = false, {}
  self.counts, self.counters = {}, {}
  for path, count in pairs(definitions.counts) do
    if not count.needs or self[count.needs] then
      local make = count.is_histogram and new_histogram or new_counts
      self.counts[path] = make(self, prefix .. path, count, 1)
    end
  end
  return self
end

return M
