-- Bit operations on words of 32 bits: those of LuaJIT, the operators of Lua 5.3, or sums over groups of four bits.

local load_text = loadstring or load -- luacheck: ignore 113

---@class riskscreen.Bits
---@field xor fun(a: integer, b: integer): integer
---@field both fun(a: integer, b: integer): integer
---@field rotate fun(a: integer, count: integer): integer to the right

local M = {}

function M.of_luajit()
  local bit = require "bit"
  return { xor = bit.bxor, both = bit.band, rotate = bit.ror }
end

function M.of_operators()
  return load_text [[return {
    xor = function(a, b) return a ~ b end,
    both = function(a, b) return a & b end,
    rotate = function(a, n) return (a >> n | a << (32 - n)) & 0xffffffff end,
  }]]()
end

local function by_groups(of_bits)
  local results = {}
  for a = 0, 15 do
    for b = 0, 15 do
      local result = 0
      for shift = 0, 3 do
        local one, other = math.floor(a / 2 ^ shift) % 2, math.floor(b / 2 ^ shift) % 2
        result = result + of_bits(one, other) * 2 ^ shift
      end
      results[a * 16 + b] = result
    end
  end
  return function(a, b)
    local result, place = 0, 1
    while a > 0 or b > 0 do
      local low_a, low_b = a % 16, b % 16
      result = result + results[low_a * 16 + low_b] * place
      a, b, place = (a - low_a) / 16, (b - low_b) / 16, place * 16
    end
    return result
  end
end

function M.of_sums()
  local function rotate(a, n)
    local low = a % 2 ^ n
    return (a - low) / 2 ^ n + low * 2 ^ (32 - n)
  end
  local xor = by_groups(function(a, b)
    return (a + b) % 2
  end)
  local both = by_groups(function(a, b)
    return a * b
  end)
  return { xor = xor, both = both, rotate = rotate }
end

---The name of the fastest kind under this Lua.
---@type "of_luajit"|"of_operators"|"of_sums"
M.best = rawget(_G, "jit") and "of_luajit" or math.type and "of_operators" or "of_sums" -- luacheck: ignore 143

return M
