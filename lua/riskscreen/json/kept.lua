-- What is kept in a store, a dict or a ticket, as a text. It reads as the value that was written: nulls, numbers and
-- bytes are the same, so that a decision about it is the same. A value for which that is not so cannot be written.
local json = require "riskscreen.json"

local MAX_EXACT = 2 ^ 53 -- above this, doubles skip integers

local decoder = json.decoder { null = "keep", duplicates = "refuse" }
local type_of = math.type or type -- luacheck: ignore 143

-- A whole number below MAX_EXACT may be read as an integer: every check takes it for one.
local function is_same(left, right)
  if type(left) ~= "table" or type(right) ~= "table" then
    return left == right and (type(left) ~= "number" or type_of(left) == type_of(right) or math.abs(left) < MAX_EXACT)
  end
  for key, value in pairs(left) do
    if not is_same(value, right[key]) then
      return false
    end
  end
  for key in pairs(right) do
    if left[key] == nil then
      return false
    end
  end
  return json.is_array(left) == json.is_array(right)
end

local M = {}

---The value of a text that `encode` or an earlier version has written; nulls are `json.null`.
---@param text any
---@return any value nil for any other text
function M.decode(text)
  if type(text) == "string" then
    return (decoder:decode(text))
  end
end

---The text of a value.
---@param value any
---@return string|nil text
---@return string|nil message why it cannot be kept
function M.encode(value)
  local text, message = json.encode(value)
  if text and not is_same(value, M.decode(text)) then
    return nil, "it has a text that is not UTF-8, a list with gaps, or a number that JSON changes"
  end
  return text, message
end

return M
