-- Handlers of the KYA operations: an address's verdict, with what the asking account's own lists add to it.
local json = require "riskscreen.json"
local activity = require "riskscreen.sandbox.activity"
local kyt = require "riskscreen.sandbox.kyt"
local verdicts = require "riskscreen.sandbox.verdicts"

-- What a blacklist entry without risks counts as.
local BLACKLISTED = { riskLevel = "high", riskType = "black-gray-goods" }

local function blacklisted_risks(entry)
  return type(entry.risks) == "table" and entry.risks or { BLACKLISTED }
end

-- The fields that every record about an address begins with.
local function about(context, verdict, address, network)
  local answer = verdict.answer or {}
  return {
    time = math.floor(context.now * 1000),
    address = answer.address or address,
    network = answer.network or network,
    whitelist = verdict.whitelist or context.account.whitelist:find(address, network) ~= nil,
  }
end

local function entity_record(context, verdict, address, network)
  local record = about(context, verdict, address, network)
  record.contract = verdict.contract or false
  record.entity = verdict.entity
  return record
end

local M = {}

function M.getAddressEntity(context, parameters)
  local verdict = verdicts.of(parameters.address)
  return { data = entity_record(context, verdict, parameters.address, parameters.network) }
end

-- An address that is asked for twice is answered once.
function M.listAddressEntities(context, parameters)
  local data, seen = json.empty_array(), {}
  for _, address in ipairs(parameters.addresses) do
    local canonical, verdict = verdicts.canonical(address), verdicts.of(address)
    if not seen[canonical] and not (verdict.answer and verdict.answer.omit) then
      data[#data + 1] = entity_record(context, verdict, address, parameters.network)
    end
    seen[canonical] = true
  end
  return { data = data }
end

function M.getAddressRisk(context, parameters)
  local address, network = parameters.address, parameters.network
  local verdict = verdicts.of(address)
  local record = about(context, verdict, address, network)
  local entry = context.account.blacklist:find(address, network)
  if type(verdict.risks) == "table" or entry then
    record.risks = json.empty_array()
    for index, risk in ipairs(type(verdict.risks) == "table" and verdict.risks or {}) do
      record.risks[index] = risk
    end
    for _, risk in ipairs(entry and blacklisted_risks(entry) or {}) do
      table.insert(record.risks, {
        riskLevel = risk.riskLevel or BLACKLISTED.riskLevel,
        riskType = risk.riskType,
        riskSource = "User-Defined",
      })
    end
  else
    record.risks = verdict.risks
  end
  return { data = record }
end

function M.getAddressCounterparties(_, parameters)
  return { data = { opponents = activity.counterparties(parameters.address, parameters.network) } }
end

function M.getAddressBasic(_, parameters)
  return { data = activity.basic(parameters.address, parameters.network) }
end

function M.getAddressFreezeEvents(_, parameters)
  return { data = activity.freeze_events(parameters.address, parameters.network) }
end

function M.getAddressRiskScore(_, parameters)
  local score, details = kyt.score(parameters.address)
  return { data = { address = parameters.address, network = parameters.network, score = score, details = details } }
end

return M
