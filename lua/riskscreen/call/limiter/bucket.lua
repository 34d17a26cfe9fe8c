-- A token bucket that learns from refusals of the service: it pauses, then fills more slowly, and recovers gradually.
-- Workers of nginx share the pauses, and a counter that bounds their requests together. init.lua has the queue.

local MAX_PAUSE = 60 -- seconds
local DEFAULT_PAUSE = 1 -- seconds, where a refusal names no time
local RECOVERY = 60 -- seconds in which the rate grows from nothing to the full rate
local LEAST_SHARE = 1 / 64 -- of the full rate
local SHORTEST_WINDOW = 0.01 -- seconds
local ROUNDING = 1e-9 -- tokens

---@class riskscreen.BucketSettings
---@field rate number tokens a second
---@field burst? number tokens that are saved at most; by default the tokens of a second

---@class riskscreen.Bucket
---@field private rate number tokens a second, as set
---@field private share number of that rate in force
---@field private burst number tokens that are saved at most
---@field private tokens number at `filled_at`
---@field private filled_at number
---@field private paused_until number
---@field private shared? riskscreen.SharedMemory
---@field private window number seconds in which all workers together take no more than `most` tokens
---@field private most integer
local Bucket = {}
Bucket.__index = Bucket

-- The tokens that a time earns, and the share of the rate at its end. The share grows evenly with time.
local function earned(rate, share, seconds)
  local growing = math.min(seconds, (1 - share) * RECOVERY)
  local grown = share + growing / RECOVERY
  return rate * (growing * (share + grown) / 2 + (seconds - growing)), grown
end

-- The seconds that earn so many tokens.
local function time_to_earn(rate, share, tokens)
  local growing = (1 - share) * RECOVERY
  local meanwhile = rate * growing * (share + 1) / 2
  if tokens >= meanwhile then
    return growing + (tokens - meanwhile) / rate
  end
  return RECOVERY * (math.sqrt(share * share + 2 * tokens / (rate * RECOVERY)) - share)
end

local M = {}

---@param settings riskscreen.BucketSettings
---@param now fun(): number seconds, by a clock that all users of the shared memory have in common
---@param shared? riskscreen.SharedMemory
---@param name? string of the bucket in the shared memory
---@return riskscreen.Bucket
function M.new(settings, now, shared, name)
  local burst = settings.burst or math.max(1, settings.rate)
  local window = math.max(SHORTEST_WINDOW, math.floor(burst) / settings.rate)
  local prefix = ("riskscreen:bucket:%s:"):format(tostring(name))
  return setmetatable({
    now = now,
    rate = settings.rate,
    share = 1,
    burst = burst,
    tokens = burst,
    filled_at = now(),
    paused_until = -math.huge,
    shared = shared,
    window = window,
    most = math.floor(window * settings.rate + ROUNDING),
    pause_key = prefix .. "paused_until",
    share_key = prefix .. "share",
    window_prefix = prefix .. "window:",
  }, Bucket)
end

-- Obeys a refusal that another worker has seen.
local function learn(bucket)
  local paused_until, share = bucket.shared:get(bucket.pause_key), (bucket.shared:get(bucket.share_key))
  if type(paused_until) == "number" and type(share) == "number" and paused_until > bucket.paused_until then
    bucket.paused_until = math.min(paused_until, bucket.now() + MAX_PAUSE)
    bucket.share = math.min(bucket.share, share)
    bucket.tokens = math.min(bucket.tokens, 0)
  end
end

local function fill(bucket)
  if bucket.shared then
    learn(bucket)
  end
  local now = bucket.now()
  local from = math.max(bucket.filled_at, bucket.paused_until)
  if now > from then
    local tokens, share = earned(bucket.rate, bucket.share, now - from)
    bucket.tokens = math.min(bucket.burst, bucket.tokens + tokens)
    bucket.share = share
  end
  bucket.filled_at = now
  return now
end

-- The key of the window that is going on, and the seconds until the next one.
local function window_at(bucket, now)
  local number = math.floor(now / bucket.window)
  return ("%s%.0f"):format(bucket.window_prefix, number), (number + 1) * bucket.window - now
end

-- The tokens that all workers may take in the window, and those that are left of them.
local function window_tokens(bucket, key)
  local taken, most = bucket.shared:get(key), math.max(1, math.floor(bucket.most * bucket.share))
  return most, most - (type(taken) == "number" and taken or 0)
end

---The seconds until a request may be sent. One that costs more than can be saved needs all that can be saved.
---@param cost number tokens
---@return number
function Bucket:wait(cost)
  local now = fill(self)
  local pause = math.max(0, self.paused_until - now)
  local missing = math.min(cost, self.burst) - self.tokens
  local wait = missing > ROUNDING and pause + time_to_earn(self.rate, self.share, missing) or pause
  if self.shared and wait <= 0 then
    local key, rest = window_at(self, now)
    local most, left = window_tokens(self, key)
    return left < math.min(cost, most) and rest or 0
  end
  return wait
end

---Takes the tokens of a request if there are enough: then 0, otherwise the seconds after which to try again.
---@param cost number tokens
---@return number seconds
function Bucket:claim(cost)
  local wait = self:wait(cost)
  if wait > 0 then
    return wait
  end
  if self.shared then
    local key, rest = window_at(self, self.filled_at)
    self.shared:incr(key, cost, 0, 2 * self.window)
    local most, left = window_tokens(self, key)
    -- Another worker may have taken the last one meanwhile.
    if left < 0 and most - left > cost then
      self.shared:incr(key, -cost)
      return rest
    end
  end
  self.tokens = self.tokens - cost
  return 0
end

---Gives back tokens that were not used.
---@param cost number
function Bucket:refund(cost)
  self.tokens = math.min(self.burst, self.tokens + cost)
  if self.shared then
    self.shared:incr((window_at(self, self.now())), -cost)
  end
end

---The service has refused a request because there are too many.
---@param retry_after? number seconds for which it wants none
function Bucket:refused(retry_after)
  local now = fill(self)
  local pause = math.min(retry_after or DEFAULT_PAUSE, MAX_PAUSE)
  -- Requests that were under way together are refused together: that is one lesson.
  if now >= self.paused_until then
    self.share = math.max(LEAST_SHARE, self.share / 2)
  end
  self.tokens = math.min(self.tokens, 0)
  if now + pause > self.paused_until then
    self.paused_until = now + pause
    if self.shared then
      self.shared:set(self.share_key, self.share, pause + RECOVERY)
      self.shared:set(self.pause_key, self.paused_until, pause + RECOVERY)
    end
  end
end

---@return { rate: number, tokens: number, paused: number }
function Bucket:status()
  local now = fill(self)
  local tokens = self.tokens
  if self.shared then
    tokens = math.min(tokens, math.max(0, (select(2, window_tokens(self, (window_at(self, now)))))))
  end
  return { rate = self.rate * self.share, tokens = tokens, paused = math.max(0, self.paused_until - now) }
end

return M
