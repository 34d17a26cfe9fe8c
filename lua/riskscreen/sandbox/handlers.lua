-- One function for each operation, by its name: (context, checked parameters) --> { data, pagination } | nil, failure.
-- The context is the asking account, the transaction tasks and the time of the request. No HTTP here.
local json = require "riskscreen.json"
local kyt = require "riskscreen.sandbox.kyt"
local lookups = require "riskscreen.sandbox.lookups"

---@class riskscreen.sandbox.Context
---@field account riskscreen.sandbox.Account
---@field tasks riskscreen.sandbox.Tasks
---@field now number seconds since the Unix epoch
---@field manner? riskscreen.sandbox.Manner how the request asks for its webhook

---@class riskscreen.sandbox.Failure
---@field code integer
---@field message string

local DEFAULT_PAGE, DEFAULT_PAGE_SIZE = 1, 10
local EMPTY_RISK_TYPE, BAD_REQUEST = 3016, 400

local chain_names = {
  ethereum = "Ethereum",
  eth = "Ethereum",
  tron = "Tron",
  btc = "Bitcoin",
  bsc = "BNB Smart Chain",
  polygon = "Polygon",
  solana = "Solana",
  doge = "Dogecoin",
  ltc = "Litecoin",
}

local M = {}
for name, handler in pairs(lookups) do
  M[name] = handler
end

local function page_of(list, parameters, shape)
  local entries, pagination = list:page(parameters.page or DEFAULT_PAGE, parameters.pageSize or DEFAULT_PAGE_SIZE)
  local data = json.empty_array()
  for index, entry in ipairs(entries) do
    data[index] = shape(entry)
  end
  return { data = data, pagination = pagination }
end

local function listed_risk(risk, network)
  return {
    riskLevel = risk.riskLevel,
    riskType = risk.riskType,
    riskSource = "User-Defined",
    chains = network and { { chain = network, chainName = chain_names[network] or network } } or nil,
  }
end

-- An entry without risks, or with null, is listed as it is: both occur.
local function blacklist_item(entry)
  local risks = entry.risks
  if type(risks) == "table" then
    risks = {}
    for index, risk in ipairs(entry.risks) do
      risks[index] = listed_risk(risk, entry.network)
    end
  end
  return { address = entry.address, network = entry.network, risks = risks, createdAt = entry.created_at }
end

local function whitelist_item(entry)
  return { address = entry.address, chain = entry.network, createdAt = entry.created_at }
end

function M.listBlacklistAddresses(context, parameters)
  return page_of(context.account.blacklist, parameters, blacklist_item)
end

function M.listWhitelistAddresses(context, parameters)
  return page_of(context.account.whitelist, parameters, whitelist_item)
end

local function without_type(item)
  for _, risk in ipairs(item.risks or {}) do
    if not risk.riskType then
      return true
    end
  end
end

local function add_all(list, parameters, now)
  for _, item in ipairs(parameters.list) do
    list:add {
      address = item.address,
      network = item.network or parameters.network,
      risks = item.risks,
      created_at = math.floor(now),
    }
  end
  return {}
end

function M.addBlacklistAddresses(context, parameters)
  for _, item in ipairs(parameters.list) do
    if without_type(item) then
      return nil, { code = EMPTY_RISK_TYPE, message = "RiskType is empty" }
    end
  end
  return add_all(context.account.blacklist, parameters, context.now)
end

function M.addWhitelistAddresses(context, parameters)
  return add_all(context.account.whitelist, parameters, context.now)
end

local function remove(list, parameters)
  if list:remove(parameters.address, parameters.network) then
    return {}
  end
  return nil, { code = BAD_REQUEST, message = "address is not on the list (got '" .. parameters.address .. "')" }
end

function M.removeBlacklistAddresses(context, parameters)
  return remove(context.account.blacklist, parameters)
end

function M.removeWhitelistAddresses(context, parameters)
  return remove(context.account.whitelist, parameters)
end

function M.getAccountUsage(context, parameters)
  local data = json.empty_array()
  for index, record in ipairs(context.account.usage:records(parameters)) do
    data[index] = record
  end
  return { data = data }
end

local function submit(context, parameters)
  return { data = { requestId = context.tasks:submit(context.account, parameters, context.now, context.manner) } }
end

M.screenTransaction = submit
M.getCustomRiskScore = submit

function M.getAsynchronousResult(context, parameters)
  local data = context.tasks:result(context.account, parameters.requestId, context.now)
  if data then
    return { data = data }
  end
  return nil, { code = BAD_REQUEST, message = "requestId is unknown (got '" .. parameters.requestId .. "')" }
end

function M.getTransactionRisks(_, parameters)
  local score, details = kyt.score(parameters.hash)
  return { data = { hash = parameters.hash, network = parameters.network, score = score, details = details } }
end

return M
