-- Counters and latency histograms of a client. A snapshot is a copy.

local tables = require "riskscreen.util.tables"

-- Upper bounds of the buckets in seconds. A last bucket has no bound.
local BOUNDS = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60 }

local LIMITS = tables.concat(BOUNDS, { math.huge })

-- The number of a duration's bucket. Answers from afar are beyond the first ones.
local function index_of(seconds)
  local index = seconds > LIMITS[4] and 5 or 1
  while seconds > LIMITS[index] do
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
  if seconds < self.min then
    self.min = seconds
  end
  if seconds > self.max then
    self.max = seconds
  end
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

---@class riskscreen.OperationCounts the calls of an operation
---@field calls integer
---@field succeeded integer besides those in `direct`; likewise `latency`
---@field failed integer
---@field cancelled integer
---@field latency riskscreen.Histogram of the calls
---@field direct riskscreen.Histogram of the calls that succeeded with one request alone, whose latency is the call's

---@class riskscreen.Stats
---@field counters table<string, integer> apart from the counters of calls, which each operation has
---@field kinds table<string, integer> failed calls by the kind of their error
---@field statuses table<integer, integer> answers by HTTP status, besides those of direct calls
---@field operations table<string, riskscreen.OperationCounts>
---@field private requests riskscreen.Histogram latencies of the requests, besides those of direct calls
---@field private open table<integer, table|integer> the calls under way by their places; in a free place the number of
---the next free one. A call that an error has left behind is collected, and then no longer under way.
---@field private free integer the first free place
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
    requests = new_histogram(),
    open = setmetatable({}, { __mode = "v" }),
    free = 1,
  })
end

---@param name string
---@param amount? integer
function Stats:count(name, amount)
  self.counters[name] = self.counters[name] + (amount or 1)
end

---The counts of an operation.
---@param operation string
---@return riskscreen.OperationCounts
function Stats:of(operation)
  local counts = self.operations[operation]
    or { calls = 0, succeeded = 0, failed = 0, cancelled = 0, latency = new_histogram(), direct = new_histogram() }
  self.operations[operation] = counts
  return counts
end

---Counts the beginning of a call.
---@param call table gets the field `place`, which is nil once its end is counted
---@param counts riskscreen.OperationCounts
function Stats:begin(call, counts)
  local open, place = self.open, self.free
  counts.calls = counts.calls + 1
  self.free = open[place] or place + 1
  open[place], call.place = call, place
end

---Counts the end of a call that has succeeded with one request, and that request.
---@param call table under way
---@param counts riskscreen.OperationCounts
---@param size integer bytes of the answer
---@param seconds number
function Stats:succeed_directly(call, counts, size, seconds)
  local own, place = self.counters, call.place
  self.open[place], self.free, call.place = self.free, place, nil
  own.bytes_received = own.bytes_received + size
  counts.direct:observe(seconds)
end

---Counts any other end of a call, once. A cancelled call has no latency.
---@param call table
---@param counts riskscreen.OperationCounts
---@param outcome "succeeded"|"failed"|"cancelled"
---@param seconds? number
---@param kind? string of the error
function Stats:finish(call, counts, outcome, seconds, kind)
  local place = call.place
  if not place then
    return
  end
  self.open[place], self.free, call.place = self.free, place, nil
  counts[outcome] = counts[outcome] + 1
  if seconds then
    counts.latency:observe(seconds)
  end
  if kind then
    add(self.kinds, kind, 1)
  end
end

---Counts an answer, unless its call has succeeded directly.
---@param status integer
---@param size integer|nil bytes
---@param seconds number
function Stats:answered(status, size, seconds)
  add(self.statuses, status, 1)
  self:count("bytes_received", size or 0)
  self.requests:observe(seconds)
end

---The counters and histograms as they are now.
---@return table
function Stats:snapshot()
  local result, requests, calls = tables.copy(self.counters), new_histogram(), new_histogram()
  result.operations, result.statuses, result.errors = {}, tables.copy(self.statuses), tables.copy(self.kinds)
  requests:include(self.requests)
  for name, counts in pairs(self.operations) do
    local own, latency = tables.without(counts, "direct"), new_histogram()
    latency:include(counts.direct)
    local direct = histogram_snapshot(latency).count
    latency:include(counts.latency)
    calls:include(latency)
    requests:include(counts.direct)
    own.succeeded, own.latency = own.succeeded + direct, histogram_snapshot(latency)
    result.operations[name] = counts.calls > 0 and own or nil
    result.statuses[200] = direct > 0 and (result.statuses[200] or 0) + direct or result.statuses[200]
    for _, counter in ipairs(counters) do
      if counter.by_operation then
        add(result, counter.name, own[counter.name])
      end
    end
  end
  result.in_flight = 0
  for _, call in pairs(self.open) do
    result.in_flight = result.in_flight + (type(call) == "table" and 1 or 0)
  end
  result.latency = { calls = histogram_snapshot(calls), requests = histogram_snapshot(requests) }
  return result
end

return M
