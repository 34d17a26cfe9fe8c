-- Exact comparison of decimal numbers that travel as text. They never become floats.

local tables = require "riskscreen.util.tables"

local MAX_LENGTH = 1024 -- bytes of one number
local MAX_EXPONENT_DIGITS = 9

local M = {}

-- The sign (-1, 0, 1), the digits without zeros at either end, and the power of ten of the first digit.
local function parse(text)
  if type(text) ~= "string" or #text > MAX_LENGTH then
    return nil
  end
  local sign, mantissa, exponent = text:match "^([+-]?)([0-9.]+)([eE]?[+-]?[0-9]*)$"
  local whole, fraction = (mantissa or ""):match "^([0-9]+)%.?([0-9]*)$"
  if not whole or mantissa:find "%.$" then
    return nil
  end
  local power = 0
  if exponent ~= "" then
    local digits = exponent:match "^[eE]([+-]?[0-9]+)$"
    if not digits or #digits:gsub("^[+-]", "") > MAX_EXPONENT_DIGITS then
      return nil
    end
    power = tonumber(digits)
  end
  local zeros, digits = (whole .. fraction):match "^(0*)([0-9]*)$"
  if digits == "" then
    return 0, "", 0
  end
  return sign == "-" and -1 or 1, (digits:gsub("0+$", "")), power + #whole - #zeros - 1
end

local function order(a, b)
  return a == b and 0 or (a < b and -1 or 1)
end

local function refusal(value)
  local shown = type(value) == "string" and "'" .. value:sub(1, 40):gsub("[%z\1-\31\127]", "?") .. "'"
    or "a " .. type(value)
  return ("must be a decimal number written as a text, such as '12.50' (got %s)"):format(shown)
end

---Whether a value is the text of a decimal number: digits, perhaps with a sign, a fraction and an exponent.
---@param value any
---@return boolean ok
---@return string|nil message why not
function M.check(value)
  if parse(value) then
    return true
  end
  return false, refusal(value)
end

---Compares two decimal texts by their exact value.
---@param a string
---@param b string
---@return -1|0|1|nil order -1 when a is less than b, 0 when they are equal, 1 when a is greater
---@return string|nil message names the text that is no decimal
function M.compare(a, b)
  local sign_a, digits_a, power_a = parse(a)
  if not sign_a then
    return nil, "the first " .. refusal(a)
  end
  local sign_b, digits_b, power_b = parse(b)
  if not sign_b then
    return nil, "the second " .. refusal(b)
  elseif sign_a ~= sign_b then
    return order(sign_a, sign_b)
  end
  local magnitude = order(power_a, power_b)
  if magnitude == 0 or sign_a == 0 then
    magnitude = digits_a == digits_b and 0 or (tables.precedes(digits_a, digits_b) and -1 or 1)
  end
  return sign_a < 0 and -magnitude or magnitude
end

return M
