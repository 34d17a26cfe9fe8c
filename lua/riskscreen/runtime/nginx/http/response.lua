-- Reads an answer from a connection. Interim answers are skipped, the head says where the body ends, and every size is
-- bounded. A connection has the methods of connection.lua.

local is_header_value = require("riskscreen.util.text").is_header_value

local concat = table.concat
local find, sub = string.find, string.sub

local MAX_HEADERS = 256 * 1024 -- bytes of an answer's headers
local MAX_SIZE_LINE = 4096 -- bytes of the line before a chunk
local BLOCK = 1024 -- pieces that are joined together

local M = {}

-- Receives bytes where the answer must not end.
local function more(connection, most)
  local bytes, failure = connection:receive(most)
  if failure == "closed" then
    local early = connection.phase == "body" and "incomplete answer from"
    return connection:lose("the connection was closed", early or "no answer before the connection was closed by")
  end
  return bytes, failure
end

-- Collects a body. Tiny pieces are joined early, so that they take little more memory than their bytes.
local function collector()
  local blocks, pieces, count = {}, {}, 0
  local size = 0
  return {
    add = function(piece)
      count = count + 1
      pieces[count] = piece
      size = size + #piece
      if count == BLOCK then
        blocks[#blocks + 1] = concat(pieces)
        pieces, count = {}, 0
      end
      return size
    end,
    text = function()
      blocks[#blocks + 1] = concat(pieces)
      return concat(blocks)
    end,
  }
end

local function too_large(connection, name, limit)
  connection:close()
  local message = "the answer from %s is larger than %s (%d bytes)"
  return connection:fail("protocol", message:format(connection.peer.title, name, limit))
end

local function body_too_large(connection, limit)
  return too_large(connection, "max_response_size", limit)
end

-- The head of the final answer, and the bytes after it. It asks for as many bytes as the last head of the peer had.
-- Then a known head is one string, and the body another. LuaJIT hashes a long string by few of its bytes. A head
-- together with its body would collide with the last ones (`./dev bench nginx`).
local function read_head(connection, parse)
  local peer = connection.peer
  local text, failure = more(connection, peer.head_size)
  local seen = 0
  while text do
    local first, last = find(text, "\r\n\r\n", 1, true)
    while not first do
      if #text > 4 and sub(text, 1, 5) ~= "HTTP/" or find(text, "\n\n", 1, true) then
        return connection:refuse "malformed answer"
      elseif seen + #text > MAX_HEADERS then
        return too_large(connection, "the limit of its headers", MAX_HEADERS)
      end
      local bytes
      bytes, failure = more(connection)
      if not bytes then
        return nil, failure
      end
      text = text .. bytes
      first, last = find(text, "\r\n\r\n", 1, true)
    end
    seen = seen + last
    if seen > MAX_HEADERS then
      return too_large(connection, "the limit of its headers", MAX_HEADERS)
    end
    local head, wrong = parse(text, last)
    if not head then
      return connection:refuse("malformed answer (" .. wrong .. ")")
    elseif head.status >= 200 then
      peer.head_size = last
      return head, sub(text, last + 1)
    elseif head.status == 101 then
      return connection:refuse "malformed answer (an upgrade that nobody asked for)"
    end
    text = sub(text, last + 1)
    if text == "" then
      text, failure = more(connection)
    end
  end
  return nil, failure
end

-- The body of an announced length, and whether nothing came after it.
local function read_length(connection, rest, length, limit)
  if length > limit then
    return body_too_large(connection, limit)
  elseif rest == "" and length > 0 then
    local failure
    rest, failure = more(connection, length)
    if not rest then
      return nil, failure
    end
  end
  if #rest >= length then
    return #rest == length and rest or sub(rest, 1, length), #rest == length
  end
  local pieces = collector()
  local size = pieces.add(rest)
  while size < length do
    local bytes, failure = more(connection)
    if not bytes then
      return nil, failure
    end
    local excess = size + #bytes - length
    if excess > 0 then
      pieces.add(sub(bytes, 1, -excess - 1))
      return pieces.text(), false
    end
    size = pieces.add(bytes)
  end
  return pieces.text(), true
end

-- The body up to the end of the connection.
local function read_to_end(connection, rest, limit)
  local pieces = collector()
  local size = pieces.add(rest)
  while size <= limit do
    local bytes, failure = connection:receive()
    if failure == "closed" then
      return pieces.text(), false
    elseif not bytes then
      return nil, failure
    end
    size = pieces.add(bytes)
  end
  return body_too_large(connection, limit)
end

-- The next line, without its end, and the position after it.
local function read_line(connection, text, position, limit)
  local first = find(text, "\r\n", position, true)
  while not first do
    if #text - position >= limit then
      return connection:refuse "bad chunked encoding"
    end
    local bytes, failure = more(connection)
    if not bytes then
      return nil, failure
    end
    text = sub(text, position) .. bytes
    position = 1
    first = find(text, "\r\n", 1, true)
  end
  local line = sub(text, position, first - 1)
  if not is_header_value(line) then
    return connection:refuse "bad chunked encoding"
  end
  return line, text, first + 2
end

-- Adds `length` bytes to the pieces; returns the text and the position after their line end.
local function read_chunk(connection, pieces, text, position, length)
  while #text - position + 1 < length + 2 do
    local there = #text - position + 1
    if there > 0 and there <= length then
      pieces.add(sub(text, position))
      length = length - there
      text, position = "", 1
    end
    local bytes, failure = more(connection)
    if not bytes then
      return nil, failure
    end
    text = sub(text, position) .. bytes
    position = 1
  end
  pieces.add(sub(text, position, position + length - 1))
  if sub(text, position + length, position + length + 1) ~= "\r\n" then
    return connection:refuse "bad chunked encoding"
  end
  return text, position + length + 2
end

-- Skips the lines after the last chunk. Returns whether nothing came after them.
local function read_trailers(connection, text, position)
  local seen = 0
  local line
  repeat
    line, text, position = read_line(connection, text, position, MAX_HEADERS - seen)
    if not line then
      return nil, text
    end
    seen = seen + #line
  until line == ""
  return position > #text
end

-- The body of a chunked answer, and whether nothing came after it.
local function read_chunks(connection, text, limit)
  local pieces, size, position = collector(), 0, 1
  while true do
    local line
    line, text, position = read_line(connection, text, position, MAX_SIZE_LINE)
    if not line then
      return nil, text
    end
    local digits = line:match "^(%x+)[ \t]*$" or line:match "^(%x+)[ \t]*;"
    if not digits then
      return connection:refuse "bad chunked encoding"
    end
    local length = #digits > 12 and math.huge or tonumber(digits, 16)
    size = size + length
    if size > limit then
      return body_too_large(connection, limit)
    elseif length == 0 then
      local clean, failure = read_trailers(connection, text, position)
      if clean == nil then
        return nil, failure
      end
      return pieces.text(), clean
    end
    text, position = read_chunk(connection, pieces, text, position, length)
    if not text then
      return nil, position
    end
  end
end

-- The body, and whether nothing came after it.
local function read_body(connection, head, rest, limit, method)
  local status, encoding = head.status, head.headers["content-encoding"]
  if status == 204 or status == 304 or method == "HEAD" then
    return "", rest == ""
  elseif encoding and encoding:lower() ~= "identity" then
    return connection:refuse "a compressed answer, which nobody asked for,"
  elseif head.chunked then
    return read_chunks(connection, rest, limit)
  elseif head.length then
    return read_length(connection, rest, head.length, limit)
  end
  return read_to_end(connection, rest, limit)
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
  local head, rest = read_head(connection, parse)
  if not head then
    return nil, nil, rest
  end
  local body, clean = read_body(connection, head, rest, limit, method)
  if not body then
    return nil, nil, clean
  elseif clean and head.persistent then
    connection:keep(head.idle)
  else
    connection:close()
  end
  return head, body
end

return M
