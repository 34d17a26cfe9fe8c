-- The bytes of a request: pure. Nothing that it is given can begin another header or another request.

local find = string.find
local concat = table.concat

local MOST_KEPT = 64 -- header names whose line is remembered
-- Whether a request of the method announces a body even where it has none.
local announces_body = { GET = false, HEAD = false, DELETE = false, POST = true, PUT = true, PATCH = true }

local function is_name(name)
  return find(name, "^[A-Za-z0-9!#$%%&'*+.^_`|~-]+$") ~= nil
end

local function is_value(value)
  return not find(value, "[%z\1-\8\10-\31\127]")
end

local M = {}

---A function that writes requests; it returns nil and what is wrong where a part cannot be sent. A message never shows
---a header's value, which may be the key.
---@param peer riskscreen.cosocket.Peer
---@param user_agent string
---@return fun(request: riskscreen.Request): string|nil, string|nil
function M.writer(peer, user_agent)
  local common = " HTTP/1.1\r\nHost: " .. peer.authority .. "\r\nUser-Agent: " .. user_agent .. "\r\n"
  local values, lines, count = {}, {}, 0

  -- Most headers are the same every time.
  local function line_of(name, value)
    if values[name] == value then
      return lines[name]
    elseif not is_name(name) then
      return nil, "the name of a header is malformed"
    elseif not is_value(value) then
      return nil, "the value of the header " .. name .. " has control characters"
    end
    local line = name .. ": " .. value .. "\r\n"
    if values[name] == nil then
      if count == MOST_KEPT then
        values, lines, count = {}, {}, 0
      end
      count = count + 1
    end
    values[name], lines[name] = value, line
    return line
  end

  -- Nothing waits while a text is written, so that all share the list of its parts.
  local parts = {}

  return function(request)
    local method, target, body = request.method, request.target, request.body
    local announced = announces_body[method]
    if announced == nil or not find(target, "^/[!-~]*$") then
      return nil, "the method or the target is malformed"
    end
    parts[1], parts[2], parts[3], parts[4] = method, " ", target, common
    local size = 4
    for name, value in pairs(request.headers) do
      local line, wrong = line_of(name, value)
      if not line then
        return nil, wrong
      end
      size = size + 1
      parts[size] = line
    end
    if body or announced then
      body = body or ""
      parts[size + 1], parts[size + 2], parts[size + 3] = "Content-Length: " .. #body, "\r\n\r\n", body
      return concat(parts, "", 1, size + 3)
    end
    parts[size + 1] = "\r\n"
    return concat(parts, "", 1, size + 1)
  end
end

return M
