-- HMAC (RFC 2104) with a hash of 64-byte blocks, such as SHA-256. Without bit operators, for Lua 5.1.

local BLOCK = 64 -- bytes

-- The bytes of a text, each combined with one byte by exclusive or.
local function xor_bytes(bytes, mask)
  return (
    bytes:gsub(".", function(character)
      local a, b, result, bit = character:byte(), mask, 0, 1
      for _ = 1, 8 do
        if a % 2 ~= b % 2 then
          result = result + bit
        end
        a, b, bit = math.floor(a / 2), math.floor(b / 2), bit * 2
      end
      return string.char(result)
    end)
  )
end

local M = {}

---A function that returns the authentication code of a text, as bytes.
---@param hash fun(text: string): string the bytes of a text's hash
---@param key string
---@return fun(text: string): string
function M.new(hash, key)
  key = #key > BLOCK and hash(key) or key
  key = key .. ("\0"):rep(BLOCK - #key)
  local inner, outer = xor_bytes(key, 0x36), xor_bytes(key, 0x5c)
  return function(text)
    return hash(outer .. hash(inner .. text))
  end
end

---Compares in constant time: the duration depends on the given text's length alone.
---@param given string
---@param secret string not empty
---@return boolean
function M.equal(given, secret)
  local difference = #given == #secret and 0 or 1
  for index = 1, #given do
    local gap = given:byte(index) - secret:byte((index - 1) % #secret + 1)
    difference = difference + gap * gap
  end
  return difference == 0
end

return M
