-- What the lists of the sandbox's second account hold: several pages, and every form an item may take.
local enums = require "riskscreen.interface.enums"
local json = require "riskscreen.json"
local addresses = require "riskscreen.sandbox.addresses"

local FIRST = 1735689600 -- 2025-01-01, in seconds since the Unix epoch
local HOUR = 3600

local function list(entries)
  for index, entry in ipairs(entries) do
    entry.created_at = FIRST + index * HOUR
  end
  return entries
end

local function high(kind)
  return { riskLevel = "high", riskType = kind }
end

local blacklist = {}
for index, kind in ipairs(enums.values.risk_type) do
  blacklist[index] = { address = addresses["type-" .. kind], network = "eth", risks = { high(kind) } }
end
for _, entry in ipairs {
  { address = addresses["blacklist-1"], risks = { high "scam" } }, -- no network
  { address = addresses["blacklist-2"], network = "eth", risks = json.null },
  { address = addresses["blacklist-3"], network = "eth" }, -- no risks
  { address = addresses["blacklist-4"], network = "tron", risks = { high "hack", high "launder-money" } },
  { address = addresses["blacklist-5"] }, -- neither
  {
    address = addresses["blacklist-6"],
    network = "tron",
    risks = { { riskLevel = "low", riskType = "online-gambling" } },
  },
} do
  table.insert(blacklist, entry)
end

local whitelist = {
  { address = addresses["whitelist-1"], network = "eth" },
  { address = addresses["whitelist-2"], network = "bsc" },
  { address = addresses["whitelist-3"], network = "tron" },
}
for _, name in ipairs { "exchange", "mixer", "defi", "no-category" } do
  table.insert(whitelist, { address = addresses["entity-" .. name], network = "eth" })
end
for _, network in ipairs { "eth", "tron", "btc", "solana", "doge", "ltc" } do
  table.insert(whitelist, { address = addresses["clean-" .. network], network = network })
end

return { blacklist = list(blacklist), whitelist = list(whitelist) }
