-- Answers of HTTP/2 as frames, each with what the native client must make of it; nginx's client speaks HTTP/1.1 alone.
local libcurl = require "spec.support.libcurl"
local peer = require "spec.support.peer"

local BODY = '{"a":1}'

local HEADERS, RESET, SETTINGS, GOAWAY = 1, 3, 4, 7
local END_STREAM, END_HEADERS = 1, 4

local M = { cases = {} }

local function frame(kind, flags, stream, payload)
  local size = #payload
  return string.char(math.floor(size / 65536), math.floor(size / 256) % 256, size % 256, kind, flags, 0, 0, 0, stream)
    .. payload
end

-- A literal without indexing, not compressed (RFC 7541, 6.2.2).
local function field(name, value)
  return "\0" .. string.char(#name) .. name .. string.char(#value) .. value
end

local function headers(flags, ...)
  local fields, text = { ... }, {}
  for index = 1, #fields, 2 do
    text[#text + 1] = field(fields[index], fields[index + 1])
  end
  return frame(HEADERS, END_HEADERS + flags, 1, table.concat(text))
end

local function data(text, flags)
  return frame(0, flags or END_STREAM, 1, text)
end

-- A case that is refused, unless it has a status.
local function add(name, bytes, status, value)
  M.cases[#M.cases + 1] = { name = name, bytes = bytes, status = status, value = value }
end

-- A body whose stream does not end.
local function add_unended(name, bytes)
  local is_taken = libcurl.takes_unended_streams
  add(name, bytes, is_taken and 200 or nil, is_taken and { a = 1 } or nil)
end

local OK = { ":status", "200" }
local function ok(...)
  return headers(0, OK[1], OK[2], ...)
end

add("a body", ok() .. data(BODY), 200, { a = 1 })
add("a body with its length", ok("content-length", "7") .. data(BODY), 200, { a = 1 })
add("a body in two frames", ok() .. data('{"a"', 0) .. data(":1}"), 200, { a = 1 })
add("no body", headers(END_STREAM, ":status", "204"), 204)
add("an interim answer", headers(0, ":status", "103") .. ok() .. data(BODY), 200, { a = 1 })
add("trailers", ok() .. data(BODY, 0) .. headers(END_STREAM, "x", "y"), 200, { a = 1 })
add("another status", headers(0, ":status", "404") .. data(BODY), 404, { a = 1 })
add_unended("a body without its end", ok() .. data(BODY, 0))
add_unended("a reset in the body", ok() .. data(BODY, 0) .. frame(RESET, 0, 1, "\0\0\0\2"))
add("a reset before the head", frame(RESET, 0, 1, "\0\0\0\7"))
add_unended("an end of the connection", ok() .. data(BODY, 0) .. frame(GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0"))
add("a longer body than its length", ok("content-length", "6") .. data(BODY))
add("a shorter body than its length", ok("content-length", "8") .. data(BODY))
add("two lengths", ok("content-length", "7", "content-length", "8") .. data(BODY))
add("a malformed length", ok("content-length", "+7") .. data(BODY))
add("no status", headers(0, "content-length", "7") .. data(BODY))
add("two statuses", headers(0, ":status", "200", ":status", "404") .. data(BODY))
add("a status behind a field", headers(0, "x", "y", ":status", "200") .. data(BODY))
add("a status of four digits", headers(0, ":status", "2000") .. data(BODY))
add("a status that is none", headers(0, ":status", "2x0") .. data(BODY))
add("an upgrade", headers(0, ":status", "101") .. data(BODY))
add("an encoding that nobody asked for", ok("content-encoding", "br") .. data(BODY))
add("an encoding that is none", ok("content-encoding", "gzip") .. data(BODY))
add("a body before its head", data(BODY))
add("HTTP/1.1", peer.response(BODY))

---A peer that sends its settings, and the frames of the case for the first request.
function M.serve(driver, case)
  local serving
  serving = peer.tcp(driver, function(connection)
    -- The text before the first empty line is the client's preface.
    if connection.count == 1 then
      connection:send((case.bytes:find "^HTTP" and "" or frame(SETTINGS, 0, 0, "")) .. case.bytes)
      connection:finish()
    end
  end)
  return serving
end

for _, case in ipairs(M.cases) do
  case.kind = not case.status and "any" or nil
end

return M
