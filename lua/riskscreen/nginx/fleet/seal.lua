-- Seals texts that Redis keeps: HMAC-SHA-256 with the operator's keys. The code covers the purpose and the label of a
-- text, such as its key in Redis. So no text can take the place of another one. Pure.
local digest = require "riskscreen.address.digest"
local tables = require "riskscreen.util.tables"

local SIZE = 32 -- bytes of a code
local SHORTEST_KEY = 16 -- bytes

---@class riskscreen.nginx.Seal
---@field private hmacs riskscreen.Hmac[] by key; the first one signs
local Seal = {}
Seal.__index = Seal

-- Comes before a sealed text, so that no byte can move from the label to the text.
local function length_of(label)
  return #label .. ":"
end

---@param label string
---@param text string
---@return string sealed the text, and its code
function Seal:close(label, text)
  return text .. self.hmacs[1]:code(length_of(label), text, label)
end

---@param label string
---@param sealed string
---@return string|nil text nil unless one of the keys has sealed it for this purpose and this label
function Seal:open(label, sealed)
  local text, code = sealed:sub(1, -SIZE - 1), sealed:sub(-SIZE)
  local before, hmacs = length_of(label), self.hmacs
  for index = 1, #hmacs do
    if digest.equal(code, hmacs[index]:code(before, text, label)) then
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
  return tables.copy(keys)
end

---@param keys string[] of the operator; the first one signs, all are accepted
---@param purpose string each purpose has keys of its own
---@return riskscreen.nginx.Seal
function M.new(keys, purpose)
  local hmacs = {}
  for index, key in ipairs(keys) do
    hmacs[index] = digest.hmac(digest.hmac(key):code("riskscreen:" .. purpose))
  end
  return setmetatable({ hmacs = hmacs }, Seal)
end

return M
