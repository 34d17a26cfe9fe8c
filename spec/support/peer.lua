-- A TCP or Unix-domain peer that answers with raw bytes, for the answers no sound server would give. It is driven by
-- the same driver as the transfers it answers; see driver.lua. It knows requests only as text: a head, and the body
-- that Content-Length announces.

local socket = require("socket")

local Connection = {}
Connection.__index = Connection

local Peer = {}
Peer.__index = Peer

--- Queues bytes; they leave as fast as the other side reads.
function Connection:send(text)
  self.pending = self.pending .. text
  self:flush()
end

function Connection:flush()
  while self.pending ~= "" and not self.closed do
    local sent, reason, partial = self.socket:send(self.pending)
    self.pending = self.pending:sub((sent or partial) + 1)
    if reason == "timeout" then
      self.writing = self.writing
        or self.peer.driver:on_ready(self.socket:getfd(), "w", function()
          self:flush()
        end)
      return
    elseif reason then
      self.pending = ""
    end
  end
  if self.writing then
    self.peer.driver:forget(self.writing)
    self.writing = nil
  end
  if self.ending then
    self:close()
  end
end

--- Closes after what is queued has left: the other side reads an end of file.
function Connection:finish()
  self.ending = true
  self:flush()
end

function Connection:close()
  if self.closed then
    return
  end
  self.closed = true
  self.peer.driver:forget(self.reading)
  if self.writing then
    self.peer.driver:forget(self.writing)
  end
  self.peer.open[self] = nil
  self.socket:close()
end

--- Closes at once: the other side gets a reset.
function Connection:reset()
  self.socket:setoption("linger", { on = true, timeout = 0 })
  self:close()
end

local function split_request(text)
  local _, head_end = text:find("\r\n\r\n", 1, true)
  if not head_end then
    return nil
  end
  local length = tonumber(text:lower():match("\r\ncontent%-length: *(%d+)\r\n")) or 0
  if #text < head_end + length then
    return nil
  end
  return text:sub(1, head_end + length), text:sub(head_end + length + 1)
end

function Connection:read()
  local text, reason, partial = self.socket:receive(65536)
  self.received = self.received .. (text or partial or "")
  local request, rest = split_request(self.received)
  while request and not self.closed do
    self.received = rest
    self.count = self.count + 1
    self.peer.requests[#self.peer.requests + 1] = request
    self.peer.answer(self, request)
    request, rest = split_request(self.received)
  end
  if reason == "closed" and not self.closed then
    self:close()
  end
end

function Peer:accept()
  local accepted = self.listener:accept()
  while accepted do
    accepted:settimeout(0)
    local connection =
      setmetatable({ peer = self, socket = accepted, received = "", pending = "", count = 0 }, Connection)
    self.open[connection] = true
    self.connections = self.connections + 1
    connection.reading = self.driver:on_ready(accepted:getfd(), "r", function()
      connection:read()
    end)
    if self.greet then
      self.greet(connection)
    end
    accepted = self.listener:accept()
  end
end

--- Closes the listener and all connections.
function Peer:close()
  for connection in pairs(self.open) do
    connection:close()
  end
  if self.watch then
    self.driver:forget(self.watch)
  end
  self.listener:close()
end

local peer = {}

local function start(driver, listener, answer)
  listener:settimeout(0)
  local self = setmetatable({
    driver = driver,
    listener = listener,
    answer = answer, -- called with the connection and the text of each request
    open = {},
    requests = {},
    connections = 0,
  }, Peer)
  self.watch = driver:on_ready(listener:getfd(), "r", function()
    self:accept()
  end)
  return self
end

--- A peer on a free port of 127.0.0.1.
function peer.tcp(driver, answer)
  local listener = assert(socket.bind("127.0.0.1", 0))
  local self = start(driver, listener, answer)
  self.url = "http://127.0.0.1:" .. select(2, listener:getsockname())
  return self
end

--- A peer on a Unix-domain socket.
function peer.unix(driver, path, answer)
  local listener = require("socket.unix").stream()
  assert(listener:bind(path))
  assert(listener:listen())
  return start(driver, listener, answer)
end

--- The text of a whole answer.
function peer.response(body, headers, status)
  -- Lua 5.1 formats a text as far as its first NUL.
  return ("HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n"):format(status or "200 OK", #body, headers or "") .. body
end

return peer
