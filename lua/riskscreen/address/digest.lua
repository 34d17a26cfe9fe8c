-- SHA-256 and Keccak-256. The core computes them; where it is not compiled, the functions below do, under any Lua.

local bits = require "riskscreen.util.bits"
local compiled = require "riskscreen.util.core"

local char, concat = string.char, table.concat
local unpack = table.unpack or unpack -- luacheck: ignore 113 143

local WORD = 4294967296 -- 2^32
local RATE = 136 -- bytes of a block of Keccak-256

-- The text of words, each as four bytes from the highest on.
local function text_of(words, count)
  local out = {}
  for index = 1, count do
    local word = words[index] % WORD
    local low, middle, high = word % 256, word % 65536, word % 16777216
    out[index] = char((word - high) / 16777216, (high - middle) / 65536, (middle - low) / 256, low)
  end
  return concat(out)
end

-- The first 32 bits after the point of a root, for the constants of SHA-256.
local function fraction(root)
  return math.floor(root % 1 * WORD)
end

local function first_primes(count)
  local primes, candidate = {}, 2
  while #primes < count do
    local is_prime = true
    for _, prime in ipairs(primes) do
      is_prime = is_prime and candidate % prime ~= 0
    end
    primes[#primes + 1] = is_prime and candidate or nil
    candidate = candidate + 1
  end
  return primes
end

local function new_sha256(operations)
  local xor, both, rotate = operations.xor, operations.both, operations.rotate
  local constants, start = {}, {}
  for index, prime in ipairs(first_primes(64)) do
    constants[index] = fraction(prime ^ (1 / 3))
    start[index] = index <= 8 and fraction(prime ^ 0.5) or nil
  end

  local function shift(word, count)
    word = word % WORD
    return (word - word % 2 ^ count) / 2 ^ count
  end

  local function schedule(text, at)
    local words = {}
    for index = 1, 16 do
      local a, b, c, d = text:byte(at + index * 4 - 3, at + index * 4)
      words[index] = ((a * 256 + b) * 256 + c) * 256 + d
    end
    for index = 17, 64 do
      local early, late = words[index - 15], words[index - 2]
      local first = xor(xor(rotate(early, 7), rotate(early, 18)), shift(early, 3))
      local second = xor(xor(rotate(late, 17), rotate(late, 19)), shift(late, 10))
      words[index] = (words[index - 16] + first + words[index - 7] + second) % WORD
    end
    return words
  end

  local function add_block(state, words)
    local a, b, c, d, e, f, g, h = unpack(state)
    for index = 1, 64 do
      local first = xor(xor(rotate(e, 6), rotate(e, 11)), rotate(e, 25))
      local choice = xor(g, both(e, xor(f, g)))
      local one = (h + first + choice + constants[index] + words[index]) % WORD
      local second = xor(xor(rotate(a, 2), rotate(a, 13)), rotate(a, 22))
      local majority = xor(both(a, xor(b, c)), both(b, c))
      h, g, f, e, d, c, b, a = g, f, e, (d + one) % WORD, c, b, a, (one + second + majority) % WORD
    end
    for index, word in ipairs { a, b, c, d, e, f, g, h } do
      state[index] = (state[index] + word) % WORD
    end
  end

  return function(text)
    local size = #text * 8
    local padded = text .. "\128" .. ("\0"):rep((55 - #text) % 64) .. text_of({ (size - size % WORD) / WORD, size }, 2)
    local state = {}
    for index = 1, 8 do
      state[index] = start[index]
    end
    for at = 0, #padded - 1, 64 do
      add_block(state, schedule(padded, at))
    end
    return text_of(state, 8)
  end
end

local round_constants = {
  { 0x00000001, 0 },
  { 0x00008082, 0 },
  { 0x0000808a, 1 },
  { 0x80008000, 1 },
  { 0x0000808b, 0 },
  { 0x80000001, 0 },
  { 0x80008081, 1 },
  { 0x00008009, 1 },
  { 0x0000008a, 0 },
  { 0x00000088, 0 },
  { 0x80008009, 0 },
  { 0x8000000a, 0 },
  { 0x8000808b, 0 },
  { 0x0000008b, 1 },
  { 0x00008089, 1 },
  { 0x00008003, 1 },
  { 0x00008002, 1 },
  { 0x00000080, 1 },
  { 0x0000800a, 0 },
  { 0x8000000a, 1 },
  { 0x80008081, 1 },
  { 0x00008080, 1 },
  { 0x80000001, 0 },
  { 0x80008008, 1 },
}
-- The lane that each step writes, and by how many bits it rotates the lane before.
local targets = { 10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1 }
local rotations = { 1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44 }

-- A lane of 64 bits is a low and a high word.
local function new_keccak256(operations)
  local xor, both, rotate = operations.xor, operations.both, operations.rotate

  local function rotate_lane(low, high, count)
    if count >= 32 then
      low, high, count = high, low, count - 32
    end
    local own, other = rotate(low, 32 - count), rotate(high, 32 - count)
    local mixed = both(xor(own, other), 2 ^ count - 1)
    return xor(own, mixed), xor(other, mixed)
  end

  local function mix_columns(lows, highs)
    local column_lows, column_highs = {}, {}
    for x = 0, 4 do
      local low, high = lows[x], highs[x]
      for y = x + 5, 24, 5 do
        low, high = xor(low, lows[y]), xor(high, highs[y])
      end
      column_lows[x], column_highs[x] = low, high
    end
    for x = 0, 4 do
      local right, left = (x + 1) % 5, (x + 4) % 5
      local low, high = rotate_lane(column_lows[right], column_highs[right], 1)
      low, high = xor(low, column_lows[left]), xor(high, column_highs[left])
      for y = x, 24, 5 do
        lows[y], highs[y] = xor(lows[y], low), xor(highs[y], high)
      end
    end
  end

  local function move_lanes(lows, highs)
    local low, high = lows[1], highs[1]
    for step = 1, 24 do
      local target = targets[step]
      local next_low, next_high = lows[target], highs[target]
      lows[target], highs[target] = rotate_lane(low, high, rotations[step])
      low, high = next_low, next_high
    end
  end

  local function mix_rows(words)
    for y = 0, 20, 5 do
      local a, b, c, d, e = words[y], words[y + 1], words[y + 2], words[y + 3], words[y + 4]
      words[y] = xor(a, xor(c, both(b, c)))
      words[y + 1] = xor(b, xor(d, both(c, d)))
      words[y + 2] = xor(c, xor(e, both(d, e)))
      words[y + 3] = xor(d, xor(a, both(e, a)))
      words[y + 4] = xor(e, xor(b, both(a, b)))
    end
  end

  local function word_at(text, at)
    local a, b, c, d = text:byte(at, at + 3)
    return a + b * 256 + c * 65536 + d * 16777216
  end

  local function add_block(lows, highs, text, at)
    for lane = 0, RATE / 8 - 1 do
      lows[lane] = xor(lows[lane], word_at(text, at + lane * 8 + 1))
      highs[lane] = xor(highs[lane], word_at(text, at + lane * 8 + 5))
    end
    for _, constant in ipairs(round_constants) do
      mix_columns(lows, highs)
      move_lanes(lows, highs)
      mix_rows(lows)
      mix_rows(highs)
      lows[0], highs[0] = xor(lows[0], constant[1]), xor(highs[0], constant[2] * 2147483648)
    end
  end

  return function(text)
    local missing = RATE - #text % RATE
    local padding = missing == 1 and "\129" or "\1" .. ("\0"):rep(missing - 2) .. "\128"
    local padded, lows, highs = text .. padding, {}, {}
    for lane = 0, 24 do
      lows[lane], highs[lane] = 0, 0
    end
    for at = 0, #padded - 1, RATE do
      add_block(lows, highs, padded, at)
    end
    local words = {}
    for lane = 0, 3 do
      words[lane * 2 + 1], words[lane * 2 + 2] = lows[lane], highs[lane]
    end
    return (text_of(words, 8):gsub("(.)(.)(.)(.)", "%4%3%2%1"))
  end
end

local M = {}

---The functions in Lua, with one kind of bit operations. Only this module and its specs use them.
---@param kind "of_luajit"|"of_operators"|"of_sums"
---@return { sha256: fun(text: string): string, keccak256: fun(text: string): string }
function M.in_lua(kind)
  local operations = bits[kind]()
  return { sha256 = new_sha256(operations), keccak256 = new_keccak256(operations) }
end

local core = compiled or M.in_lua(bits.best)

---The 32 bytes of a text's SHA-256.
---@type fun(text: string): string
M.sha256 = core.sha256

---The 32 bytes of a text's Keccak-256, the variant before SHA-3 that Ethereum uses.
---@type fun(text: string): string
M.keccak256 = core.keccak256

return M
