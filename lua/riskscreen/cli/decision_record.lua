-- Shared by the verbs that decide about addresses: their options, and a decision as a record.

local columns_of = require("riskscreen.cli.output").columns
local option_of = require "riskscreen.cli.option"
local lookups = require "riskscreen.policy.lookups"
local options = require "riskscreen.options"
local screen = require "riskscreen.client.screen"
local tables = require "riskscreen.util.tables"

local M = {}

-- `network` and `policy` belong to the configuration.
---@type riskscreen.cli.Option[]
M.options = option_of.pick(screen.options, { "include", "timeout", "address_check", "priority" })
M.options[1] = tables.merge(M.options[1], {
  list = true,
  argument = "LOOKUPS",
  completes = lookups.names,
  doc = ("%s One or several of %s."):format(M.options[1].doc, table.concat(lookups.names, ", ")),
})

M.concurrency = tables.merge(option_of.pick(options.map, { "concurrency" })[1], { doc = "Addresses at a time." })

local columns = columns_of.named {
  "address",
  "network",
  "action",
  "reasons",
  "risk_levels",
  "risk_types",
  "risk_sources",
  "entity",
  "error",
  "degraded",
}

---The columns of decisions. Those of the sandbox name it, so that nobody files them as answers of a service.
---@param source? "sandbox"
---@return riskscreen.cli.Column[]
function M.columns(source)
  return source and tables.concat(columns, columns_of.named { "source" }) or columns
end

local function each(list, field)
  local values = {}
  for _, item in ipairs(list or {}) do
    values[#values + 1] = item[field] ~= nil and tostring(item[field]) or "?"
  end
  return values[1] and values or nil
end

---A decision as a record for every format. Its fields are stable.
---@param decision riskscreen.Decision
---@param source? "sandbox"
---@return table
function M.record(decision, source)
  local risks = type(decision.record) == "table" and decision.record.risks or nil
  local entity = type(decision.entity) == "table" and decision.entity.entity or nil
  return {
    address = decision.address,
    network = decision.network,
    action = decision.action,
    reasons = tables.pluck(decision.reasons, "message"),
    risk_levels = each(risks, "riskLevel"),
    risk_types = each(risks, "riskType"),
    risk_sources = each(risks, "riskSource"),
    entity = type(entity) == "table" and entity.entityName or nil,
    error = decision.error and decision.error.kind or nil,
    degraded = decision.degraded or nil,
    source = source,
  }
end

---The request of a run over addresses.
---@param context riskscreen.cli.Context
---@param source any
---@return riskscreen.ScreenAllRequest
function M.request(context, source)
  local request = option_of.values(M.options, context.options)
  request.source, request.network = source, context:network()
  request.concurrency = context.options.concurrency
  return request
end

return M
