-- What an address has done, invented from its hash: counterparties, balance and first transfers, freeze events.
-- Pure: the same address on the same network has always done the same.
local enums = require "riskscreen.interface.enums"
local json = require "riskscreen.json"
local addresses = require "riskscreen.sandbox.addresses"
local scenarios = require "riskscreen.sandbox.scenarios"
local verdicts = require "riskscreen.sandbox.verdicts"

local MAX_COUNTERPARTIES = 5
local FIRST_DAY = 1672531200 -- 2023-01-01, in seconds since the Unix epoch
local SECONDS_OF_TWO_YEARS = 2 * 365 * 86400

local coins = { eth = "ETH", tron = "TRX", btc = "BTC", bsc = "BNB" }
local tokens = { eth = addresses.token, bsc = addresses.token, tron = addresses["token-tron"] }
local TOKEN_SYMBOL = "USDX"

-- Whose addresses look alike: an address deals with addresses of its own kind.
local families = { bsc = "eth" }

local peers = {}
for _, scenario in ipairs(scenarios) do
  if not scenario.fault and not scenario.verdict.answer and scenario.name ~= "malformed-level" then
    peers[scenario.network] = peers[scenario.network] or {}
    table.insert(peers[scenario.network], scenario)
  end
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
  local risks = json.empty_array()
  if type(verdict.risks) == "table" then
    for index, risk in ipairs(verdict.risks) do
      risks[index] = { riskLevel = risk.riskLevel, riskType = risk.riskType }
    end
  end
  local entities = json.empty_array()
  entities[1] = verdict.entity
  local coin = draw(2) == 0
  return {
    address = peer.address,
    chain = network,
    dir = enums.values.direction[draw(2) + 1],
    amount = amount(draw),
    symbol = (coin or not tokens[network]) and coins[network] or TOKEN_SYMBOL,
    transactionNumbers = draw(200) + 1,
    entities = entities,
    risks = risks,
  }
end

local M = {}

---The addresses an address deals with most.
---@param address string
---@param network string one that enums.values.activity_network names
---@return table[] opponents
function M.counterparties(address, network)
  local canonical, chain = verdicts.canonical(address), enums.canonical_network(network)
  local draw = verdicts.stream(chain .. canonical .. "counterparties")
  local family = peers[families[chain] or chain]
  local first, count = draw(#family), draw(MAX_COUNTERPARTIES + 1)
  local opponents = json.empty_array()
  for index = 1, count do
    local peer = family[(first + index * 7) % #family + 1]
    if verdicts.canonical(peer.address) ~= canonical then
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
---@param network string one that enums.values.activity_network names
---@return table
function M.basic(address, network)
  local chain = enums.canonical_network(network)
  local draw = verdicts.stream(chain .. verdicts.canonical(address) .. "basic")
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
---@param network string one that enums.values.freeze_network names
---@return table[]
function M.freeze_events(address, network)
  local chain = enums.canonical_network(network)
  local draw = verdicts.stream(chain .. verdicts.canonical(address) .. "freezes")
  local time = milliseconds(draw)
  local events = json.empty_array()
  for index, freeze in ipairs(verdicts.of(address).freezes or {}) do
    events[index] = {
      hash = transaction_hash(draw, chain),
      chain = chain,
      txTime = time + index * 86400000,
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
