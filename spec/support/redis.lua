-- A redis-server for a test, on a Unix socket and a free port of 127.0.0.1. It keeps nothing on disk unless the test
-- asks for that. Stop it at the end of the test; it also ends when the test's program ends.

local free_port = require "spec.support.free_port"
local lfs = require "lfs"
local socket = require "socket"

local PATIENCE = 20 -- seconds until a server answers

---@class RedisServer
---@field port integer
---@field path string of the Unix socket
---@field url string
---@field directory string of its files
local Server = {}
Server.__index = Server

local running = setmetatable({}, { __mode = "k" })

local function remove(directory)
  for name in lfs.dir(directory) do
    if name ~= "." and name ~= ".." then
      local path = directory .. "/" .. name
      if lfs.symlinkattributes(path, "mode") == "directory" then
        remove(path)
      else
        os.remove(path)
      end
    end
  end
  lfs.rmdir(directory)
end

-- The reply of a server to one command in a line, or nil.
local function ask(port, command)
  local connection = socket.tcp()
  connection:settimeout(PATIENCE)
  local line
  if connection:connect("127.0.0.1", port) then
    connection:send(command .. "\r\n")
    line = connection:receive "*l"
  end
  connection:close()
  return line
end

---Sends a command in a line, such as "CONFIG SET maxmemory 1mb", and returns the first line of the reply.
---@param command string
---@return string|nil
function Server:command(command)
  return ask(self.port, command)
end

-- Waits until the server answers. It answers an error where it wants a password.
local function wait_until_up(self)
  local deadline = socket.gettime() + PATIENCE
  while true do
    local line = self:command "PING"
    if line and not line:find "LOADING" then
      return
    elseif socket.gettime() > deadline then
      local log = io.open(self.directory .. "/log")
      error("redis-server did not start:\n" .. (log and log:read "*a" or "without a log"))
    end
    socket.sleep(0.01)
  end
end

-- The fields of a reply such as that of INFO.
local function fields_of(server, command)
  local fields, connection = {}, socket.tcp()
  connection:settimeout(PATIENCE)
  if connection:connect("127.0.0.1", server.port) then
    connection:send(command .. "\r\n")
    local size = tonumber((connection:receive "*l" or ""):match "^%$(%d+)")
    for name, value in (size and connection:receive(size) or ""):gmatch "([^:\r\n]+):([^\r\n]*)" do
      fields[name] = value
    end
  end
  connection:close()
  return fields
end

---The fields of INFO.
---@param section string
---@return table<string, string>
function Server:info(section)
  return fields_of(self, "INFO " .. section)
end

-- Waits until a field of INFO has a value, or a number that is at least as high.
local function wait_for_info(server, section, name, value)
  local deadline = socket.gettime() + PATIENCE
  local found
  repeat
    found = server:info(section)[name]
    assert(socket.gettime() < deadline, "waited in vain for " .. name)
    socket.sleep(0.01)
  until found == value or (tonumber(found) or -1) >= (tonumber(value) or math.huge)
end

---Waits until a replica has all that its master has.
---@param master RedisServer
function Server:wait_until_same(master)
  wait_for_info(self, "replication", "master_link_status", "up")
  wait_for_info(self, "replication", "slave_repl_offset", master:info("replication").master_repl_offset)
end

---Starts the server, again where it was killed. Its files are those of the last run.
function Server:start()
  -- The shell is a child of the test's program, and kills the server when that program is gone.
  local command = [[directory=%s
    redis-server $directory/conf %s >$directory/log 2>&1 &
    server=$! program=$PPID
    (while kill -0 $program; do sleep 1; done; kill -KILL $server) >/dev/null 2>&1 &
    echo $server]]
  local pipe = assert(io.popen(command:format(self.directory, self.is_sentinel and "--sentinel" or "")))
  self.pid = tonumber(pipe:read "*l")
  pipe:close()
  running[self] = true
  wait_until_up(self)
end

---Sends a signal to the server.
---@param name string such as "STOP", "CONT" or "KILL"
function Server:signal(name)
  os.execute(("kill -%s %d 2>/dev/null"):format(name, self.pid))
end

local function is_running(pid)
  local file = io.open(("/proc/%d/stat"):format(pid))
  local line = file and file:read "*l"
  if file then
    file:close()
  end
  return line ~= nil and not line:find "%) Z "
end

---Kills the server at once, and waits until its process is gone.
function Server:kill()
  if self.pid then
    self:signal "KILL"
    -- Its other threads may hold the sockets for longer than the first one lives.
    while is_running(self.pid) or self:command "PING" do
      socket.sleep(0.005)
    end
    self.pid = nil
  end
end

---Ends the server and removes its files.
function Server:stop()
  self:kill()
  if running[self] then
    running[self] = nil
    remove(self.directory)
  end
end

local M = {}

---Whether there is a redis-server on this machine.
---@return boolean
function M.is_installed()
  local pipe = io.popen "command -v redis-server"
  local path = pipe and pipe:read "*l"
  if pipe then
    pipe:close()
  end
  return path ~= nil
end

---Starts a server.
---@param lines? string[] of its configuration, such as "appendonly yes"
---@param options? { sentinel?: boolean }
---@return RedisServer
function M.start(lines, options)
  local directory = os.tmpname()
  os.remove(directory)
  assert(lfs.mkdir(directory))
  local self = setmetatable({ directory = directory, port = free_port(), path = directory .. "/socket" }, Server)
  self.url = "redis://127.0.0.1:" .. self.port
  self.is_sentinel = options and options.sentinel
  local content = {
    "bind 127.0.0.1",
    "port " .. self.port,
    "dir " .. directory,
    "protected-mode no",
  }
  if not self.is_sentinel then
    content[#content + 1] = "unixsocket " .. self.path
    content[#content + 1] = 'save ""'
    content[#content + 1] = "repl-diskless-sync-delay 0"
    content[#content + 1] = "enable-debug-command yes"
  end
  for _, line in ipairs(lines or {}) do
    content[#content + 1] = line
  end
  local file = assert(io.open(directory .. "/conf", "w"))
  file:write(table.concat(content, "\n"), "\n")
  file:close()
  self:start()
  return self
end

---The rights that docs/redis.md gives a user of the ACL.
---@param use string the first column of its table
---@return string such as "+get +set"
function M.documented_rights(use)
  local file = assert(io.open "docs/redis.md")
  local page = file:read "*a"
  file:close()
  local rights = assert(page:match("| " .. use .. " | `([^`]+)` |"), "docs/redis.md has no rights of " .. use)
  return (rights:gsub("\\|", "|"))
end

---The rights of commands that a server has not executed.
---@param server RedisServer
---@param rights string
---@return string[]
function M.unused_rights(server, rights)
  local executed, unused = server:info "commandstats", {}
  for name in rights:gmatch "%+(%S+)" do
    if not executed["cmdstat_" .. name] then
      unused[#unused + 1] = name
    end
  end
  return unused
end

---Starts a Cluster. Each master has a third of the slots.
---@return RedisServer[] masters
function M.start_cluster()
  local nodes, places = {}, {}
  for index = 1, 3 do
    nodes[index] = M.start { "cluster-enabled yes", "cluster-port " .. free_port(), "cluster-node-timeout 2000" }
    places[index] = "127.0.0.1:" .. nodes[index].port
  end
  local pipe = assert(io.popen("redis-cli --cluster create " .. table.concat(places, " ") .. " --cluster-yes 2>&1"))
  local output = pipe:read "*a"
  pipe:close()
  assert(output:find("All 16384 slots covered", 1, true), output)
  for _, node in ipairs(nodes) do
    local deadline = socket.gettime() + PATIENCE
    while fields_of(node, "CLUSTER INFO").cluster_state ~= "ok" do
      assert(socket.gettime() < deadline, "the Cluster does not begin")
      socket.sleep(0.02)
    end
  end
  return nodes
end

local function ensure(node, ...)
  return assert(node:call(...))
end

---Begins to move a slot of a Cluster to another node, as `redis-cli --cluster reshard` does.
---@param slot integer
---@param from riskscreen.Redis a client of the node that has it
---@param to riskscreen.Redis a client of the node that gets it
---@param to_server RedisServer
---@return { move: fun(count: integer), finish: fun() }
function M.begin_move(slot, from, to, to_server)
  local from_id, to_id = ensure(from, "CLUSTER", "MYID"), ensure(to, "CLUSTER", "MYID")
  ensure(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", from_id)
  ensure(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", to_id)
  local function move(count)
    for _, key in ipairs(ensure(from, "CLUSTER", "GETKEYSINSLOT", slot, count)) do
      ensure(from, "MIGRATE", "127.0.0.1", to_server.port, key, 0, PATIENCE * 1000)
    end
  end
  return {
    move = move,
    finish = function()
      while ensure(from, "CLUSTER", "COUNTKEYSINSLOT", slot) > 0 do
        move(100)
      end
      ensure(to, "CLUSTER", "SETSLOT", slot, "NODE", to_id)
      ensure(from, "CLUSTER", "SETSLOT", slot, "NODE", to_id)
    end,
  }
end

---@class riskscreen.spec.RedisGroup
---@field master RedisServer
---@field replicas RedisServer[]
---@field sentinel RedisServer
---@field sentinels { hosts: string[], name: string } the option of a client
local Group = {}
Group.__index = Group

---Kills the master, and has the Sentinel begin a failover. It would find out by itself, but on a busy machine it could
---take a slow replica for dead, too.
function Group:begin_failover()
  self.master:kill()
  local deadline = socket.gettime() + PATIENCE
  while self.sentinel:command "SENTINEL FAILOVER deposits" ~= "+OK" do
    assert(socket.gettime() < deadline, "the Sentinel begins no failover")
    socket.sleep(0.02)
  end
end

---The replica that has become the master, if there is one.
---@return RedisServer|nil
function Group:promoted()
  for _, server in ipairs(self.replicas) do
    if server:info("replication").role == "master" then
      return server
    end
  end
end

---Waits until a replica has become the master.
function Group:wait_for_failover()
  local deadline = socket.gettime() + PATIENCE
  while not self:promoted() do
    assert(socket.gettime() < deadline, "the Sentinel has made no replica the master")
    socket.sleep(0.02)
  end
end

---Starts the old master again, as a replica of the new one.
---@param promoted RedisServer
function Group:bring_back(promoted)
  self.master:start()
  self.master:command("REPLICAOF 127.0.0.1 " .. promoted.port)
end

function Group:stop()
  self.sentinel:stop()
  self.master:stop()
  for _, replica in ipairs(self.replicas) do
    replica:stop()
  end
end

---Starts a master, its replicas, and a Sentinel.
---@param count integer replicas
---@param lines? string[] of the configuration of each server
---@return riskscreen.spec.RedisGroup
function M.start_group(count, lines)
  local master, replicas = M.start(lines), {}
  for index = 1, count do
    replicas[index] = M.start(lines)
    replicas[index]:command("REPLICAOF 127.0.0.1 " .. master.port)
  end
  for _, replica in ipairs(replicas) do
    replica:wait_until_same(master)
  end
  wait_for_info(master, "replication", "connected_slaves", tostring(count))
  -- A Sentinel asks a new master at once who its replicas are, and later every ten seconds.
  local sentinel = M.start({
    ("sentinel monitor deposits 127.0.0.1 %d 1"):format(master.port),
    "sentinel down-after-milliseconds deposits 60000",
  }, { sentinel = true })
  wait_for_info(sentinel, "sentinel", "sentinel_masters", "1")
  local group = { master = master, replicas = replicas, sentinel = sentinel }
  group.sentinels = { hosts = { "127.0.0.1:" .. sentinel.port }, name = "deposits" }
  return setmetatable(group, Group)
end

---Stops every server that a failed test has left.
function M.stop_all()
  for server in pairs(running) do
    server:stop()
  end
end

return M
