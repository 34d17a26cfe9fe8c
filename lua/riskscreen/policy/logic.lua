-- Three-valued logic. A test answers true, false, or nil when the answer is not known. Pure.

local M = {}

---@param left boolean|nil
---@param right boolean|nil
---@return boolean|nil
function M.both(left, right)
  if left == false or right == false then
    return false
  end
  return left and right or nil
end

---Whether a test holds for one element of a list.
---@generic T
---@param list T[]
---@param test fun(element: T): boolean|nil
---@return boolean|nil
function M.any(list, test)
  local answer = false
  for _, element in ipairs(list) do
    local result = test(element)
    if result then
      return true
    elseif result == nil then
      answer = nil
    end
  end
  return answer
end

return M
