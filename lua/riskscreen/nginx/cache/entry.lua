-- What the shared dict holds of an address: when the service was asked, and which verdict it came to, in few bytes. Of
-- few different verdicts there are many entries, so the verdict is named by its digest; verdicts.lua knows it. Pure.
local byte, char, floor, sub = string.byte, string.char, math.floor, string.sub

local TIME_BYTES = 6 -- of milliseconds, the highest first
local DIGEST_BYTES = 20
local HEAD_BYTES = TIME_BYTES + DIGEST_BYTES
local MOST_MILLISECONDS = 2 ^ (8 * TIME_BYTES)

---@class riskscreen.nginx.Entry
---@field decision riskscreen.Decision shared: nobody changes it
---@field at number Unix seconds when the service was asked; of a failure, when that had failed
---@field patience? number of a failure that more time might have avoided: the seconds that the look-up had

local function byte_of(number, place)
  return floor(number / 2 ^ (8 * place)) % 256
end

-- A finite number, or nil. What is empty is told apart first: LuaJIT does not compile a conversion that fails.
local function number_of(text)
  local number = text ~= "" and tonumber(text)
  return number and number - number == 0 and number + 0.0 or nil
end

local M = {}

---@param at number Unix seconds, of which milliseconds are kept
---@param digest string of the verdict
---@param patience? number seconds
---@return string|nil bytes nil where the time is none
function M.pack(at, digest, patience)
  local time = floor(at * 1000 + 0.5)
  if not (time >= 0 and time < MOST_MILLISECONDS) then
    return nil
  end
  local head = char(
    byte_of(time, 5),
    byte_of(time, 4),
    byte_of(time, 3),
    byte_of(time, 2),
    byte_of(time, 1),
    byte_of(time, 0)
  ) .. digest
  return patience and head .. ("%.17g"):format(patience) or head
end

---What `pack` was given; nil of what it cannot have made.
---@param bytes string
---@return string|nil digest
---@return number at
---@return number|nil patience
function M.unpack(bytes)
  if #bytes < HEAD_BYTES then
    return nil, 0
  end
  local a, b, c, d, e, f = byte(bytes, 1, TIME_BYTES)
  local time = ((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f
  local patience
  if #bytes > HEAD_BYTES then
    patience = number_of(sub(bytes, HEAD_BYTES + 1))
    if not patience then
      return nil, 0
    end
  end
  return sub(bytes, TIME_BYTES + 1, HEAD_BYTES), time / 1000, patience
end

return M
