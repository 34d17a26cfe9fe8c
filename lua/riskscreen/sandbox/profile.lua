-- A profile's changes to the requests and answers of the sandbox. The rest of the sandbox knows no profile.
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"

-- The list, or the form in which the service writes an empty one.
local function list_in(form, list)
  if form ~= "list" and type(list) == "table" and #list == 0 then
    return form == "null" and json.null or nil
  end
  return list
end

local function subject(profile, record)
  if profile.answered_address == "lower case" then
    record.address = record.address:lower()
  end
  if profile.answered_network == "ethereum" and record.network == "eth" then
    record.network = "ethereum"
  end
end

local function entity(profile, record)
  subject(profile, record)
  if record.entity == nil and profile.absent_entity ~= "absent" then
    record.entity = profile.absent_entity == "null" and json.null or {}
  end
end

-- By operation: changes the result of its handler.
local answers = {}

function answers.getAddressRisk(profile, result)
  local data = result.data
  subject(profile, data)
  for index, risk in ipairs(type(data.risks) == "table" and data.risks or {}) do
    if risk.riskSource == "Provider" then
      data.risks[index] = tables.merge(risk, { riskSource = profile.provider })
    end
  end
  data.risks = list_in(profile.empty_risks, data.risks)
end

function answers.getAddressEntity(profile, result)
  entity(profile, result.data)
end

function answers.listAddressEntities(profile, result, parameters)
  local records, list = {}, result.data
  for _, record in ipairs(result.data) do
    entity(profile, record)
    records[record.address:lower()] = record
  end
  if profile.bulk_repeats == "twice" then
    list = json.empty_array()
    for _, address in ipairs(parameters.addresses) do
      list[#list + 1] = records[address:lower()]
    end
  end
  if profile.bulk_order == "another" then
    for index = 1, math.floor(#list / 2) do
      list[index], list[#list + 1 - index] = list[#list + 1 - index], list[index]
    end
  end
  result.data = list
end

function answers.getAddressCounterparties(profile, result)
  result.data.opponents = list_in(profile.empty_opponents, result.data.opponents)
end

function answers.getAddressFreezeEvents(profile, result)
  result.data = list_in(profile.empty_freeze_events, result.data)
end

local function final(profile, result)
  if result.data.status == 1003 then
    result.data.status = profile.final_status
  end
end
answers.getAsynchronousResult, answers.getCustomRiskScoreResult = final, final

local M = {}

---Reads the parameters of a list as this service does.
---@param profile table
---@param name string of the operation
---@param parameters table
---@return table parameters for the sandbox
---@return string|nil message
function M.page(profile, name, parameters)
  if name ~= "listWhitelistAddresses" and name ~= "listBlacklistAddresses" then
    return parameters
  end
  local is_whitelist, size = name == "listWhitelistAddresses", parameters.pageSize
  local shift = is_whitelist and 1 - profile.first_page or 0
  local page = type(parameters.page) == "number" and parameters.page + shift or parameters.page
  if type(size) == "number" and size > profile.largest_page then
    if profile.longer_page == "refused" then
      return parameters, ("pageSize must be at most %d (got '%d')"):format(profile.largest_page, size)
    end
    size = profile.largest_page
  end
  return tables.merge(parameters, { page = page, pageSize = size or is_whitelist and profile.page_length or nil })
end

---Changes the result of an operation to what this service answers.
---@param profile table
---@param name string of the operation
---@param result { data: any, pagination?: table }
---@param parameters table
function M.answer(profile, name, result, parameters)
  if answers[name] then
    answers[name](profile, result, parameters)
  elseif name == "listWhitelistAddresses" then
    result.pagination.current_page = result.pagination.current_page - 1 + profile.first_page
  end
end

---The names of the usage query's parameters on the wire.
---@param profile table
---@return table<string, string> names by setting
function M.usage_names(profile)
  return tables.pick(profile, { "granularity", "start_date", "end_date", "group_by" })
end

return M
