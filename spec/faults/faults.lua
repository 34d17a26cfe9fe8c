-- Every way in which a server or a proxy before it can fail, with the outcome that a call must have. Each is tried with
-- every class of operation in every runtime (matrix_spec.lua).

local fault_server = require "spec.support.fault_server"
local peer = require "spec.support.peer"

---@class riskscreen.spec.Fault
---@field name string
---@field start? fun(fault, spares): riskscreen.spec.FaultServer by default a server of raw bytes
---@field act? fun(connection, sound: riskscreen.spec.Sound) in answer to a request
---@field greet? fun(connection) as soon as a connection is there
---@field over_tls? boolean the client is told to use TLS
---@field tls? string which of tls_server.lua's servers it is
---@field warm? boolean the client has made the same call before, so that it has a connection
---@field settles? boolean and then waited until the server called `settle` for each request
---@field options? table more options of the client
---@field slow? boolean only its timeout ends the call
---@field kind? string of the error; absent where the call must succeed
---@field sent? boolean whether the request may have taken effect; absent where either may be said
---@field status? integer of the error; absent where there was no whole answer
---@field retry_after? number of the error
---@field requests? integer how many requests the server sees for each that the client makes; 1 by default
---@field unless_idempotent? table what is different for an operation that must not be repeated
---@field over_cosockets? table what is different inside nginx

local MIB = 1024 * 1024

-- Of a handshake that failed before there was a certificate nginx does not say whether the peer refused or went away.
local UNEXPLAINED = { kind = "network" }

---@type riskscreen.spec.Fault[]
local faults = {}

local function fault(entry)
  entry.start = entry.start or fault_server.raw
  entry.requests = entry.requests or 1
  faults[#faults + 1] = entry
end

-- Acts of the server on the connection after the request, or as its answer.
local function connection_fault(name, act)
  fault { name = name, kind = "network", sent = true, act = act }
end

-- An answer of these bytes. `make` is given what would have been right.
local function answer(name, kind, make, more)
  local entry = {
    name = name,
    kind = kind,
    sent = true,
    act = function(connection, sound)
      connection:send(make(sound))
    end,
  }
  for field, value in pairs(more or {}) do
    entry[field] = value
  end
  fault(entry)
end

-- A whole answer with status 200 and another body than the right one.
local function body(name, make, headers, more)
  answer(name, "protocol", function(sound)
    return peer.response(make(sound), headers)
  end, { status = 200, over_cosockets = more and more.over_cosockets })
end

-- An answer whose body is given up while it is received.
local function unreadable_body(name, make, headers, options)
  answer(name, "protocol", function(sound)
    return peer.response(make(sound), headers)
  end, { options = options })
end

local function status(code, kind, headers, more)
  answer(more and more.name or "HTTP " .. code, kind, function(sound)
    local page = ('<html><h1>%d</h1>key "%s" refused</html>'):format(code, sound.key)
    return peer.response(page, headers, code .. " Said So")
  end, { status = code, retry_after = more and more.retry_after })
end

-- The bytes one by one, slower than any call may take.
local function trickle(connection, bytes)
  local position = 0
  local function more()
    position = position + 1
    if not connection.closed and position <= #bytes then
      connection:send(bytes:sub(position, position))
      connection.peer.driver:after(0.02, more)
    end
  end
  more()
end

local function head(headers)
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" .. headers .. "\r\n"
end

local function little_endian(number, bytes)
  local text = ""
  for _ = 1, bytes do
    text = text .. string.char(number % 256)
    number = math.floor(number / 256)
  end
  return text
end

-- gzip without compression: one stored block, and in the end a check sum, which is wrong here.
local function stored_gzip(text)
  local length = little_endian(#text, 2) .. little_endian(65535 - #text, 2)
  return "\31\139\8\0\0\0\0\0\0\3\1" .. length .. text .. "\0\0\0\0" .. little_endian(#text, 4)
end

local bomb

-- 64 MiB of white space in some 64 KiB.
local function gzip_bomb()
  if not bomb then
    local pipe = assert(io.popen("head -c 67108864 /dev/zero | tr '\\0' ' ' | gzip -9", "r"))
    bomb = pipe:read "*a"
    pipe:close()
    assert(#bomb > 1000 and #bomb < 100000)
  end
  return bomb
end

local GZIP = "Content-Encoding: gzip\r\n"

-- Connecting

fault { name = "a refused connection", start = fault_server.refused, kind = "network", sent = false, requests = 0 }
fault {
  name = "a connection request without an answer",
  start = fault_server.full,
  slow = true,
  kind = "timeout",
  sent = false,
  requests = 0,
}
fault {
  name = "a reset as soon as the connection is there",
  greet = function(connection)
    connection:reset()
  end,
  kind = "network",
  requests = 0,
}
fault {
  name = "a TLS handshake without an answer",
  over_tls = true,
  greet = function() end,
  slow = true,
  kind = "timeout",
  sent = false,
  requests = 0,
}
fault {
  name = "a reset in the TLS handshake",
  over_tls = true,
  greet = function(connection)
    connection.read = connection.reset
  end,
  kind = "network",
  sent = false,
  requests = 0,
}
fault {
  name = "a server that does not speak TLS",
  over_tls = true,
  greet = function(connection)
    connection:send "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
  end,
  kind = "tls",
  sent = false,
  requests = 0,
  over_cosockets = UNEXPLAINED,
}

-- Certificates. Behind each there are sound answers.

fault { name = "TLS in good order", start = fault_server.tls, tls = "good" }
for name, tls in pairs {
  ["a certificate that has expired"] = "expired",
  ["a certificate that is not valid yet"] = "early",
  ["a certificate of another host"] = "other",
  ["a certificate that signed itself"] = "untrusted",
  ["a certificate of an unknown authority"] = "unknown",
} do
  fault { name = name, start = fault_server.tls, tls = tls, kind = "tls", sent = false, requests = 0 }
end
fault {
  name = "a server that speaks TLS 1.1 at most",
  start = fault_server.tls,
  tls = "old",
  kind = "tls",
  sent = false,
  requests = 0,
  over_cosockets = UNEXPLAINED,
}
fault {
  name = "a server that wants a client's certificate, and says so in HTTP",
  start = fault_server.tls,
  tls = "mutual",
  kind = "bad_request",
  status = 400,
  sent = true,
  requests = 0,
}

-- Broken connections

connection_fault("a reset before the answer", function(connection)
  connection:reset()
end)
connection_fault("a reset in the headers", function(connection)
  connection:send "HTTP/1.1 200 OK\r\nContent-Le"
  connection:reset()
end)
connection_fault("a reset after the headers", function(connection, sound)
  connection:send(head("Content-Length: " .. #sound.body .. "\r\n"))
  connection:reset()
end)
connection_fault("a reset in the body", function(connection, sound)
  connection:send(sound.text:sub(1, -2))
  connection:reset()
end)
connection_fault("a connection closed before the answer", function(connection)
  connection:finish()
end)
connection_fault("a connection closed in the headers", function(connection)
  connection:send "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
  connection:finish()
end)
connection_fault("a truncated body", function(connection, sound)
  connection:send(sound.text:sub(1, -2))
  connection:finish()
end)
connection_fault("a chunked body without its end", function(connection, sound)
  connection:send(head "Transfer-Encoding: chunked\r\n" .. ("%x\r\n%s\r\n"):format(#sound.body, sound.body))
  connection:finish()
end)
fault {
  name = "a truncated body whose length nobody said",
  act = function(connection, sound)
    connection:send(head "Connection: close\r\n" .. sound.body:sub(1, -2))
    connection:finish()
  end,
  kind = "protocol",
  status = 200,
  sent = true,
}

-- Silence

for phase, bytes in pairs {
  ["before the answer"] = "",
  ["in the headers"] = "HTTP/1.1 200 OK\r\nContent-Le",
  ["after the headers"] = head "Content-Length: 100\r\n",
  ["in the body"] = head "Content-Length: 100\r\n" .. '{"success":true,',
  ["after an interim answer"] = "HTTP/1.1 100 Continue\r\n\r\n",
} do
  answer("silence " .. phase, "timeout", function()
    return bytes
  end, { slow = true })
end

local trickles = {
  ["headers that trickle"] = "HTTP/1.1 200 OK\r\n" .. ("X-Filler: x\r\n"):rep(200),
  ["a body that trickles"] = head "Content-Length: 100000\r\n" .. (" "):rep(2000),
  ["a chunk size that trickles"] = head "Transfer-Encoding: chunked\r\n" .. "1;" .. ("x"):rep(2000),
  ["interim answers that trickle"] = ("HTTP/1.1 103 Early Hints\r\n\r\n"):rep(80),
}
for name, bytes in pairs(trickles) do
  fault {
    name = name,
    slow = true,
    kind = "timeout",
    sent = true,
    act = function(connection)
      trickle(connection, bytes)
    end,
  }
end

-- Lengths and sizes

answer("a length that is too short", "protocol", function(sound)
  return head("Content-Length: " .. #sound.body - 1 .. "\r\n") .. sound.body
end, { status = 200 })
answer("a length that is too long", "timeout", function(sound)
  return head("Content-Length: " .. #sound.body + 1 .. "\r\n") .. sound.body
end, { slow = true })
answer("a length of more than 64 bits", "protocol", function(sound)
  return head "Content-Length: 18446744073709551621\r\n" .. sound.body
end)
answer("two lengths", "protocol", function(sound)
  return head("Content-Length: " .. #sound.body .. "\r\nContent-Length: 6\r\n") .. sound.body
end)
answer("a length beside chunks", "protocol", function(sound)
  local chunks = ("%x\r\n%s\r\n0\r\n\r\n"):format(#sound.body, sound.body)
  return head "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" .. chunks
end)
unreadable_body("a body above the limit", function(sound)
  return (" "):rep(MIB) .. sound.body
end, nil, { max_response_size = MIB })
fault {
  name = "a body without an end",
  options = { max_response_size = MIB },
  kind = "protocol",
  sent = true,
  act = function(connection)
    connection:send(head "Transfer-Encoding: chunked\r\n" .. ("10000\r\n" .. (" "):rep(65536) .. "\r\n"):rep(32))
  end,
}
answer("headers above the limit", "protocol", function(sound)
  local fillers = ("X-Filler: " .. ("x"):rep(1000) .. "\r\n"):rep(300)
  return peer.response(sound.body, fillers)
end)
answer("a header line without an end", "protocol", function()
  return "HTTP/1.1 200 OK\r\nX-Filler: " .. ("x"):rep(300 * 1024)
end)

-- Encodings

answer("a bad chunk size", "protocol", function(sound)
  return head "Transfer-Encoding: chunked\r\n" .. "zz\r\n" .. sound.body .. "\r\n0\r\n\r\n"
end)
answer("a chunk longer than it says", "protocol", function(sound)
  return head "Transfer-Encoding: chunked\r\n" .. ("%x\r\n%s\r\n0\r\n\r\n"):format(#sound.body - 1, sound.body)
end)
unreadable_body("a body that is not the gzip it says", function(sound)
  return sound.body
end, GZIP)
unreadable_body("gzip with a wrong check sum", function(sound)
  return stored_gzip(sound.body)
end, GZIP)
-- Over cosockets a compressed answer is refused before it is read.
body("gzip that ends early", function(sound)
  return stored_gzip(sound.body):sub(1, -20)
end, GZIP, { over_cosockets = { status = false } })
unreadable_body("a gzip bomb", gzip_bomb, GZIP, { max_response_size = MIB })
unreadable_body("an encoding that nobody knows", function(sound)
  return sound.body
end, "Content-Encoding: rot13\r\n")

-- Bodies

body("invalid UTF-8", function(sound)
  return (sound.body:gsub("SUCCESS", "\255", 1))
end)
body("invalid JSON", function(sound)
  return sound.body:sub(1, -2)
end)
body("bytes after the JSON", function(sound)
  return sound.body .. "}"
end)
body("a NUL after the JSON", function(sound)
  return sound.body .. "\0"
end)
body("a number that JSON does not have", function(sound)
  return (sound.body:gsub('"success":true', '"success":NaN', 1))
end)
body("two members of one name", function(sound)
  return (sound.body:gsub('"success":true', '"success":false,"success":true', 1))
end)
body("a success with the message of a failure", function(sound)
  return (sound.body:gsub('"msg":"SUCCESS"', '"msg":"address is invalid"', 1))
end)
body("100,000-deep arrays", function()
  return '{"success":true,"code":1,"data":' .. ("["):rep(100000) .. ("]"):rep(100000) .. "}"
end)
body("100,000-deep objects", function()
  return ('{"data":'):rep(100000) .. "1" .. ("}"):rep(100000)
end)
body("an HTML page with HTTP 200", function(sound)
  return "<html>your key " .. sound.key .. " is not welcome</html>"
end)
body("an empty body with HTTP 200", function()
  return ""
end)
body("a JSON null", function()
  return "null"
end)
body("a JSON array", function(sound)
  return "[" .. sound.body .. "]"
end)
body("an envelope without anything in it", function()
  return "{}"
end)
answer("a failure with HTTP 200", "api", function(sound)
  return peer.response(('{"success":false,"code":4001,"msg":"key %s","status":"FAIL"}'):format(sound.key))
end, { status = 200 })
answer("another protocol's greeting", "protocol", function()
  return "SSH-2.0-OpenSSH_9.2\r\n" .. ("x"):rep(200) .. "\r\n"
end)
answer("an HTTP/0.9 answer", "protocol", function(sound)
  return sound.body
end)
answer("a status that is no number", "protocol", function(sound)
  return "HTTP/1.1 OK 200\r\nContent-Length: " .. #sound.body .. "\r\n\r\n" .. sound.body
end)

-- Statuses

answer("HTTP 204", "http", function()
  return "HTTP/1.1 204 No Content\r\n\r\n"
end, { status = 204 })
answer("HTTP 206 with a part of the body", "http", function(sound)
  return peer.response(sound.body, "Content-Range: bytes 0-9/100\r\n", "206 Partial Content")
end, { status = 206 })
for _, code in ipairs { 301, 302, 303, 307, 308 } do
  answer("HTTP " .. code .. " to another host", "http", function(sound)
    local location = ("Location: %s/?key=%s\r\n"):format(sound.elsewhere, sound.key)
    return peer.response(sound.body, location, code .. " Elsewhere")
  end, { status = code })
end
status(400, "bad_request")
status(401, "unauthorized")
status(403, "http")
status(404, "http")
status(408, "http", "Connection: close\r\n")
status(429, "rate_limited")
status(429, "rate_limited", "Retry-After: 7\r\n", { name = "HTTP 429 with Retry-After", retry_after = 7 })
status(500, "server")
status(502, "server")
status(503, "server", "Retry-After: 3\r\n", { retry_after = 3 })
status(504, "server")
status(999, "http")

-- Connections that are kept

local LARGE = 40000 -- bytes: more than a client reads at once
local LATER = 0.05 -- seconds
local STALE = peer.response '{"success":false,"code":7,"msg":"stale"}'

fault {
  name = "a connection that is closed after each answer",
  warm = true,
  requests = 2,
  act = function(connection, sound)
    connection:send(sound.text)
    connection:finish()
  end,
}
fault {
  name = "an idle connection that is closed after a while",
  warm = true,
  settles = true,
  requests = 2,
  act = function(connection, sound)
    connection:send(sound.text)
    connection.peer.driver:after(0, function()
      connection:close()
      sound.settle()
    end)
  end,
}
fault {
  name = "a kept connection that breaks when it is used again",
  warm = true,
  requests = 3,
  act = function(connection, sound)
    if connection.count == 2 then
      connection:reset()
    else
      connection:send(sound.text)
    end
  end,
  unless_idempotent = { kind = "network", sent = true, requests = 2 },
}
fault {
  name = "an answer followed by another at once",
  warm = true,
  requests = 2,
  act = function(connection, sound)
    connection:send(sound.text .. STALE)
  end,
}
fault {
  name = "a large answer followed by another at once",
  warm = true,
  requests = 2,
  act = function(connection, sound)
    connection:send(peer.response(sound.body .. (" "):rep(LARGE)) .. STALE)
  end,
}
fault {
  name = "an answer followed by another in the TLS record of its body",
  start = fault_server.tls,
  tls = "split",
  warm = true,
  requests = 2,
  act = function(connection, sound)
    connection:send(sound.text .. STALE)
    connection:finish()
  end,
}
fault {
  name = "an answer on an idle connection that nobody asked for",
  warm = true,
  settles = true,
  requests = 2,
  act = function(connection, sound)
    connection:send(sound.text)
    -- By then the client has read its answer, or it reads both at once.
    connection.peer.driver:after(LATER, function()
      connection:send(STALE)
      sound.settle()
    end)
  end,
}

return faults
