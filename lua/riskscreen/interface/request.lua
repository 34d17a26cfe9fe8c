-- From an operation and its checked parameters to a request. Pure; call/ adds the access key.
local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local text = require "riskscreen.util.text"

---@class riskscreen.Request
---@field method string
---@field target? string path and query, where they are not given apart
---@field headers table<string, string> shared between requests: a sender copies it before a change
---@field body? string
---@field timeout number seconds
---@field connect_timeout number seconds
---@field replay boolean it may be sent again when a kept-alive connection was dead
---@field fresh? boolean send it on a new connection
---@field value_only? boolean the call needs no response beside its value
---@field body_only? boolean of a 200 its body alone is needed
---@field call_timeout number seconds for the whole call
---@field options table of the call, checked

---@class riskscreen.Place the place of a parameter in a request
---@field name string of the parameter
---@field wire string its name on the wire
---@field key string the encoded name and "=", for a query
---@field separator? string joins an array to one text

---@class riskscreen.Endpoint where and how a client sends an operation: the part of a request that is always the same
---@field operation riskscreen.Operation
---@field method string
---@field has_body boolean parameters travel in the body
---@field path string
---@field target? string with the prefix of base_url, where no parameter is part of the path
---@field envelope string
---@field idempotent boolean repeating a request changes nothing
---@field headers table<string, string> of a request without a body and without headers of its own
---@field settings table the client's checked options
---@field request? riskscreen.Request of the last call without a body: the next one with its options shares it
---@field in_path table<string, true> names of the parameters that are part of the path
---@field places? riskscreen.Place[] in the order of sending; nil where the interface lists no parameters
---@field before? string of a lookup's target, up to its address
---@field tails table<string, string> the rest of it, by network; empty for other operations

local is_plain = text.is_plain

local NO_FIELDS = {}

local M = {
  ---@type table<string, string> of a request without a body, where neither the client nor the call has headers
  PLAIN_HEADERS = { Accept = "application/json" },
}

-- Methods whose parameters travel in the query.
local query_methods = { GET = true, DELETE = true }

-- RFC 3986's unreserved characters stay. A class such as %w would depend on the locale.
local escapes = {}
for byte = 0, 255 do
  escapes[string.char(byte)] = ("%%%02X"):format(byte)
end

-- The text of a scalar, or nil.
local function scalar_text(value)
  if type(value) == "string" then
    return value
  elseif type(value) == "number" then
    return json.number(value)
  elseif type(value) == "boolean" then
    return tostring(value)
  end
end

-- The text of a scalar in a query or a path, or nil.
local function percent_encode(value)
  if type(value) == "string" and is_plain(value) then
    return value -- nearly always
  end
  local plain = scalar_text(value)
  return plain and (plain:gsub("[^A-Za-z0-9._~-]", escapes))
end

local function unsent(kind, message, field)
  return nil, errors.new(kind, message, { field = field, sent = false })
end

local function place_of(name, wire, separator)
  return { name = name, wire = wire, key = percent_encode(wire) .. "=", separator = separator }
end

local function places_of(operation, in_path, settings)
  local places = {}
  for _, entry in ipairs(operation.parameters) do
    if not in_path[entry.name] then
      local wire = entry.setting and settings[entry.renamed_by or "usage_parameters"][entry.setting] or entry.name
      places[#places + 1] = place_of(entry.name, wire, entry.separator)
    end
  end
  return places
end

-- The given parameters by name, for an operation whose parameters the interface does not list.
local function places_of_given(parameters, in_path)
  local places = {}
  for name in pairs(parameters) do
    if not in_path[name] then
      places[#places + 1] = place_of(name, name)
    end
  end
  table.sort(places, function(left, right)
    return left.name < right.name
  end)
  return places
end

-- Adds the parameters to the body, or to the query of a request without one.
local function distribute(target, joint, places, parameters, body)
  for index = 1, #places do
    local place = places[index]
    local value = parameters[place.name]
    if value ~= nil then
      value = place.separator and table.concat(value, place.separator) or value
      local written = not body and percent_encode(value)
      if body then
        body[place.wire] = value
      elseif not written then
        return unsent("invalid_argument", place.wire .. " cannot be sent in a query", place.wire)
      else
        target = target .. joint .. place.key .. written
        joint = "&"
      end
    end
  end
  return target
end

local function fill_path(path, parameters)
  local missing
  local filled = path:gsub("{([%w_]+)}", function(name)
    local value = scalar_text(parameters[name])
    -- A dot segment would be resolved into another path.
    if not value or value == "" or value == "." or value == ".." then
      missing = missing or name
      return ""
    end
    return percent_encode(value)
  end)
  if missing then
    local message = ("%s must be given for the path %s (got %s)"):format(missing, path, text.show(parameters[missing]))
    return unsent("invalid_argument", message, missing)
  end
  return filled
end

-- The client's headers and the call's, which win in any letter case.
local function merge_headers(common, own)
  local headers, owned = { Accept = "application/json" }, {}
  for name, value in pairs(own) do
    headers[name] = value
    owned[text.lower(name)] = true
  end
  for name, value in pairs(common) do
    if not owned[text.lower(name)] then
      headers[name] = value
    end
  end
  return headers
end

local function headers_of(body, options, settings)
  if not (body or options.headers or options.traceparent or settings.headers) then
    return M.PLAIN_HEADERS
  end
  local headers = merge_headers(settings.headers or NO_FIELDS, options.headers or NO_FIELDS)
  headers["Content-Type"] = body and "application/json"
  headers.traceparent = options.traceparent
  return headers
end

local function encode_body(body)
  local encoded, message = json.encode(body)
  if not encoded then
    return unsent("invalid_argument", "the body cannot be sent as JSON: " .. message)
  end
  return encoded
end

-- A request with the limits and headers of the client and the call. `common` are the headers where it adds none.
local function finish(method, body, common, replay, options, settings)
  local encoded, err
  if body ~= nil then
    encoded, err = encode_body(body)
    if err then
      return nil, err
    end
  end
  local call_timeout, connect_timeout = options.timeout or settings.timeout, settings.connect_timeout
  local timeout = math.min(options.attempt_timeout or settings.attempt_timeout or call_timeout, call_timeout)
  return {
    method = method,
    headers = (encoded or not common or options.headers or options.traceparent)
        and headers_of(encoded, options, settings)
      or common,
    body = encoded,
    timeout = timeout,
    connect_timeout = math.min(connect_timeout, timeout),
    replay = replay,
    value_only = options.value_only,
    body_only = options.value_only and not (settings.on and settings.on.response),
    call_timeout = call_timeout,
    options = options,
  }
end

local function prefix_of(settings)
  return settings.base_url and settings.base_url.prefix or ""
end

-- Whether a request may be repeated. Of a path that the operator gave only a GET is known to change nothing.
local function is_idempotent(operation, given, method)
  if not given then
    return operation.idempotent
  elseif given.idempotent ~= nil then
    return given.idempotent
  end
  return operation.idempotent and (method == "GET" or method == operation.http)
end

---The endpoint of an operation: that of the client option `endpoints`, else the interface's; false where none is known.
---@param operation riskscreen.Operation
---@param settings table a client's checked options
---@return riskscreen.Endpoint|false
function M.endpoint(operation, settings)
  local given = settings.endpoints[operations.endpoint_key(operation)]
  local path, method = given and given.path or operation.path, given and given.method or operation.http
  if not path then
    return false
  end
  local in_path = {}
  for name in path:gmatch "{([%w_]+)}" do
    in_path[name] = true
  end
  local target = next(in_path) == nil and prefix_of(settings) .. path or nil
  local places = operation.parameters and places_of(operation, in_path, settings)
  local has_body, before, tails = not query_methods[method], nil, {}
  if operation.lookup and target and not has_body then
    before = target .. "?" .. places[1].key
    for _, network in ipairs(enums.values[operation.lookup]) do
      tails[network] = "&" .. places[2].key .. percent_encode(network)
    end
  end
  return {
    operation = operation,
    method = method,
    has_body = has_body,
    path = path,
    target = target,
    envelope = given and given.envelope or operation.envelope,
    idempotent = is_idempotent(operation, given, method),
    headers = headers_of(nil, NO_FIELDS, settings),
    settings = settings,
    in_path = in_path,
    places = places,
    before = before,
    tails = tails,
  }
end

-- Adds the parameters of the call option `extra`. They must not replace a parameter of the operation.
local function add_extra(target, extra, parameters, places, body)
  local sent = {}
  for _, place in ipairs(places) do
    sent[place.wire] = parameters[place.name] ~= nil or nil
  end
  for _, group in ipairs { extra.query or NO_FIELDS, extra.body or NO_FIELDS } do
    for name in pairs(group) do
      if sent[name] then
        return unsent("invalid_argument", ("extra must not replace the parameter %s"):format(name), "extra")
      end
    end
  end
  if extra.body and not body then
    return unsent("invalid_argument", "extra.body is given and the request has no body: use extra.query", "extra")
  end
  for name, value in pairs(extra.body or NO_FIELDS) do
    body[name] = value
  end
  local query = extra.query or NO_FIELDS
  local joint = target:find("?", 1, true) and "&" or "?"
  return distribute(target, joint, places_of_given(query, NO_FIELDS), query)
end

---The error of an operation whose endpoint is not known.
---@param operation riskscreen.Operation
---@return riskscreen.Error
function M.unpublished(operation)
  local message =
    "the interface does not publish this operation's path; set endpoints.%s = { method = …, path = … }"
  return errors.new("unsupported", message:format(operations.endpoint_key(operation)), { sent = false })
end

-- The target of a request, whose body is filled; or nil and an error.
local function target_of(endpoint, parameters, options, body)
  local target, err = endpoint.target
  if not target then
    target, err = fill_path(endpoint.path, parameters)
    if err then
      return nil, err
    end
    target = prefix_of(endpoint.settings) .. target
  end
  local places = endpoint.places or places_of_given(parameters, endpoint.in_path)
  target, err = distribute(target, "?", places, parameters, body)
  if target and options.extra then
    return add_extra(target, options.extra, parameters, places, body)
  end
  return target, err
end

---The request of an operation.
---@param endpoint riskscreen.Endpoint
---@param parameters table checked
---@param options table the call's checked options
---@return riskscreen.Request|nil request
---@return string|riskscreen.Error target path and query, as they go on the wire; or the error
function M.build(endpoint, parameters, options)
  local tail, address = endpoint.tails[parameters.network], parameters.address
  local body, target, err
  if tail and not options.extra and is_plain(address) then
    -- Nearly every lookup. The way below costs 6,000 instructions more, a twelfth of a call without I/O.
    target = endpoint.before .. address .. tail
  else
    body = endpoint.has_body and {} or nil
    target, err = target_of(endpoint, parameters, options, body)
    if not target then
      return nil, err
    end
  end
  local request = endpoint.request
  if body or not request or request.options ~= options then
    request, err = finish(endpoint.method, body, endpoint.headers, endpoint.idempotent, options, endpoint.settings)
    if not request then
      return nil, err
    end
    endpoint.request = not body and request or nil
  end
  return request, target
end

---A request that no operation describes.
---@param method string
---@param path string
---@param settings table a client's checked options
---@param options table checked: query, body and those of a call
---@return riskscreen.Request|nil request
---@return string|riskscreen.Error target or the error
function M.raw(method, path, settings, options)
  local query = options.query or NO_FIELDS
  local target, err = distribute(prefix_of(settings) .. path, "?", places_of_given(query, NO_FIELDS), query)
  if err then
    return nil, err
  end
  local request
  request, err = finish(method, options.body, nil, method == "GET", options, settings)
  return request, err or target
end

return M
