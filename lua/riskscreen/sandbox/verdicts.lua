-- What the sandbox thinks of an address: a pure function of the address. A scenario's address gets the scenario's
-- verdict, any other one that follows from its hash: of a hundred about 72 are without risk, 10 low, 9 generally high.
-- Not here: what an account's own lists add (lookups.lua).
local canonical_address = require("riskscreen.address").canonical
local scenarios = require "riskscreen.sandbox.scenarios"

---@class riskscreen.sandbox.Verdict
---@field risks? table[]|lightuserdata risks as the interface spells them, or null; absent where the answer lacks them
---@field contract? boolean
---@field whitelist? boolean
---@field entity? table
---@field freezes? { frozen: string, destroyed?: string }[]
---@field answer? { address?: string, network?: string, omit?: boolean } how the answer departs from the question

local entities = {
  { entityName = "Sample Exchange", entityCode = "sample_exchange", entityCategory = "Exchange" },
  { entityName = "Sample Pay", entityCode = "sample_pay", entityCategory = "payment" },
  { entityName = "Sample Pool", entityCode = "sample_pool", entityCategory = "Mining Pool" },
  { entityName = "Sample Bridge", entityCode = "sample_bridge", entityCategory = "BRIDGE" },
  { entityName = "Sample Market", entityCode = "sample_market", entityCategory = "nft-marketplace" },
}

local risk_types = {
  low = { "online-gambling", "black-gray-goods", "politics", "religion" },
  ["generally-high"] = { "launder-money", "black-gray-goods", "porn", "controlled-substance", "bloodiness" },
  high = { "scam", "hack", "sanction", "frozen", "drug", "gun", "terrorist" },
}

local sources = { "Provider", "Provider", "Provider", "Community" }

local M = {}

M.canonical = canonical_address

local by_address = {}
for _, scenario in ipairs(scenarios) do
  by_address[M.canonical(scenario.address)] = scenario
end

-- Both moduli keep every product below 2^53, so that all Luas compute the same.
local HASH_MODULUS, STREAM_MODULUS = 2147483629, 2147483647
local WARM_UP = 8

---A reproducible sequence of numbers that follows from a text.
---@param text string
---@return fun(count: integer): integer draw a number from 0 to count - 1
function M.stream(text)
  local state = 7
  for index = 1, #text do
    state = (state * 257 + text:byte(index)) % HASH_MODULUS
  end
  state = state + 1
  local function draw(count)
    state = state * 48271 % STREAM_MODULUS
    return math.floor(state / STREAM_MODULUS * count)
  end
  -- Texts that differ in one byte have neighbouring states: a few steps drive them apart.
  for _ = 1, WARM_UP do
    draw(1)
  end
  return draw
end

local function pick(draw, list)
  return list[draw(#list) + 1]
end

local function derived_risks(draw)
  local roll = draw(100)
  local level = roll < 72 and "none" or roll < 82 and "low" or roll < 91 and "generally-high" or "high"
  if level == "none" then
    return {}
  end
  local risks = { { riskLevel = level, riskType = pick(draw, risk_types[level]), riskSource = pick(draw, sources) } }
  if roll == 99 then
    risks[2] = { riskLevel = "low", riskType = pick(draw, risk_types.low), riskSource = "Community" }
  end
  return risks
end

local function derive(address)
  local draw = M.stream(address)
  local verdict = { risks = derived_risks(draw), contract = draw(8) == 0 and address:sub(1, 2) == "0x" }
  if draw(4) == 0 then
    verdict.entity = pick(draw, entities)
  end
  for _, risk in ipairs(verdict.risks) do
    if risk.riskType == "frozen" then
      verdict.freezes = { { frozen = string.format("%d.25", draw(100000) + 1) } }
    end
  end
  return verdict
end

---What the sandbox thinks of an address. The tables are shared: read them, do not change them.
---@param address string in any case, if it is hexadecimal
---@return riskscreen.sandbox.Verdict
function M.of(address)
  local canonical = M.canonical(address)
  local scenario = by_address[canonical]
  return scenario and scenario.verdict or derive(canonical)
end

return M
