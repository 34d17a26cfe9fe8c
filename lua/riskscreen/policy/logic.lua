-- Three-valued logic. A test answers true, false, or nil when the answer is not known. Pure.
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"

local EMPTY = json.empty_array()

local M = {}

---Whether a field of an answer is absent: left out, or null.
---@param value any
---@return boolean
function M.is_absent(value)
  return value == nil or value == json.null
end

---A list of an answer. An absent one is not an empty one, unless the operator says so.
---@param value any
---@param meaning? "unknown"|"none" of an absent list
---@return any[]|nil list nil where it is not known
function M.list(value, meaning)
  if M.is_absent(value) then
    return meaning == "none" and EMPTY or nil
  end
  return type(value) == "table" and tables.sequence_length(value) and value or nil
end

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
