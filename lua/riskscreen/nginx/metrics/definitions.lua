-- The metric definitions: name, type, meaning, and the place of the values in a recorder's snapshot. prometheus.lua
-- writes the text.
local stats = require "riskscreen.call.stats"

local M = {
  ACTIONS = { "allow", "review", "block", "unknown" },
  -- The sources of decisions: those of the cache, and two without a lookup.
  SOURCES = { "lru", "dict", "upstream", "stale", "list", "invalid", "exempt" },
  TIERS = { "lru", "dict" },
  -- Counters of a gate with Redis, and their labels.
  REDIS = {
    redis_errors = { "circuit", "full", "timeout", "error", "reply" },
    redis_refused = { "malformed", "forged", "future", "expired", "purged" },
    redis_writes = { "sent", "dropped" },
    redis_purges = { "published", "failed", "heard", "lost" },
  },
}

---@class riskscreen.nginx.Metric
---@field name string
---@field type "counter"|"gauge"|"histogram"
---@field path string the fields of the snapshot that lead to the value; there is no sample where one is absent
---@field doc string
---@field labels string[] beside `gate`; the value is a table by the first label, of tables by the second

---@type riskscreen.nginx.Metric[]
M.list = {}

local function metric(kind, name, path, doc, ...)
  table.insert(M.list, { type = kind, name = "riskscreen_" .. name, path = path, doc = doc, labels = { ... } })
end

local function counter(...)
  metric("counter", ...)
end

local function gauge(...)
  metric("gauge", ...)
end

gauge("info", "info", "The version of the library.", "version")
counter("decisions_total", "decided", "Decisions by action and source.", "action", "source")
counter("cache_lookups_total", "lookups", "Lookups in a tier of the cache, by result.", "tier", "result")
metric("histogram", "upstream_seconds", "upstream", "Duration of fetches from the service, retries included.")
counter("errors_total", "errors", "Fetches that failed, by kind.", "kind")
gauge("in_flight", "in_flight", "Fetches under way.")
counter("client_answers_total", "answers", "Answers of the service by class of their HTTP status.", "class")
counter(
  "webhooks_total",
  "deliveries",
  "Webhook deliveries by the HTTP status of the answer; the service repeats those with 5xx.",
  "status"
)
counter("lists_refreshes_total", "refreshes", "Refreshes of the account's lists, by result.", "result")
gauge("lists_entries", "entries", "Addresses on the account's lists at the last refresh.", "list")
gauge("lists_invalid_items", "lists.invalid", "Items of the account's lists that are no address.")
counter(
  "journal_lines_total",
  "recorded",
  "Decisions for the journal, by result: written or lost. Each attempt to write that failed is one failed.",
  "result"
)
gauge("circuit_state", "circuit", "1 for the current state of the circuit breaker, 0 for the others.", "state")
metric("histogram", "redis_seconds", "redis", "Duration of commands to Redis that a request waited for.")
counter("redis_errors_total", "redis_errors", "Commands of requests that Redis did not answer, by reason.", "reason")
counter("redis_refused_total", "redis_refused", "Verdicts of Redis that do not count, by reason.", "reason")
counter("redis_writes_total", "redis_writes", "Writes to Redis, by result: sent or dropped.", "result")
counter("redis_purges_total", "redis_purges", "Purges of the fleet, by result; `lost`: all was forgotten.", "result")
gauge("redis_unheard_seconds", "fleet.unheard_seconds", "Seconds since this machine heard of the fleet's purges.")
gauge("redis_circuit_state", "redis_circuit", "1 for the current state of the circuit to Redis, else 0.", "state")
gauge("lists_age_seconds", "lists.age_seconds", "Seconds since the account's lists were fetched.")
for _, fact in ipairs {
  { "entries", "entries", "Entries of a local list." },
  { "bytes", "bytes", "Size of a local list's file." },
  { "age_seconds", "age_seconds", "Seconds since a local list was built, or its text changed." },
  { "invalid_rows", "invalid", "Rows of a local list that are no entries; of a compiled list, 0." },
  { "stale", "stale", "1 where a local list is older than `max_age`, else 0." },
  { "faulty", "faulty", "1 where the file of a local list cannot be loaded and its old content counts, else 0." },
} do
  gauge("local_list_" .. fact[1], "local_list." .. fact[2], fact[3], "kind", "file")
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
