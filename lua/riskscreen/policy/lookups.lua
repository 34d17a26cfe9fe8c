-- The lookups that a decision may rest on, once: name, operation, and on which networks the service offers each.

local enums = require "riskscreen.interface.enums"
local operations = require "riskscreen.interface.operations"

---@alias riskscreen.FacetName "risk"|"entity"|"freeze_events"|"counterparties"

---@class riskscreen.Facet
---@field name riskscreen.FacetName
---@field operation string the interface's name
---@field networks string the key of enums.values that lists its networks

local function facet(name, operation)
  local networks
  for _, parameter in ipairs(operations.by_name[operation].parameters) do
    networks = parameter.name == "network" and parameter.enum or networks
  end
  return { name = name, operation = operation, networks = networks }
end

local M = {
  ---@type riskscreen.Facet[] the risk assessment first: without it there is no decision
  list = {
    facet("risk", "getAddressRisk"),
    facet("entity", "getAddressEntity"),
    facet("freeze_events", "getAddressFreezeEvents"),
    facet("counterparties", "getAddressCounterparties"),
  },
  names = {},
}
for index, entry in ipairs(M.list) do
  M.names[index] = entry.name
end

---Whether the service has such a lookup for a network. One that it does not know at all is for the lookup to refuse.
---@param entry riskscreen.Facet
---@param network any
---@return boolean
function M.applies(entry, network)
  return enums.has(entry.networks, network) or not enums.has("network", network)
end

return M
