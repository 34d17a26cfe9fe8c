-- From an operation and its checked parameters to a request: pure. The access key is not here; client.lua adds it.
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local operations = require "riskscreen.operations"
local text = require "riskscreen.text"

---@class riskscreen.Request
---@field method string
---@field target string path and query, as they go on the wire
---@field headers table<string, string> shared: an attempt sends a copy
---@field body? string
---@field timeout number seconds
---@field connect_timeout number seconds
---@field replay boolean it may be sent again when a kept-alive connection turns out dead

local NONE = {}

-- Methods whose parameters travel in the query where nothing says otherwise.
local query_methods = { GET = true, DELETE = true }

-- RFC 3986's unreserved characters stay; a class like %w would follow the locale.
local escapes = {}
for byte = 0, 255 do
  escapes[string.char(byte)] = ("%%%02X"):format(byte)
end

local function percent_encode(value)
  -- Nearly every value is an address, in which there is nothing to encode.
  return value:find "[^A-Za-z0-9._~-]" and (value:gsub("[^A-Za-z0-9._~-]", escapes)) or value
end

-- The text of a scalar in a query or a path, or nil.
local function scalar_text(value)
  if type(value) == "string" then
    return value
  elseif type(value) == "number" then
    return (json.encode(value))
  elseif type(value) == "boolean" then
    return tostring(value)
  end
end

local function unsendable(field, place)
  return nil,
    errors.new("invalid_argument", ("%s cannot be sent in %s"):format(field, place), { field = field, sent = false })
end

local function sorted_names(parameters)
  local names = {}
  for name in pairs(parameters) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

-- Entries in the order of sending; where the interface lists no parameters, whatever was given, by name.
local function entries_of(operation, parameters, method)
  if operation.parameters then
    return operation.parameters
  end
  local entries = {}
  for _, name in ipairs(sorted_names(parameters)) do
    entries[#entries + 1] = { name = name, place = query_methods[method] and "query" or "body" }
  end
  return entries
end

-- "?a=1&b=2" of pairs { name, value }, or "".
local function query_text(query)
  local parts = {}
  for i, pair in ipairs(query) do
    local value = scalar_text(pair[2])
    if not value then
      return unsendable(pair[1], "a query")
    end
    parts[i] = percent_encode(pair[1]) .. "=" .. percent_encode(value)
  end
  return #parts > 0 and ("?" .. table.concat(parts, "&")) or ""
end

-- The path with its {name}s filled in, and the set of the names used.
local function fill_path(path, parameters)
  if not path:find("{", 1, true) then
    return path, NONE
  end
  local used, missing = {}, nil
  local filled = path:gsub("{([%w_]+)}", function(name)
    local value = scalar_text(parameters[name])
    used[name] = true
    -- A dot segment would be resolved into another path.
    if not value or value == "" or value == "." or value == ".." then
      missing = missing or name
      return ""
    end
    return percent_encode(value)
  end)
  if missing then
    local message = ("%s must be given for the path %s (got %s)"):format(missing, path, text.show(parameters[missing]))
    return nil, errors.new("invalid_argument", message, { field = missing, sent = false })
  end
  return filled, used
end

-- The client's headers and the call's; the call's win, in whatever case they are written.
local function merge_headers(common, own)
  local headers, owned = { Accept = "application/json" }, {}
  for name, value in pairs(own) do
    headers[name] = value
    owned[name:lower()] = true
  end
  for name, value in pairs(common) do
    if not owned[name:lower()] then
      headers[name] = value
    end
  end
  return headers
end

-- What is the same for every request of a client, made once for each.
local function remembered(make)
  local made = setmetatable({}, { __mode = "k" })
  return function(settings)
    local result = made[settings]
    if not result then
      result = make(settings)
      made[settings] = result
    end
    return result
  end
end

local common_headers = remembered(function(settings)
  return merge_headers(settings.headers or {}, {})
end)

local function headers_of(request, call, settings)
  if not (request.body or call.headers or call.traceparent) then
    return common_headers(settings)
  end
  local headers = merge_headers(settings.headers or {}, call.headers or {})
  if request.body then
    headers["Content-Type"] = "application/json"
  end
  headers.traceparent = call.traceparent
  return headers
end

local function finish(request, call, settings)
  request.headers = headers_of(request, call, settings)
  local timeout = call.timeout or settings.timeout
  request.timeout = math.min(timeout, call.attempt_timeout or settings.attempt_timeout or timeout)
  request.connect_timeout = math.min(settings.connect_timeout, request.timeout)
  return request
end

local function encode_body(body)
  local encoded, message = json.encode(body)
  if not encoded then
    return nil, errors.new("invalid_argument", "the body cannot be sent as JSON: " .. message, { sent = false })
  end
  return encoded
end

local function prefix_of(settings)
  return settings.base_url and settings.base_url.prefix or ""
end

local function make_endpoint(operation, settings)
  local given = settings.endpoints[operations.endpoint_key(operation)]
  local path = given and given.path or operation.path
  return path
    and {
      method = given and given.method or operation.http,
      path = path,
      envelope = given and given.envelope or operation.envelope,
    }
end

local endpoints = remembered(function()
  return {}
end)

local M = {}

---The method, path and envelope of an operation: those of the client option `endpoints`, else the interface's.
---@param operation riskscreen.Operation
---@param settings table
---@return { method: string, path: string, envelope: string }|nil
function M.endpoint(operation, settings)
  local known = endpoints(settings)
  local endpoint = known[operation]
  if not endpoint then
    endpoint = make_endpoint(operation, settings)
    known[operation] = endpoint
  end
  return endpoint
end

---The request of an operation.
---@param operation riskscreen.Operation
---@param parameters table checked
---@param settings table a client's checked options
---@param call? table the call's checked options
---@return riskscreen.Request|nil request
---@return riskscreen.Error|nil err
function M.build(operation, parameters, settings, call)
  local endpoint = M.endpoint(operation, settings)
  if not endpoint then
    local key = operations.endpoint_key(operation)
    local message = "the interface does not publish this operation's path; set endpoints."
      .. key
      .. " = { method = …, path = … }"
    return nil, errors.new("unsupported", message, { sent = false })
  end
  local path, used = fill_path(endpoint.path, parameters)
  if not path then
    return nil, used
  end
  local query, body = {}, not query_methods[endpoint.method] and {} or nil
  for _, entry in ipairs(entries_of(operation, parameters, endpoint.method)) do
    local value = parameters[entry.name]
    if value ~= nil and not used[entry.name] then
      local name = entry.setting and settings[entry.renamed_by or "usage_parameters"][entry.setting] or entry.name
      if entry.separator then
        value = table.concat(value, entry.separator)
      end
      -- With another method than the interface's, the interface's place means nothing.
      if body and (entry.place == "body" or endpoint.method ~= operation.http) then
        body[name] = value
      else
        query[#query + 1] = { name, value }
      end
    end
  end
  local search, wrong = query_text(query)
  if not search then
    return nil, wrong
  end
  local encoded
  if body then
    encoded, wrong = encode_body(body)
    if not encoded then
      return nil, wrong
    end
  end
  return finish({
    method = endpoint.method,
    target = prefix_of(settings) .. path .. search,
    body = encoded,
    replay = operation.idempotent,
  }, call or {}, settings)
end

---A request that no operation describes.
---@param method string
---@param path string
---@param settings table a client's checked options
---@param call table checked: query, body, headers, timeout
---@return riskscreen.Request|nil request
---@return riskscreen.Error|nil err
function M.raw(method, path, settings, call)
  local query = {}
  for i, name in ipairs(sorted_names(call.query or {})) do
    query[i] = { name, call.query[name] }
  end
  local search, wrong = query_text(query)
  if not search then
    return nil, wrong
  end
  local encoded
  if call.body ~= nil then
    encoded, wrong = encode_body(call.body)
    if not encoded then
      return nil, wrong
    end
  end
  return finish({
    method = method,
    target = prefix_of(settings) .. path .. search,
    body = encoded,
    replay = method == "GET",
  }, call, settings)
end

return M
