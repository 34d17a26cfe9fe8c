-- Counters and latency histograms of a client. A snapshot is a copy.

local open_sets = require "riskscreen.util.open_set"
local tables = require "riskscreen.util.tables"

-- Upper bounds of the buckets in seconds. A last bucket has no bound.
local BOUNDS = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60 }

-- The number of a duration's bucket. Most durations are in the first ones.
local function index_of(seconds)
  local index = 1
  while index <= #BOUNDS and seconds > BOUNDS[index] do
    index = index + 1
  end
  return index
end

-- The same from two tables, by half milliseconds and by twentieths of a second. Behind a loop or branches LuaJIT
-- compiles a copy of all that follows for each bucket, and gives up: a fifth of a miss of the gate.
if rawget(_G, "jit") then
  local fine, coarse, last, ceil, max, min = {}, {}, 60 * 20 + 1, math.ceil, math.max, math.min
  for step = 0, last do
    fine[step], coarse[step] = index_of(step / 2000), index_of(step / 20)
  end
  fine[last] = #BOUNDS + 1
  index_of = function(seconds)
    local index = min(fine[ceil(max(0, min(seconds * 2000, last)))], coarse[ceil(max(0, min(seconds * 20, last)))])
    return index
  end
end

---@class riskscreen.Histogram
---@field private counts integer[] for each bound, and one beyond the last
local Histogram = {}

local function new_histogram()
  local counts = {}
  for index = 1, #BOUNDS + 1 do
    counts[index] = 0
  end
  return tables.object(Histogram, { counts = counts, sum = 0, min = math.huge, max = 0 })
end

function Histogram:observe(seconds)
  local counts, index = self.counts, index_of(seconds)
  counts[index] = counts[index] + 1
  self.sum = self.sum + seconds
  self.min, self.max = seconds < self.min and seconds or self.min, seconds > self.max and seconds or self.max
end

function Histogram:include(other)
  for index, count in ipairs(other.counts) do
    self.counts[index] = self.counts[index] + count
  end
  self.sum = self.sum + other.sum
  self.min = math.min(self.min, other.min)
  self.max = math.max(self.max, other.max)
end

-- The quantile of a share. The observations of a bucket count as spread evenly within its bounds.
local function quantile(histogram, share, observations)
  local rank, seen = share * observations, 0
  for index, count in ipairs(histogram.counts) do
    if count > 0 and seen + count >= rank then
      local lower = math.max(BOUNDS[index - 1] or 0, histogram.min)
      local upper = math.min(BOUNDS[index] or math.huge, histogram.max)
      return lower + (upper - lower) * math.max(0, rank - seen) / count
    end
    seen = seen + count
  end
end

-- The buckets of a snapshot are cumulative, as in Prometheus: each counts the durations of at most `le` seconds.
local function histogram_snapshot(histogram)
  local buckets, seen = {}, 0
  for index, bound in ipairs(BOUNDS) do
    seen = seen + histogram.counts[index]
    buckets[index] = { le = bound, count = seen }
  end
  seen = seen + histogram.counts[#BOUNDS + 1]
  local any = seen > 0
  return {
    count = seen,
    sum = histogram.sum,
    min = any and histogram.min or nil,
    max = any and histogram.max or nil,
    p50 = quantile(histogram, 0.5, seen),
    p95 = quantile(histogram, 0.95, seen),
    p99 = quantile(histogram, 0.99, seen),
    buckets = buckets,
  }
end

---@class riskscreen.Stats
---@field counters table<string, integer> apart from the counters of calls, which each operation has
---@field kinds table<string, integer> failed calls by the kind of their error
---@field statuses table<integer, integer> answers by HTTP status
---@field operations table<string, table>
---@field private direct table<string, riskscreen.Histogram> latencies of the calls that are one request alone, by
---operation
---@field private requests riskscreen.Histogram latencies of all other requests
---@field private open riskscreen.OpenSet calls under way
local Stats = {}

-- The counters and their meaning.
local counters = {
  { name = "calls", doc = "calls begun", by_operation = true },
  { name = "succeeded", doc = "calls with a value", by_operation = true },
  { name = "failed", doc = "calls with an error", by_operation = true },
  { name = "cancelled", doc = "calls whose task was stopped", by_operation = true },
  { name = "requests", doc = "requests sent, repeated ones included" },
  { name = "retries", doc = "requests sent again after a failure" },
  { name = "resent", doc = "requests sent again on a new connection, because the kept one was dead" },
  { name = "hedges", doc = "second requests, sent because an answer was late" },
  { name = "hedges_won", doc = "hedges that were answered first" },
  { name = "budget_exhausted", doc = "requests not sent again because the retry budget was used up" },
  { name = "limited", doc = "calls that rate_limit did not allow in time" },
  { name = "circuit_open", doc = "calls that the open circuit refused" },
  { name = "bytes_sent", doc = "bytes of request bodies" },
  { name = "bytes_received", doc = "bytes of answers' bodies, decompressed" },
}

local function add(map, key, amount)
  map[key] = (map[key] or 0) + amount
end

local M = { counters = counters, bounds = BOUNDS }

---The number of the bucket of a duration.
---@type fun(seconds: number): integer
M.bucket_of = index_of

---@return riskscreen.Stats
function M.new()
  local zero = {}
  for _, counter in ipairs(counters) do
    zero[counter.name] = 0
  end
  return tables.object(Stats, {
    counters = zero,
    kinds = {},
    statuses = {},
    operations = {},
    direct = {},
    requests = new_histogram(),
    open = open_sets.new(),
  })
end

---@param name string
---@param amount? integer
function Stats:count(name, amount)
  self.counters[name] = self.counters[name] + (amount or 1)
end

---Counts the beginning of a call.
---@param call table gets the field `slot`
---@param operation string
function Stats:begin(call, operation)
  call.slot = self.open:add(call)
  local entry = self.operations[operation]
  if not entry then
    entry = { calls = 0, succeeded = 0, failed = 0, cancelled = 0, latency = new_histogram() }
    self.operations[operation], self.direct[operation] = entry, new_histogram()
  end
  entry.calls = entry.calls + 1
end

---Counts the end of a call. A cancelled call has no latency.
---@param call table
---@param operation string
---@param outcome "succeeded"|"failed"|"cancelled"
---@param seconds? number
---@param kind? string of the error
function Stats:finish(call, operation, outcome, seconds, kind)
  self.open:remove(call, call.slot)
  local entry = self.operations[operation]
  entry[outcome] = entry[outcome] + 1
  if seconds then
    entry.latency:observe(seconds)
  end
  if kind then
    add(self.kinds, kind, 1)
  end
end

---Counts a request.
---@param body? string
function Stats:sent(body)
  local own = self.counters
  own.requests = own.requests + 1
  if body then
    own.bytes_sent = own.bytes_sent + #body
  end
end

---Counts an answer.
---@param status integer
---@param size integer|nil bytes
---@param seconds number
---@param operation? string of a call whose latency is that of the request; `finish` gets none
function Stats:answered(status, size, seconds, operation)
  local statuses, own = self.statuses, self.counters
  statuses[status] = (statuses[status] or 0) + 1
  own.bytes_received = own.bytes_received + (size or 0)
  local histogram = operation and self.direct[operation] or self.requests
  histogram:observe(seconds)
end

---The counters and histograms as they are now.
---@return table
function Stats:snapshot()
  local result, requests, calls = tables.copy(self.counters), new_histogram(), new_histogram()
  result.operations = {}
  requests:include(self.requests)
  for name, entry in pairs(self.operations) do
    local latency, direct = new_histogram(), self.direct[name]
    latency:include(entry.latency)
    latency:include(direct)
    calls:include(latency)
    requests:include(direct)
    result.operations[name] = tables.merge(entry, { latency = histogram_snapshot(latency) })
    for _, counter in ipairs(counters) do
      if counter.by_operation then
        add(result, counter.name, entry[counter.name])
      end
    end
  end
  result.in_flight = self.open:count()
  result.errors, result.statuses = tables.copy(self.kinds), tables.copy(self.statuses)
  result.latency = { calls = histogram_snapshot(calls), requests = histogram_snapshot(requests) }
  return result
end

return M
