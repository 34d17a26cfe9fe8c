-- The data of an address: a pure function of the address. An address has the verdict of the service's `answers`, or of
-- a scenario; the data of any other one are derived from its hash. The lists of an account are added in handlers.lua.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local canonical_address = require("riskscreen.address").normalize
local canonical_network = require("riskscreen.address").canonical_network
local enums = require "riskscreen.interface.enums"
local json = require "riskscreen.json"
local scenarios = require "riskscreen.sandbox.scenarios"

---@class riskscreen.sandbox.Verdict
---@field risks? table[]|lightuserdata as the interface spells them, or null; nil: the answer has no such field
---@field contract? boolean
---@field whitelist? boolean
---@field entity? table
---@field freezes? { frozen: string, destroyed?: string }[]
---@field answer? { address?: string, network?: string, omit?: boolean } where the answer differs from the question

local MAX_COUNTERPARTIES = 5
local FIRST_DAY = 1672531200 -- 2023-01-01, in seconds since the Unix epoch
local SECONDS_OF_TWO_YEARS = 2 * 365 * 86400
local MILLISECONDS_OF_A_DAY = 86400000

local TOKEN_SYMBOL = "USDX"
local coins = { eth = "ETH", tron = "TRX", btc = "BTC", bsc = "BNB" }
local tokens = { eth = addresses.token, bsc = addresses.token, tron = addresses["token-tron"] }

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

local by_address, peers = {}, {}
for _, scenario in ipairs(scenarios) do
  by_address[canonical_address(scenario.address, scenario.network)] = scenario
  if not scenario.fault and not scenario.verdict.answer and scenario.name ~= "malformed-level" then
    peers[scenario.network] = peers[scenario.network] or {}
    table.insert(peers[scenario.network], scenario)
  end
end
peers.bsc = peers.eth -- addresses of both networks look alike

local M = {}

-- Both moduli keep every product below 2^53, so that all Luas compute the same.
local HASH_MODULUS, STREAM_MODULUS = 2147483629, 2147483647
local WARM_UP = 8

---A reproducible sequence of numbers, derived from a text.
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
  -- Texts that differ in one byte have neighbouring states; a few steps separate them.
  for _ = 1, WARM_UP do
    draw(1)
  end
  return draw
end

local function pick(draw, list)
  return list[draw(#list) + 1]
end

---A list as an answer spells it: an array, also where it is empty. Any other value stays.
---@param list any
---@param shape? fun(item: any): any the form of an item in the answer
---@return any
function M.array(list, shape)
  if type(list) ~= "table" then
    return list
  end
  local array = json.empty_array()
  for index, item in ipairs(list) do
    array[index] = shape and shape(item) or item
  end
  return array
end

-- Of 100 addresses about 72 have no risk, 10 a low, 9 a generally high and 9 a high one.
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

local function derived_verdict(address)
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

---The verdict about an address. The tables are shared: read them, do not change them.
---@param address string in any spelling
---@param network? string
---@param answers? table<string, riskscreen.sandbox.Verdict> of the service, by canonical address
---@return riskscreen.sandbox.Verdict
function M.verdict(address, network, answers)
  local canonical = canonical_address(address, network)
  local scenario = by_address[canonical]
  return answers and answers[canonical] or scenario and scenario.verdict or derived_verdict(canonical)
end

local function transaction_hash(draw, network)
  local digits = {}
  for index = 1, 8 do
    digits[index] = string.format("%08x", draw(2147483647))
  end
  local prefix = (network == "eth" or network == "bsc") and "0x" or ""
  return prefix .. table.concat(digits)
end

local function milliseconds(draw)
  return (FIRST_DAY + draw(SECONDS_OF_TWO_YEARS)) * 1000
end

-- Two decimals: every JSON encoder writes such an amount exactly.
local function amount(draw)
  return draw(10000000) / 100
end

local function counterparty(peer, network, draw)
  local verdict = peer.verdict
  local risks, peer_entities = json.empty_array(), json.empty_array()
  for index, risk in ipairs(type(verdict.risks) == "table" and verdict.risks or {}) do
    risks[index] = { riskLevel = risk.riskLevel, riskType = risk.riskType }
  end
  peer_entities[1] = verdict.entity
  local is_coin = draw(2) == 0 or not tokens[network]
  return {
    address = peer.address,
    chain = network,
    dir = pick(draw, enums.values.direction),
    amount = amount(draw),
    symbol = is_coin and coins[network] or TOKEN_SYMBOL,
    transactionNumbers = draw(200) + 1,
    entities = peer_entities,
    risks = risks,
  }
end

---The addresses that an address deals with most.
---@param address string
---@param network string one of enums.values.activity_network
---@return table[] opponents
function M.counterparties(address, network)
  local canonical, chain = canonical_address(address, network), canonical_network(network)
  local draw = M.stream(chain .. canonical .. "counterparties")
  local family = peers[chain]
  local first, count = draw(#family), draw(MAX_COUNTERPARTIES + 1)
  local opponents = json.empty_array()
  for index = 1, count do
    local peer = family[(first + index * 7) % #family + 1]
    if canonical_address(peer.address, network) ~= canonical then
      opponents[#opponents + 1] = counterparty(peer, chain, draw)
    end
  end
  return opponents
end

local function first_transfer(draw, network)
  return { time = milliseconds(draw), hash = transaction_hash(draw, network), symbol = coins[network] }
end

local function statistic(draw, symbol, contract)
  return { symbol = symbol, contractAddr = contract, txCount = draw(500), txValue = amount(draw) }
end

---Balance and activity of an address.
---@param address string
---@param network string one of enums.values.activity_network
---@return table
function M.basic(address, network)
  local chain = canonical_network(network)
  local draw = M.stream(chain .. canonical_address(address, network) .. "basic")
  local coin, token = coins[chain], tokens[chain]
  local basic = {
    activeType = draw(4),
    balance = { [coin] = amount(draw) },
    firstInTx = first_transfer(draw, chain),
    firstOutTx = first_transfer(draw, chain),
    mainInStatistic = statistic(draw, coin, ""),
    mainOutStatistic = statistic(draw, coin, ""),
  }
  if token then
    basic.balance[TOKEN_SYMBOL] = amount(draw)
    basic.stableInStatistic = statistic(draw, TOKEN_SYMBOL, token)
    basic.stableOutStatistic = statistic(draw, TOKEN_SYMBOL, token)
  end
  return basic
end

---The freeze events of an address: those of its verdict.
---@param address string
---@param network string one of enums.values.freeze_network
---@param answers? table<string, riskscreen.sandbox.Verdict>
---@return table[]
function M.freeze_events(address, network, answers)
  local chain = canonical_network(network)
  local draw = M.stream(chain .. canonical_address(address, network) .. "freezes")
  local time = milliseconds(draw)
  local events = json.empty_array()
  for index, freeze in ipairs(M.verdict(address, network, answers).freezes or {}) do
    events[index] = {
      hash = transaction_hash(draw, chain),
      chain = chain,
      txTime = time + index * MILLISECONDS_OF_A_DAY,
      contractAddress = tokens[chain],
      token = TOKEN_SYMBOL,
      type = "freeze",
      event = freeze.destroyed and "DestroyFunds" or "AddToFreezeList",
      frozenBalance = freeze.frozen,
      destroyedBalance = freeze.destroyed,
    }
  end
  return events
end

return M
