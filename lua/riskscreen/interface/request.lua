-- From an operation and its checked parameters to a request: pure. The access key is not here; client.lua adds it.
local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local text = require "riskscreen.util.text"

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
  return text.is_plain(value) and value or (value:gsub("[^A-Za-z0-9._~-]", escapes))
end

-- The text of a scalar in a query or a path, or nil.
local function scalar_text(value)
  if type(value) == "string" then
    return value
  elseif type(value) == "number" then
    return json.number(value)
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

-- Where a parameter goes.
---@class riskscreen.Place
---@field name string of the parameter
---@field wire string its name on the wire
---@field key string that name and "=", as a query has them
---@field in_body boolean
---@field separator? string an array is one text, joined by this
---@field parts? table<string, string> what it comes to in a query, by its values where those are known

local function parts_of(key, values)
  local parts = {}
  for _, value in ipairs(values) do
    parts[value] = key .. percent_encode(value)
  end
  return parts
end

local function place_of(entry, wire, in_body)
  local key = percent_encode(wire) .. "="
  return {
    name = entry.name,
    wire = wire,
    key = key,
    in_body = in_body,
    separator = entry.separator,
    parts = entry.enum and parts_of(key, enums.values[entry.enum]),
  }
end

-- In the order of sending.
local function places_of(operation, method, settings)
  local has_body, places = not query_methods[method], {}
  for index, entry in ipairs(operation.parameters) do
    local wire = entry.setting and settings[entry.renamed_by or "usage_parameters"][entry.setting] or entry.name
    -- With another method than the interface's, the interface's place means nothing.
    places[index] = place_of(entry, wire, has_body and (entry.place == "body" or method ~= operation.http))
  end
  return places
end

-- Where the interface lists no parameters, whatever was given, by name.
local function places_of_any(parameters, method)
  local has_body, places = not query_methods[method], {}
  for index, name in ipairs(sorted_names(parameters)) do
    places[index] = place_of({ name = name }, name, has_body)
  end
  return places
end

-- The path with its {name}s filled in, and the set of the names used.
local function fill_path(path, parameters)
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
  local encoded, message, kind = json.encode(body)
  if kind then
    return nil, errors.new(kind, message, { sent = false })
  elseif not encoded then
    return nil, errors.new("invalid_argument", "the body cannot be sent as JSON: " .. message, { sent = false })
  end
  return encoded
end

---@class riskscreen.Endpoint where and how an operation is sent
---@field method string
---@field path string
---@field target? string with the prefix of base_url, where no parameter is part of the path
---@field envelope string
---@field places? riskscreen.Place[]

local function prefix_of(settings)
  return settings.base_url and settings.base_url.prefix or ""
end

local function make_endpoint(operation, settings)
  local given = settings.endpoints[operations.endpoint_key(operation)]
  local path, method = given and given.path or operation.path, given and given.method or operation.http
  return path
    and {
      method = method,
      path = path,
      target = not path:find("{", 1, true) and prefix_of(settings) .. path or nil,
      envelope = given and given.envelope or operation.envelope,
      places = operation.parameters and places_of(operation, method, settings),
    }
end

-- Puts a parameter where it belongs: the target then, or what cannot be sent.
local function put(target, place, parameters, used, body)
  local value = parameters[place.name]
  if value == nil or used[place.name] then
    return target
  end
  if place.separator then
    value = table.concat(value, place.separator)
  end
  if place.in_body then
    body[place.wire] = value
    return target
  end
  local part = place.parts and place.parts[value]
  if not part then
    local scalar = scalar_text(value)
    if not scalar then
      return nil, place.wire
    end
    part = place.key .. percent_encode(scalar)
  end
  return target .. (target:find("?", 1, true) and "&" or "?") .. part
end

-- The target with its query, and what goes into the body. Most operations have two parameters: those without a loop.
local function distribute(target, places, parameters, used, body)
  local unsent
  if places[1] then
    target, unsent = put(target, places[1], parameters, used, body)
  end
  if target and places[2] then
    target, unsent = put(target, places[2], parameters, used, body)
  end
  for index = 3, #places do
    if target then
      target, unsent = put(target, places[index], parameters, used, body)
    end
  end
  if not target then
    return unsendable(unsent, "a query")
  end
  return target, body
end

local endpoints = remembered(function()
  return setmetatable({}, { __mode = "k" })
end)

local M = {}

---The method, path and envelope of an operation: those of the client option `endpoints`, else the interface's.
---@param operation riskscreen.Operation
---@param settings table
---@return riskscreen.Endpoint|nil
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
  local target, used = endpoint.target, NONE
  if not target then
    local path
    path, used = fill_path(endpoint.path, parameters)
    if not path then
      return nil, used
    end
    target = prefix_of(settings) .. path
  end
  local places = endpoint.places or places_of_any(parameters, endpoint.method)
  local body = not query_methods[endpoint.method] and {} or nil
  target, body = distribute(target, places, parameters, used, body)
  if not target then
    return nil, body
  end
  local encoded, wrong
  if body then
    encoded, wrong = encode_body(body)
    if not encoded then
      return nil, wrong
    end
  end
  return finish({
    method = endpoint.method,
    target = target,
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
  local query = call.query or NONE
  local target, wrong = distribute(prefix_of(settings) .. path, places_of_any(query, "GET"), query, NONE)
  if not target then
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
    target = target,
    body = encoded,
    replay = method == "GET",
  }, call, settings)
end

return M
