-- Bech32 and Bech32m (BIP-173, BIP-350): a prefix, "1", and symbols of five bits. The last six are a checksum.

local optional = require "riskscreen.util.optional"

local byte = string.byte

local CHARACTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
local CHECKSUM = 6 -- symbols
local LONGEST = 90 -- characters, by BIP-173
local TOP, SYMBOL = 2 ^ 25, 2 ^ 5 -- of a sum of 30 bits: where its first symbol begins, and the size of one

local values = {}
for index = 1, #CHARACTERS do
  values[byte(CHARACTERS, index)] = index - 1
end

-- Lua 5.1 has no operators on bits.
local bit, load_text = optional "bit", loadstring or load -- luacheck: ignore 113
local xor = bit and bit.bxor
  or load_text "local a, b = ... return a ~ b"
  or function(a, b)
    local result, place = 0, 1
    while a > 0 or b > 0 do
      local low_a, low_b = a % 2, b % 2
      result, place = result + (low_a ~= low_b and place or 0), place * 2
      a, b = (a - low_a) / 2, (b - low_b) / 2
    end
    return result
  end

-- The sum of the rows of the generator that the bits of a symbol select.
local feedback = { [0] = 0 }
for index, row in ipairs { 0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3 } do
  for symbol = 2 ^ (index - 1), 2 ^ index - 1 do
    feedback[symbol] = xor(feedback[symbol - 2 ^ (index - 1)], row)
  end
end

-- The remainder that a right checksum leaves.
local variants = { [1] = "bech32", [0x2bc830a3] = "bech32m" }

local function add(sum, symbol)
  local rest = sum % TOP
  return xor(rest * SYMBOL + symbol, feedback[(sum - rest) / TOP])
end

-- The variant of a prefix and of symbols, as in BIP-173.
local function variant_of(prefix, symbols)
  local sum = 1
  for index = 1, #prefix do
    sum = add(sum, (byte(prefix, index) - byte(prefix, index) % 32) / 32)
  end
  sum = add(sum, 0)
  for index = 1, #prefix do
    sum = add(sum, byte(prefix, index) % 32)
  end
  for index = 1, #symbols do
    sum = add(sum, symbols[index])
  end
  return variants[sum]
end

---@class riskscreen.Bech32
---@field symbols integer[] the data, without the checksum
---@field variant "bech32"|"bech32m"|nil nil: the checksum fails

local M = {}

---@param text string
---@param prefix string in lower case
---@return riskscreen.Bech32|nil
---@return string|nil message
function M.decode(text, prefix)
  local small = text:lower()
  if text ~= small and text ~= text:upper() then
    return nil, "it mixes upper and lower case letters"
  elseif #text > LONGEST then
    return nil, ("it is %d characters long, and the longest has %d"):format(#text, LONGEST)
  end
  local symbols, count = {}, 0
  for index = #prefix + 2, #small do
    local symbol = values[byte(small, index)]
    if not symbol then
      local message = "it has the character '%s' at position %d, which Bech32 does not use"
      return nil, message:format(text:sub(index, index), index)
    end
    count = count + 1
    symbols[count] = symbol
  end
  if count < CHECKSUM then
    return nil, "it is too short"
  end
  local variant = variant_of(prefix, symbols)
  for index = count, count - CHECKSUM + 1, -1 do
    symbols[index] = nil
  end
  return { symbols = symbols, variant = variant }
end

---Whether the symbols are whole bytes and padding of at most four zero bits.
---@param symbols integer[]
---@param first integer
---@return integer|nil bytes
function M.bytes_in(symbols, first)
  local bits = (#symbols - first + 1) * 5
  local padding = bits % 8
  if padding > 4 or (padding > 0 and symbols[#symbols] % 2 ^ padding ~= 0) then
    return nil
  end
  return (bits - padding) / 8
end

return M
