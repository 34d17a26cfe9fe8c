-- The metrics of a gate. `counts` are the counters of a recorder. `list` is what prometheus.lua writes: name, type,
-- meaning, and the place of the values in a recorder's snapshot.
local errors = require "riskscreen.errors"
local stats = require "riskscreen.call.stats"
local tables = require "riskscreen.util.tables"

local M = {
  ACTIONS = { "allow", "review", "block", "unknown" },
  -- The sources of decisions: those of the cache, and two without a lookup.
  SOURCES = { "lru", "dict", "upstream", "stale", "list", "invalid", "exempt", "redis" },
  TIERS = { "lru", "dict", "redis" },
}

---@class riskscreen.nginx.Count
---@field needs? string the setting of a recorder without which nothing is counted
---@field is_histogram? boolean of durations
---@field [integer] any[] the values of each label; the value "redis" is of gates with Redis alone

local function of_redis(...)
  return { needs = "has_redis", { ... } }
end

---@type table<string, riskscreen.nginx.Count> by path
M.counts = {
  decided = { M.ACTIONS, M.SOURCES },
  lookups = { M.TIERS, { "hit", "miss" } },
  errors = { tables.pluck(errors.kinds, "kind") },
  upstream = { is_histogram = true },
  client = { needs = "client", tables.pluck(stats.counters, "name") },
  answers = { needs = "client", { "1xx", "2xx", "3xx", "4xx", "5xx" } },
  -- The statuses that an inbox answers with; any other counts as 500.
  deliveries = { needs = "inbox", { 200, 400, 401, 403, 405, 413, 503, 500 } },
  recorded = { needs = "has_journal", { "written", "lost", "failed" } },
  refreshes = { needs = "lists", { "success", "failure" } },
  redis = { needs = "has_redis", is_histogram = true },
  redis_errors = of_redis("circuit", "full", "timeout", "error", "reply"),
  redis_refused = of_redis("malformed", "forged", "future", "expired", "purged"),
  redis_writes = of_redis("sent", "dropped"),
  redis_purges = of_redis("published", "failed", "heard", "lost"),
}

---@class riskscreen.nginx.Metric
---@field name string
---@field type "counter"|"gauge"|"histogram"
---@field path string the fields of the snapshot that lead to the value; there is no sample where one is absent
---@field doc string
---@field labels string[] beside `gate`; the value is a table by the first label, of tables by the second
---@field keys? string[] the values of the label, where the table has other fields
---@field states? string[] the value is one of these: 1 for it, and 0 for the others
---@field fact? string the value is a list of tables that have the labels as fields, and the value in this one

---@type riskscreen.nginx.Metric[]
M.list = {}

local function metric(kind, name, path, doc, ...)
  local added = { type = kind, name = "riskscreen_" .. name, path = path, doc = doc, labels = { ... } }
  table.insert(M.list, added)
  return added
end

local function counter(...)
  metric("counter", ...)
end

local function gauge(...)
  return metric("gauge", ...)
end

-- 1 for the current state of a circuit, and 0 for the others.
local function circuit(name, path, doc)
  gauge(name, path, doc, "state").states = { "closed", "open", "half_open" }
end

gauge("info", "info", "The version of the library.", "version")
counter("decisions_total", "decided", "Decisions by action and source.", "action", "source")
counter("cache_lookups_total", "lookups", "Lookups in a tier of the cache, by result.", "tier", "result")
metric("histogram", "upstream_seconds", "upstream", "Duration of fetches from the service, retries included.")
counter("errors_total", "errors", "Fetches that failed, by kind.", "kind")
gauge("in_flight", "in_flight", "Calls to the service under way.")
counter("client_answers_total", "answers", "Answers of the service by class of their HTTP status.", "class")
counter(
  "webhooks_total",
  "deliveries",
  "Webhook deliveries by the HTTP status of the answer; the service repeats those with 5xx.",
  "status"
)
counter("lists_refreshes_total", "refreshes", "Refreshes of the account's lists, by result.", "result")
gauge("lists_entries", "lists", "Addresses on the account's lists at the last refresh.", "list").keys =
  { "blacklist", "whitelist" }
gauge("lists_invalid_items", "lists.invalid", "Items of the account's lists that are no address.")
counter(
  "journal_lines_total",
  "recorded",
  "Decisions for the journal, by result: written or lost. Each attempt to write that failed is one failed.",
  "result"
)
circuit("circuit_state", "breaker.state", "1 for the current state of the circuit breaker, 0 for the others.")
metric("histogram", "redis_seconds", "redis", "Duration of commands to Redis that a request waited for.")
counter("redis_errors_total", "redis_errors", "Commands of requests that Redis did not answer, by reason.", "reason")
counter("redis_refused_total", "redis_refused", "Verdicts of Redis that do not count, by reason.", "reason")
counter("redis_writes_total", "redis_writes", "Writes to Redis, by result: sent or dropped.", "result")
counter("redis_purges_total", "redis_purges", "Purges of the fleet, by result; `lost`: all was forgotten.", "result")
gauge(
  "redis_unheard_seconds",
  "fleet.unheard_seconds",
  "Seconds since this machine heard of purges, or since the gate's start."
)
circuit("redis_circuit_state", "fleet.circuit.state", "1 for the current state of the circuit to Redis, else 0.")
gauge("lists_age_seconds", "lists.age_seconds", "Seconds since the account's lists were fetched.")
for _, fact in ipairs {
  { "entries", "entries", "Entries of a local list." },
  { "bytes", "bytes", "Size of a local list's file." },
  { "age_seconds", "age_seconds", "Seconds since a local list was built, or its text changed." },
  { "invalid_rows", "invalid", "Rows of a local list that are no entries; of a compiled list, 0." },
  { "stale", "stale", "1 where a local list is older than `max_age`, else 0." },
  { "faulty", "faulty", "1 where the file of a local list cannot be loaded and its old content counts, else 0." },
} do
  gauge("local_list_" .. fact[1], "local_lists", fact[3], "kind", "file").fact = fact[2]
end
counter("circuit_opened_total", "breaker.opened", "Times that the circuit breaker has opened.")
gauge("rate_limit_rate", "rate_limit.rate", "Requests a second that the rate limit allows now.")
gauge("rate_limit_tokens", "rate_limit.tokens", "Requests that the rate limit would allow at once.")
gauge("rate_limit_paused_seconds", "rate_limit.paused", "Seconds for which requests are still paused after a 429.")
gauge("dict_capacity_bytes", "dict.capacity_bytes", "Size of the shared dict.")
gauge("dict_free_bytes", "dict.free_bytes", "Free bytes of the shared dict, in whole pages.")
gauge("webhooks_dict_capacity_bytes", "events.capacity_bytes", "Size of the shared dict of webhooks.")
gauge("webhooks_dict_free_bytes", "events.free_bytes", "Free bytes of that dict, in whole pages.")
for _, entry in ipairs(stats.counters) do
  counter("client_" .. entry.name .. "_total", "client." .. entry.name, "The gate's client: " .. entry.doc .. ".")
end

return M
