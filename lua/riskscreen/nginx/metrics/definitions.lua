-- The metric definitions: name, type, meaning, and how the samples follow from a recorder's snapshot. Pure. The text is
-- written by prometheus.lua.
local stats = require "riskscreen.call.stats"
local version = require "riskscreen.version"

local LISTS = { "blacklist", "whitelist" }
local STATES = { "closed", "open", "half_open" }

local function sorted(map)
  local names = {}
  for name in pairs(map) do
    names[#names + 1] = name
  end
  table.sort(names)
  local index = 0
  return function()
    index = index + 1
    return names[index], map[names[index]]
  end
end

local M = {}

---@class riskscreen.nginx.Metric
---@field name string
---@field type "counter"|"gauge"|"histogram"
---@field doc string
---@field labels string[] beside `gate`
---@field bounds? number[] of a histogram
---@field samples fun(add: fun(labels: table, value: any), snapshot: riskscreen.nginx.Snapshot)

---@type riskscreen.nginx.Metric[]
M.list = {
  {
    name = "riskscreen_info",
    type = "gauge",
    doc = "The version of the library.",
    labels = { "version" },
    samples = function(add)
      add({ version = version }, 1)
    end,
  },
  {
    name = "riskscreen_decisions_total",
    type = "counter",
    doc = "Decisions by action and source.",
    labels = { "action", "source" },
    samples = function(add, snapshot)
      for action, sources in sorted(snapshot.decisions) do
        for source, count in sorted(sources) do
          add({ action = action, source = source }, count)
        end
      end
    end,
  },
  {
    name = "riskscreen_cache_lookups_total",
    type = "counter",
    doc = "Lookups in a tier of the cache, by result.",
    labels = { "tier", "result" },
    samples = function(add, snapshot)
      for tier, count in sorted(snapshot.hits) do
        add({ tier = tier, result = "hit" }, count)
        add({ tier = tier, result = "miss" }, snapshot.misses[tier])
      end
    end,
  },
  {
    name = "riskscreen_upstream_seconds",
    type = "histogram",
    doc = "Duration of fetches from the service, retries included.",
    bounds = stats.bounds,
    labels = {},
    samples = function(add, snapshot)
      add({}, snapshot.upstream)
    end,
  },
  {
    name = "riskscreen_errors_total",
    type = "counter",
    doc = "Fetches that failed, by kind.",
    labels = { "kind" },
    samples = function(add, snapshot)
      for kind, count in sorted(snapshot.errors) do
        add({ kind = kind }, count)
      end
    end,
  },
  {
    name = "riskscreen_in_flight",
    type = "gauge",
    doc = "Fetches under way.",
    labels = {},
    samples = function(add, snapshot)
      add({}, snapshot.in_flight)
    end,
  },
  {
    name = "riskscreen_client_answers_total",
    type = "counter",
    doc = "Answers of the service by class of their HTTP status.",
    labels = { "class" },
    samples = function(add, snapshot)
      for class, count in sorted(snapshot.answers or {}) do
        add({ class = class }, count)
      end
    end,
  },
  {
    name = "riskscreen_webhooks_total",
    type = "counter",
    doc = "Webhook deliveries by the HTTP status of the answer; the service repeats those with 5xx.",
    labels = { "status" },
    samples = function(add, snapshot)
      for status, count in sorted(snapshot.deliveries or {}) do
        add({ status = tostring(status) }, count)
      end
    end,
  },
  {
    name = "riskscreen_lists_refreshes_total",
    type = "counter",
    doc = "Refreshes of the account's lists, by result.",
    labels = { "result" },
    samples = function(add, snapshot)
      for result, count in sorted(snapshot.refreshes or {}) do
        add({ result = result }, count)
      end
    end,
  },
  {
    name = "riskscreen_lists_entries",
    type = "gauge",
    doc = "Addresses on the account's lists at the last refresh.",
    labels = { "list" },
    samples = function(add, snapshot)
      for _, list in ipairs(snapshot.lists and LISTS or {}) do
        add({ list = list }, snapshot.lists[list])
      end
    end,
  },
  {
    name = "riskscreen_circuit_state",
    type = "gauge",
    doc = "1 for the current state of the circuit breaker, 0 for the others.",
    labels = { "state" },
    samples = function(add, snapshot)
      for _, state in ipairs(snapshot.breaker and STATES or {}) do
        add({ state = state }, snapshot.breaker.state == state and 1 or 0)
      end
    end,
  },
}

-- A metric that is one number of a part of the snapshot. The part may be absent.
local function single(name, type, doc, part, field)
  table.insert(M.list, {
    name = "riskscreen_" .. name,
    type = type,
    doc = doc,
    labels = {},
    samples = function(add, snapshot)
      if snapshot[part] and snapshot[part][field] ~= nil then
        add({}, snapshot[part][field])
      end
    end,
  })
end

single("lists_age_seconds", "gauge", "Seconds since the account's lists were fetched.", "lists", "age_seconds")
single("circuit_opened_total", "counter", "Times that the circuit breaker has opened.", "breaker", "opened")
single("rate_limit_rate", "gauge", "Requests a second that the rate limit allows now.", "rate_limit", "rate")
single("rate_limit_tokens", "gauge", "Requests that the rate limit would allow at once.", "rate_limit", "tokens")
single(
  "rate_limit_paused_seconds",
  "gauge",
  "Seconds for which requests are still paused after a 429.",
  "rate_limit",
  "paused"
)
single("dict_capacity_bytes", "gauge", "Size of the shared dict.", "dict", "capacity")
single("dict_free_bytes", "gauge", "Free bytes of the shared dict, in whole pages.", "dict", "free")
single("webhooks_dict_capacity_bytes", "gauge", "Size of the shared dict of webhooks.", "events", "capacity")
single("webhooks_dict_free_bytes", "gauge", "Free bytes of that dict, in whole pages.", "events", "free")
for _, counter in ipairs(stats.counters) do
  local doc = "The gate's client: " .. counter.doc .. "."
  single("client_" .. counter.name .. "_total", "counter", doc, "client", counter.name)
end

local function sample(labels, value, snapshot)
  labels.gate, labels.worker = snapshot.name, snapshot.worker
  if type(value) == "table" then
    return { labels = labels, buckets = value.buckets, sum = value.sum }
  end
  return { labels = labels, value = value }
end

---@param snapshots riskscreen.nginx.Snapshot[]
---@return riskscreen.nginx.MetricSamples[]
function M.of(snapshots)
  local families = {}
  for index, entry in ipairs(M.list) do
    local family = { name = entry.name, type = entry.type, doc = entry.doc, bounds = entry.bounds, samples = {} }
    for _, snapshot in ipairs(snapshots) do
      entry.samples(function(labels, value)
        table.insert(family.samples, sample(labels, value, snapshot))
      end, snapshot)
    end
    families[index] = family
  end
  return families
end

return M
