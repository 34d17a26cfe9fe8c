-- The fuzzers' oracle: whether an answer of the service is honest. It is written from the interface, not from the code
-- that it checks. Values come from a decoder that keeps nulls.
local core = require "riskscreen.core"

local null = core.null

local function is_array(value)
  return type(value) == "table" and (value[1] ~= nil or getmetatable(value) == core.empty_array_mt)
end

local function is_object(value)
  return type(value) == "table" and not is_array(value)
end

local function given(value)
  return value ~= nil and value ~= null
end

local function text(value)
  return type(value) == "string"
end

local function flag(value)
  return type(value) == "boolean"
end

local function number(value)
  return type(value) == "number"
end

local function whole(value)
  return number(value) and value % 1 == 0 and value >= -2 ^ 63 and value < 2 ^ 63
end

local function count(value)
  return whole(value) and value >= 0
end

-- An object whose `required` members are there and whose members, where given, are as they should be.
local function object(required, optional)
  return function(value)
    if not is_object(value) then
      return false
    end
    for name, fits in pairs(required) do
      if not (given(value[name]) and fits(value[name])) then
        return false
      end
    end
    for name, fits in pairs(optional or {}) do
      if given(value[name]) and not fits(value[name]) then
        return false
      end
    end
    return true
  end
end

local function array(fits)
  return function(value)
    if not is_array(value) then
      return false
    end
    for _, element in ipairs(value) do
      if not fits(element) then
        return false
      end
    end
    return true
  end
end

-- An empty map may be written as an empty array.
local function map(fits)
  return function(value)
    if type(value) ~= "table" or value[1] ~= nil then
      return false
    end
    for _, member in pairs(value) do
      if given(member) and not fits(member) then
        return false
      end
    end
    return true
  end
end

local function decimal(value)
  if not text(value) or #value > 1024 then
    return false
  end
  local whole_part, rest = value:match "^[+-]?%d+()(.*)$"
  rest = whole_part and rest:gsub("^%.%d+", "", 1)
  local exponent = rest and rest:match "^[eE][+-]?(%d+)$"
  return rest == "" or (exponent ~= nil and #exponent <= 9)
end

local entity = object({}, { entityName = text, entityCode = text, entityCategory = text, entityCategoryCode = text })
local transfer = object({}, { time = whole, hash = text, symbol = text })
local statistic = object({}, { symbol = text, contractAddr = text, txCount = whole, txValue = number })
local entity_record = object(
  { address = text, network = text },
  { time = whole, whitelist = flag, contract = flag, entity = entity }
)
local pagination = object({}, { current_page = count, per_page = count, total_pages = count, total_items = count })

local payloads = {
  listBlacklistAddresses = array(object({ address = text }, {
    network = text,
    createdAt = whole,
    risks = array(object({}, {
      riskLevel = text,
      riskType = text,
      riskSource = text,
      chains = array(object({}, { chain = text, chainName = text })),
    })),
  })),
  listWhitelistAddresses = array(object({ address = text }, { chain = text, createdAt = whole })),
  getAddressEntity = entity_record,
  listAddressEntities = array(entity_record),
  getAddressRisk = object({ address = text, network = text }, {
    time = whole,
    whitelist = flag,
    risks = array(object({}, { riskLevel = text, riskType = text, riskSource = text })),
  }),
  getAddressCounterparties = object {
    opponents = array(object({}, {
      entities = array(entity),
      risks = array(object({}, { riskLevel = text, riskType = text })),
      dir = text,
      chain = text,
      address = text,
      amount = number,
      symbol = text,
      transactionNumbers = whole,
    })),
  },
  getAddressBasic = object({}, {
    activeType = whole,
    balance = map(number),
    firstInTx = transfer,
    firstOutTx = transfer,
    mainInStatistic = statistic,
    mainOutStatistic = statistic,
    stableInStatistic = statistic,
    stableOutStatistic = statistic,
  }),
  getAddressFreezeEvents = array(object({}, {
    hash = text,
    chain = text,
    txTime = whole,
    contractAddress = text,
    token = text,
    type = text,
    event = text,
    frozenBalance = text,
    destroyedBalance = text,
  })),
  getAccountUsage = array(object({}, {
    time = text,
    methodName = text,
    methodUrl = text,
    totalCalls = whole,
    useCredits = whole,
  })),
}

local details = array(object({}, { score = decimal, code = text, name = text }))
local strategies = map(object({}, { strategyNo = text, strategyName = text, score = decimal, details = details }))
local result_members = {
  requestId = text,
  customId = text,
  maxScore = decimal,
  time = whole,
  risks = array(object({}, { riskLevel = text, riskType = text, riskSource = text })),
  dirData = object({}, { ["in"] = strategies, out = strategies }),
}
local submission = object({}, result_members)

-- A requestId, or the result at once.
function payloads.screenTransaction(value)
  return submission(value) and (given(value.requestId) or given(value.risks) or given(value.maxScore))
end

local function transaction_result(value)
  return submission(value) and (not given(value.status) or whole(value.status))
end

-- A text for people and logs to handle: not empty, of one line, not endless.
local function name(value)
  return text(value) and value ~= "" and #value <= 256 and not value:find "[%z\1-\31\127]"
end

local month_days = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

local function timestamp(value)
  local pattern = "^(%d%d%d%d)-(%d%d)-(%d%d) (%d%d):(%d%d):(%d%d)$"
  local y, m, d, hour, minute, second = (text(value) and value or ""):match(pattern)
  if not y then
    return false
  end
  y, m, d = tonumber(y), tonumber(m), tonumber(d)
  local last = month_days[m]
  if m == 2 and (y % 400 == 0 or (y % 4 == 0 and y % 100 ~= 0)) then
    last = 29
  end
  return last ~= nil
    and d >= 1
    and d <= last
    and tonumber(hour) < 24
    and tonumber(minute) < 60
    and tonumber(second) <= 60
end

local event = object { webhookId = name, eventType = name, timestamp = timestamp, data = is_object }

local function succeeds(operation, body)
  if operation == "getAccountUsage" then
    return body.code == 200 and (not given(body.success) or body.success == true)
  end
  for _, member in ipairs { "status", "msg" } do
    if given(body[member]) and body[member] ~= "SUCCESS" then
      return false
    end
  end
  return body.success == true and body.code == 1
end

-- The samples ask about hexadecimal addresses on "eth".
local function is_asked(record, addresses)
  if record.network ~= "eth" and record.network ~= "ethereum" then
    return false
  end
  for _, address in ipairs(addresses) do
    if record.address:lower() == address:lower() then
      return true
    end
  end
  return false
end

local function same(left, right)
  if type(left) ~= "table" or type(right) ~= "table" then
    return left == right or (not given(left) and not given(right))
  end
  for key, value in pairs(left) do
    if not same(value, right[key]) then
      return false
    end
  end
  for key, value in pairs(right) do
    if left[key] == nil and given(value) then
      return false
    end
  end
  return is_array(left) == is_array(right)
end

-- Two records of one address must not differ.
local function agree(records)
  for i = 2, #records do
    for j = 1, i - 1 do
      if records[i].address:lower() == records[j].address:lower() and not same(records[i], records[j]) then
        return false
      end
    end
  end
  return true
end

local is_about = {
  getAddressEntity = function(asked, record)
    return is_asked(record, { asked.address })
  end,
  listAddressEntities = function(asked, records)
    for _, record in ipairs(records) do
      if not is_asked(record, asked.addresses) then
        return false
      end
    end
    return agree(records)
  end,
}
is_about.getAddressRisk = is_about.getAddressEntity

local is_paged = { listBlacklistAddresses = true, listWhitelistAddresses = true }

local M = {}

---The body of a 200, if it is an honest success of the operation.
function M.judge(operation, asked, body)
  if not (is_object(body) and succeeds(operation, body)) then
    return nil
  elseif is_paged[operation] and given(body.pagination) and not pagination(body.pagination) then
    return nil
  elseif payloads[operation] then
    if not (given(body.data) and payloads[operation](body.data)) then
      return nil
    elseif is_about[operation] and not is_about[operation](asked, body.data) then
      return nil
    end
  end
  return body
end

---Whether a value is a webhook event.
function M.is_event(value)
  return event(value) and (value.eventType ~= "getTxHashCustomRiskScore" or transaction_result(value.data))
end

---Raises unless each place holds a record of its address, or `false`.
function M.check_aligned(addresses, records)
  assert(#records == #addresses, "not aligned")
  for i, address in ipairs(addresses) do
    assert(records[i] == false or records[i].address:lower() == address:lower(), "another address's record")
  end
end

local levels = { high = "block", ["generally-high"] = "review", low = "allow", whitelist = "allow" }
local never = { sanction = true, terrorist = true, csam = true }
local types = {}
for kind in
  ([[black-gray-goods online-gambling scam hack launder-money sanction frozen politics drug gun terrorist porn
  controlled-substance bloodiness religion csam]]):gmatch "%S+"
do
  types[kind] = true
end

---The action of the default policy for one risk.
function M.verdict(risk)
  if type(risk) ~= "table" then
    return "unknown"
  elseif (type(risk.riskType) == "string" and never[risk.riskType]) or risk.riskLevel == "high" then
    return "block"
  elseif type(risk.riskLevel) ~= "string" or type(risk.riskType) ~= "string" or not types[risk.riskType] then
    return "unknown"
  end
  return levels[risk.riskLevel] or "unknown"
end

---Whether the default policy must allow an honest risk assessment.
function M.allows(record)
  if not given(record.risks) then
    return false
  end
  for _, risk in ipairs(record.risks) do
    if M.verdict(risk) ~= "allow" then
      return false
    end
  end
  return true
end

---Whether a risk's level and type are of the interface or among the operator's own.
function M.is_recognised(risk, more_levels, more_types)
  if type(risk) ~= "table" then
    return false
  end
  local level, kind = risk.riskLevel, risk.riskType
  return type(level) == "string"
    and (levels[level] or more_levels[level]) ~= nil
    and type(kind) == "string"
    and (types[kind] or more_types[kind]) ~= nil
end

return M
