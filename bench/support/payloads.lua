-- Texts shaped like the service's answers, for the benchmarks. The same seed gives the same bytes on every Lua.
-- Not a model of the service: that is the sandbox.

local M = {}

local NETWORKS = { "eth", "tron", "btc", "bsc", "polygon", "arbitrum", "base", "solana" }
local LEVELS = { "high", "generally-high", "low", "whitelist" }
local TYPES = { "scam", "hack", "sanction", "frozen", "online-gambling", "launder-money", "black-gray-goods", "drug" }
local SOURCES = { "Provider", "Community", "User-Defined" }
local SYMBOLS = { "USDT", "USDC", "ETH", "TRX", "BTC", "BNB", "DAI" }
local ENTITIES = {
  { "Northwind", "northwind", "Exchange", "exchange" },
  { "Harbour Hot Wallet", "harbour", "Exchange", "exchange" },
  { "Swapfield V3: Router", "swapfield-v3", "DeFi", "defi" },
  { "Blender Nine", "blender-nine", "Mixer", "mixer" },
  { "Coin Issuer: Treasury", "coin-treasury", "Issuer", "issuer" },
  { "Luckyhouse", "luckyhouse", "Online Gambling", "online-gambling" },
  { "Stakepool: token", "stakepool", "Staking", "staking" },
}

-- A generator of our own: the libraries' differ from one Lua to the next.
local function random_source(seed)
  local state = seed % 2147483646 + 1
  return function(count)
    state = state * 16807 % 2147483647
    return state % count + 1
  end
end

local function pick(random, list)
  return list[random(#list)]
end

local HEX = "0123456789abcdef"
local BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

local function letters(random, alphabet, count)
  local out = {}
  for i = 1, count do
    local at = random(#alphabet)
    out[i] = alphabet:sub(at, at)
  end
  return table.concat(out)
end

local function address(random, network)
  if network == "tron" then
    return "T" .. letters(random, BASE58, 33)
  elseif network == "btc" or network == "solana" then
    return letters(random, BASE58, 34)
  end
  return "0x" .. letters(random, HEX, 40)
end

local function entity(random)
  local e = pick(random, ENTITIES)
  local form = '{"entityName":"%s","entityCode":"%s","entityCategory":"%s","entityCategoryCode":"%s"}'
  return form:format(e[1], e[2], e[3], e[4])
end

local function risk(random, with_source)
  local form = '{"riskLevel":"%s","riskType":"%s"'
  local text = form:format(pick(random, LEVELS), pick(random, TYPES))
  if with_source then
    text = text .. ',"riskSource":"' .. pick(random, SOURCES) .. '"'
  end
  return text, "}"
end

local function list(count, make)
  local out = {}
  for i = 1, count do
    out[i] = make(i)
  end
  return "[" .. table.concat(out, ",") .. "]"
end

local function milliseconds(random)
  return ("1%03d%03d%06d"):format(699 + random(80), random(1000) - 1, random(1000000) - 1)
end

local function seconds(random)
  return ("17%02d%06d"):format(random(90) - 1, random(1000000) - 1)
end

local function boolean(random, one_in)
  return random(one_in) == 1 and "true" or "false"
end

local function envelope(data, rest)
  return '{"success":true,"code":1,"status":"SUCCESS","msg":"SUCCESS","data":' .. data .. (rest or "") .. "}"
end

local function entity_record(random)
  local network = pick(random, NETWORKS)
  local form = '{"time":%s,"address":"%s","network":"%s","whitelist":%s,"contract":%s,"entity":%s}'
  return form:format(
    milliseconds(random),
    address(random, network),
    network,
    boolean(random, 20),
    boolean(random, 3),
    entity(random)
  )
end

local function source_risk(random)
  local text, close = risk(random, true)
  return text .. close
end

function M.entities(count, seed)
  local random = random_source(seed or 1)
  return envelope(list(count, function()
    return entity_record(random)
  end))
end

function M.risk_assessment(seed)
  local random = random_source(seed or 2)
  local form = '{"time":%s,"address":"%s","network":"eth","whitelist":false,"risks":%s}'
  return envelope(form:format(
    milliseconds(random),
    address(random, "eth"),
    list(3, function()
      return source_risk(random)
    end)
  ))
end

function M.counterparties(count, seed)
  local random = random_source(seed or 3)
  return envelope('{"opponents":' .. list(count, function()
    local form = '{"entities":%s,"risks":%s,"dir":"%s","chain":"%s","address":"%s","amount":%d.%06d,"symbol":"%s",'
      .. '"transactionNumbers":%d}'
    local chain = pick(random, NETWORKS)
    return form:format(
      list(random(2), function()
        return entity(random)
      end),
      list(random(3) - 1, function()
        local text, close = risk(random, false)
        return text .. close
      end),
      random(2) == 1 and "in" or "out",
      chain,
      address(random, chain),
      random(5000000) - 1,
      random(1000000) - 1,
      pick(random, SYMBOLS),
      random(900)
    )
  end) .. "}")
end

local function blacklist_risk(random)
  local text, close = risk(random, true)
  return text
    .. ',"chains":'
    .. list(random(2), function()
      local chain = pick(random, NETWORKS)
      return ('{"chain":"%s","chainName":"%s"}'):format(chain, chain:upper())
    end)
    .. close
end

function M.blacklist(count, seed)
  local random = random_source(seed or 4)
  local pagination = ',"pagination":{"current_page":1,"per_page":%d,"total_pages":12,"total_items":%d}'
  return envelope(
    list(count, function()
      local network = pick(random, NETWORKS)
      local text = '{"address":"' .. address(random, network) .. '",'
      if random(8) > 1 then
        text = '{"network":"' .. network .. '",' .. text:sub(2)
      end
      local which = random(10)
      if which > 2 then
        text = text
          .. '"risks":'
          .. list(random(2), function()
            return blacklist_risk(random)
          end)
          .. ","
      elseif which == 2 then
        text = text .. '"risks":null,'
      end
      return text .. '"createdAt":' .. seconds(random) .. "}"
    end),
    pagination:format(count, count * 12 - 7)
  )
end

-- Texts on which many decoders are slow.

local function escaped_strings(random)
  local escapes = { "\\n", '\\"', "\\u00e9", "\\ud83d\\ude00", "\\t", "\\/" }
  return list(10, function()
    local parts = {}
    for i = 1, 1000 do
      parts[i] = pick(random, escapes)
    end
    return '"' .. table.concat(parts) .. '"'
  end)
end

local function foreign_strings(random)
  local words = { "реестр", "交易所", "αποθήκη", "échange", "거래소", "mixer", "🏦" }
  return list(10, function()
    local parts = {}
    for i = 1, 200 do
      parts[i] = pick(random, words)
    end
    return '"' .. table.concat(parts, " ") .. '"'
  end)
end

local function long_fractions(random)
  return list(1000, function()
    return ("0.%d%08d%08d"):format(random(9), random(99999999), random(99999999))
  end)
end

local function unique_keys(random)
  return list(200, function(row)
    local members = {}
    for i = 1, 50 do
      members[i] = ('"%s%03d%02d":%d'):format(letters(random, HEX, 11), row, i, random(1000))
    end
    return "{" .. table.concat(members, ",") .. "}"
  end)
end

---@class riskscreen.bench.Payload
---@field name string
---@field what string
---@field text string

---@return riskscreen.bench.Payload[]
function M.all()
  return {
    { name = "p1", what = "100 entity records", text = M.entities(100) },
    { name = "p2", what = "one risk assessment", text = M.risk_assessment() },
    { name = "p3", what = "50 counterparties", text = M.counterparties(50) },
    { name = "p4", what = "a page of 100 blacklist items", text = M.blacklist(100) },
    { name = "p5", what = "5 MB of entities", text = M.entities(19600) },
    { name = "escapes", what = "10 long runs of escapes", text = escaped_strings(random_source(5)) },
    { name = "foreign", what = "10 long texts in many languages", text = foreign_strings(random_source(6)) },
    { name = "fractions", what = "1000 numbers of 17 digits", text = long_fractions(random_source(7)) },
    { name = "unique keys", what = "10000 names that occur once", text = unique_keys(random_source(8)) },
  }
end

return M
