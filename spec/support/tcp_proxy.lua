-- A program: passes bytes between the connections that it gets and a port of this machine, each way after a delay.
-- While it is stopped (SIGSTOP) the network is cut, and connections stay. Prints its own port.
-- Arguments: the port, seconds of delay, and its own port.
local socket = require "socket"

local TARGET, DELAY = tonumber(arg[1]), tonumber(arg[2] or "0")
local PIECE = 65536 -- bytes

local listener = assert(socket.bind("127.0.0.1", tonumber(arg[3] or "0")))
listener:settimeout(0)
print((select(2, listener:getsockname())))
io.stdout:flush()

local peers = {} -- the other connection of each connection
local waiting = {} -- pieces: { due, connection, text }

local function close(connection)
  local peer = peers[connection]
  for _, one in ipairs { connection, peer } do
    peers[one] = nil
    one:close()
  end
end

local function accept()
  local client = listener:accept()
  local server = client and socket.connect("127.0.0.1", TARGET)
  if server then
    client:settimeout(0)
    server:settimeout(0)
    client:setoption("tcp-nodelay", true)
    server:setoption("tcp-nodelay", true)
    peers[client], peers[server] = server, client
  elseif client then
    client:close()
  end
end

local function deliver()
  while waiting[1] and waiting[1].due <= socket.gettime() do
    local piece = table.remove(waiting, 1)
    if peers[piece.connection] then
      piece.connection:settimeout(nil)
      if not piece.connection:send(piece.text) then
        close(piece.connection)
      else
        piece.connection:settimeout(0)
      end
    end
  end
end

while true do
  local reading = { listener }
  for connection in pairs(peers) do
    reading[#reading + 1] = connection
  end
  local ready = socket.select(reading, nil, waiting[1] and math.max(0, waiting[1].due - socket.gettime()) or nil)
  deliver()
  for _, one in ipairs(ready) do
    if one == listener then
      accept()
    elseif peers[one] then
      local text, reason, partial = one:receive(PIECE)
      text = text or partial
      if text ~= "" then
        waiting[#waiting + 1] = { due = socket.gettime() + DELAY, connection = peers[one], text = text }
      end
      if reason == "closed" then
        close(one)
      end
    end
  end
  deliver()
end
