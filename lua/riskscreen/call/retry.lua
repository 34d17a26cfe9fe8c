-- The decision whether a failed request is sent again, and when. Pure; init.lua waits and sends.
local tables = require "riskscreen.util.tables"

---@class riskscreen.RetrySettings
---@field attempts integer maximum number of requests of one call
---@field base_delay number seconds: the longest pause after the first failure; it doubles with each further one
---@field max_delay number seconds: the longest pause, apart from the service's Retry-After
---@field max_retry_after number seconds: the longest Retry-After that a call waits for

---@class riskscreen.FailedAttempt
---@field idempotent boolean repeating the operation changes nothing
---@field attempt integer 1 for the first request
---@field err riskscreen.Error
---@field remaining number seconds until the call's deadline

local SHORTEST_ATTEMPT = 0.001 -- seconds that must be left after a pause

-- The failures after which another attempt may succeed.
local passing = { network = true, timeout = true, rate_limited = true, server = true }

-- The failures after which a request that was not sent may be repeated, whatever the operation.
local unsent = { network = true, timeout = true }

local M = { SHORTEST_ATTEMPT = SHORTEST_ATTEMPT }

---The pause after an attempt, with full jitter: a random share of a bound that doubles with each attempt.
---@param settings riskscreen.RetrySettings
---@param attempt integer 1 for the first request
---@param random fun(): number from 0 up to 1
---@return number seconds
function M.backoff(settings, attempt, random)
  return random() * math.min(settings.max_delay, settings.base_delay * 2 ^ (attempt - 1))
end

---The seconds to wait before the next attempt; or nil and the reason why there is none. The reason is "final" when
---another attempt would fail too, or might take effect twice.
---@param settings riskscreen.RetrySettings
---@param failed riskscreen.FailedAttempt
---@param random fun(): number from 0 up to 1
---@return number|nil seconds
---@return "final"|"attempts"|"retry_after"|"deadline"|nil reason
function M.decide(settings, failed, random)
  local err = failed.err
  if not (failed.idempotent and passing[err.kind] or err.sent == false and unsent[err.kind]) then
    return nil, "final"
  elseif failed.attempt >= settings.attempts then
    return nil, "attempts"
  end
  local asked = err.retry_after or 0
  if asked > settings.max_retry_after then
    return nil, "retry_after"
  end
  -- Jitter is added, because all clients that were refused together got the same time.
  local wait = asked + M.backoff(settings, failed.attempt, random)
  if wait + SHORTEST_ATTEMPT > failed.remaining then
    return nil, "deadline"
  end
  return wait
end

---The budget of a client's repeated requests. Each call earns a share of a request, and each repeated request takes
---one. So when everything fails, the load grows by the share and not by the number of attempts.
---@class riskscreen.RetryBudget
---@field left number of repeated requests that may be sent now
local Budget = {}

---@param share number of a repeated request that each call earns
---@param reserve number maximum of saved requests, and the number at the beginning
---@return riskscreen.RetryBudget
function M.budget(share, reserve)
  return tables.object(Budget, { share = share, reserve = reserve, left = reserve })
end

---Adds the share of a call.
function Budget:earn()
  self.left = math.min(self.reserve, self.left + self.share)
end

---Takes one repeated request, if one is left.
---@return boolean taken
function Budget:take()
  if self.left < 1 then
    return false
  end
  self.left = self.left - 1
  return true
end

return M
