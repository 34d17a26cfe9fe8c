-- What the interface leaves open and a request can settle: one table for the profile of a sandbox, for the measurement
-- of the doctor, and for docs/assumptions.md.

local build = require "riskscreen.options.build"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

---@class riskscreen.sandbox.Assumption
---@field name string a key of a profile
---@field doc string what is open
---@field values any[] what a service may do; the first is assumed
---@field kind? "text"|"count" other values are possible, too
---@field at_least? boolean a larger value is as assumed, too
---@field set? string the client option that follows from another value; %s is that value
---@field probe string the name of the probe that settles it

local function entry(name, probe, doc, values, more)
  return tables.merge({ name = name, probe = probe, doc = doc, values = values }, more or {})
end

local forms = { "list", "null", "absent" }

-- Where a list may be left out, only the operator knows that this means none.
local function form(name, probe, what, option)
  return entry(name, probe, "the form of " .. what, forms, { set = ('policy { %s = "none" }'):format(option) })
end

-- A name on the wire that the interface does not publish.
local function name_of(parameter, probe, values)
  local more = { kind = "text", set = ('usage_parameters.%s = "%%s"'):format(parameter) }
  return entry(parameter, probe, ("the name of the usage query's %s"):format(parameter), values, more)
end

local M = {}

---@type riskscreen.sandbox.Assumption[]
M.list = {
  form("empty_risks", "risk", "an empty list of risks", "absent_risks"),
  entry("answered_address", "risk", "the spelling of an address in an answer", { "as asked", "lower case" }),
  entry("answered_network", "risk", "the network in an answer to `eth`", { "eth", "ethereum" }),
  entry("absent_entity", "entity", "the entity of an address without an owner", { "absent", "null", "empty" }, {
    set = 'policy { absent_entity = "none" }',
  }),
  form("empty_opponents", "counterparties", "an empty list of counterparties", "absent_opponents"),
  form("empty_freeze_events", "freezes", "an empty list of freeze events", "absent_freeze_events"),
  entry("provider", "provider", "the service's own name in `riskSource`", { "Provider", "ExampleRisk" }, {
    kind = "text",
    set = 'policy { provider = "%s" }',
  }),
  entry("bulk_order", "bulk", "the order of a bulk answer", { "as asked", "another" }),
  entry("bulk_repeats", "bulk", "an address that a bulk lookup asks twice", { "once", "twice" }),
  entry("first_page", "whitelist", "the number of the whitelist's first page", { 1, 0 }, { kind = "count" }),
  entry("page_length", "whitelist", "the whitelist's page length by default", { 10, 20 }, { kind = "count" }),
  entry("largest_page", "blacklist", "the largest `pageSize`", { 100, 50, 20 }, {
    kind = "count",
    at_least = true,
    set = "account_lists.page_size = %s",
  }),
  entry("longer_page", "blacklist", "a `pageSize` above the largest", { "refused", "cut" }),
  entry("invalid_status", "invalid", "the HTTP status of an invalid request", { 400, 200 }, { kind = "count" }),
  entry("unknown_name", "dates", "a parameter with an unknown name", { "refused", "ignored" }),
  name_of("start_date", "dates", { "startDate", "start_date", "from" }),
  name_of("end_date", "dates", { "endDate", "end_date", "to" }),
  name_of("granularity", "groups", { "granularity", "period", "interval" }),
  name_of("group_by", "groups", { "groupBy", "group_by", "groups" }),
  entry("final_status", "result", "the `status` of a result that is final", { 1003, 1004, 2 }, {
    kind = "count",
    set = "final_statuses = { %s }",
  }),
  entry("empty_type_status", "write", "the HTTP status that comes with code 3016", { 400, 200 }, { kind = "count" }),
}

---The assumption of each name.
---@type table<string, riskscreen.sandbox.Assumption>
M.by_name = {}
for _, assumption in ipairs(M.list) do
  M.by_name[assumption.name] = assumption
end

---@param assumption riskscreen.sandbox.Assumption
---@param value any
---@return boolean whether a profile may have the value
function M.is_possible(assumption, value)
  for _, known in ipairs(assumption.values) do
    if value == known then
      return true
    end
  end
  return assumption.kind == "text" and type(value) == "string" and value ~= ""
    or assumption.kind == "count" and type(value) == "number" and value >= 0 and value % 1 == 0
end

---The entries of a whole profile. Entries that are not given are as assumed.
---@type riskscreen.Option[]
M.options = {}
for index, assumption in ipairs(M.list) do
  M.options[index] = build.checked(assumption.name, "any", function(value)
    if not M.is_possible(assumption, value) then
      return nil, ("must be such as %s (got %s)"):format(tostring(assumption.values[1]), text.show(value))
    end
    return value
  end, assumption.doc, assumption.values[1])
end

return M
