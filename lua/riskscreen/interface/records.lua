-- The shapes of everything the service sends (section "Resources and their fields"): field names, types, enumerations.
-- A shape states the type of a field that is present; an answer without a `required` field is useless. An enumeration
-- only documents a field: shape.lua lets unseen values pass, and the policy gives them a meaning.
local tables = require "riskscreen.util.tables"

---@class riskscreen.Shape
---@field type "string"|"integer"|"number"|"boolean"|"object"|"array"|"map"
---@field name? string the field's name in its object
---@field fields? riskscreen.Shape[] of an object
---@field items? riskscreen.Shape of an array's elements, a map's values, or an object's members besides its fields
---@field enum? string a key of enums.values
---@field required? boolean
---@field any_of? string[] of an object: at least one of these fields is there
---@field minimum? integer
---@field decimal? boolean a text that must be a decimal number
---@field doc? string

local function field(name, type, extra)
  return tables.merge({ name = name, type = type }, extra)
end

local function object(fields)
  return { type = "object", fields = fields }
end

local function array(items)
  return { type = "array", items = items }
end

local risk_level = field("riskLevel", "string", { enum = "risk_level" })
local risk_type = field("riskType", "string", { enum = "risk_type" })
local risk_source = field("riskSource", "string", { enum = "risk_source" })

local address = field("address", "string", { required = true, doc = "the queried address" })
local listed_address = field("address", "string", { required = true, doc = "the listed address" })
local network = field("network", "string", { required = true, enum = "network" })
local time = field("time", "integer", { doc = "milliseconds since the Unix epoch" })
local created_at = field("createdAt", "integer", { doc = "seconds since the Unix epoch" })
local whitelisted = field(
  "whitelist",
  "boolean",
  { doc = "the interface does not explain it; probably that the account's whitelist has the address" }
)

local entity_fields = {
  field("entityName", "string"),
  field("entityCode", "string"),
  field("entityCategory", "string"),
  field("entityCategoryCode", "string"),
}

local transfer_fields = {
  field("time", "integer", { doc = "milliseconds since the Unix epoch" }),
  field("hash", "string"),
  field("symbol", "string"),
}

local statistic_fields = {
  field("symbol", "string"),
  field("contractAddr", "string", { doc = "may be empty" }),
  field("txCount", "integer"),
  field("txValue", "number"),
}

local M = {}

M.entity = object {
  time,
  address,
  network,
  whitelisted,
  field("contract", "boolean", { doc = "the address is a contract" }),
  field("entity", "object", { fields = entity_fields }),
}

M.risk_assessment = object {
  time,
  address,
  network,
  whitelisted,
  field("risks", "array", { items = object { risk_level, risk_type, risk_source } }),
}

M.blacklist_item = object {
  field("network", "string", { enum = "network", doc = "absent on some items" }),
  listed_address,
  field("risks", "array", {
    doc = "absent or null on some items",
    items = object {
      risk_level,
      risk_type,
      risk_source,
      field("chains", "array", { items = object { field("chain", "string"), field("chainName", "string") } }),
    },
  }),
  created_at,
}

M.whitelist_item = object {
  field("chain", "string", { doc = "a network's short name" }),
  listed_address,
  created_at,
}

M.counterparties = object {
  field("opponents", "array", {
    required = true,
    items = object {
      field("entities", "array", { items = object(entity_fields) }),
      field("risks", "array", { items = object { risk_level, risk_type } }),
      field("dir", "string", { enum = "direction" }),
      field("chain", "string"),
      field("address", "string"),
      field("amount", "number"),
      field("symbol", "string", { doc = "token symbol" }),
      field("transactionNumbers", "integer", { doc = "number of transactions" }),
    },
  }),
}

M.basic = object {
  field("activeType", "integer", { doc = "the interface does not explain its values" }),
  field("balance", "map", { items = { type = "number" }, doc = "token symbol to amount" }),
  field("firstInTx", "object", { fields = transfer_fields }),
  field("firstOutTx", "object", { fields = transfer_fields }),
  field("mainInStatistic", "object", { fields = statistic_fields }),
  field("mainOutStatistic", "object", { fields = statistic_fields }),
  field("stableInStatistic", "object", { fields = statistic_fields }),
  field("stableOutStatistic", "object", { fields = statistic_fields }),
}

M.freeze_event = object {
  field("hash", "string", { doc = "transaction hash" }),
  field("chain", "string"),
  field("txTime", "integer", { doc = "milliseconds since the Unix epoch" }),
  field("contractAddress", "string", { doc = "token contract" }),
  field("token", "string", { doc = "token symbol" }),
  field("type", "string"),
  field("event", "string"),
  field("frozenBalance", "string", { doc = "decimal amount as text" }),
  field("destroyedBalance", "string", { doc = "decimal amount as text, on some events only" }),
}

M.usage = object {
  field("time", "string", { doc = "a date" }),
  field("methodName", "string"),
  field("methodUrl", "string", { doc = "a path" }),
  field("totalCalls", "integer"),
  field("useCredits", "integer"),
}

local score = field("score", "string", { decimal = true, doc = "a decimal as text" })

local strategy = object {
  field("strategyNo", "string"),
  field("strategyName", "string"),
  score,
  field("details", "array", { items = object { score, field("code", "string"), field("name", "string") } }),
}

---The strategies of a direction by number.
M.strategies = { type = "map", items = strategy }

local request_id = field("requestId", "string", { doc = "identifies the asynchronous result" })

local result_fields = {
  field("customId", "string", { doc = "the caller's own identifier" }),
  field("maxScore", "string", { decimal = true, doc = "the highest score, a decimal as text" }),
  field("dirData", "object", {
    fields = { field("in", "map", { items = strategy }), field("out", "map", { items = strategy }) },
    items = M.strategies,
    doc = "the results of each direction by the strategy's number",
  }),
  field("risks", "array", {
    items = object { risk_level, risk_type, risk_source },
    doc = "the risks of the transaction; the interface does not show them",
  }),
  time,
}

M.transaction_result = object(tables.concat({
  request_id,
  field("status", "integer", { doc = "the interface shows 1003 and does not explain it" }),
}, result_fields))

-- The interface does not show the answer to a submission: a requestId, or the result at once. A status has no type
-- there, because a result that was paid for must not be lost over it.
M.submission = object(tables.concat({ request_id }, result_fields))
M.submission.any_of = { "requestId", "risks", "maxScore" }

M.webhook_event = object {
  field("webhookId", "string", { required = true }),
  field("eventType", "string", { required = true }),
  field("timestamp", "string", { required = true, doc = "YYYY-MM-DD HH:mm:ss, the zone is not published" }),
  field("data", "object", { required = true, fields = {} }),
}

M.pagination = object {
  field("current_page", "integer", { minimum = 0 }),
  field("per_page", "integer", { minimum = 0 }),
  field("total_pages", "integer", { minimum = 0 }),
  field("total_items", "integer", { minimum = 0 }),
}

M.list_of = array

return M
