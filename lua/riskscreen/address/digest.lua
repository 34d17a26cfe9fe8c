-- SHA-256, Keccak-256 and HMAC-SHA-256. The core computes them. It may be missing inside nginx alone: there OpenSSL,
-- which nginx brings, has SHA-256, and the functions below do the rest.

local core = require "riskscreen.util.core"
local optional = require "riskscreen.util.optional"

local BLOCK = 64 -- bytes of SHA-256
local SIZE = 32 -- bytes of each result
local RATE = 136 -- bytes of a block of Keccak-256
local ROUNDS = 24

---@class riskscreen.Hmac with one key
---@field code fun(self, ...: string): string of texts in a row

---@class riskscreen.Digest
---@field sha256 fun(text: string): string the 32 bytes of a text's SHA-256
---@field keccak256 fun(text: string): string the 32 bytes of Keccak-256, the variant before SHA-3 that Ethereum uses
---@field hmac fun(key: string): riskscreen.Hmac
local M = core and { sha256 = core.sha256, keccak256 = core.keccak256, hmac = core.hmac } or {}

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

if core then
  return M
end

local ffi = optional "ffi"
if not ffi then
  function M.sha256()
    error("riskscreen.core is not installed for this Lua: run riskscreen doctor", 0)
  end
  M.keccak256 = M.sha256
  return M
end

local bit = require "bit"
local bxor, band, bnot, rol = bit.bxor, bit.band, bit.bnot, bit.rol

ffi.cdef "unsigned char *SHA256(const char *text, size_t size, unsigned char *digest);"
local digest = ffi.new "unsigned char[32]"

function M.sha256(text)
  ffi.C.SHA256(text, #text, digest)
  return ffi.string(digest, SIZE)
end

-- The constants of the rounds: a shift register gives their bits 2^n - 1.
local one, constants, register = ffi.new("uint64_t", 1), ffi.new "uint64_t[24]", 1
for round = 0, ROUNDS - 1 do
  for place = 0, 6 do
    if register % 2 == 1 then
      constants[round] = bxor(constants[round], bit.lshift(one, 2 ^ place - 1))
    end
    register = bxor(register * 2, register >= 128 and 0x171 or 0)
  end
end
-- The lane that each step writes, and by how many bits it rotates the lane before.
local targets = { 10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1 }
local rotations = { 1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44 }

local columns = ffi.new "uint64_t[5]"

local function permute(lanes, constant)
  for x = 0, 4 do
    columns[x] = bxor(lanes[x], lanes[x + 5], lanes[x + 10], lanes[x + 15], lanes[x + 20])
  end
  for x = 0, 4 do
    local mixed = bxor(columns[(x + 4) % 5], rol(columns[(x + 1) % 5], 1))
    for y = x, x + 20, 5 do
      lanes[y] = bxor(lanes[y], mixed)
    end
  end
  local lane = lanes[1]
  for step = 1, 24 do
    local target = targets[step]
    lane, lanes[target] = lanes[target], rol(lane, rotations[step])
  end
  for y = 0, 20, 5 do
    local a, b, c, d, e = lanes[y], lanes[y + 1], lanes[y + 2], lanes[y + 3], lanes[y + 4]
    lanes[y], lanes[y + 1] = bxor(a, band(bnot(b), c)), bxor(b, band(bnot(c), d))
    lanes[y + 2], lanes[y + 3] = bxor(c, band(bnot(d), e)), bxor(d, band(bnot(e), a))
    lanes[y + 4] = bxor(e, band(bnot(a), b))
  end
  lanes[0] = bxor(lanes[0], constant)
end

function M.keccak256(text)
  local missing = RATE - #text % RATE
  local padding = missing == 1 and "\129" or "\1" .. ("\0"):rep(missing - 2) .. "\128"
  local padded, lanes, block = text .. padding, ffi.new "uint64_t[25]", ffi.new "uint64_t[17]"
  for from = 1, #padded, RATE do
    ffi.copy(block, padded:sub(from, from + RATE - 1), RATE)
    for lane = 0, RATE / 8 - 1 do
      lanes[lane] = bxor(lanes[lane], block[lane])
    end
    for round = 0, ROUNDS - 1 do
      permute(lanes, constants[round])
    end
  end
  return ffi.string(lanes, SIZE)
end

local function xor_bytes(bytes, mask)
  return (bytes:gsub(".", function(character)
    return string.char(bxor(character:byte(), mask))
  end))
end

-- RFC 2104.
function M.hmac(key)
  key = #key > BLOCK and M.sha256(key) or key
  key = key .. ("\0"):rep(BLOCK - #key)
  local inner, outer = xor_bytes(key, 0x36), xor_bytes(key, 0x5c)
  return {
    code = function(_, ...)
      return M.sha256(outer .. M.sha256(inner .. table.concat { ... }))
    end,
  }
end

return M
