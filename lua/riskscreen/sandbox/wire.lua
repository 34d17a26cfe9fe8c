-- Reads the parameters of an operation from a request, as it came over the wire. Whether they are right is the check's
-- business (riskscreen.check); only what cannot be read at all is refused here.
local json = require "riskscreen.json"

-- The interface does not name the usage query's parameters on the wire; these are the client's defaults.
local usage_names = {
  granularity = "granularity",
  start_date = "startDate",
  end_date = "endDate",
  group_by = "groupBy",
}

local M = {}

local function unescape(text)
  local spaced = text:gsub("%+", " ")
  return (spaced:gsub("%%(%x%x)", function(digits)
    return string.char(tonumber(digits, 16))
  end))
end

---Splits a request target.
---@param target string
---@return string path
---@return string query "" if there is none
function M.split(target)
  return target:match "^([^?#]*)%??([^#]*)"
end

local function split_list(text, separator)
  local items = {}
  for item in (text .. separator):gmatch("(.-)" .. separator:gsub("%p", "%%%0")) do
    items[#items + 1] = item
  end
  return items
end

-- What does not look like a number stays text, for the check to name it.
local function typed(parameter, text)
  if parameter.type == "integer" and text:match "^%-?%d+$" then
    return tonumber(text)
  elseif parameter.type == "array" then
    return split_list(text, parameter.separator or ",")
  end
  return text
end

local function read_query(operation, query)
  local known = {}
  for _, parameter in ipairs(operation.parameters) do
    if parameter.place == "query" then
      known[usage_names[parameter.setting] or parameter.name] = parameter
    end
  end
  local parameters = {}
  for pair in query:gmatch "[^&]+" do
    local name, value = pair:match "^([^=]*)=?(.*)$"
    name, value = unescape(name), unescape(value)
    local parameter = known[name]
    local key = parameter and parameter.name or name
    if parameters[key] ~= nil then
      return nil, name .. " is given twice"
    end
    parameters[key] = parameter and typed(parameter, value) or value
  end
  return parameters
end

local function read_body(body)
  local value, message, position = json.decode(body)
  if value == nil then
    return nil, "the body must be JSON: " .. message .. " at byte " .. tostring(position)
  end
  if type(value) ~= "table" or value[1] ~= nil then
    return nil, "the body must be a JSON object"
  end
  return value
end

---Reads the parameters of a request.
---@param operation riskscreen.Operation
---@param request { method: string, body?: string }
---@param query string
---@return table? parameters
---@return string? message
function M.parameters(operation, request, query)
  if request.method == "GET" then
    return read_query(operation, query)
  end
  return read_body(request.body or "")
end

return M
