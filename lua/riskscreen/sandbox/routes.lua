-- From a request to an operation and its parameters. Operations without a published path have paths and parameters of
-- the sandbox's own. Its clients are preset to them; the real service's have to be configured.
local assumptions = require "riskscreen.sandbox.assumptions"
local check = require "riskscreen.options.check"
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local profiles = require "riskscreen.sandbox.profile"
local tables = require "riskscreen.util.tables"
local unescape = require("riskscreen.util.text").unescape

local PREFIX = "/sandbox/v1/"

local function text(name, required, doc, enum)
  return { name = name, type = "string", required = required, doc = doc, enum = enum }
end

local address, request_id =
  text("address", true, "The address."), text("requestId", true, "The submission's requestId.")
local hash, network = text("hash", true, "The transaction's hash."), text("network", true, "The chain.", "network")
local removal = { address, text("network", false, "The chain.", "network") }

local additions = { name = "list", type = "array", required = true, max_items = 100, doc = "The items to add." }
additions.items = { type = "object", fields = removal }

local score_parameters = {
  network,
  hash,
  text("outputAddress", false, "The receiver of the transfer."),
  text("direction", false, "received or in, sent or out, or anything else for both."),
  text("customId", false, "Repeated in the result."),
}

-- By operation: the HTTP method, the path and the parameters: in the query of a GET, in the body of a POST.
local own_endpoints = {
  removeBlacklistAddresses = { "POST", "blacklist/remove", removal },
  addWhitelistAddresses = { "POST", "whitelist", { additions } },
  removeWhitelistAddresses = { "POST", "whitelist/remove", removal },
  getTransactionRisks = { "GET", "kyt/risks", { network, hash } },
  getCustomRiskScore = { "POST", "kyt/custom-score", score_parameters },
  getAddressRiskScore = { "GET", "kya/score", { address, network } },
  getAsynchronousResult = { "GET", "kyt/result", { request_id } },
  getCustomRiskScoreResult = { "GET", "kyt/custom-score-result", { request_id } },
}

local by_path = {}

---@class riskscreen.sandbox.Routes
---@field endpoints table<string, { method: string, path: string }> for the client option `endpoints`
local M = { endpoints = {} }

local function own_operation(operation, method, path, parameters)
  local own = { http = method, path = PREFIX .. path, parameters = parameters }
  M.endpoints[operations.endpoint_key(operation)] = { method = method, path = own.path }
  for _, field in ipairs { "name", "namespace", "method", "envelope" } do
    own[field] = operation[field]
  end
  return own
end

for _, operation in ipairs(operations.list) do
  local own = own_endpoints[operation.name]
  if own then
    operation = own_operation(operation, own[1], own[2], own[3])
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
  return nil, table.concat(tables.sorted_keys(methods), ", ")
end

local assumed = check.options(assumptions.options, {})

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

local function read_query(operation, query, profile)
  profile = profile or assumed
  local known, names, renamed = {}, profiles.usage_names(profile), {}
  for _, parameter in ipairs(operation.parameters) do
    local wire = names[parameter.setting]
    known[wire or parameter.name] = parameter
    renamed[parameter.name] = wire ~= nil and wire ~= parameter.name
  end
  local parameters = {}
  for pair in query:gmatch "[^&]+" do
    local name, value = pair:match "^([^=]*)=?(.*)$"
    name, value = unescape(name), unescape(value)
    local parameter = known[name]
    local key = parameter and parameter.name or name
    local is_ignored = not parameter and profile.unknown_name == "ignored"
    if renamed[name] and not parameter and not is_ignored then
      return nil, name .. " is unknown"
    elseif parameters[key] ~= nil and not is_ignored then
      return nil, name .. " is given twice"
    elseif not is_ignored then
      parameters[key] = parameter and typed(parameter, value) or value
    end
  end
  return parameters
end

local function read_body(body)
  local value, message = json.decode(body)
  if value == nil then
    return nil, "the body must be JSON: " .. message
  elseif type(value) ~= "table" or value[1] ~= nil then
    return nil, "the body must be a JSON object"
  end
  return value
end

---Reads the parameters of a request. They are checked later, as any client's.
---@param operation riskscreen.Operation
---@param request { method: string, body?: string }
---@param query string
---@param profile? table
---@return table? parameters
---@return string? message
function M.parameters(operation, request, query, profile)
  if request.method == "GET" then
    return read_query(operation, query, profile)
  end
  return read_body(request.body or "")
end

return M
