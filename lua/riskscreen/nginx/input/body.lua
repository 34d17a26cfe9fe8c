-- The body of the request that is served, from memory or from nginx's buffer file. json_field.lua and parameters.lua
-- read its text.
local runtime = require "riskscreen.runtime"

local ngx = _G.ngx

local M = {}

-- Whether every charset is UTF-8: another one would make another text. Of two charsets, programs take either.
local function is_utf8(content_type)
  local _, charsets = content_type:gsub("charset", "")
  local _, as_utf8 = content_type:gsub('charset%s*=%s*"?utf%-8"?%s*%f[;%z]', "")
  return charsets == as_utf8
end

-- The media type of the body, in lower case and without parameters; nil if there are two.
local function media_type(headers)
  local value = headers["content-type"]
  if type(value) ~= "string" or not is_utf8(value:lower()) then
    return nil
  end
  local its_type, next_mark = value:lower():match "^%s*([^;%s]*)%s*(.?)"
  return (next_mark == "" or next_mark == ";") and its_type or nil
end

-- The application may decompress a body that the gate has read as it is.
local function is_encoded(headers)
  local encoding = headers["content-encoding"]
  return encoding ~= nil and encoding ~= "identity"
end

---The body, if it has a media type. The application may read a body of another type in another way.
---@param is_type fun(media_type: string): boolean
---@param longest integer bytes
---@return string|nil text
---@return string|nil problem
function M.text(is_type, longest)
  local headers = ngx.req.get_headers(0)
  local its_type = media_type(headers)
  if not its_type or not is_type(its_type) then
    return nil, "is in a body of another media type"
  elseif is_encoded(headers) then
    return nil, "is in a body that is compressed"
  end
  local text = runtime.read_body(longest + 1)
  if not text then
    return nil, "is in a body that cannot be read"
  elseif text == "" then
    return nil, "is missing"
  elseif #text > longest then
    return nil, ("is in a body of more than %d bytes"):format(longest)
  end
  return text
end

return M
