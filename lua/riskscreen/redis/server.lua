-- Finds the right server of Redis, and connects to it: the password, the database, the role, the Sentinels.

local failures = require "riskscreen.redis.failure"
local runtime = require "riskscreen.runtime"

local M = {}

---@param address riskscreen.RedisAddress
---@return string
function M.place_of(address)
  return address.path or (address.host .. ":" .. address.port)
end

---A password as a function, so that no field of a client leads to its text.
---@param password string|function|nil
---@return function|nil
function M.hidden(password)
  return type(password) == "string" and function()
    return password
  end or password
end

-- The password for a new connection, or nil and an error.
local function read_password(self, connection, given)
  if type(given) ~= "function" then
    return given
  end
  local ok, password = pcall(given)
  if ok and type(password) == "string" and password ~= "" then
    return password
  elseif not connection:is_open() then
    runtime.tasks.sleep(0) -- raises where the task was stopped while the function waited
  end
  -- A message may hold the password.
  local message = ok and "must return a text" or "raised an error"
  return nil, failures.of_login(self.place, "the password function " .. message)
end

-- Logs in, chooses the database and checks the role of a new connection. Returns an error.
local function prepare(self, connection, login, wants_master)
  if connection:reused() then
    return nil
  end
  local password, err = read_password(self, connection, login.password)
  if err then
    return err
  end
  local steps = {}
  if password then
    self.secret = M.hidden(password)
    steps[#steps + 1] = { name = "login", "AUTH", login.username or password, login.username and password }
  end
  if login.database and login.database > 0 then
    steps[#steps + 1] = { name = "database", "SELECT", tostring(login.database) }
  end
  if wants_master then
    steps[#steps + 1] = { name = "role", "ROLE" }
  end
  if #steps == 0 then
    return nil
  end
  local replies, failure = connection:pipeline(steps, self.settings.timeout)
  if not replies then
    failure.sent = false -- the user's command
    return failures.of_transport(self.place, failure, self.secret)
  end
  for index, step in ipairs(steps) do
    local reply = replies[index]
    if failures.is_error(reply) then
      return step.name == "login" and failures.of_login(self.place, reply.err)
        or failures.of_reply(self.place, reply.err, self.secret)
    elseif step.name == "role" and not (type(reply) == "table" and reply[1] == "master") then
      return failures.of_reply(self.place, "READONLY the server is no master")
    end
  end
end

-- Connects to one server. Returns a connection that is ready for commands.
local function connect(self, address, login, wants_master)
  self.place = M.place_of(address)
  local connection, failure = self.transport:connect(address)
  if not connection then
    return nil, failures.of_transport(self.place, failure, self.secret)
  end
  local hold = runtime.tasks.hold(connection)
  local err = prepare(self, connection, login, wants_master)
  runtime.tasks.release(connection, hold)
  if err then
    connection:close()
    return nil, err
  end
  return connection
end

-- The address that a server names, or nil where it cannot be one.
local function named_address(host, port)
  local number = type(port) == "string" and port:find "^%d%d?%d?%d?%d?$" and tonumber(port) or 0
  if number >= 1 and number <= 65535 and type(host) == "string" and host:find "^[%w.:_%%-]+$" then
    return { host = host, port = number }
  end
end

-- Asks the Sentinels, one after the other, for the address of the master.
local function find_master(self)
  local sentinels, last = self.settings.sentinels, nil
  for index, address in ipairs(self.sentinels) do
    local connection, err = connect(self, address, sentinels, false)
    last = err or last
    if connection then
      local command = { "SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinels.name }
      local replies, failure = connection:pipeline({ command }, self.settings.timeout)
      local reply = replies and replies[1]
      connection:close()
      local master = type(reply) == "table" and named_address(reply[1], reply[2])
      if master then
        table.insert(self.sentinels, 1, table.remove(self.sentinels, index))
        return master
      elseif failure then
        failure.sent = false
        last = failures.of_transport(self.place, failure)
      elseif failures.is_error(reply) then
        last = failures.of_reply(self.place, reply.err)
      else
        last = failures.of_reply(self.place, "ERR this Sentinel knows no master '" .. sentinels.name .. "'")
      end
    end
  end
  return nil, last
end

---Makes a new connection to the right server.
---@param self riskscreen.Redis
---@return table|nil connection
---@return riskscreen.Error|nil err
function M.connect(self)
  if self.settings.sentinels then
    local master, err = find_master(self)
    if not master then
      return nil, err
    end
    return connect(self, master, self.login, true)
  end
  local connection, err = connect(self, self.address or self.settings.url.address, self.login, false)
  if not connection then
    self.address = nil -- a node of a Cluster may be gone: the next attempt begins at the URL
  end
  return connection, err
end

---The address that a reply of a Cluster names.
---@param message string
---@return riskscreen.RedisAddress|nil
function M.moved_to(message)
  return named_address(message:match "^MOVED %d+ (.+):(%d+)$")
end

return M
