-- Every option of a client and of a call, once: name, type, range, default, meaning. Checks, the reference and the
-- annotations come from here. What a bad option raises is decided here; who raises it, in client.lua.
local check = require "riskscreen.options.check"
local kyt = require "riskscreen.options.kyt"
local operations = require "riskscreen.interface.operations"
local policy = require "riskscreen.policy"
local polling = require "riskscreen.options.polling"
local reliability = require "riskscreen.options.reliability"
local text = require "riskscreen.util.text"

---@class riskscreen.Option
---@field name string
---@field type string a Lua type, "integer" or "any"; several are joined by "|"
---@field default? any
---@field required? boolean
---@field minimum? number
---@field maximum? number
---@field unit? string of the number
---@field values? any[] the only values it may have
---@field fields? riskscreen.Option[] what a table may hold
---@field check? fun(value: any): any, string? the checked copy, or nil and what is wrong
---@field doc string

local LONGEST_WAIT = 86400 -- seconds
local MIB = 1024 * 1024
local MOST_AT_ONCE = 1024
local MOST_ITEMS = 2 ^ 53

-- Headers that another option or the transport sets, with the reason.
local reserved_headers = {
  ["x-access-key"] = "it is set by the option access_key",
  ["user-agent"] = "it is set by the option user_agent",
  ["accept-encoding"] = "it is set by the option compression",
  ["accept"] = "the service speaks JSON only",
  ["content-type"] = "the service speaks JSON only",
  ["host"] = "it follows from base_url",
  ["content-length"] = "it belongs to the transport",
  ["transfer-encoding"] = "it belongs to the transport",
  ["connection"] = "it belongs to the transport",
  ["keep-alive"] = "it belongs to the transport",
  ["upgrade"] = "it belongs to the transport",
  ["te"] = "it belongs to the transport",
  ["trailer"] = "it belongs to the transport",
  ["expect"] = "it belongs to the transport",
  ["traceparent"] = "it is set by the call option traceparent",
}

local M = {
  methods = { GET = true, POST = true, PUT = true, PATCH = true, DELETE = true },
}

-- A host to which plain http goes without leaving the machine.
local function is_loopback(host)
  if host == "localhost" or host == "[::1]" then
    return true
  end
  local a, b, c, d = host:match "^(%d%d?%d?)%.(%d%d?%d?)%.(%d%d?%d?)%.(%d%d?%d?)$"
  return a == "127" and tonumber(b) < 256 and tonumber(c) < 256 and tonumber(d) < 256
end

local function has_dot_segment(path)
  return (path:gsub("%%2[Ee]", ".") .. "/"):find "/%.%.?/" ~= nil
end

---Whether a text may stand as the path of a request: printable, absolute, no query, nothing that a server or a proxy
---would resolve to another place.
---@param path string
---@return boolean
function M.is_path(path)
  return path:find "^/" ~= nil
    and not path:find "^//"
    and not path:find "[^!-~]"
    and not path:find '[?#\\"<>]'
    and not has_dot_segment(path)
end

---@class riskscreen.BaseUrl
---@field origin string scheme, host and port
---@field prefix string what every path is appended to: "" or "/some/path"

-- The text itself is not shown where it may hold a password.
local function base_url(value)
  local scheme, authority, rest = value:match "^(%a[%w+.-]*)://([^/?#]*)(.*)$"
  scheme = scheme and scheme:lower()
  if scheme ~= "https" and scheme ~= "http" then
    return nil, "must be a URL such as https://host/path"
  elseif authority:find("@", 1, true) then
    return nil, "must not hold a user name or password"
  elseif rest:find "[?#]" then
    return nil, "must not have a query or a fragment"
  end
  local host, port = authority:match "^(%[[%x:.]+%]):?(%d*)$"
  if not host then
    host, port = authority:match "^([%w._-]+):?(%d*)$"
  end
  if not host or authority:find ":$" or (port ~= "" and not (#port <= 5 and tonumber(port) <= 65535)) then
    return nil, ("has no valid host and port (got %s)"):format(text.show(authority))
  elseif port ~= "" and tonumber(port) == 0 then
    return nil, "must not name port 0"
  end
  host = host:lower()
  local prefix = rest:gsub("/+$", "")
  if prefix ~= "" and not M.is_path(prefix) then
    return nil, ("has no valid path (got %s)"):format(text.show(prefix))
  elseif scheme == "http" and not is_loopback(host) then
    return nil, ("must be https: plain http is for this machine only (got %s)"):format(text.show(host))
  end
  return { origin = scheme .. "://" .. host .. (port ~= "" and (":" .. port) or ""), prefix = prefix }
end

local function access_key(value)
  if type(value) == "string" and (value == "" or not text.is_header_value(value)) then
    return nil, "must be a text of one line (a key read from a file may end in a line end)"
  end
  return value
end

local function headers(value)
  local copy, seen = {}, {}
  for name, content in pairs(value) do
    if type(name) ~= "string" or not name:find "^[%w!#$%%&'*+.^_`|~-]+$" then
      return nil, ("has a name that is no header name (got %s)"):format(text.show(name))
    elseif reserved_headers[name:lower()] then
      return nil, ("must not set %s: %s"):format(name, reserved_headers[name:lower()])
    elseif seen[name:lower()] then
      return nil, ("sets %s twice"):format(name)
    elseif type(content) ~= "string" then
      return nil, ("must map names to strings (%s is %s)"):format(name, text.kind(content))
    elseif not text.is_header_value(content) then
      return nil, ("must not have control characters in a value (%s has)"):format(name)
    end
    seen[name:lower()] = true
    copy[name] = content
  end
  return copy
end

local function endpoint_names()
  local names = {}
  for _, operation in ipairs(operations.list) do
    names[#names + 1] = operations.endpoint_key(operation)
  end
  return names
end

local function check_endpoint(name, endpoint)
  if type(endpoint) ~= "table" then
    return nil, ("must map names to tables (%s is %s)"):format(name, text.kind(endpoint))
  end
  for field in pairs(endpoint) do
    if field ~= "method" and field ~= "path" and field ~= "envelope" then
      return nil, ("has an unknown field %s in %s; known: method, path, envelope"):format(text.show(field), name)
    end
  end
  local method, path, envelope = endpoint.method, endpoint.path, endpoint.envelope
  if not M.methods[method] then
    return nil, ("needs %s.method to be GET, POST, PUT, PATCH or DELETE (got %s)"):format(name, text.show(method))
  elseif type(path) ~= "string" or not M.is_path(path) or path:gsub("{[%w_]+}", ""):find "[{}]" then
    return nil, ("needs %s.path to be such as /api/v1/results/{requestId} (got %s)"):format(name, text.show(path))
  elseif envelope ~= nil and envelope ~= "standard" and envelope ~= "usage" then
    return nil, ("needs %s.envelope to be standard or usage (got %s)"):format(name, text.show(envelope))
  end
  return { method = method, path = path, envelope = envelope }
end

local function endpoints(value)
  local names = endpoint_names()
  local known = {}
  for _, name in ipairs(names) do
    known[name] = true
  end
  local copy = {}
  for name, endpoint in pairs(value) do
    if not known[name] then
      local hint = text.did_you_mean(name, names)
      return nil, ("has an unknown name %s%s"):format(text.show(name), hint)
    end
    local checked, message = check_endpoint(name, endpoint)
    if not checked then
      return nil, message
    end
    copy[name] = checked
  end
  return copy
end

-- A proxy's URL may hold a password: it is not shown.
local function proxy(value)
  local scheme, rest = value:match "^(%a[%w]*)://([^%s%c]+)$"
  if not rest or not (scheme == "http" or scheme == "https" or scheme == "socks5" or scheme == "socks5h") then
    return nil, "must be a URL such as http://host:port (http, https, socks5 or socks5h)"
  end
  return value
end

local function file_name(value)
  if value == "" or value:find "[%z\1-\31\127]" then
    return nil, "must be the name of a file"
  end
  return value
end

local function wire_name(name, default, meaning)
  return {
    name = name,
    type = "string",
    default = default,
    check = function(value)
      if not value:find "^[%w_.-]+$" then
        return nil, ("must be a parameter's name (got %s)"):format(text.show(value))
      end
      return value
    end,
    doc = "Name on the wire of " .. meaning .. ".",
  }
end

local usage_parameters = {
  wire_name("granularity", "granularity", "the period of a record"),
  wire_name("start_date", "startDate", "the first day"),
  wire_name("end_date", "endDate", "the last day"),
  wire_name("group_by", "groupBy", "the grouping list"),
}

local transaction_parameters = {
  wire_name("custom_id", "customId", "the caller's own identifier of a transaction"),
}

local function seconds(name, default, doc)
  return {
    name = name,
    type = "number",
    default = default,
    minimum = 0.001,
    maximum = LONGEST_WAIT,
    unit = "seconds",
    doc = doc,
  }
end

local function concurrency(default, doc)
  return {
    name = "concurrency",
    type = "integer",
    default = default,
    minimum = 1,
    maximum = MOST_AT_ONCE,
    unit = "",
    doc = doc,
  }
end

-- What stands in for the runtime.
local function runtime(value)
  if type(value.now) ~= "function" or type(value.sleep) ~= "function" or type(value.tasks) ~= "table" then
    return nil, "must have the functions now and sleep, and the table tasks"
  end
  return value
end

---@type riskscreen.Option[]
M.client = {
  {
    name = "base_url",
    type = "string",
    check = base_url,
    doc = "Where the service is: https, or http to this machine. Required unless `transport` is given.",
  },
  {
    name = "access_key",
    type = "string|function",
    required = true,
    check = access_key,
    doc = "The access key, or a function that returns it and is asked before every request.",
  },
  seconds("timeout", 10, "How long a whole call may take."),
  seconds("attempt_timeout", nil, "How long one request of a call may take; by default as long as the call."),
  seconds("connect_timeout", 3, "How long connecting may take, name lookup and TLS included."),
  concurrency(32, "How many requests may be under way; more wait for their turn, which counts as their time."),
  {
    name = "max_response_size",
    type = "integer",
    default = 16 * MIB,
    minimum = 1024,
    maximum = 1024 * MIB,
    unit = "bytes",
    doc = "The longest answer that is read, after decompression.",
  },
  { name = "headers", type = "table", check = headers, doc = "More headers for every request." },
  {
    name = "user_agent",
    type = "string",
    check = function(value)
      if value == "" or not text.is_header_value(value) then
        return nil, "must be a text of one line"
      end
      return value
    end,
    doc = "How the client names itself to the service; by default riskscreen and its version.",
  },
  {
    name = "http_version",
    type = "string",
    default = "auto",
    values = { "auto", "1.1", "2" },
    doc = "The HTTP version; auto takes 2 where TLS offers it.",
  },
  { name = "compression", type = "boolean", default = true, doc = "Whether compressed answers are asked for." },
  {
    name = "proxy",
    type = "string",
    check = proxy,
    doc = "URL of a proxy; the environment's proxy variables are not read.",
  },
  { name = "ca_file", type = "string", check = file_name, doc = "PEM file of the authorities to trust." },
  { name = "client_cert", type = "string", check = file_name, doc = "PEM file of the client's certificate." },
  { name = "client_key", type = "string", check = file_name, doc = "PEM file of that certificate's key." },
  { name = "unix_socket", type = "string", check = file_name, doc = "Unix-domain socket to connect to." },
  {
    name = "endpoints",
    type = "table",
    default = {},
    check = endpoints,
    doc = "Method and path (and envelope) of operations by name, such as "
      .. "kyt_result = { method = 'GET', path = '/…/{requestId}' }: for what the interface does not publish.",
  },
  {
    name = "usage_parameters",
    type = "table",
    fields = usage_parameters,
    doc = "Names on the wire of the usage query's parameters, which the interface does not publish.",
  },
  {
    name = "transaction_parameters",
    type = "table",
    fields = transaction_parameters,
    doc = "Name on the wire of a transaction's `custom_id`, which the interface shows in results alone.",
  },
  kyt.polling,
  kyt.final_statuses,
  kyt.inbox,
  kyt.random,
  {
    name = "transport",
    type = "function",
    doc = "Sends the requests in place of the library's own HTTP: transport(request) --> reply | nil, failure.",
  },
  policy.option,
  { name = "clock", type = "function", doc = "Returns Unix seconds, for dates the service sends; by default os.time." },
  {
    name = "runtime",
    type = "table",
    check = runtime,
    doc = "How time passes, in place of this program's own: now(), sleep(seconds) and tasks; with "
      .. "transport(settings) also how requests travel.",
  },
}

---@type riskscreen.Option[]
M.call = {
  seconds("timeout", nil, "How long this call may take."),
  seconds("attempt_timeout", nil, "How long one request of this call may take."),
  { name = "headers", type = "table", check = headers, doc = "More headers for this request." },
}

for _, option in ipairs(reliability.client) do
  table.insert(M.client, option)
end
for _, option in ipairs(reliability.call) do
  table.insert(M.call, option)
end

---Of a call that is split into several requests.
---@type riskscreen.Option[]
M.split_call = { concurrency(nil, "How many of its requests may be under way.") }
for _, option in ipairs(M.call) do
  table.insert(M.split_call, option)
end

---Of a run over many items.
---@type riskscreen.Option[]
M.map = {
  concurrency(32, "How many items may be under way."),
  { name = "ordered", type = "boolean", default = true, doc = "In the source's order, or as they finish." },
  { name = "on_progress", type = "function", doc = "Called for each result: on_progress(done, failed, rate, eta)." },
  {
    name = "total",
    type = "integer",
    minimum = 0,
    maximum = MOST_ITEMS,
    unit = "items",
    doc = "How many there are, for the eta; of a list it is known.",
  },
}

---@type riskscreen.Option[]
M.request = {
  {
    name = "query",
    type = "table",
    check = function(value)
      for name in pairs(value) do
        if type(name) ~= "string" then
          return nil, ("must map names to values (got the name %s)"):format(text.show(name))
        end
      end
      return value
    end,
    doc = "Query parameters: names to strings, numbers or booleans.",
  },
  { name = "body", type = "table|string|number|boolean", doc = "What is sent as JSON." },
}
for _, option in ipairs(M.call) do
  M.request[#M.request + 1] = option
end

---The checked options of a client.
---@param options table
---@param runtime_name? string the name of the program's runtime, for defaults
---@return table|nil settings `base_url` is a riskscreen.BaseUrl, `shared_dict` the dict
---@return string|nil message what is wrong, for `error`
function M.check_client(options, runtime_name)
  local settings, wrong = check.options(M.client, options)
  if not settings then
    return nil, wrong.message
  elseif not settings.base_url and not settings.transport then
    return nil, "base_url is required"
  elseif settings.client_key and not settings.client_cert then
    return nil, "client_key needs client_cert"
  elseif settings.shared_as and not settings.shared_dict then
    return nil, "shared_as needs shared_dict"
  end
  settings.usage_parameters = settings.usage_parameters or check.options(usage_parameters, {})
  settings.transaction_parameters = settings.transaction_parameters or check.options(transaction_parameters, {})
  settings.polling = settings.polling or check.options(polling.options, {})
  reliability.complete(settings, runtime_name == "nginx")
  return settings
end

return M
