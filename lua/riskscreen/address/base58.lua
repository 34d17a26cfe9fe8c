-- Base58: numbers in the 58 digits of Bitcoin's alphabet, and Base58Check, which adds a checksum.
local digest = require "riskscreen.address.digest"

local byte, char = string.byte, string.char

local ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
local LIMB = 16777216 -- 2^24: a limb times GROUP stays an exact double
local GROUP = 4 -- digits that are added at a time
local CHECKSUM = 4 -- bytes

local values = {}
for index = 1, #ALPHABET do
  values[byte(ALPHABET, index)] = index - 1
end

local powers = { 58, 58 ^ 2, 58 ^ 3, 58 ^ 4 }

-- Multiplies a number of limbs below a base, the lowest first, and adds to it.
local function multiply_add(limbs, count, base, factor, carry)
  for index = 1, count do
    local sum = limbs[index] * factor + carry
    local low = sum % base
    limbs[index], carry = low, (sum - low) / base
  end
  while carry > 0 do
    count = count + 1
    limbs[count] = carry % base
    carry = (carry - limbs[count]) / base
  end
  return count
end

local M = {}

---The message about a text that is not Base58, or nil.
---@param text string
---@return string|nil
function M.explain(text)
  local at = text:find "[^1-9A-HJ-NP-Za-km-z]"
  return at and ("it has the character '%s' at position %d, which Base58 does not use"):format(text:sub(at, at), at)
end

---The bytes of a text in Base58, or nil.
---@param text string at most some hundred characters
---@return string|nil
function M.decode(text)
  local limbs, count, length = {}, 0, #text
  for first = 1, length, GROUP do
    local last = first + GROUP - 1
    last = last < length and last or length
    local group = 0
    for index = first, last do
      local value = values[byte(text, index)]
      if not value then
        return nil
      end
      group = group * 58 + value
    end
    count = multiply_add(limbs, count, LIMB, powers[last - first + 1], group)
  end
  local out = {}
  for index = count, 1, -1 do
    local limb = limbs[index]
    local low, middle = limb % 256, limb % 65536
    out[#out + 1] = char((limb - middle) / 65536, (middle - low) / 256, low)
  end
  -- Each leading "1" is a byte of zero, and no other byte before the number is.
  local zeros = #text:match "^1*"
  return ("\0"):rep(zeros) .. table.concat(out):gsub("^%z+", "")
end

---@param bytes string
---@return string
function M.encode(bytes)
  local digits, count = {}, 0
  for index = 1, #bytes do
    count = multiply_add(digits, count, 58, 256, byte(bytes, index))
  end
  local out = { ("1"):rep(#bytes:match "^%z*") }
  for place = count, 1, -1 do
    out[#out + 1] = ALPHABET:sub(digits[place] + 1, digits[place] + 1)
  end
  return table.concat(out)
end

local function checksum(payload)
  return digest.sha256(digest.sha256(payload)):sub(1, CHECKSUM)
end

---Whether the last bytes are the checksum of the others.
---@param bytes string
---@return boolean
function M.has_checksum(bytes)
  return checksum(bytes:sub(1, -CHECKSUM - 1)) == bytes:sub(-CHECKSUM)
end

---@param payload string the version and the hash
---@return string
function M.encode_check(payload)
  return M.encode(payload .. checksum(payload))
end

return M
