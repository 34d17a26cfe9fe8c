-- Every enumeration of the interface (section "Enumerations"), once, in the interface's order. The policy gives the
-- values a meaning.
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local words = text.words

local enums = {
  network = words [[ethereum eth tron btc bsc polygon arbitrum optimism avalanche base zksync merlin kaia iotex ftm
    theta etc lumia solana doge ltc]],
  -- The networks of counterparties and basic info, and those of freeze events.
  activity_network = words "ethereum eth tron btc bsc",
  freeze_network = words "ethereum eth tron",
  risk_level = words "high generally-high low whitelist",
  risk_type = words [[black-gray-goods online-gambling scam hack launder-money sanction frozen politics drug gun
    terrorist porn controlled-substance bloodiness religion csam]],
  -- The first value stands for the operator's own name, which the interface does not print.
  risk_source = words "Provider Community User-Defined",
  direction = words "in out",
  granularity = words "day month",
  usage_group = words "endpoint user org",
}

local sets = {}
for name, values in pairs(enums) do
  sets[name] = tables.set(values)
end

local M = {
  values = enums,
  ---@type table<string, table<string, true>> the same values as sets
  sets = sets,
}

---Whether a value belongs to an enumeration.
---@param name string the enumeration's name, a key of `values`
---@param value any
---@return boolean
function M.has(name, value)
  return sets[name][value] == true
end

return M
