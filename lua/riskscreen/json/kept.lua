-- The text of a value that is kept in a store, a dict or a ticket. Nulls, numbers and bytes read as they were written,
-- so a decision is the same. A value that would read otherwise is refused when it is written.
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"

local MAX_EXACT = 2 ^ 53 -- above this, doubles skip integers

local decoder = json.decoder { null = "keep", duplicates = "refuse" }
local type_of = math.type or type -- luacheck: ignore 143

-- A whole number below MAX_EXACT may be read as an integer: every check takes it for one.
local function is_alike(left, right)
  if type(left) == "table" then
    return type(right) == "table" and json.is_array(left) == json.is_array(right)
  end
  return type(left) ~= "number" or type_of(left) == type_of(right) or math.abs(left) < MAX_EXACT
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
  if text and not tables.equal(value, M.decode(text), is_alike) then
    return nil, "it has a text that is not UTF-8, a list with gaps, or a number that JSON changes"
  end
  return text, message
end

return M
