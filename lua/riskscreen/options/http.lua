-- Checks of the options that shape a request: URLs, paths, headers, names on the wire. Each returns the checked copy,
-- or nil and a message. A value that may hold a secret is not shown.
local build = require "riskscreen.options.build"
local operations = require "riskscreen.interface.operations"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local SHORTEST_KEY = 8 -- bytes

local IS_TRANSPORT = "it belongs to the transport"
local IS_JSON = "the service speaks JSON only"

-- Headers that another option or the transport sets, with the reason.
local reserved_headers = {
  ["x-access-key"] = "it is set by the option access_key",
  ["user-agent"] = "it is set by the option user_agent",
  ["accept-encoding"] = "it is set by the option compression",
  ["traceparent"] = "it is set by the call option traceparent",
  ["host"] = "it follows from base_url",
  ["accept"] = IS_JSON,
  ["content-type"] = IS_JSON,
  ["content-length"] = IS_TRANSPORT,
  ["transfer-encoding"] = IS_TRANSPORT,
  ["connection"] = IS_TRANSPORT,
  ["keep-alive"] = IS_TRANSPORT,
  ["upgrade"] = IS_TRANSPORT,
  ["te"] = IS_TRANSPORT,
  ["trailer"] = IS_TRANSPORT,
  ["expect"] = IS_TRANSPORT,
}

local METHODS = { "GET", "POST", "PUT", "PATCH", "DELETE" }

local M = { methods = tables.set(METHODS) }

-- Plain http to this machine does not cross a network.
local function is_loopback(host)
  return host == "localhost" or host == "[::1]" or host:find "^127%.%d+%.%d+%.%d+$" ~= nil
end

local function is_byte(digits)
  return digits ~= nil and tonumber(digits) < 256 and tostring(tonumber(digits)) == digits
end

-- Whether every program takes a host for the same one. Some read 127.1, 127.0.0.010 and 0x7f000001 as addresses.
local function is_plain_host(host)
  local last = host:match "([^.]*)%.?$"
  if not last:find "^%d+$" and not last:find "^0[Xx]" then
    return true
  end
  local a, b, c, d = host:match "^(%d+)%.(%d+)%.(%d+)%.(%d+)$"
  return is_byte(a) and is_byte(b) and is_byte(c) and is_byte(d)
end

-- A server or a proxy would resolve such a path to another one.
local function has_dot_segment(path)
  return (path:gsub("%%2[Ee]", ".") .. "/"):find "/%.%.?/" ~= nil
end

---Whether a text may be the path of a request: absolute, printable, without a query and without dot segments.
---@param path string
---@return boolean
function M.is_path(path)
  return path:find "^/" ~= nil
    and not path:find "^//"
    and not path:find "[^!-~]"
    and not path:find '[?#\\"<>]'
    and not has_dot_segment(path)
end

---A host, perhaps in brackets, and a port; nil where another program could read another host.
---@param authority string
---@return string|nil host in lower case
---@return integer|nil port where there is one
function M.authority(authority)
  local host, port = authority:match "^(%[[%x:.]+%]):?(%d*)$"
  if not host then
    host, port = authority:match "^([%w._-]+):?(%d*)$"
  end
  local number = tonumber(port)
  if not host or #host > 255 or authority:find ":$" or not is_plain_host(host) then
    return nil
  elseif number and (#port > 5 or number < 1 or number > 65535) then
    return nil
  end
  return text.lower(host), number
end

---The user's part of an authority, with the password, and its rest. Both are nil if another "@" or a backslash hides
---which host is meant.
---@param authority string
---@return string|nil user
---@return string|nil rest
function M.split_user(authority)
  return ("@" .. authority):match "^@?([^@\\%s%c]*)@([^@]*)$"
end

---@class riskscreen.BaseUrl
---@field origin string scheme, host and port
---@field prefix string the beginning of every path: "" or "/some/path"

---@param value string
---@return riskscreen.BaseUrl|nil checked
---@return string|nil message
function M.base_url(value)
  local scheme, authority, rest = value:match "^(%a[%w+.-]*)://([^/?#]*)(.*)$"
  scheme = scheme and text.lower(scheme)
  if scheme ~= "https" and scheme ~= "http" then
    return nil, "must be a URL such as https://host/path"
  elseif authority:find("@", 1, true) then
    return nil, "must not hold a user name or password"
  elseif rest:find "[?#]" then
    return nil, "must not have a query or a fragment"
  end
  local host, port = M.authority(authority)
  if not host then
    -- Another text may be a user and a password.
    local is_host = authority:find "^[%w._-]*:?%d*$" and not value:find("@", 1, true)
    return nil, "has no valid host and port" .. (is_host and (" (got %s)"):format(text.show(authority)) or "")
  end
  local prefix = rest:gsub("/+$", "")
  if prefix ~= "" and not M.is_path(prefix) then
    return nil, ("has no valid path (got %s)"):format(text.show(prefix))
  elseif scheme == "http" and not is_loopback(host) then
    return nil, ("must be https: plain http is for this machine only (got %s)"):format(text.show(host))
  end
  return { origin = scheme .. "://" .. host .. (port and (":" .. port) or ""), prefix = prefix }
end

local proxy_schemes = tables.set { "http", "https", "socks5", "socks5h" }

-- The host of a proxy's URL, or nil. libcurl takes the same one from every text that is accepted here.
local function proxy_host(value)
  local scheme, rest = value:match "^(%l[%l%d]*)://([^/?#]+)/?$"
  local _, authority = M.split_user(rest or "")
  return proxy_schemes[scheme] and M.authority(authority or "")
end

---@param value string
---@return string|nil checked
---@return string|nil message
function M.proxy(value)
  if not proxy_host(value) then
    return nil, "must be a URL such as http://host:port (http, https, socks5 or socks5h; '@' in a password is %40)"
  end
  return value
end

---Whether a checked proxy's URL names this machine.
---@param url string
---@return boolean
function M.is_local_proxy(url)
  return is_loopback(proxy_host(url))
end

---The message about a wrong key, or nil. Removing a shorter key from messages would damage their other words.
---@param key string
---@return string|nil
function M.key_message(key)
  if not text.is_header_value(key) then
    return "has control characters (a key read from a file may end in a line end)"
  elseif key:find "^[ \t]" or key:find "[ \t]$" then
    return "begins or ends with a space, which HTTP removes"
  elseif #key < SHORTEST_KEY then
    return ("is shorter than %d bytes"):format(SHORTEST_KEY)
  end
end

---@param value string|function
---@return string|function|nil checked
---@return string|nil message
function M.access_key(value)
  local message = type(value) == "string" and M.key_message(value)
  if message then
    return nil, "must be a key as the service gave it: the text " .. message
  end
  return value
end

---@param value string
---@return string|nil checked
---@return string|nil message
function M.user_agent(value)
  if value == "" or not text.is_header_value(value) then
    return nil, "must be a text of one line"
  end
  return value
end

---@param value table
---@return table|nil checked
---@return string|nil message
function M.headers(value)
  local seen = {}
  for name, content in pairs(value) do
    if type(name) ~= "string" or not name:find(text.HEADER_NAME) then
      return nil, ("has a name that is no header name (got %s)"):format(text.show(name))
    elseif reserved_headers[text.lower(name)] then
      return nil, ("must not set %s: %s"):format(name, reserved_headers[text.lower(name)])
    elseif seen[text.lower(name)] then
      return nil, ("sets %s twice"):format(name)
    elseif type(content) ~= "string" then
      return nil, ("must map names to strings (%s is %s)"):format(name, text.kind(content))
    elseif not text.is_header_value(content) then
      return nil, ("must not have control characters in a value (%s has)"):format(name)
    end
    seen[text.lower(name)] = true
  end
  return tables.copy(value)
end

---@param value table
---@return table|nil checked
---@return string|nil message
function M.query(value)
  for name in pairs(value) do
    if type(name) ~= "string" then
      return nil, ("must map names to values (got the name %s)"):format(text.show(name))
    end
  end
  return tables.deep_copy(value)
end

-- The check of a path whose names in braces are the operation's parameters, where these are published.
local function path_template(operation)
  local names = operation.parameters and tables.pluck(operation.parameters, "name")
  local is_name = tables.set(names)
  return function(value)
    if not M.is_path(value) or value:gsub("{[%w_]+}", ""):find "[{}]" then
      return nil, ("must be such as /api/v1/results/{requestId} (got %s)"):format(text.show(value))
    end
    for name in value:gmatch "{([%w_]+)}" do
      if names and not is_name[name] then
        return nil, ("has {%s}, which is no parameter of the operation%s"):format(name, text.did_you_mean(name, names))
      end
    end
    return value
  end
end

local function endpoint_of(operation)
  return {
    build.required(build.choice("method", METHODS, nil, "Its method.")),
    build.required(build.checked("path", "string", path_template(operation), "Its path; parameters stand in braces.")),
    build.choice("envelope", { "standard", "usage" }, nil, "The envelope of its answers."),
    build.flag("idempotent", nil, "Whether it may be repeated after a failure; by default only a GET may."),
  }
end

---One entry for each operation.
---@type riskscreen.Option[]
M.endpoints = {}
for index, operation in ipairs(operations.list) do
  M.endpoints[index] = build.group(operations.endpoint_key(operation), endpoint_of(operation), operation.doc)
end

return M
