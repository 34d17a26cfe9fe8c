-- Connections to Redis over cosockets, for riskscreen.redis. It speaks RESP2 itself: lua-resty-redis does not limit the
-- size of a reply.
local redis_commands = require "riskscreen.runtime.redis_commands"
local tls = require "riskscreen.runtime.nginx.tls"

local ngx = _G.ngx
local byte, find, sub = string.byte, string.find, string.sub
local ceil, min = math.ceil, math.min

local MAX_DEPTH = 16 -- of arrays in arrays
local SMALLEST = 4 -- bytes of an array's element, such as "$-1"
local PIECE = 65536 -- bytes that are received at once
local LONGEST_LINE = 65536 -- bytes

local ERROR, STATUS, INTEGER, BULK, ARRAY = byte "-", byte "+", byte ":", byte "$", byte "*"
local CR, LF = byte "\r", byte "\n"
local MOST_DIGITS = 20 -- of an integer of 64 bits, with its sign

---@class riskscreen.runtime.nginx.RedisConnection
---@field private socket table|nil a cosocket of the request or timer that took it; nil once closed
---@field private settings table
---@field private room number bytes that the reply under way may still have
---@field private buffer string bytes that were received
---@field private at integer where the next reply begins in the buffer
local Connection = {}
Connection.__index = Connection

local function failure_of(message, sent, kind)
  kind = kind or (message == "timeout" and "timeout" or "network")
  return { kind = kind, message = message, sent = sent }
end

local function milliseconds(seconds)
  return ceil(min(seconds, 86400) * 1000)
end

-- The readers of a reply raise the failure.
local function protocol(message)
  error(failure_of(message, true, "protocol"), 0)
end

-- Receives `count` bytes, or as many as there are, behind those that nobody has read yet.
local function receive(self, count)
  local socket = self.socket
  local piece, message = socket[count and "receive" or "receiveany"](socket, count or PIECE)
  if not piece then
    error(failure_of(message, true), 0)
  end
  self.buffer, self.at = sub(self.buffer, self.at) .. piece, 1
end

-- Receives until there is a whole line. Returns where it ends.
local function receive_line(self)
  while #self.buffer - self.at < LONGEST_LINE do
    receive(self)
    local behind = find(self.buffer, "\r\n", 1, true)
    if behind then
      return behind
    end
  end
  return protocol "a reply begins with a line that is too long"
end

-- A length or number within limits, or nil. `tonumber` also takes "0x10" and "1e3", which Redis never sends.
local function integer_in(text, least, most)
  local number = #text <= MOST_DIGITS and find(text, "^-?%d+$") and tonumber(text)
  return number and number >= least and number <= most and number or nil
end

local function read_bulk(self, line)
  local size = integer_in(line, -1, self.room)
  if not size then
    return protocol(("a text of a reply has no length up to %d bytes"):format(self.settings.max_reply))
  elseif size == -1 then
    return false
  end
  self.room = self.room - size
  local missing = self.at + size + 1 - #self.buffer
  if missing > 0 then
    receive(self, missing)
  end
  local buffer, first = self.buffer, self.at
  local behind = first + size
  if byte(buffer, behind) ~= CR or byte(buffer, behind + 1) ~= LF then
    return protocol "a text of a reply is longer than its length"
  end
  self.at = behind + 2
  return sub(buffer, first, behind - 1)
end

local read

local function read_array(self, line, depth)
  local size = integer_in(line, -1, self.room / SMALLEST)
  if not size or depth == MAX_DEPTH then
    return protocol "an array of a reply is too large"
  elseif size == -1 then
    return false
  end
  self.room = self.room - size * SMALLEST
  local array = {}
  for index = 1, size do
    array[index] = read(self, depth + 1)
  end
  return array
end

-- One reply. Redis' nil is false, and its error is { err = … }.
function read(self, depth)
  local behind = find(self.buffer, "\r\n", self.at, true) or receive_line(self)
  local kind, line = byte(self.buffer, self.at), sub(self.buffer, self.at + 1, behind - 1)
  self.at = behind + 2
  if kind == BULK then
    return read_bulk(self, line)
  elseif kind == STATUS then
    return line
  elseif kind == INTEGER then
    return integer_in(line, -math.huge, math.huge) or protocol "an integer of a reply is none"
  elseif kind == ERROR then
    return { err = line }
  elseif kind == ARRAY then
    return read_array(self, line, depth)
  end
  return protocol "a reply begins with no type of RESP2"
end

local function read_replies(self, count)
  local replies = {}
  for index = 1, count do
    self.room = self.settings.max_reply
    replies[index] = read(self, 0)
  end
  return replies
end

---Sends several commands at once and reads their replies.
---@param commands (string|integer)[][]
---@param timeout number seconds for each reply
---@return any[]|nil replies
---@return table|nil failure
function Connection:pipeline(commands, timeout)
  local socket, settings = self.socket, self.settings
  if not socket then
    return nil, failure_of("the connection is closed", false)
  end
  local wait = milliseconds(timeout)
  socket:settimeouts(milliseconds(settings.connect_timeout), wait, wait)
  local sent, message = socket:send(redis_commands.pieces(commands))
  if not sent then
    self:close()
    return nil, failure_of(message, true)
  end
  local ran, replies = pcall(read_replies, self, #commands)
  if not ran then
    self:close()
    return nil, type(replies) == "table" and replies or error(replies, 0)
  end
  return replies
end

---Whether it came from the pool, with its user and its database.
---@return boolean
function Connection:reused()
  return self.socket ~= nil and (self.socket:getreusedtimes() or 0) > 0
end

---@return boolean
function Connection:is_open()
  return self.socket ~= nil
end

---Gives the connection back to nginx's pool.
function Connection:release()
  local socket, settings = self.socket, self.settings
  if not socket then
    return
  elseif self.at <= #self.buffer then
    self:close() -- nobody asked for these bytes
  else
    self.socket = nil
    socket:setkeepalive(milliseconds(settings.keepalive), settings.pool_size)
  end
end

function Connection:close()
  local socket = self.socket
  if socket then
    self.socket = nil
    socket:close()
  end
end

---For `tasks.hold`. The request of the socket may be gone, and then the socket with it.
function Connection:abandon()
  pcall(self.close, self)
end

-- Connects, or takes a connection of the pool.
local function connect(settings, address)
  local place = address.path and "unix:" .. address.path or ("%s:%d"):format(address.host, address.port)
  local ran, socket = pcall(ngx.socket.tcp)
  if not ran then
    return nil, failure_of("nginx cannot connect in this phase", false, "unsupported")
  end
  local wait = milliseconds(settings.connect_timeout)
  socket:settimeouts(wait, wait, wait)
  local pool = { pool = ("riskscreen:redis:%s:%s"):format(settings.pool or "", place), pool_size = settings.pool_size }
  local connected, message
  if address.path then
    connected, message = socket:connect(place, pool)
  else
    connected, message = socket:connect(address.host, address.port, pool)
  end
  if not connected then
    return nil, failure_of(message, false)
  end
  local connection = setmetatable({ socket = socket, settings = settings, room = 0, buffer = "", at = 1 }, Connection)
  if settings.tls and not connection:reused() then
    local done, reason, is_refused = tls.shake_hands(socket, address.host)
    if not done then
      connection:close()
      return nil, failure_of(reason, false, is_refused and "tls" or nil)
    end
  end
  return connection
end

local M = {}

---@class riskscreen.runtime.nginx.RedisTransport
---@field connect fun(self, address: { host?: string, port?: integer, path?: string }): table|nil, table|nil

---@param settings table connect_timeout, timeout, max_reply, tls, pool, pool_size, keepalive
---@return riskscreen.runtime.nginx.RedisTransport
function M.new(settings)
  return {
    connect = function(_, address)
      return connect(settings, address)
    end,
  }
end

return M
