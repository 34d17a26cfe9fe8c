-- A free port of 127.0.0.1 for a server that needs its port in advance. It is outside the range that the system uses
-- for outgoing connections, so no connection can take it.
local socket = require "socket"

local LOWEST = 10000
local TRIES = 1000

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

---@return integer
return function()
  local count = first_of_the_system() - LOWEST
  for _ = 1, TRIES do
    local port = LOWEST + random_number() % count
    local listener = socket.bind("127.0.0.1", port)
    if listener then
      listener:close()
      return port
    end
  end
  error "no port is free"
end
