-- The body of the request that is served, as text, in memory or in the file to which nginx has buffered it.
-- Not here: what the text says (json_field.lua, parameters.lua).
local ngx = _G.ngx

local M = {}

local function read_file(name, longest)
  local file = io.open(name, "rb")
  if not file then
    return nil, "cannot be read"
  end
  local content = file:read(longest + 1)
  file:close()
  return content or ""
end

-- Whether a charset is nowhere another than UTF-8, which would be another text; of two, readers take either.
local function is_utf8(content_type)
  local _, said = content_type:gsub("charset", "")
  local _, as_utf8 = content_type:gsub('charset%s*=%s*"?utf%-8"?%s*%f[;%z]', "")
  return said == as_utf8
end

-- The one media type of the body, in lower case and without its parameters.
local function media_type(headers)
  local value = headers["content-type"]
  if type(value) ~= "string" or not is_utf8(value:lower()) then
    return nil
  end
  local its_type, next_mark = value:lower():match "^%s*([^;%s]*)%s*(.?)"
  return (next_mark == "" or next_mark == ";") and its_type or nil
end

-- Behind the gate a compressed body might be decompressed, and bytes that are a text as they stand be another one.
local function is_encoded(headers)
  local encoding = headers["content-encoding"]
  return encoding ~= nil and encoding ~= "identity"
end

---The body, if it is of a media type: as another type it might be read otherwise behind the gate.
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
  local ok = pcall(ngx.req.read_body)
  if not ok then
    return nil, "is in a body that cannot be read"
  end
  local text, problem = ngx.req.get_body_data(), nil
  local name = not text and ngx.req.get_body_file()
  if name then
    text, problem = read_file(name, longest)
  end
  if problem then
    return nil, "is in a body that " .. problem
  elseif not text then
    return nil, "is missing"
  elseif #text > longest then
    return nil, ("is in a body of more than %d bytes"):format(longest)
  end
  return text
end

return M
