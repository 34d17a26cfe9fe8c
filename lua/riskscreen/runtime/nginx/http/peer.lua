-- Whom a client's connections lead to and how, from its options: pure. Here it is refused what cosockets cannot do.

local DEFAULT_PORTS = { http = 80, https = 443 }
local MOST_WAITING = 100000 -- requests that wait for a connection

-- Options that mean something only where the library opens the connections itself.
local impossible = {
  { name = "proxy", remedy = "nginx's cosockets know no proxy" },
  { name = "ca_file", remedy = "inside nginx the directive lua_ssl_trusted_certificate names the authorities" },
}

---@class riskscreen.cosocket.Peer
---@field host string what is connected to
---@field port? integer absent for a Unix-domain socket
---@field is_address boolean no name has to be looked up
---@field pool table options of `connect`
---@field authority string for the Host header
---@field title string for messages
---@field server_name? string whose certificate is expected; absent without TLS
---@field identity? riskscreen.cosocket.Identity what is shown to the server

local M = {}

-- One pool for all clients whose connections may stand in for each other.
local function pool_of(settings, scheme, title)
  local parts = { "riskscreen", scheme, title }
  for _, option in ipairs { "unix_socket", "client_cert", "client_key", "concurrency" } do
    parts[#parts + 1] = tostring(settings[option] or "-")
  end
  return { pool = table.concat(parts, " "), pool_size = settings.concurrency, backlog = MOST_WAITING }
end

local function problem_of(settings)
  for _, option in ipairs(impossible) do
    if settings[option.name] then
      return ("%s cannot be set here: %s"):format(option.name, option.remedy)
    end
  end
  if settings.http_version == "2" then
    return "http_version must be auto or 1.1 here: nginx's cosockets speak HTTP/1.1"
  end
end

local function is_address(host)
  return host:find "^%[" ~= nil or host:find "^%d+%.%d+%.%d+%.%d+$" ~= nil or host:find "^unix:" ~= nil
end

-- What is connected to: nginx resolves names by DNS alone, where this one has no business.
local function address_of(host)
  return host == "localhost" and "127.0.0.1" or host
end

---@param settings table a client's checked options
---@return riskscreen.cosocket.Peer|nil
---@return string|nil message why a client with these settings cannot be inside nginx
function M.of(settings)
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
    title = title,
    server_name = scheme == "https" and host or nil,
    pool = pool_of(settings, scheme, title),
  }
end

return M
