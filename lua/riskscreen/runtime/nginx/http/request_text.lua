-- The bytes of a request: pure. Nothing that it is given can begin another header or another request.

local find = string.find

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
---a header's value, which may be the key. Headers that were written once must not change.
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

  -- All lines of some headers; or nil and what is wrong.
  local function join(headers)
    local all = {}
    for name, value in pairs(headers) do
      local line, wrong = line_of(name, value)
      if not line then
        return nil, wrong
      end
      all[#all + 1] = line
    end
    return common .. table.concat(all)
  end

  -- Nearly all requests have the headers of the one before.
  local last_headers, last_lines

  return function(request)
    local method, target, body, headers = request.method, request.target, request.body, request.headers
    local announced = announces_body[method]
    if announced == nil or not find(target, "^/[!-~]*$") then
      return nil, "the method or the target is malformed"
    end
    if headers ~= last_headers then
      local joined, wrong = join(headers)
      if not joined then
        return nil, wrong
      end
      last_headers, last_lines = headers, joined
    end
    if body or announced then
      body = body or ""
      return method .. " " .. target .. last_lines .. "Content-Length: " .. #body .. "\r\n\r\n" .. body
    end
    return method .. " " .. target .. last_lines .. "\r\n"
  end
end

return M
