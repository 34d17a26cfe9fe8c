-- The bytes of a request: pure. Nothing that it is given can begin another header or another request.

local find = string.find
local concat = table.concat

local MOST_KEPT = 64 -- header names whose line is remembered
local methods_with_body = { POST = true, PUT = true, PATCH = true }

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

  return function(request)
    local method, target, body = request.method, request.target, request.body
    if not find(method, "^[A-Z]+$") or not find(target, "^/") or find(target, "[%z\1-\32\127]") then
      return nil, "the method or the target is malformed"
    end
    local parts, size = { method, " ", target, common }, 4
    for name, value in pairs(request.headers) do
      local line, wrong = line_of(name, value)
      if not line then
        return nil, wrong
      end
      size = size + 1
      parts[size] = line
    end
    if body or methods_with_body[method] then
      body = body or ""
      size = size + 1
      parts[size] = "Content-Length: " .. #body .. "\r\n"
    end
    parts[size + 1] = "\r\n"
    parts[size + 2] = body
    return concat(parts)
  end
end

return M
