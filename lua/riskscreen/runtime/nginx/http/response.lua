-- Reads an answer from a connection. Interim answers are skipped, the head says where the body ends, and every size is
-- bounded. A connection has the methods and the fields of connection.lua.

local is_header_value = require("riskscreen.util.text").is_header_value

local concat = table.concat
local find, sub = string.find, string.sub

local MAX_HEADERS = 256 * 1024 -- bytes of an answer's headers
local MAX_SIZE_LINE = 4096 -- bytes of the line before a chunk

local M = {}

-- Receives bytes behind those that were not read yet, where the answer must not end.
local function more(connection, most)
  local bytes, failure = connection:receive(most)
  if bytes then
    connection.text, connection.at = sub(connection.text, connection.at) .. bytes, 1
  elseif failure == "closed" then
    local early = connection.phase == "body" and "incomplete answer from"
    return connection:lose("the connection was closed", early or "no answer before the connection was closed by")
  end
  return bytes, failure
end

-- Adds bytes to the pieces of a body. A piece is joined with the shorter ones before it. So tiny pieces take little
-- more memory than their bytes, and no byte is copied often.
local function add(pieces, bytes)
  local count = #pieces
  while count > 0 and #pieces[count] <= #bytes do
    bytes = pieces[count] .. bytes
    pieces[count] = nil
    count = count - 1
  end
  pieces[count + 1] = bytes
end

local function too_large(connection, name, limit)
  connection:close()
  local message = "the answer from %s is larger than %s (%d bytes)"
  return connection:fail("protocol", message:format(connection.peer.title, name, limit))
end

local function body_too_large(connection, limit)
  return too_large(connection, "max_response_size", limit)
end

-- The head of the final answer. It asks for as many bytes as the last head of the peer had. Then a known head is one
-- string, and the body another. LuaJIT hashes a long string by few of its bytes. A head together with its body would
-- collide with the last ones (`./dev bench nginx`).
local function read_head(connection, parse)
  local peer, seen = connection.peer, 0
  local received, failure = more(connection, peer.head_size)
  while received do
    local text = connection.text
    local _, last = find(text, "\r\n\r\n", 1, true)
    if seen + (last or #text) > MAX_HEADERS then
      return too_large(connection, "the limit of its headers", MAX_HEADERS)
    elseif last then
      seen = seen + last
      local head, wrong = parse(text, last)
      if not head then
        return connection:refuse("malformed answer (" .. wrong .. ")")
      elseif head.status == 101 then
        return connection:refuse "malformed answer (an upgrade that nobody asked for)"
      end
      connection.text = sub(text, last + 1)
      if head.status >= 200 then
        peer.head_size = last
        return head
      end
    elseif #text > 4 and sub(text, 1, 5) ~= "HTTP/" or find(text, "\n\n", 1, true) then
      return connection:refuse "malformed answer"
    else
      received, failure = more(connection)
    end
  end
  return nil, failure
end

-- Reads bytes of the body into its pieces.
local function read_bytes(connection, count, pieces)
  while #connection.text - connection.at + 1 < count do
    local piece = sub(connection.text, connection.at)
    add(pieces, piece)
    count = count - #piece
    connection.at = #connection.text + 1
    local received, failure = more(connection)
    if not received then
      return nil, failure
    end
  end
  add(pieces, sub(connection.text, connection.at, connection.at + count - 1))
  connection.at = connection.at + count
  return true
end

-- The next line of a chunked body, without its end.
local function read_line(connection, limit)
  local first = find(connection.text, "\r\n", connection.at, true)
  while not first do
    if #connection.text - connection.at >= limit then
      return connection:refuse "bad chunked encoding"
    end
    local received, failure = more(connection)
    if not received then
      return nil, failure
    end
    first = find(connection.text, "\r\n", 1, true)
  end
  local line = sub(connection.text, connection.at, first - 1)
  connection.at = first + 2
  if not is_header_value(line) then
    return connection:refuse "bad chunked encoding"
  end
  return line
end

-- The body of an announced length. Mostly it comes as one text, and needs no pieces.
local function read_length(connection, length, limit)
  if length > limit then
    return body_too_large(connection, limit)
  elseif connection.text == "" and length > 0 then
    local received, failure = more(connection, length)
    if not received then
      return nil, failure
    end
  end
  local body = connection.text
  if #body == length then
    connection.at = length + 1
    return body
  end
  local pieces = {}
  local done, failure = read_bytes(connection, length, pieces)
  return done and concat(pieces), failure
end

-- The body up to the end of the connection.
local function read_to_end(connection, limit)
  local pieces, size = { connection.text }, #connection.text
  while size <= limit do
    local bytes, failure = connection:receive()
    if failure == "closed" then
      connection.is_over = true
      return concat(pieces)
    elseif not bytes then
      return nil, failure
    end
    add(pieces, bytes)
    size = size + #bytes
  end
  return body_too_large(connection, limit)
end

-- The length of the next chunk.
local function read_size(connection)
  local line, failure = read_line(connection, MAX_SIZE_LINE)
  if not line then
    return nil, failure
  end
  local digits = line:match "^(%x+)[ \t]*$" or line:match "^(%x+)[ \t]*;"
  if not digits then
    return connection:refuse "bad chunked encoding"
  end
  return #digits > 12 and math.huge or tonumber(digits, 16)
end

-- Skips the lines after the last chunk.
local function skip_trailers(connection)
  local left = MAX_HEADERS
  while true do
    local line, failure = read_line(connection, left)
    if not line or line == "" then
      return line, failure
    end
    left = left - #line
  end
end

-- The body of a chunked answer.
local function read_chunks(connection, limit)
  local pieces, size = {}, 0
  while true do
    local length, failure = read_size(connection)
    if not length then
      return nil, failure
    end
    size = size + length
    if size > limit then
      return body_too_large(connection, limit)
    elseif length == 0 then
      local line, wrong = skip_trailers(connection)
      return line and concat(pieces), wrong
    end
    local behind, wrong = read_bytes(connection, length, pieces)
    if behind then
      behind, wrong = read_line(connection, 1)
    end
    if not behind then
      return nil, wrong
    elseif behind ~= "" then
      return connection:refuse "bad chunked encoding"
    end
  end
end

local function read_body(connection, head, limit, method)
  local status, encoding = head.status, head.headers["content-encoding"]
  if status == 204 or status == 304 or method == "HEAD" then
    return ""
  elseif encoding and encoding:lower() ~= "identity" then
    return connection:refuse "a compressed answer, which nobody asked for,"
  elseif head.chunked then
    return read_chunks(connection, limit)
  elseif head.length then
    return read_length(connection, head.length, limit)
  end
  return read_to_end(connection, limit)
end

---Reads the answer; the connection is then ended, or kept where it may be used again.
---@param connection riskscreen.cosocket.Connection
---@param parse fun(text: string, last: integer): riskscreen.cosocket.Head|nil, string|nil
---@param limit integer bytes of a body
---@param method string of the request
---@return riskscreen.cosocket.Head|nil head
---@return string|nil body
---@return table|nil failure
function M.read(connection, parse, limit, method)
  local head, failure = read_head(connection, parse)
  local body
  if head then
    body, failure = read_body(connection, head, limit, method)
  end
  if not body then
    return nil, nil, failure
  elseif head.persistent and not connection.is_over and connection.at > #connection.text then
    connection:keep(head.idle)
  else
    connection:close()
  end
  return head, body
end

return M
