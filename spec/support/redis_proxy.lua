-- Stands between a client and redis-server, and misbehaves. It prints its port. arg[1] is the port of the server;
-- arg[2]: "cut" drops both connections instead of passing the first reply on, once. "delay" passes replies on after
-- arg[3] seconds. "say" has no server and answers the first bytes of each connection with arg[3], in hexadecimal.

local socket = require "socket"

local target, mode, value = tonumber(arg[1]), arg[2], arg[3]
local listener = assert(socket.bind("127.0.0.1", 0))
io.stdout:setvbuf "no"
print((select(2, listener:getsockname())))

local said = mode == "say" and value:gsub("%x%x", function(digits)
  return string.char(tonumber(digits, 16))
end)

local readers = { listener }
local pairs_of, is_server = {}, {} -- by socket
local held = {} -- replies that wait: { due, to, bytes }
local has_cut = false

local function forget(one)
  for index = #readers, 1, -1 do
    if readers[index] == one then
      table.remove(readers, index)
    end
  end
  one:close()
end

local function drop(one)
  local other = pairs_of[one]
  forget(one)
  if other then
    pairs_of[other] = nil
    forget(other)
  end
end

local function accept()
  local client = listener:accept()
  client:settimeout(0)
  readers[#readers + 1] = client
  if mode ~= "say" then
    local server = socket.tcp()
    assert(server:connect("127.0.0.1", target))
    server:settimeout(0)
    pairs_of[client], pairs_of[server], is_server[server] = server, client, true
    readers[#readers + 1] = server
  end
end

local function send(to, bytes)
  to:settimeout(nil)
  to:send(bytes)
  to:settimeout(0)
end

local function pass_on(from, bytes)
  local to = pairs_of[from]
  if mode == "say" then
    send(from, said)
    if said == "" then
      drop(from)
    end
  elseif is_server[from] and mode == "cut" and not has_cut then
    has_cut = true
    drop(from)
  elseif is_server[from] and mode == "delay" then
    held[#held + 1] = { due = socket.gettime() + tonumber(value), to = to, bytes = bytes }
  else
    send(to, bytes)
  end
end

while true do
  local wait = held[1] and math.max(0, held[1].due - socket.gettime())
  for _, ready in ipairs(socket.select(readers, nil, wait)) do
    if ready == listener then
      accept()
    else
      local bytes, reason, partial = ready:receive(65536)
      bytes = bytes or partial
      if bytes and bytes ~= "" then
        pass_on(ready, bytes)
      elseif reason == "closed" then
        drop(ready)
      end
    end
  end
  while held[1] and held[1].due <= socket.gettime() do
    local reply = table.remove(held, 1)
    if pairs_of[reply.to] then
      send(reply.to, reply.bytes)
    end
  end
end
