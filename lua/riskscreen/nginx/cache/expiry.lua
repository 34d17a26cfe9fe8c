-- How long what is remembered counts: fresh, stale, gone; and which of an expired verdict and a failure is answered.
-- Pure.
local flights = require "riskscreen.nginx.cache.single_flight"
local worst_action = require("riskscreen.policy.decision").worst

local FAILURE_MEMORY = 60 -- seconds for which it is known that the service could not be asked

---@class riskscreen.nginx.Expiry
---@field ttl table<riskscreen.Action, number> seconds
---@field private stale table<riskscreen.Action, number> seconds after that
local Expiry = {}
Expiry.__index = Expiry

---@param decision riskscreen.Decision
---@param at number Unix seconds
---@return number Unix seconds
function Expiry:fresh_until(decision, at)
  return at + self.ttl[decision.action]
end

---@param entry riskscreen.nginx.Entry
---@return number Unix seconds until which it may be used if the service cannot be asked
function Expiry:stale_until(entry)
  local action = entry.decision.action
  return entry.at + self.ttl[action] + self.stale[action]
end

---@param failure riskscreen.nginx.Entry
---@return number Unix seconds until which nobody asks again
function Expiry:failure_until(failure)
  return failure.at + self.ttl.unknown
end

---@param kind "verdict"|"failure"
---@param decision riskscreen.Decision
---@return number seconds for which it is remembered
function Expiry:lifetime(kind, decision)
  if kind == "failure" then
    return math.max(self.ttl.unknown, FAILURE_MEMORY)
  end
  return self.ttl[decision.action] + self.stale[decision.action]
end

---@return number seconds for which anything is remembered at most
function Expiry:longest()
  local longest = 0
  for action, seconds in pairs(self.ttl) do
    longest = math.max(longest, seconds + self.stale[action])
  end
  return longest
end

---The verdict that may still be used although it has expired, if the service cannot be asked.
---@param remembered riskscreen.nginx.Remembered
---@param now number Unix seconds
---@return riskscreen.nginx.Entry|nil
function Expiry:usable(remembered, now)
  local entry = remembered.verdict
  return entry and now < self:stale_until(entry) and entry or nil
end

---The failure that asking again would come to.
---@param remembered riskscreen.nginx.Remembered
---@param now number Unix seconds
---@param seconds number that there are for asking
---@return riskscreen.nginx.Entry|nil
function Expiry:recent_failure(remembered, now, seconds)
  local failure = remembered.failure
  return failure and now < self:failure_until(failure) and flights.concerns(failure, seconds) and failure or nil
end

---Whether an expired verdict takes the place of what a failure came to: unless the policy makes something worse of it.
---@param entry riskscreen.nginx.Entry
---@param action riskscreen.Action of the failure
---@return boolean
function Expiry:replaces(entry, action)
  return action == "unknown" or worst_action(entry.decision.action, action) == entry.decision.action
end

---Whether an expired verdict may be used at once. A block need not wait for the service; anything milder must have
---tried since it expired, with as much time.
---@param entry riskscreen.nginx.Entry
---@param failure riskscreen.nginx.Entry|nil
---@param seconds number that there are for asking
---@return boolean
function Expiry:needs_no_attempt(entry, failure, seconds)
  if entry.decision.action == "block" then
    return true
  end
  return failure ~= nil
    and failure.at >= self:fresh_until(entry.decision, entry.at)
    and flights.concerns(failure, seconds)
    and self:replaces(entry, failure.decision.action)
end

local M = {}

---@param ttl table<riskscreen.Action, number> seconds
---@param stale table<riskscreen.Action, number> seconds after that
---@return riskscreen.nginx.Expiry
function M.new(ttl, stale)
  return setmetatable({ ttl = ttl, stale = stale }, Expiry)
end

return M
