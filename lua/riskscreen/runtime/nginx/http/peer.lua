-- The peer of a client's connections, from the client's options. Options that cosockets cannot follow are refused.
local files = require "riskscreen.util.files"

local DEFAULT_PORTS = { http = 80, https = 443 }
local MAX_WAITING = 100000 -- requests that wait for a connection

---@class riskscreen.cosocket.Identity
---@field certificates userdata
---@field key userdata

---@class riskscreen.cosocket.Peer
---@field host string to connect to
---@field port? integer absent for a Unix-domain socket
---@field is_address boolean no name has to be looked up
---@field pool table options of `connect`
---@field is_fresh? boolean each connection is a new one: nothing is put back into the pool
---@field authority string for the Host header
---@field title string for messages
---@field server_name? string of the expected certificate; absent without TLS
---@field identity? riskscreen.cosocket.Identity the client's certificate

local M = {}

-- Clients with the same pool share connections.
local function pool_of(settings, scheme, title, state)
  local parts = { "riskscreen", scheme, title, state }
  for _, option in ipairs { "unix_socket", "client_cert", "client_key", "concurrency" } do
    parts[#parts + 1] = tostring(settings[option] or "-")
  end
  return { pool = table.concat(parts, " "), pool_size = settings.concurrency, backlog = MAX_WAITING }
end

-- The reason why cosockets cannot follow the options.
local function problem_of(settings)
  if settings.proxy then
    return "proxy cannot be set here: nginx's cosockets know no proxy"
  elseif settings.ca_file then
    return "ca_file cannot be set here: inside nginx the directive lua_ssl_trusted_certificate names the authorities"
  elseif settings.http_version == "2" then
    return "http_version must be auto or 1.1 here: nginx's cosockets speak HTTP/1.1"
  end
end

local function read(option, path)
  local content, message = files.read(path)
  return content, message and ("%s cannot be read: %s"):format(option, message)
end

local function is_address(host)
  return host:find "^%[" ~= nil or host:find "^%d+%.%d+%.%d+%.%d+$" ~= nil or host:find "^unix:" ~= nil
end

-- The address to connect to. nginx would ask a DNS server for localhost.
local function address_of(host)
  return host == "localhost" and "127.0.0.1" or host
end

---The client's certificate. It is read when the client is made, because requests must not wait for files.
---@param settings table a client's checked options
---@return riskscreen.cosocket.Identity|nil identity nil without a problem where there is no certificate
---@return string|nil problem
function M.identity(settings)
  if not settings.client_cert then
    return nil
  end
  local ssl = require "ngx.ssl"
  local certificate, message = read("client_cert", settings.client_cert)
  local key = certificate
  if certificate and settings.client_key then
    key, message = read("client_key", settings.client_key)
  end
  local option = settings.client_key and "client_key" or "client_cert"
  if not key then
    return nil, message
  elseif key:find("ENCRYPTED", 1, true) then
    return nil, option .. " needs a pass phrase, for which OpenSSL would ask at the terminal: decrypt the key"
  end
  local identity = {}
  identity.certificates, message = ssl.parse_pem_cert(certificate)
  if not identity.certificates then
    return nil, "client_cert holds no certificate: " .. message
  end
  -- OpenSSL's message may show the content of the file, so it is left out.
  identity.key = ssl.parse_pem_priv_key(key)
  if not identity.key then
    return nil, option .. " holds no key that can be used"
  end
  return identity
end

---The peer of a client.
---@param settings table a client's checked options
---@param is_fresh? boolean for requests that need a new connection
---@return riskscreen.cosocket.Peer|nil
---@return string|nil problem why a client with these settings cannot be inside nginx
function M.of(settings, is_fresh)
  local problem = problem_of(settings)
  if problem then
    return nil, problem
  end
  local scheme, host = settings.base_url.origin:match "^(https?)://(.*)$"
  local name, digits = host:match "^(.*):(%d+)$"
  local port = tonumber(digits) or DEFAULT_PORTS[scheme]
  host = name or host
  local title = host .. ":" .. port
  local path = settings.unix_socket
  local place = path and ("unix:" .. path) or address_of(host)
  return {
    host = place,
    is_address = is_address(place),
    port = not path and port or nil,
    authority = port == DEFAULT_PORTS[scheme] and host or title,
    title = path and title .. " at " .. path or title, -- for messages
    server_name = scheme == "https" and host or nil,
    pool = pool_of(settings, scheme, title, is_fresh and "fresh" or "kept"),
    is_fresh = is_fresh,
  }
end

return M
