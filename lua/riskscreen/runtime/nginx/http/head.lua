-- The head of an HTTP/1.1 answer, from its bytes to its status, its headers and the length of its body. Pure. It is
-- stricter than a browser: a head that two programs could read in two ways is refused.

local is_header_value = require("riskscreen.util.text").is_header_value

local find, sub = string.find, string.sub

local MAX_CACHED_HEAD = 2048 -- bytes
local MAX_CACHED_HEADS = 32
local MAX_DIGITS = 15 -- of a length; a longer one exceeds every limit, and a double would not be exact

---@class riskscreen.cosocket.Head
---@field status integer
---@field http_version "1.0"|"1.1"
---@field headers table<string, string> lower-case names; values of one name are joined by ", "; must not change
---@field length? number bytes of the body, where they are announced
---@field chunked boolean the body comes in chunks
---@field persistent boolean the connection may be used again
---@field idle? number seconds after which the server closes it, where it says so

-- The name and the value of a line, or nil. A pattern such as "(.-)[ \t]*$" would take quadratic time on a long line.
local function parse_field(line)
  local name, value = line:match "^([A-Za-z0-9!#$%%&'*+.^_`|~-]+):[ \t]*(.*)$"
  if not name or not is_header_value(value) then
    return nil
  end
  return name:lower(), value:match "^.*[^ \t]" or ""
end

-- The version and the status of the first line, or nil.
local function parse_status(line)
  local version, status, rest = line:match "^HTTP/(1%.[01]) ([1-9]%d%d)(.*)$"
  if not version or not (rest == "" or find(rest, "^ ")) or not is_header_value(rest) then
    return nil
  end
  return version, tonumber(status)
end

-- Whether a list of tokens, such as Connection's, holds one.
local function has_token(list, token)
  local tokens = "," .. list:lower():gsub("[ \t]", "") .. ","
  return find(tokens, "," .. token .. ",", 1, true) ~= nil
end

local function is_persistent(version, connection)
  if not connection then
    return version == "1.1"
  end
  return not has_token(connection, "close") and (version == "1.1" or has_token(connection, "keep-alive"))
end

-- The announced length, or false for a malformed one. The same length may be repeated.
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
  return #first > MAX_DIGITS and math.huge or tonumber(first)
end

-- The head with the length of its body; or nil and a message.
local function frame(status, version, headers)
  local announced, coding, keep_alive = headers["content-length"], headers["transfer-encoding"], headers["keep-alive"]
  local length = announced and parse_length(announced)
  if length == false then
    return nil, "Content-Length is not a length"
  elseif coding and (coding:lower() ~= "chunked" or version == "1.0") then
    return nil, "a Transfer-Encoding other than chunked"
  elseif coding and length then
    return nil, "both Content-Length and Transfer-Encoding"
  end
  return {
    status = status,
    http_version = version,
    headers = headers,
    length = length or nil,
    chunked = coding ~= nil,
    persistent = is_persistent(version, headers.connection),
    idle = keep_alive and tonumber(keep_alive:lower():match "timeout=(%d+)"),
  }
end

local function parse(text)
  local line_end = find(text, "\r\n", 1, true)
  local version, status = parse_status(sub(text, 1, line_end - 1))
  if not version then
    return nil, "the status line is malformed"
  end
  local headers = {}
  local position = line_end + 2
  while position < #text - 1 do
    line_end = find(text, "\r\n", position, true)
    local name, value = parse_field(sub(text, position, line_end - 1))
    if not name then
      return nil, "a header line is malformed"
    end
    local before = headers[name]
    headers[name] = before and before .. ", " .. value or value
    position = line_end + 2
  end
  return frame(status, version, headers)
end

local M = {}

---A function that parses heads: the text up to the empty line that ends at `last`. It returns the head, or nil and a
---message. Within a second most answers have the same head, so the last heads are cached (bench/nginx.lua).
---@return fun(text: string, last: integer): riskscreen.cosocket.Head|nil, string|nil
function M.parser()
  local heads, count = {}, 0
  return function(text, last)
    local whole = last == #text and text or sub(text, 1, last)
    local head, problem = heads[whole], nil
    if not head then
      head, problem = parse(whole)
      if head and last <= MAX_CACHED_HEAD then
        if count == MAX_CACHED_HEADS then
          heads, count = {}, 0
        end
        heads[whole], count = head, count + 1
      end
    end
    return head, problem
  end
end

return M
