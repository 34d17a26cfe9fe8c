-- The transport to Redis of a plain Lua program: the core's connections on the scheduler's loop. Tasks share a
-- connection. Their commands are written together, and the replies come in the order of the commands.

local core = require "riskscreen.core"
local redis_commands = require "riskscreen.runtime.redis_commands"
local scheduler = require "riskscreen.runtime.native.scheduler"

local tasks = scheduler.tasks

---@class riskscreen.native.RedisConnection
---@field private core userdata
---@field private fd integer the socket
---@field private watched? "r"|"rw" events that the scheduler polls for
---@field private sockets? integer number of the socket
---@field private exchanges table[] those whose replies have not come, from `first` to `last`
---@field private replied integer replies that have come
---@field private receiving boolean while replies go to their exchanges
---@field private failure? table why the connection is closed
local Connection = {}
Connection.__index = Connection

local function failed(kind, message, sent)
  return { kind = kind, message = message, sent = sent }
end

-- Ends the connection and tells everyone who waits.
function Connection:fail(kind, message)
  if self.failure then
    return
  end
  self.failure = { kind = kind, message = message }
  scheduler.detach(self)
  local written = self.core:written()
  self.core:close()
  for index = self.first, self.last do
    local exchange = self.exchanges[index]
    exchange.failure = failed(kind, message, written > exchange.begins)
    exchange.signal:notify()
  end
  self.exchanges, self.first, self.last = {}, 1, 0
  self.changed:notify()
end

-- Gives a reply to the oldest exchange that lacks one.
function Connection:receive(reply)
  self.replied = self.replied + 1
  local exchange = self.exchanges[self.first]
  local replies = exchange.replies
  replies[#replies + 1] = reply
  if #replies == exchange.count then
    self.exchanges[self.first] = nil
    self.first = self.first + 1
    if self.first > self.last then
      self.first, self.last = 1, 0
    end
    exchange.signal:notify()
  end
end

-- The methods of riskscreen.Pollable, for the scheduler.

function Connection:pollfd()
  return self.fd
end

function Connection:events()
  return self.watched
end

function Connection:timeout()
  return self.core:is_due() and 0 or nil
end

-- Lets the scheduler watch the socket for the right events.
local function watch(self)
  local fd, events, sockets = self.core:watch()
  if events ~= self.watched or sockets ~= self.sockets then
    if self.watched then
      scheduler.detach(self)
    end
    self.fd, self.watched, self.sockets = fd, events, sockets
    scheduler.attach(self)
  end
end

function Connection:step()
  if self.receiving then
    -- Lua ran out of memory, and a reply may be lost: later ones would answer the wrong commands.
    self:fail("network", "not enough memory for a reply")
    return
  end
  local state, kind, message = self.core:step()
  self.receiving = true
  local reply = self.core:next()
  while reply ~= nil do
    self:receive(reply)
    reply = self.core:next()
  end
  self.receiving = false
  if state == "closed" then
    self:fail(kind, message)
    return
  end
  watch(self)
  if state == "open" and not self.open then
    self.open = true
    self.changed:notify()
  end
end

local function wait_until_open(self, timeout)
  local deadline = scheduler.now() + timeout
  while not (self.open or self.failure) do
    local left = deadline - scheduler.now()
    if left <= 0 then
      self:fail("timeout", ("no connection within %g s"):format(timeout))
    else
      self.changed:wait(left)
    end
  end
end

-- Sends commands and waits for their replies.
function Connection:pipeline(commands, timeout)
  if self.failure then
    return nil, failed(self.failure.kind, self.failure.message, false)
  end
  local exchange = { count = #commands, replies = {}, signal = tasks.signal(true) }
  local queued, begins = pcall(self.core.send, self.core, table.concat(redis_commands.pieces(commands)), #commands)
  if not queued then
    return nil, failed("network", tostring(begins), false)
  end
  exchange.begins = begins
  self.last = self.last + 1
  self.exchanges[self.last] = exchange
  local replied = self.replied
  exchange.signal:wait(timeout)
  if #exchange.replies == exchange.count then
    return exchange.replies
  elseif exchange.failure then
    return nil, exchange.failure
  end
  local failure = failed("timeout", ("no reply within %g s"):format(timeout), self.core:written() > exchange.begins)
  if self.replied == replied then
    -- Redis has replied to nobody meanwhile, so the connection is probably dead.
    self:fail(failure.kind, failure.message)
  end
  return nil, failure
end

function Connection:is_open()
  return self.open and not self.failure and self.core:watch() >= 0
end

function Connection:reused() -- luacheck: ignore 212
  return false
end

function Connection:release() -- luacheck: ignore 212
end

function Connection:close()
  self:fail("cancelled", "the connection is closed")
end

-- For `tasks.hold`.
Connection.abandon = Connection.close

local Transport = { shared = true }
Transport.__index = Transport

---@param address { host?: string, port?: integer, path?: string }
---@return riskscreen.native.RedisConnection|nil
---@return table|nil failure
function Transport:connect(address)
  local settings = self.settings
  local raw, kind, message = core.redis {
    host = address.host,
    port = address.port,
    path = address.path,
    max_reply = settings.max_reply,
  }
  if not raw then
    return nil, failed(kind, message, false)
  end
  local connection = setmetatable(
    { core = raw, exchanges = {}, first = 1, last = 0, replied = 0, changed = tasks.signal(true) },
    Connection
  )
  watch(connection)
  local hold = tasks.hold(connection)
  wait_until_open(connection, settings.connect_timeout)
  tasks.release(connection, hold)
  local failure = connection.failure
  if failure then
    return nil, failed(failure.kind, failure.message, false)
  end
  return connection
end

local M = {}

---A transport, or nil and why there is none.
---@param settings table
---@return table|nil
---@return string|nil message
function M.transport(settings)
  if settings.tls then
    return nil, "rediss:// works inside nginx only; elsewhere connect through a TLS proxy such as stunnel"
  end
  return setmetatable({ settings = settings }, Transport)
end

return M
