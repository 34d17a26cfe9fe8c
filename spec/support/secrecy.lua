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

return M
