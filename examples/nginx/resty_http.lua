-- A transport that sends a client's requests with lua-resty-http, for example through a proxy.
-- Debian has no package of it: `opm get ledgetech/lua-resty-http`, or luarocks.
--
--   local resty_http = require "resty_http"
--   riskscreen.new { access_key = key, transport = resty_http { host = "risk.example.com" } }

local http = require "resty.http"
local ngx = _G.ngx

local MAX_BODY = 16 * 1024 * 1024 -- bytes
local CHUNK = 65536 -- bytes that are read at once
local KEPT_FOR = 60000 -- milliseconds
local KEPT = 32 -- connections of a worker

local function milliseconds(deadline)
  return math.max(math.ceil((deadline - ngx.now()) * 1000), 1)
end

-- The failure of a request, as the client expects it. `sent` is true if a part of it may have been sent.
local function failure(message, sent)
  local kind = "network"
  if message == "timeout" then
    kind = "timeout"
  elseif message:find "certificate" or message:find "handshake" then
    kind = "tls"
  end
  return { kind = kind, message = message, sent = sent }
end

-- Reads the body. The deadline is that of the whole body, not of each chunk.
local function read_body(connection, response, deadline)
  local chunks, size = {}, 0
  repeat
    connection:set_timeout(milliseconds(deadline))
    local chunk, message = response.body_reader(CHUNK)
    if message then
      return nil, message
    end
    chunks[#chunks + 1] = chunk
    size = size + #(chunk or "")
    if size > MAX_BODY then
      return nil, "the answer is too long"
    elseif ngx.now() >= deadline then
      return nil, "timeout"
    end
  until not chunk
  return table.concat(chunks)
end

local function lower_names(headers)
  local lower = {}
  for name, value in pairs(headers) do
    lower[name:lower()] = type(value) == "table" and table.concat(value, ", ") or value
  end
  return lower
end

local function exchange(connection, request, deadline)
  connection:set_timeout(milliseconds(deadline))
  local response, message = connection:request {
    method = request.method,
    path = request.target,
    headers = request.headers,
    body = request.body,
  }
  if not response then
    return nil, message
  end
  local body
  body, message = read_body(connection, response, deadline)
  return body and { status = response.status, headers = lower_names(response.headers), body = body }, message
end

---A transport for `riskscreen.new`.
---@param service { host: string, port?: integer, scheme?: "https"|"http" }
---@return fun(request: table): table|nil, table|nil
return function(service)
  return function(request)
    local deadline = ngx.now() + request.timeout
    local connection = http.new()
    connection:set_timeout(math.min(request.connect_timeout, request.timeout) * 1000)
    local connected, message = connection:connect {
      scheme = service.scheme or "https",
      host = service.host,
      port = service.port,
      ssl_verify = true,
      ssl_server_name = service.host,
      pool_size = KEPT,
    }
    if not connected then
      return nil, failure(tostring(message), false)
    end
    local reply
    reply, message = exchange(connection, request, deadline)
    if not reply then
      connection:close()
      return nil, failure(tostring(message), true)
    end
    connection:set_keepalive(KEPT_FOR, KEPT)
    return reply
  end
end
