-- The bytes of a request. Pure. No part of a request can begin another header or another request.

local made_of = require("riskscreen.util.text").made_of

local byte, find = string.byte, string.find

local SLASH = byte "/"

-- Whether a request of the method announces a body even where it has none.
local announces_body = { GET = false, HEAD = false, DELETE = false, POST = true, PUT = true, PATCH = true }

local is_visible = made_of "!-~"

local M = {}

-- The lines of the headers, or nil and a message. The message never shows a value, because one is the key.
local function lines_of(headers)
  local lines = {}
  for name, value in pairs(headers) do
    if not find(name, "^[A-Za-z0-9!#$%%&'*+.^_`|~-]+$") then
      return nil, "the name of a header is malformed"
    elseif find(value, "[%z\1-\8\10-\31\127]") then
      return nil, "the value of the header " .. name .. " has control characters"
    end
    lines[#lines + 1] = name .. ": " .. value .. "\r\n"
  end
  return table.concat(lines)
end

---A function that writes requests, each in pieces that are sent one after the other: joined, they would be another long
---string for each request. It returns nil and a message where a part cannot be sent. A table of headers must not change
---after its first use.
---@param peer riskscreen.cosocket.Peer
---@param user_agent string
---@return fun(request: riskscreen.Request): string[]|nil, string|nil
function M.writer(peer, user_agent)
  local common = " HTTP/1.1\r\nHost: " .. peer.authority .. "\r\nUser-Agent: " .. user_agent .. "\r\n"
  local last_headers, last_lines, last_end -- nearly all requests have the headers of the last one

  return function(request)
    local method, target, body, headers = request.method, request.target, request.body, request.headers
    local announced = announces_body[method]
    if announced == nil or byte(target) ~= SLASH or not is_visible(target) then
      return nil, "the method or the target is malformed"
    end
    if headers ~= last_headers then
      local lines, problem = lines_of(headers)
      if not lines then
        return nil, problem
      end
      last_headers, last_lines = headers, common .. lines
      last_end = last_lines .. "\r\n"
    end
    if body or announced then
      body = body or ""
      return { method, " ", target, last_lines, "Content-Length: " .. #body .. "\r\n\r\n", body }
    end
    return { method, " ", target, last_end }
  end
end

return M
