-- A client of Redis: commands, pipelines and scripts. The server is found by server.lua: one server, a Sentinel's
-- master or a node of a Cluster. The runtime's transport moves the bytes: the core natively, cosockets inside
-- nginx.

local check = require "riskscreen.options.check"
local failures = require "riskscreen.redis.failure"
local options = require "riskscreen.options.redis"
local runtime = require "riskscreen.runtime"
local servers = require "riskscreen.redis.server"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1 -- seconds between two attempts to connect
local MOST_ATTEMPTS = 3 -- of a command that had no effect

---@class riskscreen.RedisScript
---@field name string
---@field text string
---@field sha? string known after the first load
local Script = { __name = "riskscreen.RedisScript" }
Script.__index = Script

---@class riskscreen.Redis
---@field private settings table
---@field private prefix string
---@field private transport? table
---@field private address? riskscreen.RedisAddress the node that a Cluster named by MOVED
---@field private connection? table that tasks share
---@field private in_turn fun(fn: function, ...): any
---@field private idle table[] connections for blocking commands
---@field private pause number seconds
---@field private not_before number when to connect again
---@field private last_error? riskscreen.Error of connecting
local Redis = { __name = "riskscreen.Redis" }
Redis.__index = Redis

-- A command whose arguments can be written. Misuse raises at the caller of the client's method.
local function command_of(command)
  if command[1] == nil then
    error("redis: a command must have a name", 3)
  end
  for index = 1, #command do
    local kind = type(command[index])
    if kind ~= "string" and kind ~= "number" then
      local message = "redis: argument %d must be a string or a number (got %s)"
      error(message:format(index, text.kind(command[index])), 3)
    end
  end
  return command
end

-- Raises at the caller of the client's method. Arguments behind a gap would not be sent.
local function expect_list(name, list)
  if type(list) ~= "table" or not tables.sequence_length(list) then
    error(("redis: %s must be a list without a gap (got %s)"):format(name, text.kind(list)), 3)
  end
end

-- Makes a new connection, unless the last attempt failed a short time ago.
local function open_after_pause(self)
  local now = runtime.now()
  if now < self.not_before then
    return nil, self.last_error
  end
  local connection, err = servers.connect(self)
  if connection then
    self.pause = FIRST_PAUSE
  else
    self.not_before, self.last_error = runtime.now() + self.pause, err
    self.pause = math.min(self.pause * 2, LONGEST_PAUSE)
  end
  return connection, err
end

local function transport_of(self)
  if not self.transport then
    local settings, url = self.settings, self.settings.url
    local message
    self.transport, message = runtime.redis_transport(tables.merge(settings, {
      tls = url.tls,
      pool = ("riskscreen %s %d %s"):format(self.login.username or "", url.database, tostring(self)),
    }))
    if not self.transport then
      return nil, failures.of_transport(self.place, { kind = "unsupported", message = message, sent = false })
    end
  end
  return self.transport
end

-- The connection that tasks share.
local function open_shared(self)
  local err
  if not (self.connection and self.connection:is_open()) then
    self.connection, err = open_after_pause(self)
  end
  return self.connection, err
end

-- A connection for commands. Natively all tasks share one, except where the commands may wait in Redis.
local function acquire(self, may_wait)
  local transport, err = transport_of(self)
  if not transport then
    return nil, err
  elseif not transport.shared then
    return open_after_pause(self)
  elseif may_wait then
    local connection = table.remove(self.idle)
    while connection and not connection:is_open() do
      connection = table.remove(self.idle)
    end
    if connection then
      return connection
    end
    return open_after_pause(self)
  end
  if self.connection and self.connection:is_open() then
    return self.connection
  end
  return self.in_turn(open_shared, self) -- for all tasks that wait for it
end

local function drop(self, connection)
  connection:close()
  if self.connection == connection then
    self.connection = nil
  end
end

-- Whether commands that Redis has refused should be sent again on another connection: where it has refused all.
local function is_redirected(self, connection, replies)
  local refused = 0
  for _, reply in ipairs(replies) do
    local address = failures.is_error(reply) and servers.moved_to(reply.err)
    local is_deposed = failures.is_error(reply) and reply.err:find "^READONLY" -- the master has become a replica
    if address or is_deposed then
      drop(self, connection)
      self.address = address or nil
      refused = refused + ((address or self.settings.sentinels) and 1 or 0)
    end
  end
  return refused == #replies
end

-- Sends commands. A failure that certainly had no effect is tried again on a new connection. Commands that may wait in
-- Redis for some seconds have a connection of their own, which a cancelled task closes.
local function perform(self, commands, seconds, attempt)
  attempt = attempt or 1
  if self.closed then
    return nil,
      failures.of_transport(self.place, { kind = "cancelled", message = "the client is closed", sent = false })
  end
  local connection, err = acquire(self, seconds)
  if not connection then
    return nil, err
  end
  local place, is_last = self.place, attempt == MOST_ATTEMPTS
  local hold = seconds and runtime.tasks.hold(connection)
  local replies, failure = connection:pipeline(commands, self.settings.timeout + (seconds or 0))
  if hold then
    runtime.tasks.release(connection, hold)
  end
  if not replies then
    if seconds or not connection:is_open() then
      drop(self, connection)
    end
    if failure.sent == false and failure.kind == "network" and not is_last then
      return perform(self, commands, seconds, attempt + 1)
    end
    return nil, failures.of_transport(place, failure, self.secret)
  elseif is_redirected(self, connection, replies) and not is_last then
    return perform(self, commands, seconds, attempt + 1)
  elseif seconds and self.closed then
    connection:close()
  elseif seconds and self.transport.shared then
    self.idle[#self.idle + 1] = connection
  else
    connection:release()
  end
  return replies
end

local function first_reply(self, replies, err)
  if not replies then
    return nil, err
  elseif failures.is_error(replies[1]) then
    return nil, failures.of_reply(self.place, replies[1].err, self.secret)
  end
  return replies[1]
end

---Sends a command and waits for its reply. An integer comes as a number, a text as a string, nothing as false, a list
---as a table.
---@param ... string|number
---@return any reply nil after a failure
---@return riskscreen.Error|nil err
function Redis:call(...)
  return first_reply(self, perform(self, { command_of { ... } }))
end

---Sends several commands at once. Each reply is as that of `call`, or an error object.
---@param commands (string|number)[][]
---@return any[]|nil replies
---@return riskscreen.Error|nil err
function Redis:pipeline(commands)
  local list = {}
  expect_list("commands", commands)
  for index, command in ipairs(commands) do
    text.expect("redis: a command", command, "table")
    list[index] = command_of(command)
  end
  if #list == 0 then
    return {}
  end
  local replies, err = perform(self, list)
  for index, reply in ipairs(replies or {}) do
    if failures.is_error(reply) then
      replies[index] = failures.of_reply(self.place, reply.err, self.secret)
    end
  end
  return replies, err
end

-- Loads a script into Redis, which returns the name by which it runs.
local function load(self, script)
  local sha, err = self:call("SCRIPT", "LOAD", script.text)
  if type(sha) == "string" then
    script.sha = sha
  end
  return sha, err
end

---Runs a script in Redis: all its changes or none, and no other command meanwhile.
---@param script riskscreen.RedisScript
---@param keys string[]
---@param arguments? (string|number)[]
---@return any reply
---@return riskscreen.Error|nil err
function Redis:script(script, keys, arguments)
  text.expect("redis: script", script, "table")
  arguments = arguments or {}
  expect_list("keys", keys)
  expect_list("arguments", arguments)
  local command = command_of(tables.concat({ "EVALSHA", "", #keys }, keys, arguments))
  for _ = 1, MOST_ATTEMPTS do
    if not script.sha then
      local loaded, err = load(self, script)
      if not loaded then
        return nil, err
      end
    end
    command[2] = script.sha
    local reply, err = first_reply(self, perform(self, { command }))
    if not err then
      return reply
    elseif err.code ~= "NOSCRIPT" then
      return nil, err
    end
    script.sha = nil
  end
  return nil, failures.of_reply(self.place, "NOSCRIPT the server forgets scripts at once")
end

---Sends a command that may wait in Redis, such as `XREAD BLOCK`, over a connection of its own. When the task is
---cancelled, the connection is closed.
---@param seconds number how long the command may wait; `timeout` is added
---@param ... string|number
---@return any reply
---@return riskscreen.Error|nil err
function Redis:wait(seconds, ...)
  return first_reply(self, perform(self, { command_of { ... } }, seconds))
end

---The key of a name: all keys of a client are in one slot of a Cluster.
---@param name string
---@return string
function Redis:key(name)
  text.expect("redis: name", name, "string")
  return self.prefix .. name
end

---The server as the options name it: its address, or the Sentinels' name of the master; and the database.
---@return string
function Redis:server()
  local sentinels, url = self.settings.sentinels, self.settings.url
  return ("%s/%d"):format(sentinels and sentinels.name or servers.place_of(url.address), url.database)
end

---Closes the connections. Idempotent; later calls return an error.
function Redis:close()
  self.closed = true
  if self.connection then
    drop(self, self.connection)
  end
  for _, connection in ipairs(self.idle) do
    connection:close()
  end
  self.idle = {}
end

local M = { options = options, eviction_problem = failures.eviction_problem }

---The part of a script that ends a lease: it deletes a key that still has the holder's value.
---@param key string the key, in Redis' Lua
---@param holder string the value, in Redis' Lua
---@return string source
function M.release(key, holder)
  return ("if redis.call('GET', %s) == %s then redis.call('DEL', %s) end\n"):format(key, holder, key)
end

---The part of a script that ends it before its first change if the user may not run one of its commands. Redis undoes
---nothing if a script fails in the middle. Before 7.0 it cannot tell.
---@param commands string a list of commands, each a list, in Redis' Lua
---@return string source
function M.permitted(commands)
  return ([[
for _, command in ipairs(%s) do
  if redis.acl_check_cmd and not redis.acl_check_cmd(unpack(command)) then
    return redis.error_reply('NOPERM the script needs ' .. command[1])
  end
end
]]):format(commands)
end

---The script that ends a lease of one key.
M.RELEASE = M.release("KEYS[1]", "ARGV[1]")

---A script for `redis:script`.
---@param name string
---@param source string Redis' Lua
---@return riskscreen.RedisScript
function M.script(name, source)
  return setmetatable({ name = name, text = source }, Script)
end

---The table of a reply that alternates names and values.
---@param reply any[]
---@return table<any, any>
function M.fields(reply)
  local fields = {}
  for index = 1, #reply, 2 do
    fields[reply[index]] = reply[index + 1]
  end
  return fields
end

---A client of Redis. It connects at the first command.
---@param given? riskscreen.RedisOptions|string the options or the URL
---@return riskscreen.Redis
function M.new(given)
  local settings = check.arguments("redis.new", options, type(given) == "string" and { url = given } or given or {})
  return M.with(settings)
end

---A client with options that were checked before, as those of a gate.
---@param settings table
---@return riskscreen.Redis
function M.with(settings)
  local url, sentinels = settings.url, tables.copy(settings.sentinels and settings.sentinels.hosts or {})
  local shown = tables.without(settings, "password")
  shown.url = tables.without(url, "password")
  if settings.sentinels then
    shown.sentinels = tables.merge(settings.sentinels, { password = servers.hidden(settings.sentinels.password) })
  end
  return setmetatable({
    settings = shown,
    prefix = "{" .. settings.prefix .. "}:",
    login = {
      username = settings.username or url.username,
      password = servers.hidden(settings.password or url.password),
      database = url.database,
    },
    place = servers.place_of(url.address),
    sentinels = sentinels,
    idle = {},
    in_turn = runtime.tasks.turns(),
    pause = FIRST_PAUSE,
    not_before = -math.huge,
  }, Redis)
end

return M
