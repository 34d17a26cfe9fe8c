-- The answer to a denied request: status, headers and body. That of `enforce` is made before any request comes, so it
-- cannot tell the caller anything about the decision.
local build = require "riskscreen.options.build"
local json = require "riskscreen.json"
local text = require "riskscreen.util.text"

local ngx = _G.ngx

local UNAVAILABLE = 503
local RETRY_AFTER = 5 -- seconds: the client's circuit is then probed, by default
local DEFAULT_BODY = '{"error":"refused","message":"This request is not accepted."}'

local function body(value)
  if value == true then
    return nil, "must be a table, a text, or false"
  elseif type(value) ~= "table" then
    return value
  end
  local encoded, message = json.encode(value)
  return encoded, not encoded and ("cannot be written as JSON: " .. tostring(message)) or nil
end

local function line(value)
  return text.is_header_value(value) and value or nil, "must be a text of one line"
end

local function content_type(value)
  return value ~= "" and line(value) or nil, "must be a text of one line"
end

local function named(headers)
  for name in pairs(headers) do
    if not name:find(text.HEADER_NAME) then
      return nil, ("must not have %s as the name of a header"):format(text.show(name))
    end
  end
  return headers
end

local M = {}

---@class riskscreen.nginx.DenyResponse
---@field status? integer
---@field body? table|string|false a table is sent as JSON; false: nginx's own page, or the location's error_page
---@field content_type? string
---@field headers? table<string, string>

---The options of an answer.
---@param least integer the lowest status
---@return riskscreen.Option[]
function M.options(least)
  return {
    build.count("status", "", 403, least, 599, "The HTTP status."),
    build.checked(
      "body",
      "table|string|boolean",
      body,
      "A table is sent as JSON; false: nginx's own page, or the location's error_page.",
      DEFAULT_BODY
    ),
    build.checked("content_type", "string", content_type, "The type of the body.", "application/json"),
    build.map("headers", build.checked("header", "string", line, ""), "More headers.", {}, named),
  }
end

---Sends an answer that is made for one request, and ends it. A refusal that may end is sent with `Retry-After`.
---@param status integer
---@param request_id string|nil
---@param more table<string, string> headers
---@param content string|false false: nginx's own page
---@param its_type? string the type of the content
function M.send(status, request_id, more, content, its_type)
  ngx.header["X-Request-Id"] = request_id
  ngx.header["Retry-After"] = status == UNAVAILABLE and RETRY_AFTER or nil
  for name, value in pairs(more) do
    ngx.header[name] = value
  end
  ngx.header["Cache-Control"] = "no-store"
  if content then
    ngx.status = status
    ngx.header["Content-Type"] = its_type
    ngx.header["Content-Length"] = #content
    ngx.print(content)
  end
  return ngx.exit(status)
end

---A function that sends the answer and ends the request.
---@param settings table checked by `options`
---@return fun(request_id: string|nil)
function M.sender(settings)
  return function(request_id)
    return M.send(settings.status, request_id, settings.headers, settings.body, settings.content_type)
  end
end

return M
