-- A verdict's text in Redis. Anyone who can write to Redis could have written it, so it is sealed. The seal covers its
-- key, which names the policy, the network and the address. It covers its times by the clock of Redis, and the last
-- purge before the fetch. The text is parsed strictly. Pure.
local sub = string.sub
local seals = require "riskscreen.nginx.fleet.seal"
local time = require "riskscreen.util.time"

-- The parts of a text: version of this format, decision as JSON, time of the fetch, end of its validity, number of the
-- last purge, number of the lease, code.
local VERSION = "1"
local TIME, NUMBER = "%014.3f", "%016.0f"
local TAIL = TIME .. TIME .. NUMBER .. NUMBER
local JSON_AT = 2
local AT, VALID_AT, PURGE_AT, LEASE_AT, CODE_AT = -92, -78, -64, -48, -32 -- from the end
local SHORTEST = #VERSION - AT -- bytes

local LONGEST = 8192 -- bytes
local MAX_NUMBER = 2 ^ 53

---@class riskscreen.nginx.SharedVerdict
---@field at number seconds of the fetch, as early as it can have been by this machine's clock
---@field valid_until number seconds, as early as it can be by this machine's clock
---@field purge number the last purge before the fetch
---@field json string the decision

---@class riskscreen.nginx.Verdicts
---@field private seal riskscreen.nginx.Seal
---@field private skew number seconds by which two machines may differ in the time of Redis
local Verdicts = {}
Verdicts.__index = Verdicts

-- LuaJIT does not compile patterns (`./dev bench fleet`).
local function number_in(text, first, last)
  local number = tonumber(sub(text, first, last))
  return number and number >= 0 and number < MAX_NUMBER and number or nil
end

---@param key string in Redis
---@param json string
---@param at number seconds by this machine's clock
---@param valid_until number
---@param offset number the time of Redis minus this machine's
---@param purge number
---@param lease number 0 without one
---@return string|nil text nil if it is too long
function Verdicts:encode(key, json, at, valid_until, offset, purge, lease)
  local text = VERSION .. json .. TAIL:format(at + offset, valid_until + offset, purge, lease)
  if #text + seals.SIZE <= LONGEST then
    return self.seal:close(key, text)
  end
end

---@param key string in Redis
---@param sealed any
---@param now number seconds by this machine's clock
---@param offset number the time of Redis minus this machine's
---@return riskscreen.nginx.SharedVerdict|nil
---@return "malformed"|"forged"|"future"|"expired"|nil reason
function Verdicts:decode(key, sealed, now, offset)
  if type(sealed) ~= "string" or #sealed < SHORTEST or #sealed > LONGEST or sub(sealed, 1, 1) ~= VERSION then
    return nil, "malformed"
  elseif not self.seal:open(key, sealed) then
    return nil, "forged"
  end
  local at, valid_until = number_in(sealed, AT, VALID_AT - 1), number_in(sealed, VALID_AT, PURGE_AT - 1)
  local purge = number_in(sealed, PURGE_AT, LEASE_AT - 1)
  if not (at and valid_until and purge) then
    return nil, "malformed"
  end
  at, valid_until = at - offset, valid_until - offset
  if not time.age(at, now, self.skew) then
    return nil, "future"
  elseif now >= valid_until - self.skew then
    return nil, "expired"
  end
  local json = sub(sealed, JSON_AT, AT - 1)
  return { at = at - self.skew, valid_until = valid_until - self.skew, purge = purge, json = json }
end

local M = { LEASE_FIRST = LEASE_AT, LEASE_LAST = CODE_AT - 1 }

---@param keys string[]
---@param skew number seconds
---@return riskscreen.nginx.Verdicts
function M.new(keys, skew)
  return setmetatable({ seal = seals.new(keys, "verdict"), skew = skew }, Verdicts)
end

return M
