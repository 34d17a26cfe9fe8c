-- The lookups that a decision may depend on: name, operation, and the networks for which the service offers each.

local enums = require "riskscreen.interface.enums"
local operations = require "riskscreen.interface.operations"
local tables = require "riskscreen.util.tables"

---@alias riskscreen.LookupName "risk"|"entity"|"freeze_events"|"counterparties"

---@class riskscreen.Lookup
---@field name riskscreen.LookupName
---@field operation riskscreen.Operation
---@field networks string the key of enums.values that lists its networks

---@class riskscreen.LookupResults the records by the lookup's name; a lookup that failed is in `errors`
---@field risk? table
---@field entity? table
---@field freeze_events? table[]
---@field counterparties? table
---@field errors? table<riskscreen.LookupName, riskscreen.Error>
---@field not_offered? table<riskscreen.LookupName, boolean> the service does not offer it for the network

local function lookup(name, operation_name)
  local operation = operations.by_name[operation_name]
  return { name = name, operation = operation, networks = operation.lookup }
end

local M = {
  ---@type riskscreen.Lookup[] the risk assessment first: without it there is no decision
  list = {
    lookup("risk", "getAddressRisk"),
    lookup("entity", "getAddressEntity"),
    lookup("freeze_events", "getAddressFreezeEvents"),
    lookup("counterparties", "getAddressCounterparties"),
  },
}

M.names = tables.pluck(M.list, "name")

---The lookups of a decision: the risk assessment always, the others where the policy or the caller wants them.
---@param policy riskscreen.Policy
---@param include? riskscreen.LookupName[]
---@return riskscreen.Lookup[]
function M.wanted(policy, include)
  local included, wanted = tables.set(include), {}
  for _, entry in ipairs(M.list) do
    local name = entry.name
    if name == "risk" or included[name] or policy:needs(name) then
      wanted[#wanted + 1] = entry
    end
  end
  return wanted
end

---Whether the service offers a lookup for a network. An unknown network passes, so that the lookup itself refuses it.
---@param entry riskscreen.Lookup
---@param network any
---@return boolean
function M.applies(entry, network)
  return enums.has(entry.networks, network) or not enums.has("network", network)
end

return M
