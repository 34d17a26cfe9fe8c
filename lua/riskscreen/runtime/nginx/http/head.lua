-- The head of an HTTP/1.1 answer, from its bytes to its status, its headers and the extent of its body: pure. It is
-- stricter than a browser: what two readers might read in two ways is refused.

local find, sub = string.find, string.sub

-- A table that need not grow; PUC Lua has none.
local has_sized, sized = pcall(require, "table.new")
local new_table = has_sized and sized or function()
  return {}
end

local USUAL = 8 -- headers of an answer
local LONGEST_KEPT = 200 -- bytes of a line that is remembered
local MOST_KEPT = 256 -- lines that are remembered
local LONGEST_HEAD_KEPT = 2048 -- bytes of a whole head that is remembered
local MOST_HEADS_KEPT = 32
local MOST_DIGITS = 15 -- of a length; more would not be counted exactly, and are more than any limit

---@class riskscreen.cosocket.Head
---@field status integer
---@field http_version "1.0"|"1.1"
---@field headers table<string, string> lower-case names; repeated ones are joined by ", "; nobody may change them
---@field length? number bytes of the body, where they are announced
---@field chunked boolean the body comes in chunks
---@field persistent boolean the connection may be used again
---@field idle? number seconds after which the server closes it, where it says so

-- The name and the value of a line, or nil. No pattern here may try a long line again and again: "(.-)[ \t]*$" would.
local function parse_field(line)
  local name, value = line:match "^([A-Za-z0-9!#$%%&'*+.^_`|~-]+):[ \t]*(.*)$"
  if not name or find(value, "[%z\1-\8\10-\31\127]") then
    return nil
  end
  return name:lower(), value:match "^.*[^ \t]" or ""
end

-- The version and the status of the first line, or nil.
local function parse_status(line)
  local version, status, rest = line:match "^HTTP/(1%.[01]) ([1-9]%d%d)(.*)$"
  if not version or not (rest == "" or find(rest, "^ ")) or find(rest, "[%z\1-\8\10-\31\127]") then
    return nil
  end
  return version, tonumber(status)
end

-- Remembers what `parse` made of the lines seen last: a service sends almost the same head every time.
local function remembering(parse)
  local firsts, seconds, count = {}, {}, 0
  return function(line)
    local first = firsts[line]
    if first then
      return first, seconds[line]
    end
    local second
    first, second = parse(line)
    if first and #line <= LONGEST_KEPT then
      if count == MOST_KEPT then
        firsts, seconds, count = {}, {}, 0
      end
      firsts[line], seconds[line] = first, second
      count = count + 1
    end
    return first, second
  end
end

-- Whether a list of tokens, such as Connection's, holds one.
local function has_token(list, token)
  local tokens = "," .. list:lower():gsub("[ \t]", "") .. ","
  return find(tokens, "," .. token .. ",", 1, true) ~= nil
end

local function is_persistent(version, connection)
  if not connection or connection == "keep-alive" then
    return version == "1.1" or connection ~= nil
  end
  return not has_token(connection, "close") and (version == "1.1" or has_token(connection, "keep-alive"))
end

-- The announced length, or false when it is none. The same one may be said twice.
local function parse_length(text)
  local first = text:match "^%d+"
  if not first then
    return false
  elseif first ~= text then
    for other in (text .. ","):gmatch "([^,]*)," do
      if other:match "^[ \t]*(%d+)[ \t]*$" ~= first then
        return false
      end
    end
  end
  return #first > MOST_DIGITS and math.huge or tonumber(first)
end

-- The head with how its body is delimited; or nil and what is wrong.
local function frame(status, version, headers, length)
  local coding, promise = headers["transfer-encoding"], headers["keep-alive"]
  if length == false then
    return nil, "Content-Length is not a length"
  elseif coding and (coding:lower() ~= "chunked" or version == "1.0") then
    return nil, "a Transfer-Encoding other than chunked"
  end
  return {
    status = status,
    http_version = version,
    headers = headers,
    length = not coding and length or nil,
    chunked = coding ~= nil,
    -- Whoever disagrees with us about the end of a body would begin the next answer elsewhere.
    persistent = not (coding and length) and is_persistent(version, headers.connection),
    idle = promise and tonumber(promise:lower():match "timeout=(%d+)"),
  }
end

local M = {}

---A function that parses heads: the text up to and including the empty line that ends it at `last`. It returns the
---head, or nil and what is wrong.
---@return fun(text: string, last: integer): riskscreen.cosocket.Head|nil, string|nil
function M.parser()
  local field_of, status_of, length_of = remembering(parse_field), remembering(parse_status), remembering(parse_length)

  local function parse(text, last)
    local line_end = find(text, "\r\n", 1, true)
    local version, status = status_of(sub(text, 1, line_end - 1))
    if not version then
      return nil, "the status line is malformed"
    end
    local headers = new_table(0, USUAL)
    local position = line_end + 2
    while position < last - 1 do
      line_end = find(text, "\r\n", position, true)
      local name, value = field_of(sub(text, position, line_end - 1))
      if not name then
        return nil, "a header line is malformed"
      end
      local before = headers[name]
      headers[name] = before and before .. ", " .. value or value
      position = line_end + 2
    end
    local announced = headers["content-length"]
    return frame(status, version, headers, announced and length_of(announced))
  end

  -- Within a second most answers have the same head.
  local heads, count = {}, 0
  return function(text, last)
    local whole = sub(text, 1, last)
    local head, wrong = heads[whole], nil
    if not head then
      head, wrong = parse(whole, last)
      if head and last <= LONGEST_HEAD_KEPT then
        if count == MOST_HEADS_KEPT then
          heads, count = {}, 0
        end
        heads[whole], count = head, count + 1
      end
    end
    return head, wrong
  end
end

return M
