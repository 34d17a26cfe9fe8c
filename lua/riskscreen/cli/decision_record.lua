-- Shared by the verbs that decide about addresses: their options, and a decision as a record.

local calls = require "riskscreen.call"
local columns_of = require("riskscreen.cli.output").columns
local option_of = require "riskscreen.cli.option"
local lookups = require "riskscreen.policy.lookups"
local options = require "riskscreen.options"
local plain_name = require("riskscreen.rows").plain_name
local screen = require "riskscreen.client.screen"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local M = {}

M.include = tables.merge(screen.include, {
  list = true,
  argument = "LOOKUPS",
  completes = lookups.names,
  doc = ("%s One or several of %s."):format(screen.include.doc, table.concat(lookups.names, ", ")),
})

-- `network` and `policy` belong to the configuration.
---@type riskscreen.cli.Option[]
M.options = tables.concat({ M.include }, option_of.pick(screen.options, { "timeout", "address_check", "priority" }))

M.concurrency = tables.merge(option_of.pick(options.map, { "concurrency" })[1], { doc = "Addresses at a time." })

---Facts about a run, such as who made it and why.
M.meta = tables.merge(screen.meta, {
  argument = "NAME=VALUE",
  is_repeated = true,
  doc = "A fact for the results and the journal: case=17, analyst=alice, note='asked twice'. Repeat it for more.",
  check = function(list)
    local meta = {}
    for _, pair in ipairs(list) do
      local name, value = pair:match "^(.-)=(.*)$"
      if not name or meta[name] then
        return nil, ("must be such as case=17, each name once (got %s)"):format(text.show(pair))
      end
      meta[name] = value
    end
    return screen.meta.check(meta)
  end,
})

local NAMES = "address network action reasons risk_levels risk_types risk_sources entity error degraded"
local columns = columns_of.named(text.words(NAMES))

---Columns, and further ones. Two columns that differ in their case could not be read again.
---@param list riskscreen.cli.Column[]
---@param flag string that names the further ones
---@param more riskscreen.cli.Column[]
---@return riskscreen.cli.Column[]
function M.with(list, flag, more)
  -- The report takes a column `verdict` for a second action. In JSON, facts are in a member `meta`.
  local own = {}
  for _, column in ipairs(tables.concat(columns_of.named { "line", "time", "verdict" }, list)) do
    for _, name in ipairs { column.name, column.path and column.path[1] } do
      own[plain_name(name)] = name
    end
  end
  for _, column in ipairs(more) do
    local plain = plain_name(column.name)
    if own[plain] then
      local fault = own[plain] == true and "%s is given twice" or "the results have a column %s of their own"
      status.misuse(flag .. ": " .. fault:format(text.show(own[plain] == true and plain or own[plain])))
    end
    own[plain] = true
  end
  return tables.concat(list, more)
end

---Columns, and one for each fact.
---@param list riskscreen.cli.Column[]
---@param meta? table<string, string>
---@return riskscreen.cli.Column[]
function M.with_facts(list, meta)
  local facts = {}
  for index, name in ipairs(tables.sorted_keys(meta or {})) do
    facts[index] = { name = name, path = { "meta", name } }
  end
  return M.with(list, "--meta", facts)
end

---The columns of decisions. Those of the sandbox name it, so that nobody files them as answers of a service.
---@param source? "sandbox"
---@param meta? table<string, string> each fact has a column
---@return riskscreen.cli.Column[]
function M.columns(source, meta)
  return M.with_facts(source and tables.concat(columns, columns_of.named { "source" }) or columns, meta)
end

local function each(list, field, hide)
  local values = {}
  for _, item in ipairs(list or {}) do
    values[#values + 1] = item[field] ~= nil and hide(tostring(item[field])) or "?"
  end
  return values[1] and values or nil
end

---A decision as a record for every format. Its fields are stable.
---@param decision riskscreen.Decision
---@param client riskscreen.Client
---@param source? "sandbox"
---@param meta? table<string, string>
---@return table
function M.record(decision, client, source, meta)
  local hide = calls.state_of(client).hide_key
  local risks = type(decision.record) == "table" and decision.record.risks or nil
  local entity = type(decision.entity) == "table" and decision.entity.entity or nil
  return {
    address = decision.address,
    network = decision.network,
    action = decision.action,
    reasons = tables.pluck(decision.reasons, "message"),
    risk_levels = each(risks, "riskLevel", hide),
    risk_types = each(risks, "riskType", hide),
    risk_sources = each(risks, "riskSource", hide),
    entity = type(entity) == "table" and entity.entityName and hide(entity.entityName) or nil,
    error = decision.error and decision.error.kind or nil,
    degraded = decision.degraded or nil,
    source = source and (decision.source or source), -- a local list answers in the place of the sandbox
    meta = meta,
  }
end

---The request of a run over addresses.
---@param context riskscreen.cli.Context
---@param source any
---@return riskscreen.ScreenAllRequest
function M.request(context, source)
  local request = option_of.values(M.options, context.options)
  request.source, request.network = source, context:network()
  request.concurrency, request.meta = context.options.concurrency, context.options.meta
  return request
end

return M
