-- Every enumeration of the interface (section "Enumerations"), once, in the interface's order. The policy gives the
-- values a meaning.
local tables = require "riskscreen.util.tables"

local enums = {
  network = {
    "ethereum",
    "eth",
    "tron",
    "btc",
    "bsc",
    "polygon",
    "arbitrum",
    "optimism",
    "avalanche",
    "base",
    "zksync",
    "merlin",
    "kaia",
    "iotex",
    "ftm",
    "theta",
    "etc",
    "lumia",
    "solana",
    "doge",
    "ltc",
  },
  -- The networks of counterparties and basic info, and those of freeze events.
  activity_network = { "ethereum", "eth", "tron", "btc", "bsc" },
  freeze_network = { "ethereum", "eth", "tron" },
  risk_level = { "high", "generally-high", "low", "whitelist" },
  risk_type = {
    "black-gray-goods",
    "online-gambling",
    "scam",
    "hack",
    "launder-money",
    "sanction",
    "frozen",
    "politics",
    "drug",
    "gun",
    "terrorist",
    "porn",
    "controlled-substance",
    "bloodiness",
    "religion",
    "csam",
  },
  -- The first value stands for the operator's own name, which the interface does not print.
  risk_source = { "Provider", "Community", "User-Defined" },
  direction = { "in", "out" },
  granularity = { "day", "month" },
  usage_group = { "endpoint", "user", "org" },
}

local sets = {}
for name, values in pairs(enums) do
  sets[name] = tables.set(values)
end

local M = { values = enums }

---Whether a value belongs to an enumeration.
---@param name string the enumeration's name, a key of `values`
---@param value any
---@return boolean
function M.has(name, value)
  return sets[name][value] == true
end

return M
