-- Documented addresses with known answers, like the test cards of payment services. The answers about other addresses
-- are derived from their hash (address_data.lua).
local addresses = require "riskscreen.sandbox.scenario_addresses"
local enums = require "riskscreen.interface.enums"
local json = require "riskscreen.json"

---@class riskscreen.sandbox.Scenario
---@field name string
---@field address string
---@field network string a network under which the address makes sense; the answer is the same under any other
---@field what string the answer, for people
---@field verdict riskscreen.sandbox.Verdict
---@field fault? riskscreen.sandbox.Fault of every request with the address

---@type riskscreen.sandbox.Scenario[]
local scenarios = {}

local function scenario(name, network, what, verdict, fault)
  scenarios[#scenarios + 1] = {
    name = name,
    address = assert(addresses[name], name),
    network = network,
    what = what,
    verdict = verdict,
    fault = fault,
  }
end

local function risk(level, kind, source)
  return { riskLevel = level, riskType = kind, riskSource = source or "Provider" }
end

local function risky(...)
  return { risks = { risk(...) } }
end

local clean = { risks = {} }

for _, network in ipairs { "eth", "tron", "btc", "solana", "doge", "ltc" } do
  scenario("clean-" .. network, network, "no risks", clean)
  scenario("low-" .. network, network, "one low risk", risky("low", "online-gambling"))
  scenario("generally-high-" .. network, network, "one generally high risk", risky("generally-high", "launder-money"))
  scenario("high-" .. network, network, "one high risk", risky("high", "hack"))
end

for _, kind in ipairs(enums.values.risk_type) do
  scenario("type-" .. kind, "eth", "a high risk of type " .. kind, risky("high", kind))
end

scenario("source-community", "eth", "a risk reported by the community", risky("generally-high", "scam", "Community"))
scenario("source-user-defined", "eth", "a risk the account defined itself", risky("high", "scam", "User-Defined"))
scenario("whitelist-level", "eth", "a risk of level whitelist", risky("whitelist", "black-gray-goods"))
scenario("whitelist-flag", "eth", "whitelisted, whatever the account's whitelist", { risks = {}, whitelist = true })
scenario("mixed-risks", "eth", "three risks of different levels, types and sources", {
  risks = {
    risk("low", "online-gambling"),
    risk("high", "sanction", "Community"),
    risk("generally-high", "launder-money", "User-Defined"),
  },
})

-- The service's own categories are inconsistent in form and case; so are these.
local function entity(name, code, category, category_code)
  return { entityName = name, entityCode = code, entityCategory = category, entityCategoryCode = category_code }
end

scenario("entity-exchange", "eth", "an exchange's address", {
  risks = {},
  entity = entity("Example Exchange", "example_exchange", "Exchange", "exchange"),
})
scenario("entity-mixer", "eth", "a mixer's contract, with a high risk", {
  risks = { risk("high", "launder-money") },
  contract = true,
  entity = entity("Example Mixer", "example_mixer", "MIXER", "mixer-service"),
})
scenario("entity-defi", "eth", "a contract of a decentralised exchange", {
  risks = {},
  contract = true,
  entity = entity("Example Swap", "example_swap", "DeFi", "defi"),
})
scenario("entity-gambling", "tron", "a gambling site, with a low risk", {
  risks = { risk("low", "online-gambling") },
  entity = entity("Example Casino", "example_casino", "online gambling", "ONLINE_GAMBLING"),
})
scenario("entity-no-category", "eth", "an entity of which only the name and code are known", {
  risks = {},
  entity = { entityName = "Example Treasury", entityCode = "example_treasury" },
})
scenario("contract", "eth", "a contract without risks", { risks = {}, contract = true })

local function frozen(...)
  return { risks = { risk("high", "frozen") }, freezes = { ... } }
end

scenario("frozen", "eth", "one freeze event; nothing destroyed", frozen { frozen = "1250.5" })
scenario("frozen-twice", "tron", "two freeze events", frozen({ frozen = "100" }, { frozen = "250.75" }))
scenario(
  "destroyed",
  "tron",
  "a freeze, then the balance destroyed",
  frozen({ frozen = "5000000.000001" }, {
    frozen = "5000000.000001",
    destroyed = "5000000.000001",
  })
)
scenario("destroyed-eth", "eth", "a balance destroyed at once", frozen { frozen = "42", destroyed = "42" })

-- These answers do not show that an address is harmless.
scenario("risks-null", "eth", "risks is null", { risks = json.null })
scenario("risks-absent", "eth", "no risks field at all", {})
scenario("unseen-level", "eth", "a risk level that is not documented", risky("severe", "scam"))
scenario("unseen-type", "eth", "a risk type that is not documented", risky("low", "time-travel"))
scenario("unseen-source", "eth", "a risk source that is not documented", risky("low", "scam", "Oracle"))
scenario("malformed-level", "eth", "a risk level that is a number", risky(3, "scam"))
scenario("wrong-address", "eth", "a harmless record about another address", {
  risks = {},
  answer = { address = addresses["someone-else"] },
})
scenario("wrong-network", "eth", "a harmless record about another network", {
  risks = {},
  answer = { network = "kaia" },
})

scenario("lower-case-answer", "eth", "the answer spells the address in lower case", {
  risks = {},
  answer = { address = addresses["lower-case-answer"]:lower() },
})
scenario("omitted-in-bulk", "eth", "a bulk answer leaves the address out", { risks = {}, answer = { omit = true } })

local function fault(name, what, rule)
  scenario("fault-" .. name, "eth", what, clean, rule)
end

fault("hang", "never an answer", { kind = "hang" })
fault("delay", "an answer after 2 seconds", { kind = "delay", delay = 2 })
fault("500", "HTTP 500", { kind = "status", status = 500 })
fault("503", "HTTP 503 that asks to come back in a second", { kind = "status", status = 503, retry_after = 1 })
fault("503-once", "HTTP 503 for the first request, then no risks", { kind = "status", status = 503, count = 1 })
fault("429", "HTTP 429 that asks to come back in a second", { kind = "status", status = 429, retry_after = 1 })
fault("403", "a proxy's HTTP 403, an HTML page", { kind = "html", status = 403 })
fault("reset", "the connection is reset", { kind = "reset" })
fault("truncate", "the connection ends amid the body", { kind = "truncate", bytes = 20 })
fault("invalid-json", "a complete body that is not JSON", { kind = "invalid-json" })
fault("html", "HTTP 200 with an HTML page", { kind = "html" })
fault("empty", "HTTP 200 without a body", { kind = "empty" })
fault("drip", "a body that comes in small pieces", { kind = "drip", bytes = 16, every = 0.05 })

return scenarios
