-- From a request to an operation and its parameters. Operations without a published path have paths and parameters of
-- the sandbox's own. Its clients are preset to them; the real service's have to be configured.
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"

local PREFIX = "/sandbox/v1/"

local function text(name, place, required, doc)
  return { name = name, place = place, type = "string", required = required, doc = doc }
end

local function network(place, required)
  local parameter = text("network", place, required, "The chain's short name.")
  parameter.enum = "network"
  return parameter
end

local removal = { text("address", "body", true, "The address."), network("body", false) }

-- By operation: the HTTP method, the path and the parameters.
local own_endpoints = {
  removeBlacklistAddresses = { "POST", PREFIX .. "blacklist/remove", removal },
  addWhitelistAddresses = {
    "POST",
    PREFIX .. "whitelist",
    {
      {
        name = "list",
        place = "body",
        type = "array",
        required = true,
        max_items = 100,
        doc = "The items to add.",
        items = {
          type = "object",
          fields = { text("address", "body", true, "The address."), network("body", false) },
        },
      },
    },
  },
  removeWhitelistAddresses = { "POST", PREFIX .. "whitelist/remove", removal },
  getTransactionRisks = {
    "GET",
    PREFIX .. "kyt/risks",
    { network("query", true), text("hash", "query", true, "The transaction's hash.") },
  },
  getCustomRiskScore = {
    "POST",
    PREFIX .. "kyt/custom-score",
    {
      network("body", true),
      text("hash", "body", true, "The transaction's hash."),
      text("outputAddress", "body", false, "The receiver of the transfer."),
      text("direction", "body", false, "received or in, sent or out, or anything else for both."),
      text("customId", "body", false, "Repeated in the result."),
    },
  },
  getAddressRiskScore = {
    "GET",
    PREFIX .. "kya/score",
    { text("address", "query", true, "The address."), network("query", true) },
  },
  getAsynchronousResult = {
    "GET",
    PREFIX .. "kyt/result",
    { text("requestId", "query", true, "The submission's requestId.") },
  },
  getCustomRiskScoreResult = {
    "GET",
    PREFIX .. "kyt/custom-score-result",
    { text("requestId", "query", true, "The submission's requestId.") },
  },
}

local by_path = {}

---@class riskscreen.sandbox.Routes
---@field endpoints table<string, { method: string, path: string }> for the client option `endpoints`
local M = { endpoints = {} }

for _, operation in ipairs(operations.list) do
  local own = own_endpoints[operation.name]
  if own then
    M.endpoints[operations.endpoint_key(operation)] = { method = own[1], path = own[2] }
    operation = {
      name = operation.name,
      namespace = operation.namespace,
      method = operation.method,
      http = own[1],
      path = own[2],
      parameters = own[3],
      envelope = operation.envelope,
    }
  end
  if operation.path then
    by_path[operation.path] = by_path[operation.path] or {}
    by_path[operation.path][operation.http] = operation
  end
end

---Splits a request target.
---@param target string
---@return string path
---@return string query "" if there is none
function M.split(target)
  return target:match "^([^?#]*)%??([^#]*)"
end

---The operation at a path.
---@param method string
---@param path string
---@return riskscreen.Operation?
---@return string? allowed the other methods that the path answers
function M.find(method, path)
  local methods = by_path[path]
  if not methods then
    return nil
  elseif methods[method] then
    return methods[method]
  end
  local allowed = {}
  for name in pairs(methods) do
    allowed[#allowed + 1] = name
  end
  table.sort(allowed)
  return nil, table.concat(allowed, ", ")
end

-- The interface does not name the usage query's parameters on the wire; these are the client's defaults.
local usage_names = {
  granularity = "granularity",
  start_date = "startDate",
  end_date = "endDate",
  group_by = "groupBy",
}

local function unescape(escaped)
  local spaced = escaped:gsub("%+", " ")
  return (spaced:gsub("%%(%x%x)", function(digits)
    return string.char(tonumber(digits, 16))
  end))
end

local function split_list(joined, separator)
  local items = {}
  for item in (joined .. separator):gmatch("(.-)" .. separator:gsub("%p", "%%%0")) do
    items[#items + 1] = item
  end
  return items
end

-- A malformed number stays text: the check of the parameters has the message.
local function typed(parameter, value)
  if parameter.type == "integer" and value:match "^%-?%d+$" then
    return tonumber(value)
  elseif parameter.type == "array" then
    return split_list(value, parameter.separator or ",")
  end
  return value
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
  elseif type(value) ~= "table" or value[1] ~= nil then
    return nil, "the body must be a JSON object"
  end
  return value
end

---Reads the parameters of a request. They are checked later, as any client's.
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
