-- A client that reads and writes raw bytes and steps the server between, so that one process is both ends.
-- Nothing sleeps: everything steps the server until a condition holds, and fails at a deadline.

local socket = require("socket")

local DEADLINE = 20 -- seconds until a condition that never comes fails the test
local STEP = 0.01 -- seconds a step may wait for the other end

local raw_http = {}

raw_http.DEADLINE = DEADLINE

--- Steps the server until `condition` returns something true, and returns that.
function raw_http.step_until(server, what, condition)
  local deadline = socket.gettime() + DEADLINE
  repeat
    local result = condition()
    if result then
      return result
    end
    server:step(STEP)
  until socket.gettime() > deadline
  error("waited in vain for " .. what, 2)
end

--- The next request, waited for.
function raw_http.next_request(server)
  return raw_http.step_until(server, "a request", function()
    return server:next()
  end)
end

--- The open descriptors of this process.
function raw_http.count_descriptors()
  local count = 0
  for fd = 0, 1023 do
    local file, _, code = io.open("/proc/self/fd/" .. fd)
    if file then
      file:close()
    end
    -- A socket cannot be opened, but it is there; 2 is ENOENT.
    if file or code ~= 2 then
      count = count + 1
    end
  end
  return count
end

--- Whether a descriptor becomes readable within `seconds`, by default at once. Steps nothing.
function raw_http.is_readable(fd, seconds)
  local object = {}
  function object.getfd()
    return fd
  end
  function object.dirty()
    return false
  end
  local readable = socket.select({ object }, nil, seconds or 0)
  return #readable == 1
end

local Client = {}
Client.__index = Client

function raw_http.connect(server, host)
  local connection = assert(socket.connect(host or "127.0.0.1", server:port()))
  connection:settimeout(0)
  connection:setoption("tcp-nodelay", true)
  return setmetatable({ server = server, socket = connection, received = "", ended = false }, Client)
end

--- Writes everything, stepping the server when the socket is full.
function Client:send(text)
  local from = 1
  return raw_http.step_until(self.server, "the server to read", function()
    local sent, reason, partial = self.socket:send(text, from)
    if not sent and reason ~= "timeout" then
      error("could not send: " .. reason)
    end
    from = (sent or partial) + 1
    return from > #text
  end)
end

--- From now on waits for bytes without stepping the server.
function Client:leave_server_alone()
  self.server = {
    step = function()
      socket.select({ self.socket }, nil, STEP)
    end,
  }
end

--- Takes in what has arrived, without waiting; the bytes not yet consumed.
function Client:peek()
  while not self.ended do
    local data, reason, partial = self.socket:receive(65536)
    self.received = self.received .. (data or partial)
    self.ended = reason == "closed"
    if not data then
      break
    end
  end
  return self.received
end

local function take(self, count)
  local data = self.received:sub(1, count)
  self.received = self.received:sub(count + 1)
  return data
end

--- Exactly `count` bytes, waited for.
function Client:receive(count)
  raw_http.step_until(self.server, count .. " bytes", function()
    return #self:peek() >= count
  end)
  return take(self, count)
end

--- Everything up to and including the first occurrence of `mark`.
function Client:receive_through(mark)
  local last
  raw_http.step_until(self.server, "the bytes " .. mark, function()
    last = select(2, self:peek():find(mark, 1, true))
    return last
  end)
  return take(self, last)
end

--- Everything until the server closes the connection.
function Client:receive_all()
  raw_http.step_until(self.server, "the connection to be closed", function()
    self:peek()
    return self.ended
  end)
  return take(self, #self.received)
end

--- The head of a response: status, headers by lower-case name, and its bytes.
function Client:receive_head()
  local head = self:receive_through("\r\n\r\n")
  local headers = {}
  for written, value in head:gmatch("\r\n([^:\r\n]+):[ \t]*([^\r\n]-)[ \t]*%f[\r]") do
    local name = written:lower()
    headers[name] = headers[name] and headers[name] .. "|" .. value or value
  end
  return tonumber(head:match("^HTTP/1%.1 (%d+) ")), headers, head
end

--- A response whose body has a length: status, headers, body.
function Client:receive_response()
  local status, headers = self:receive_head()
  return status, headers, self:receive(tonumber(headers["content-length"] or 0))
end

--- Whether the connection was reset rather than closed in order. Reads nothing.
function Client:was_reset()
  return self.socket:getoption("error") ~= nil
end

function Client:shutdown_send()
  self.socket:shutdown("send")
end

function Client:close()
  self.socket:close()
end

return raw_http
