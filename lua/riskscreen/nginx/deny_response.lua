-- What a caller is answered whom the gate does not let pass: a status, headers and a body that are settled before any
-- request comes, so that they cannot tell anything about what was found.
local json = require "riskscreen.json"
local text = require "riskscreen.util.text"

local ngx = _G.ngx

local DEFAULT_BODY = { error = "refused", message = "This request is not accepted." }

local function body(value)
  if type(value) ~= "table" then
    return value
  end
  local encoded, message = json.encode(value)
  return encoded, not encoded and ("cannot be written as JSON: " .. tostring(message)) or nil
end

local function headers(value)
  local copy = {}
  for name, content in pairs(value) do
    if type(name) ~= "string" or not name:find "^[%w!#$%%&'*+.^_`|~-]+$" then
      return nil, ("has a name that is no header name (got %s)"):format(text.show(name))
    elseif not text.is_header_value(content) then
      return nil, ("must map names to texts of one line (%s is none)"):format(name)
    end
    copy[name] = content
  end
  return copy
end

local M = {}

---@class riskscreen.nginx.Refusal
---@field status? integer
---@field body? table|string|false a table is sent as JSON; false: nginx's own page, or the location's error_page
---@field content_type? string
---@field headers? table<string, string>

---@type riskscreen.Option[]
M.options = {
  {
    name = "status",
    type = "integer",
    default = 403,
    minimum = 200,
    maximum = 599,
    unit = "",
    doc = "The HTTP status.",
  },
  {
    name = "body",
    type = "table|string|boolean",
    check = function(value)
      if value == true then
        return nil, "must be a table, a text, or false"
      end
      return body(value)
    end,
    doc = "A table is sent as JSON; false: nginx's own page, or the location's error_page.",
  },
  {
    name = "content_type",
    type = "string",
    default = "application/json",
    check = function(value)
      if value == "" or not text.is_header_value(value) then
        return nil, "must be a text of one line"
      end
      return value
    end,
    doc = "The type of the body.",
  },
  { name = "headers", type = "table", default = {}, check = headers, doc = "More headers." },
}

---What sends a refusal and ends the request.
---@param settings table checked by `options`
---@return fun()
function M.sender(settings)
  local content = settings.body
  if content == nil then
    content = body(DEFAULT_BODY)
  end
  local status = settings.status
  return function()
    for name, value in pairs(settings.headers) do
      ngx.header[name] = value
    end
    ngx.header["Cache-Control"] = "no-store"
    if content == false then
      return ngx.exit(status)
    end
    ngx.status = status
    ngx.header["Content-Type"] = settings.content_type
    ngx.header["Content-Length"] = #content
    ngx.print(content)
    return ngx.exit(status)
  end
end

return M
