-- The bytes of a request. Pure. No part of a request can begin another header or another request.

local text = require "riskscreen.util.text"

local byte, find = string.byte, string.find

local SLASH = byte "/"

-- Whether a request of the method announces a body even where it has none.
local announces_body = { GET = false, HEAD = false, DELETE = false, POST = true, PUT = true, PATCH = true }

-- The methods as requests begin with them. nginx goes through the pieces of a request four times, so there are few.
local beginnings = {}
for method in pairs(announces_body) do
  beginnings[method] = method .. " "
end

local is_visible = text.made_of "!-~"

local M = {}

-- The lines of the headers, or nil and a message. The message never shows a value, because one is the key.
local function lines_of(headers, key)
  local lines = {}
  if key then
    lines[1] = "X-Access-Key: " .. key .. "\r\n"
  end
  for name, value in pairs(headers) do
    if not find(name, text.HEADER_NAME) then
      return nil, "the name of a header is malformed"
    elseif not text.is_header_value(value) then
      return nil, "the value of the header " .. name .. " has control characters"
    end
    lines[#lines + 1] = name .. ": " .. value .. "\r\n"
  end
  return table.concat(lines)
end

---A function that writes a request as a list of texts, or returns nil and why a part cannot be sent. A table of headers
---must not change after its first use.
---@param peer riskscreen.cosocket.Peer
---@param user_agent string
---@return fun(request: riskscreen.Request, key?: string, target?: string): string[]|nil, string|nil
function M.writer(peer, user_agent)
  local common = " HTTP/1.1\r\nHost: " .. peer.authority .. "\r\nUser-Agent: " .. user_agent .. "\r\n"
  local last_headers, last_key, last_lines -- nearly all requests have the headers of the last one

  return function(request, key, target)
    local method, headers, body = request.method, request.headers, request.body
    target = target or request.target
    if announces_body[method] == nil or byte(target) ~= SLASH or not is_visible(target) then
      return nil, "the method or the target is malformed"
    elseif headers ~= last_headers or key ~= last_key then
      local lines, problem = lines_of(headers, key)
      if not lines then
        return nil, problem
      end
      last_headers, last_key, last_lines = headers, key, common .. lines
    end
    if body or announces_body[method] then
      body = body or ""
      return { beginnings[method], target, last_lines, "Content-Length: " .. #body .. "\r\n\r\n", body }
    end
    return { beginnings[method], target, last_lines, "\r\n" }
  end
end

return M
