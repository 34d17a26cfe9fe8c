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

-- The one media type of the body, in lower case and without its parameters; another charset than UTF-8 would be another
-- text.
local function media_type()
  local value = ngx.req.get_headers(0)["content-type"]
  if type(value) ~= "string" then
    return nil
  end
  local charset = value:match '[cC][hH][aA][rR][sS][eE][tT]%s*=%s*"?([^%s;"]*)'
  if charset and charset:lower() ~= "utf-8" then
    return nil
  end
  return value:match("^%s*([^;%s]*)"):lower()
end

---The body, if it is of a media type: as another type it might be read otherwise behind the gate.
---@param is_type fun(media_type: string): boolean
---@param longest integer bytes
---@return string|nil text
---@return string|nil problem
function M.text(is_type, longest)
  local its_type = media_type()
  if not its_type or not is_type(its_type) then
    return nil, "is in a body of another media type"
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
