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

---A writer of requests. `check` returns nil, or a message where a part cannot be sent. `pieces` are the pieces of a
---checked request, to be sent at once one after the other. The next request has the same table.
---@class riskscreen.cosocket.Writer
---@field check fun(request: riskscreen.Request, key?: string, target?: string): string|nil
---@field pieces fun(request: riskscreen.Request, key?: string, target?: string): string[]

---A table of headers must not change after its first use.
---@param peer riskscreen.cosocket.Peer
---@param user_agent string
---@return riskscreen.cosocket.Writer
function M.writer(peer, user_agent)
  local common = " HTTP/1.1\r\nHost: " .. peer.authority .. "\r\nUser-Agent: " .. user_agent .. "\r\n"
  local last_headers, last_key, last_lines, last_end -- nearly all requests have the headers of the last one
  local without_body = { "", "", "" }

  local function read_headers(headers, key)
    if headers == last_headers and key == last_key then
      return nil
    end
    local lines, problem = lines_of(headers, key)
    if lines then
      last_headers, last_key, last_lines = headers, key, common .. lines
      last_end = last_lines .. "\r\n"
    end
    return problem
  end

  return {
    check = function(request, key, target)
      target = target or request.target
      if announces_body[request.method] == nil or byte(target) ~= SLASH or not is_visible(target) then
        return "the method or the target is malformed"
      end
      local problem = read_headers(request.headers, key)
      return problem
    end,

    -- Another request may have been checked meanwhile.
    pieces = function(request, key, target)
      local method, body = request.method, request.body
      target = target or request.target
      read_headers(request.headers, key)
      if body or announces_body[method] then
        body = body or ""
        return { beginnings[method], target, last_lines, "Content-Length: " .. #body .. "\r\n\r\n", body }
      end
      without_body[1], without_body[2], without_body[3] = beginnings[method], target, last_end
      return without_body
    end,
  }
end

return M
