-- The options of calls and runs, and the face of all options. A client's are in client.lua, http.lua, kyt.lua and
-- reliability.lua. Each option stands once: name, type, limits, default, meaning. The checks, the pages and the
-- annotations come from these tables. A wrong option is a message; the public function raises it at its caller's line.
local build = require "riskscreen.options.build"
local client = require "riskscreen.options.client"
local http = require "riskscreen.options.http"
local reliability = require "riskscreen.options.reliability"
local tables = require "riskscreen.util.tables"

local MAX_ITEMS = 2 ^ 53

local M = {
  methods = http.methods,
  is_path = http.is_path,
  client = client.options,
  check_client = client.check,
  policy = client.policy,
  address_check = client.address_check,
}

local of_any_call = tables.concat({
  build.seconds("timeout", nil, "Time limit of this call."),
  build.seconds("attempt_timeout", nil, "Time limit of one request of this call."),
  build.dictionary("headers", http.headers, "More headers for this call's requests."),
}, reliability.call)

---@type riskscreen.Option[]
M.call = tables.concat({
  M.address_check,
  build.group("extra", {
    build.dictionary("query", http.query, "Names to strings, numbers or booleans."),
    build.dictionary("body", http.query, "Names to values of JSON; of a request with a body."),
  }, "Parameters that the published interface does not list, such as the number of top counterparties."),
}, of_any_call)

---The options of a call that is split into several requests.
---@type riskscreen.Option[]
M.split_call = tables.concat({ build.concurrency("requests", nil, "Maximum of its requests at a time.") }, M.call)

---The options of a run over many items.
---@type riskscreen.Option[]
M.map = {
  build.concurrency("items", 32, "Maximum at a time."),
  build.flag("ordered", true, "Results in the source's order, or as they finish."),
  build.notice("on_progress", "Called for each result: on_progress(done, failed, rate, eta)."),
  build.count("total", "items", nil, 0, MAX_ITEMS, "Number of items, for the eta; the length of a list is known."),
  build.count("stop_after_failures", "failures", nil, 1, MAX_ITEMS, "Failures in a row after which the run stops."),
}

---The options of a request that no operation describes.
---@type riskscreen.Option[]
M.request = tables.concat({
  build.dictionary("query", http.query, "Query parameters: names to strings, numbers or booleans."),
  build.checked("body", "table|string|number|boolean", tables.deep_copy, "The body, sent as JSON."),
  build.flag("keep_null", false, "Whether null members of the answer's objects are kept."),
}, of_any_call)

return M
