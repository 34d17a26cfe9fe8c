-- Seals texts that Redis keeps: HMAC-SHA-256 with the operator's keys. The code covers the purpose and the label of a
-- text, such as its key in Redis. So no text can take the place of another one. Pure.
local digest = require "riskscreen.address.digest"
local hmac = require "riskscreen.util.hmac"

local SIZE = 32 -- bytes of a code
local SHORTEST_KEY = 16 -- bytes

---@class riskscreen.nginx.Seal
---@field private codes (fun(text: string): string)[] by key; the first one signs
local Seal = {}
Seal.__index = Seal

-- The label's length comes first, so that no byte can move from the label to the text. The label comes last, because
-- LuaJIT's hash of a long text sees its last bytes (`./dev bench fleet`).
local function labelled(label, text)
  return #label .. ":" .. text .. label
end

-- Compares in constant time.
local function equal(own, given)
  local difference = 0
  for index = 1, SIZE do
    local gap = own:byte(index) - given:byte(index)
    difference = difference + gap * gap
  end
  return difference == 0
end

---@param label string
---@param text string
---@return string sealed the text, and its code
function Seal:close(label, text)
  return text .. self.codes[1](labelled(label, text))
end

---@param label string
---@param sealed string
---@return string|nil text nil unless one of the keys has sealed it for this purpose and this label
function Seal:open(label, sealed)
  if #sealed < SIZE then
    return nil
  end
  local text, given = sealed:sub(1, -SIZE - 1), sealed:sub(-SIZE)
  local content = labelled(label, text)
  for _, code in ipairs(self.codes) do
    if equal(code(content), given) then
      return text
    end
  end
end

local M = { SIZE = SIZE }

---Checks the option `key`.
---@param value string|string[]
---@return string[]|nil keys
---@return string|nil problem
function M.check_keys(value)
  local keys = type(value) == "table" and value or { value }
  for index = 1, math.max(1, #keys) do
    local key = keys[index]
    if type(key) ~= "string" or #key < SHORTEST_KEY then
      return nil, ("must be a secret of at least %d bytes, or a list of such secrets"):format(SHORTEST_KEY)
    end
  end
  local copy = {}
  for index, key in ipairs(keys) do
    copy[index] = key
  end
  return copy
end

---@param keys string[] of the operator; the first one signs, all are accepted
---@param purpose string each purpose has keys of its own
---@return riskscreen.nginx.Seal
function M.new(keys, purpose)
  local codes = {}
  for index, key in ipairs(keys) do
    codes[index] = hmac.new(digest.sha256, hmac.new(digest.sha256, key)("riskscreen:" .. purpose))
  end
  return setmetatable({ codes = codes }, Seal)
end

return M
