-- A token bucket that learns from refusals of the service: it pauses, then fills more slowly, and recovers gradually.
-- Pure but for the clock it is given. Who waits for its tokens, and in which order, is limiter.lua's.

local MAX_PAUSE = 60 -- seconds that a refusal may stop everything for
local DEFAULT_PAUSE = 1 -- seconds, where a refusal names no time
local RECOVERY = 60 -- seconds in which the rate grows from nothing to what was set
local LEAST_SHARE = 1 / 64 -- of the rate that was set
local ROUNDING = 1e-9 -- tokens

---@class riskscreen.BucketSettings
---@field rate number tokens a second
---@field burst? number tokens that are saved at most; by default those of a second

---@class riskscreen.Bucket
---@field private rate number tokens a second, as set
---@field private share number of that rate in force
---@field private burst number tokens that are saved at most
---@field private tokens number
---@field private filled_at number when `tokens` was true
---@field private paused_until number
local Bucket = {}
Bucket.__index = Bucket

local M = { RECOVERY = RECOVERY }

---The tokens that a time earns, and the share of the rate at its end: while it recovers, it grows evenly with time.
---@param rate number
---@param share number at the beginning
---@param seconds number
---@return number tokens
---@return number share
function M.earned(rate, share, seconds)
  local growing = math.min(seconds, (1 - share) * RECOVERY)
  local grown = share + growing / RECOVERY
  return rate * (growing * (share + grown) / 2 + (seconds - growing)), grown
end

---The seconds that it takes to earn tokens.
---@param rate number
---@param share number at the beginning
---@param tokens number
---@return number seconds
function M.time_to_earn(rate, share, tokens)
  local growing = (1 - share) * RECOVERY
  local meanwhile = rate * growing * (share + 1) / 2
  if tokens >= meanwhile then
    return growing + (tokens - meanwhile) / rate
  end
  return RECOVERY * (math.sqrt(share * share + 2 * tokens / (rate * RECOVERY)) - share)
end

---How long a refusal stops everything.
---@param retry_after? number seconds that the service named
---@return number seconds
function M.pause(retry_after)
  return math.min(retry_after or DEFAULT_PAUSE, MAX_PAUSE)
end

---The share of the rate after a refusal.
---@param share number
---@return number
function M.slowed(share)
  return math.max(LEAST_SHARE, share / 2)
end

---@param settings riskscreen.BucketSettings
---@return number
function M.burst(settings)
  return settings.burst or math.max(1, settings.rate)
end

---@param settings riskscreen.BucketSettings
---@param now fun(): number seconds
---@return riskscreen.Bucket
function M.new(settings, now)
  local at, burst = now(), M.burst(settings)
  return setmetatable({
    now = now,
    rate = settings.rate,
    share = 1,
    burst = burst,
    tokens = burst,
    filled_at = at,
    paused_until = at,
  }, Bucket)
end

local function fill(bucket)
  local now = bucket.now()
  local from = math.max(bucket.filled_at, bucket.paused_until)
  if now > from then
    local tokens, share = M.earned(bucket.rate, bucket.share, now - from)
    bucket.tokens = math.min(bucket.burst, bucket.tokens + tokens)
    bucket.share = share
  end
  bucket.filled_at = now
  return now
end

---Seconds until there is a token.
---@return number
function Bucket:wait()
  local now = fill(self)
  local pause = math.max(0, self.paused_until - now)
  local missing = 1 - self.tokens
  return missing > ROUNDING and pause + M.time_to_earn(self.rate, self.share, missing) or pause
end

---Takes a token, if there is one.
---@return boolean taken
function Bucket:take()
  return self:claim() <= 0
end

---Takes a token for the first in line: nothing is left to wait for, or the seconds after which to come again.
---@return number seconds
function Bucket:claim()
  local wait = self:wait()
  if wait <= 0 then
    self.tokens = self.tokens - 1
  end
  return wait
end

---Nobody is in line any more.
function Bucket:leave() end -- luacheck: ignore 212

---Gives back a token that was not used.
function Bucket:refund()
  self.tokens = math.min(self.burst, self.tokens + 1)
end

---The service has refused a request because there are too many.
---@param retry_after? number seconds for which it wants none
function Bucket:refused(retry_after)
  local now = fill(self)
  -- Requests that were under way together are refused together: that is one lesson.
  if now >= self.paused_until then
    self.share = M.slowed(self.share)
  end
  self.paused_until = math.max(self.paused_until, now + M.pause(retry_after))
  self.tokens = math.min(self.tokens, 0)
end

---@return { rate: number, tokens: number, paused: number }
function Bucket:standing()
  local now = fill(self)
  return { rate = self.rate * self.share, tokens = self.tokens, paused = math.max(0, self.paused_until - now) }
end

return M
