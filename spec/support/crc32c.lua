-- CRC-32C (RFC 3720) by arithmetic, for specs that change compiled lists.
local POLYNOMIAL = 0x82f63b78 -- with its bits reversed

local function xor(a, b)
  local result, place = 0, 1
  while a > 0 or b > 0 do
    result = result + (a + b) % 2 * place
    a, b, place = math.floor(a / 2), math.floor(b / 2), place * 2
  end
  return result
end

---The checksum of a text, as the four bytes of a compiled list.
---@param text string
---@return string
return function(text)
  local value = 2 ^ 32 - 1
  for at = 1, #text do
    value = xor(value, text:byte(at))
    for _ = 1, 8 do
      local low = value % 2
      value = (value - low) / 2
      value = low == 1 and xor(value, POLYNOMIAL) or value
    end
  end
  value = 2 ^ 32 - 1 - value
  local bytes = {}
  for index = 1, 4 do
    bytes[index] = string.char(value % 256)
    value = math.floor(value / 256)
  end
  return table.concat(bytes)
end
