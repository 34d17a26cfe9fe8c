-- A free port of 127.0.0.1 for a server that needs its port in advance. It is outside the range that the system uses
-- for outgoing connections, so no connection can take it. It is this program's until the program ends. A lock keeps
-- other programs of the tests from taking the port while its server is down.
local lfs = require "lfs"
local socket = require "socket"

local LOWEST = 10000
local TRIES = 1000

local taken = {} -- a lock does not keep this program itself away
local locks -- the file whose bytes are locked, one for each port

local function first_of_the_system()
  local file = io.open "/proc/sys/net/ipv4/ip_local_port_range"
  local first = file and file:read "*n"
  if file then
    file:close()
  end
  return first and first > LOWEST + TRIES and first or 32768
end

-- Several processes look for ports at the same time.
local function random_number()
  local file = assert(io.open("/dev/urandom", "rb"))
  local a, b, c = file:read(3):byte(1, 3)
  file:close()
  return (a * 256 + b) * 256 + c
end

local function reserve(port)
  if not locks then
    locks = assert(io.open("/tmp/riskscreen-ports." .. lfs.attributes("/proc/self", "uid"), "a+"))
  end
  if taken[port] or not lfs.lock(locks, "w", port, 1) then
    return false
  end
  local listener = socket.bind("127.0.0.1", port)
  if not listener then
    return false
  end
  listener:close()
  taken[port] = true
  return true
end

---@param count? integer ports that follow each other; 1 by default
---@return integer port the first one
return function(count)
  local range = first_of_the_system() - LOWEST
  for _ = 1, TRIES do
    local port, found = LOWEST + random_number() % range, 0
    while found < (count or 1) and reserve(port + found) do
      found = found + 1
    end
    if found == (count or 1) then
      return port
    end
  end
  error "no port is free"
end
