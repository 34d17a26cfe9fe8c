-- Bech32 and Bech32m (BIP-173, BIP-350): a prefix, "1", and symbols of five bits. The last six are a checksum.

local byte = string.byte
local unpack = table.unpack or unpack -- luacheck: ignore 113 143

local CHARACTERS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
local SYMBOLS = 6 -- of a checksum, and so of the remainder
local LONGEST = 90 -- characters, by BIP-173

local values = {}
for index = 1, #CHARACTERS do
  values[byte(CHARACTERS, index)] = index - 1
end

-- Lua 5.1 has no operators on bits: the exclusive or of symbols a and b is exclusive_or[a * 32 + b]. All its bits but
-- the lowest are those of the halves of a and b.
local exclusive_or = { [0] = 0 }
for a = 0, 31 do
  for b = 0, 31 do
    local halves = (a - a % 2) / 2 * 32 + (b - b % 2) / 2
    exclusive_or[a * 32 + b] = exclusive_or[halves] * 2 + (a + b) % 2
  end
end

-- The symbols of a number of 30 bits, the highest first.
local function symbols_of(number)
  local symbols = {}
  for place = 1, SYMBOLS do
    symbols[place] = math.floor(number / 32 ^ (SYMBOLS - place)) % 32
  end
  return symbols
end

-- feedback[place][symbol]: the sum of the rows of the generator that the bits of a symbol select.
local generator = { 0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3 }
local feedback = {}
for place = 1, SYMBOLS do
  feedback[place] = { [0] = 0 }
end
for bit, number in ipairs(generator) do
  for place, row in ipairs(symbols_of(number)) do
    for symbol = 2 ^ (bit - 1), 2 ^ bit - 1 do
      feedback[place][symbol] = exclusive_or[feedback[place][symbol - 2 ^ (bit - 1)] * 32 + row]
    end
  end
end
local f1, f2, f3, f4, f5, f6 = unpack(feedback)

-- The remainder that a right checksum leaves.
local remainders = { bech32 = symbols_of(1), bech32m = symbols_of(0x2bc830a3) }

-- The remainder of a prefix and of symbols, as in BIP-173.
local function remainder(prefix, symbols, count)
  local xor = exclusive_or
  local a, b, c, d, e, f = 0, 0, 0, 0, 0, 1
  local function add(symbol)
    local top = a
    a, b, c = xor[b * 32 + f1[top]], xor[c * 32 + f2[top]], xor[d * 32 + f3[top]]
    d, e, f = xor[e * 32 + f4[top]], xor[f * 32 + f5[top]], xor[symbol * 32 + f6[top]]
  end
  for index = 1, #prefix do
    add((byte(prefix, index) - byte(prefix, index) % 32) / 32)
  end
  add(0)
  for index = 1, #prefix do
    add(byte(prefix, index) % 32)
  end
  for index = 1, count do
    add(symbols[index])
  end
  return a, b, c, d, e, f
end

local function variant_of(prefix, symbols, count)
  local a, b, c, d, e, f = remainder(prefix, symbols, count)
  for variant, right in pairs(remainders) do
    if a == right[1] and b == right[2] and c == right[3] and d == right[4] and e == right[5] and f == right[6] then
      return variant
    end
  end
end

---@class riskscreen.Bech32
---@field symbols integer[] the data, without the checksum
---@field variant "bech32"|"bech32m"|nil nil: the checksum fails

local M = {}

---@param text string
---@param prefix string in lower case
---@return riskscreen.Bech32|nil
---@return string|nil reason
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
  if count < SYMBOLS then
    return nil, "it is too short"
  end
  local variant = variant_of(prefix, symbols, count)
  for index = count, count - SYMBOLS + 1, -1 do
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
