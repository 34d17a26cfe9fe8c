-- Whether a secret can be found anywhere in a value.

local M = {}

---@param value any tables are searched with their names, members and metatables, anything as `tostring` shows it
---@param secret string
---@return boolean
function M.holds(value, secret, seen)
  seen = seen or {}
  if tostring(value):find(secret, 1, true) then
    return true
  elseif type(value) ~= "table" or seen[value] then
    return false
  end
  seen[value] = true
  for name, member in pairs(value) do
    if M.holds(name, secret, seen) or M.holds(member, secret, seen) then
      return true
    end
  end
  return M.holds(getmetatable(value), secret, seen)
end

---The path of the fields that lead from a value to a text with a secret, or nil. Functions are not looked into.
---@param value any
---@param secret string
---@return string|nil
function M.path_to(value, secret, path, seen)
  path, seen = path or "value", seen or {}
  if type(value) == "string" then
    return value:find(secret, 1, true) and path
  elseif (type(value) ~= "table" and type(value) ~= "userdata") or seen[value] then
    return nil
  end
  seen[value] = true
  local found = type(getmetatable(value)) == "table" and M.path_to(getmetatable(value), secret, path .. "<meta>", seen)
  for name, member in next, type(value) == "table" and value or {} do
    local place = path .. "." .. tostring(name)
    found = found or M.path_to(name, secret, place .. "<name>", seen) or M.path_to(member, secret, place, seen)
  end
  return found or nil
end

return M
