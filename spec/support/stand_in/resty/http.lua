-- The part of lua-resty-http that examples/nginx/resty_http.lua uses, for machines without it. It tests our side of the
-- transport only. Answers have a Content-Length.
local ngx = _G.ngx

local Connection = {}
Connection.__index = Connection

function Connection:set_timeout(milliseconds)
  self.socket:settimeout(milliseconds)
end

function Connection:connect(where)
  assert(where.scheme == "http", "the stand-in speaks no TLS")
  self.host = where.host .. ":" .. where.port
  return self.socket:connect(where.host, where.port, { pool_size = where.pool_size })
end

function Connection:close()
  return self.socket:close()
end

function Connection:set_keepalive(...)
  return self.socket:setkeepalive(...)
end

local function send(self, request)
  local lines = { ("%s %s HTTP/1.1\r\nHost: %s"):format(request.method, request.path, self.host) }
  for name, value in pairs(request.headers) do
    lines[#lines + 1] = name .. ": " .. value
  end
  if request.body then
    lines[#lines + 1] = "Content-Length: " .. #request.body
  end
  return self.socket:send(table.concat(lines, "\r\n") .. "\r\n\r\n" .. (request.body or ""))
end

local function receive_headers(socket)
  local headers = {}
  while true do
    local line, message = socket:receive "*l"
    if not line then
      return nil, message
    elseif line == "" then
      return headers
    end
    local name, value = line:match "^([^:]+):%s*(.*)$"
    headers[name] = value
  end
end

local function body_reader(socket, left)
  return function(most)
    local size = math.min(left, most)
    if size == 0 then
      return nil
    end
    left = left - size
    return socket:receive(size)
  end
end

function Connection:request(request)
  local ok, message = send(self, request)
  local line
  if ok then
    line, message = self.socket:receive "*l"
  end
  local headers
  if line then
    headers, message = receive_headers(self.socket)
  end
  if not headers then
    return nil, message
  end
  local length
  for name, value in pairs(headers) do
    length = name:lower() == "content-length" and tonumber(value) or length
  end
  local status = tonumber(line:match " (%d%d%d)")
  return { status = status, headers = headers, body_reader = body_reader(self.socket, length) }
end

return {
  new = function()
    return setmetatable({ socket = ngx.socket.tcp() }, Connection)
  end,
}
