-- Any bytes as what Redis sends to nginx. The first byte says in pieces of what size they arrive. The replies must not
-- depend on that, must be of the right types, and must not be larger than the limit.
local MAX_REPLY = 1000 -- bytes
local COMMANDS = { { "GET", "a" }, { "GET", "b" } }

local arriving -- bytes of the socket
local at, size = 1, 1

local socket = {}

function socket:settimeouts() end
function socket:setkeepalive()
  self.is_kept = true
end
function socket:close() end

function socket.connect()
  return true
end

function socket.getreusedtimes()
  return 0
end

function socket.send()
  return 1
end

local function take(most)
  local piece = arriving:sub(at, at + most - 1)
  at = at + #piece
  if piece == "" then
    return nil, "closed"
  end
  return piece
end

function socket.receiveany(_, most)
  return take(math.min(most, size))
end

function socket.receive(_, count)
  assert(count <= MAX_REPLY + 2, "a reply may be larger than the limit")
  if at + count - 1 > #arriving then
    return nil, "closed"
  end
  return take(count)
end

local nginx = _G.ngx
_G.ngx = { socket = {
  tcp = function()
    return setmetatable({}, { __index = socket })
  end,
} }
local transport = require("riskscreen.runtime.nginx.redis").new {
  connect_timeout = 1,
  max_reply = MAX_REPLY,
  pool_size = 1,
  keepalive = 1,
}
_G.ngx = nginx

-- A value as a text; its size counts towards the limit.
local function show(value)
  if type(value) ~= "table" then
    assert(value == false or type(value) == "number" or type(value) == "string", "a value of another type")
    return type(value) .. " " .. tostring(value)
  elseif value.err then
    return "error " .. value.err
  end
  local parts = {}
  for index, element in ipairs(value) do
    parts[index] = show(element)
  end
  assert(#parts == #value, "an array with a hole")
  return "[" .. table.concat(parts, ",") .. "]"
end

local function read(bytes, piece)
  arriving, at, size = bytes, 1, piece
  local connection = assert(transport:connect { host = "redis", port = 1 })
  local wire = connection.socket
  local replies, failure = connection:pipeline(COMMANDS, 1)
  if not replies then
    assert(not connection:is_open(), "a connection is used after a failure")
    assert(failure.kind == "network" or failure.kind == "protocol", "a failure of another kind")
    return failure.message
  end
  assert(#replies == #COMMANDS, "a command has no reply")
  connection:release()
  -- Bytes behind the replies would answer the next command.
  assert(not wire.is_kept or connection.at > #connection.buffer, "a connection with bytes is kept")
  return show(replies)
end

return function(bytes)
  local text = bytes:sub(2)
  local whole = read(text, 1e6)
  assert(read(text, 1) == whole, "other replies byte by byte")
  assert(read(text, 1 + (bytes:byte() or 0)) == whole, "other replies in pieces")
end
