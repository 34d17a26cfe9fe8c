-- Whether a failed request is sent again, and when: pure. Waiting and sending are attempts.lua's.

---@class riskscreen.RetrySettings
---@field attempts integer requests of one call at most, the first included
---@field base_delay number seconds: the longest pause after the first failure; it doubles with each further one
---@field max_delay number seconds: the longest pause, but for what the service asks for
---@field max_retry_after number seconds: when the service asks for more the call fails instead

---@class riskscreen.FailedAttempt
---@field idempotent boolean repeating the operation changes nothing
---@field attempt integer 1 for the first request
---@field err riskscreen.Error
---@field remaining number seconds until the call's deadline

local SHORTEST_ATTEMPT = 0.001 -- seconds that must be left after a pause

-- Failures that another attempt may mend.
local passing = { network = true, timeout = true, rate_limited = true, server = true }

-- Of these nothing is known but that the request never left.
local unsent = { network = true, timeout = true }

local function may_repeat(failed)
  local err = failed.err
  if failed.idempotent then
    return passing[err.kind] or false
  end
  return err.sent == false and unsent[err.kind] or false
end

local M = { SHORTEST_ATTEMPT = SHORTEST_ATTEMPT }

---The pause after an attempt, by full jitter: anything from nothing to a bound that doubles with each attempt.
---@param settings riskscreen.RetrySettings
---@param attempt integer 1 for the first request
---@param random fun(): number from 0 up to 1
---@return number seconds
function M.backoff(settings, attempt, random)
  return random() * math.min(settings.max_delay, settings.base_delay * 2 ^ (attempt - 1))
end

---Seconds to wait before the next attempt, or nil and why there is none: "final" (another would change nothing, or may
---do something twice), "attempts" (all made), "retry_after" (the service asks for more than is waited for), "deadline".
---@param settings riskscreen.RetrySettings
---@param failed riskscreen.FailedAttempt
---@param random fun(): number from 0 up to 1
---@return number|nil seconds
---@return "final"|"attempts"|"retry_after"|"deadline"|nil reason
function M.decide(settings, failed, random)
  if not may_repeat(failed) then
    return nil, "final"
  elseif failed.attempt >= settings.attempts then
    return nil, "attempts"
  end
  local asked = failed.err.retry_after or 0
  if asked > settings.max_retry_after then
    return nil, "retry_after"
  end
  -- The jitter comes on top: all who were refused together were told the same time.
  local wait = asked + M.backoff(settings, failed.attempt, random)
  if wait + SHORTEST_ATTEMPT > failed.remaining then
    return nil, "deadline"
  end
  return wait
end

---What bounds the repeated requests of a client: each call earns a share of one, each repeated request takes one, and
---no more than the reserve is saved. When everything fails the load grows by the share and not by the attempts.
---@class riskscreen.RetryBudget
---@field left number repeated requests that may be made now
local Budget = {}
Budget.__index = Budget

---@param share number of a repeated request that each call earns
---@param reserve number repeated requests that are saved at most, and there at the beginning
---@return riskscreen.RetryBudget
function M.budget(share, reserve)
  return setmetatable({ share = share, reserve = reserve, left = reserve }, Budget)
end

---A call has begun.
function Budget:earn()
  self.left = math.min(self.reserve, self.left + self.share)
end

---Takes one repeated request, if there is one.
---@return boolean taken
function Budget:take()
  if self.left < 1 then
    return false
  end
  self.left = self.left - 1
  return true
end

return M
