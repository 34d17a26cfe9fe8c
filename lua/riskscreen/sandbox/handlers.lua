-- One function for each operation, by its name: (context, checked parameters) --> { data, pagination } | nil, refusal.
-- The context has the account, the transaction tasks and the time of the request. No HTTP here.
local address_data = require "riskscreen.sandbox.address_data"
local canonical_address = require("riskscreen.address").normalize
local json = require "riskscreen.json"
local kyt = require "riskscreen.sandbox.kyt"

---@class riskscreen.sandbox.Context
---@field account riskscreen.sandbox.Account
---@field tasks riskscreen.sandbox.Tasks
---@field answers table<string, riskscreen.sandbox.Verdict>
---@field results_at_once? boolean a transaction is answered with its result
---@field now number seconds since the Unix epoch
---@field delivery? riskscreen.sandbox.Delivery of the webhook, as the request asks for it

---@class riskscreen.sandbox.Refusal
---@field code integer
---@field message string

local DEFAULT_PAGE, DEFAULT_PAGE_SIZE = 1, 10
local EMPTY_RISK_TYPE, BAD_REQUEST = 3016, 400

-- A blacklist entry without risks counts as this one.
local BLACKLISTED = { riskLevel = "high", riskType = "black-gray-goods" }

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

-- The verdict about an address, and the first fields of every record about it.
local function verdict_and_record(context, address, network)
  local verdict = address_data.verdict(address, network, context.answers)
  local answer = verdict.answer or {}
  return verdict,
    {
      time = math.floor(context.now * 1000),
      address = answer.address or address,
      network = answer.network or network,
      whitelist = verdict.whitelist or context.account.whitelist:find(address, network) ~= nil,
    }
end

-- The record of an address's entity, and whether a bulk answer leaves it out.
local function entity_record(context, address, network)
  local verdict, record = verdict_and_record(context, address, network)
  record.contract = verdict.contract or false
  record.entity = verdict.entity
  return record, verdict.answer and verdict.answer.omit
end

function M.getAddressEntity(context, parameters)
  return { data = (entity_record(context, parameters.address, parameters.network)) }
end

-- An address that is asked for twice is answered once.
function M.listAddressEntities(context, parameters)
  local data, seen = json.empty_array(), {}
  for _, address in ipairs(parameters.addresses) do
    local canonical = canonical_address(address, parameters.network)
    local record, is_omitted = entity_record(context, address, parameters.network)
    if not seen[canonical] and not is_omitted then
      data[#data + 1] = record
    end
    seen[canonical] = true
  end
  return { data = data }
end

local function user_defined(risk)
  return { riskLevel = risk.riskLevel or BLACKLISTED.riskLevel, riskType = risk.riskType, riskSource = "User-Defined" }
end

function M.getAddressRisk(context, parameters)
  local verdict, record = verdict_and_record(context, parameters.address, parameters.network)
  local entry = context.account.blacklist:find(parameters.address, parameters.network)
  record.risks = address_data.array(entry and type(verdict.risks) ~= "table" and {} or verdict.risks)
  if entry then
    for _, risk in ipairs(type(entry.risks) == "table" and entry.risks or { BLACKLISTED }) do
      table.insert(record.risks, user_defined(risk))
    end
  end
  return { data = record }
end

function M.getAddressCounterparties(_, parameters)
  return { data = { opponents = address_data.counterparties(parameters.address, parameters.network) } }
end

function M.getAddressBasic(_, parameters)
  return { data = address_data.basic(parameters.address, parameters.network) }
end

function M.getAddressFreezeEvents(context, parameters)
  return { data = address_data.freeze_events(parameters.address, parameters.network, context.answers) }
end

function M.getAddressRiskScore(context, parameters)
  local score, details = kyt.score(parameters.address, parameters.network, context.answers)
  return { data = { address = parameters.address, network = parameters.network, score = score, details = details } }
end

local function page_of(list, parameters, shape)
  local entries, pagination = list:page(parameters.page or DEFAULT_PAGE, parameters.pageSize or DEFAULT_PAGE_SIZE)
  return { data = address_data.array(entries, shape), pagination = pagination }
end

-- An entry without risks, or with null, is listed as it is: both occur.
local function blacklist_item(entry)
  local network = entry.network
  local risks = address_data.array(entry.risks, function(risk)
    return {
      riskLevel = risk.riskLevel,
      riskType = risk.riskType,
      riskSource = "User-Defined",
      chains = network and { { chain = network, chainName = chain_names[network] or network } } or nil,
    }
  end)
  return { address = entry.address, network = network, risks = risks, createdAt = entry.created_at }
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

local function add_all(list, parameters, now)
  for _, item in ipairs(parameters.list) do
    list:add(item, now, parameters.network)
  end
  return {}
end

function M.addBlacklistAddresses(context, parameters)
  for _, item in ipairs(parameters.list) do
    for _, risk in ipairs(item.risks or {}) do
      if not risk.riskType then
        return nil, { code = EMPTY_RISK_TYPE, message = "RiskType is empty" }
      end
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
  return { data = context.account.usage:records(parameters) }
end

function M.getCustomRiskScore(context, parameters)
  return { data = { requestId = context.tasks:submit(context.account, parameters, context.now, context.delivery) } }
end

function M.screenTransaction(context, parameters)
  if context.results_at_once then
    return { data = kyt.immediate_result(parameters, context) }
  end
  return M.getCustomRiskScore(context, parameters)
end

function M.getAsynchronousResult(context, parameters)
  local data = context.tasks:result(context.account, parameters.requestId, context.now)
  if data then
    return { data = data }
  end
  return nil, { code = BAD_REQUEST, message = "requestId is unknown (got '" .. parameters.requestId .. "')" }
end

M.getCustomRiskScoreResult = M.getAsynchronousResult

function M.getTransactionRisks(context, parameters)
  local score, details = kyt.score(parameters.hash, parameters.network, context.answers)
  return { data = { hash = parameters.hash, network = parameters.network, score = score, details = details } }
end

return M
