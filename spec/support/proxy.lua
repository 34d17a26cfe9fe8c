-- A program: passes bytes between the connections that it gets and a port of this machine. While it is stopped
-- (SIGSTOP) the network is cut, and connections stay. Prints its own port.
-- Arguments: the port, a mode, a value, and its own port. "delay" passes bytes on after so many seconds each way, and
-- "late" replies alone. "cut" drops both connections instead of passing the first reply on, once. "say" has no server,
-- and answers the first bytes of each connection with the value, in hexadecimal.
local insert_sorted = require("riskscreen.util.tables").insert_sorted
local socket = require "socket"

local TARGET, MODE, VALUE, PORT = tonumber(arg[1]), arg[2], arg[3], tonumber(arg[4] or "0")
local PIECE = 65536 -- bytes

local listener = assert(socket.bind("127.0.0.1", PORT))
listener:settimeout(0)
print((select(2, listener:getsockname())))
io.stdout:flush()

local peers, is_server = {}, {} -- the other connection of each connection; without a server itself
local waiting = {} -- pieces: { due, connection, text }

local function close(connection)
  for _, one in ipairs { connection, peers[connection] } do
    peers[one] = nil
    one:close()
  end
end

local function accept()
  local client = listener:accept()
  local server = client and (MODE == "say" and client or socket.connect("127.0.0.1", TARGET))
  if server then
    peers[client], peers[server], is_server[server] = server, client, true
    for _, one in ipairs { client, server } do
      one:settimeout(0)
      one:setoption("tcp-nodelay", true)
    end
  elseif client then
    client:close()
  end
end

local function pass_on(from, text)
  if MODE == "cut" and is_server[from] then
    MODE = "delay"
    return close(from)
  elseif MODE == "say" then
    text = VALUE:gsub("%x%x", function(digits)
      return string.char(tonumber(digits, 16))
    end)
    if text == "" then
      return close(from)
    end
  end
  local is_delayed = MODE == "delay" or MODE == "late" and is_server[from]
  local due = socket.gettime() + (is_delayed and tonumber(VALUE) or 0)
  insert_sorted(waiting, "due", { due = due, connection = peers[from], text = text })
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
        pass_on(one, text)
      end
      if reason == "closed" and peers[one] then
        close(one)
      end
    end
  end
  deliver()
end
