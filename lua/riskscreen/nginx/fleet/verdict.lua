-- A verdict's text in Redis. Anyone who can write to Redis could have written it, so it is sealed. The seal covers its
-- key, which names the policy, the network and the address. It covers its times, and the last purge before the fetch.
-- The text is parsed strictly, and machines may have different clocks. Pure.
local find, sub = string.find, string.sub
local seals = require "riskscreen.nginx.fleet.seal"

-- The parts of a text: version of this format, time of the fetch, end of its validity, number of the last purge, number
-- of the lease, decision as JSON, code.
local VERSION = "1"
local TIME, NUMBER = "%014.3f", "%016.0f"
local HEAD = VERSION .. TIME .. TIME .. NUMBER .. NUMBER
local AT, VALID_AT, PURGE_AT, LEASE_AT, JSON_AT = 2, 16, 30, 46, 62

local LONGEST = 8192 -- bytes

---@class riskscreen.nginx.SharedVerdict
---@field at number Unix seconds of the fetch, as early as it can have been by this machine's clock
---@field valid_until number Unix seconds, as early as it can be by this machine's clock
---@field purge number the last purge before the fetch
---@field json string the decision

---@class riskscreen.nginx.Verdicts
---@field private seal riskscreen.nginx.Seal
---@field private skew number seconds by which two clocks may differ
local Verdicts = {}
Verdicts.__index = Verdicts

local function number_in(text, first, behind)
  local digits = sub(text, first, behind - 1)
  return find(digits, "^%d+%.?%d*$") and tonumber(digits) or nil
end

---@param key string in Redis
---@param json string
---@param at number Unix seconds
---@param valid_until number Unix seconds
---@param purge number
---@param lease number 0 without one
---@return string|nil text nil if it is too long
function Verdicts:encode(key, json, at, valid_until, purge, lease)
  local text = HEAD:format(at, valid_until, purge, lease) .. json
  if #text + seals.SIZE <= LONGEST then
    return self.seal:close(key, text)
  end
end

---@param key string in Redis
---@param sealed any
---@param now number Unix seconds
---@return riskscreen.nginx.SharedVerdict|nil
---@return "malformed"|"forged"|"future"|"expired"|nil reason
function Verdicts:decode(key, sealed, now)
  if type(sealed) ~= "string" or #sealed < JSON_AT + seals.SIZE or #sealed > LONGEST then
    return nil, "malformed"
  elseif sub(sealed, 1, 1) ~= VERSION then
    return nil, "malformed"
  end
  local text = self.seal:open(key, sealed)
  if not text then
    return nil, "forged"
  end
  local at, valid_until = number_in(text, AT, VALID_AT), number_in(text, VALID_AT, PURGE_AT)
  local purge = number_in(text, PURGE_AT, LEASE_AT)
  if not (at and valid_until and purge) then
    return nil, "malformed"
  elseif at > now + self.skew then
    return nil, "future"
  elseif now >= valid_until - self.skew then
    return nil, "expired"
  end
  return { at = at - self.skew, valid_until = valid_until - self.skew, purge = purge, json = sub(text, JSON_AT) }
end

local M = { LEASE_AT = LEASE_AT, JSON_AT = JSON_AT }

---@param keys string[]
---@param skew number seconds
---@return riskscreen.nginx.Verdicts
function M.new(keys, skew)
  return setmetatable({ seal = seals.new(keys, "verdict"), skew = skew }, Verdicts)
end

return M
