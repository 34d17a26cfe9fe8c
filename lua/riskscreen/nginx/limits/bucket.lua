-- The token bucket of bucket.lua for all workers together, in a shared dict. Who waits for its tokens is limiter.lua's.
-- Each worker's line reserves one token at a time, for whoever is first in it when the token is there: within a worker
-- priority and order count as ever, and workers with lines get their tokens in turn, however long the lines are.
--
-- The dict knows atomic additions, no transactions. The state is therefore one number: the time up to which everything
-- earned has been spent. Taking a token adds the time that earns one; so nobody takes what another has taken, and a
-- worker that dies loses one token at most.
local buckets = require "riskscreen.call.token_bucket"

local ROUNDING = 1e-6 -- seconds
local RAISE_MEMORY = 1 -- seconds for which it is known that somebody has cut what was saved to a burst
local LOOKS = 100 -- at what another worker is about to change
local SHORTEST_WAIT = 0.001 -- seconds
local MOST_AHEAD = 1024 -- tokens that may be reserved

---@class riskscreen.nginx.SharedBucket
---@field private share number of the rate, as was last learnt from refusals
---@field private growing_since number from when on it grows again
---@field private paused_until number
---@field private own riskscreen.Bucket used while the dict is of no use
---@field private reserved? number when the token is there that the line has reserved
---@field private cost? number seconds that it has added
local Bucket = {}
Bucket.__index = Bucket

-- Reads what was learnt from refusals; all that follows within one call goes by it.
local function learn(self, now)
  local text, till = self.dict:get(self.keys.share), self.dict:get(self.keys.pause)
  self.share, self.growing_since = 1, 0
  if type(text) == "string" then
    local share, since = text:match "^(%S+) (%S+)$"
    share, since = tonumber(share), tonumber(since)
    if share and since and share > 0 then
      self.share, self.growing_since = math.min(share, 1), since
    end
  end
  self.paused_until = type(till) == "number" and math.min(till, now + buckets.pause(math.huge)) or 0
end

local function share_at(self, time)
  return math.min(1, self.share + math.max(0, time - self.growing_since) / buckets.RECOVERY)
end

-- Seconds that a token costs whoever takes it at a time.
local function cost_at(self, time, tokens)
  return buckets.time_to_earn(self.rate, share_at(self, time), tokens or 1)
end

-- Nothing earned before that time is saved.
local function earliest(self, now)
  return now - self.burst / (self.rate * share_at(self, now))
end

-- Brings the time forward; the one worker that is the first to want it from there.
local function raise(self, spent, floor)
  local first, message = self.dict:add(("%s%.17g"):format(self.keys.raise, spent), true, RAISE_MEMORY)
  if first or message ~= "exists" then
    self.dict:incr(self.keys.spent, floor - spent)
  end
end

-- The time up to which everything is spent, and whether that is uncertain: then there is no token for the moment. Nil
-- when the dict is of no use.
local function spent_until(self, now)
  learn(self, now)
  local floor = earliest(self, now)
  local spent
  for _ = 1, LOOKS do
    spent = self.dict:get(self.keys.spent)
    if type(spent) ~= "number" then
      local _, message = self.dict:add(self.keys.spent, floor)
      if spent ~= nil or (message and message ~= "exists") then
        return nil
      end
    elseif spent < floor then
      raise(self, spent, floor)
    elseif spent > math.max(now, self.paused_until) + cost_at(self, now, MOST_AHEAD) then
      self.dict:set(self.keys.spent, now)
    else
      return spent, false
    end
  end
  -- Another worker has stopped between two steps.
  return spent and now, true
end

---Seconds until there is a token.
---@return number
function Bucket:wait()
  local now = self.now()
  local spent = spent_until(self, now)
  if not spent then
    return self.own:wait()
  end
  local due = self.reserved or spent + cost_at(self, spent)
  local wait = math.max(due, self.paused_until) - now
  return wait > ROUNDING and wait or 0
end

---Takes a token, if there is one.
---@return boolean taken
function Bucket:take()
  local now = self.now()
  local spent = spent_until(self, now)
  if not spent then
    return self.own:take()
  end
  local cost = cost_at(self, spent)
  if spent + cost > now + ROUNDING or self.paused_until > now then
    return false
  end
  local due = self.dict:incr(self.keys.spent, cost)
  if due and due > now + ROUNDING then
    self.dict:incr(self.keys.spent, -cost)
  end
  return due ~= nil and due <= now + ROUNDING
end

-- A token for the line.
local function reserve(self, spent)
  self.cost = cost_at(self, spent)
  self.reserved = self.dict:incr(self.keys.spent, self.cost)
end

---Takes a token for the first in line: nothing is left to wait for, or the seconds after which to come again.
---@return number seconds
function Bucket:claim()
  local now = self.now()
  local spent, uncertain = spent_until(self, now)
  if not spent then
    return self.own:claim()
  end
  -- What was reserved before a refusal is no longer there.
  if self.reserved and self.reserved < self.paused_until then
    self.reserved = nil
  end
  if not self.reserved and not uncertain then
    reserve(self, spent)
  end
  local wait = self.reserved and math.max(self.reserved, self.paused_until) - now or SHORTEST_WAIT
  if wait <= ROUNDING then
    self.reserved = nil
    return 0
  end
  return wait
end

---Nobody is in line any more.
function Bucket:leave()
  if not self.reserved then
    return
  end
  learn(self, self.now())
  if self.reserved >= self.paused_until then
    self.dict:incr(self.keys.spent, -self.cost)
  end
  self.reserved = nil
end

---Gives back a token that was not used.
function Bucket:refund()
  local now = self.now()
  local spent = spent_until(self, now)
  if spent then
    self.dict:incr(self.keys.spent, -cost_at(self, spent))
  else
    self.own:refund()
  end
end

---The service has refused a request because there are too many.
---@param retry_after? number seconds for which it wants none
function Bucket:refused(retry_after)
  local now = self.now()
  local spent = spent_until(self, now)
  if not spent then
    self.own:refused(retry_after)
    return
  end
  local dict, keys, pause = self.dict, self.keys, buckets.pause(retry_after)
  local before, till = self.paused_until, now + pause
  -- Requests that were under way together are refused together: that is one lesson, whichever workers they are of.
  local first, message = dict:add(keys.lesson, true, math.max(pause, SHORTEST_WAIT))
  if now >= before and (first or message ~= "exists") then
    local slowed = buckets.slowed(share_at(self, now))
    dict:set(keys.share, ("%.17g %.17g"):format(slowed, till), pause + buckets.RECOVERY + 1)
  end
  if till > before then
    dict:set(keys.pause, till, pause + 1)
  end
  if spent < math.max(before, till) then
    dict:set(keys.spent, math.max(before, till))
  end
end

---@return { rate: number, tokens: number, paused: number }
function Bucket:standing()
  local now = self.now()
  local spent = spent_until(self, now)
  if not spent then
    return self.own:standing()
  end
  local earned = now > spent and buckets.earned(self.rate, share_at(self, spent), now - spent) or 0
  return {
    rate = self.rate * share_at(self, now),
    tokens = math.min(self.burst, earned),
    paused = math.max(0, self.paused_until - now),
  }
end

local M = {}

---@param settings riskscreen.BucketSettings
---@param now fun(): number seconds, by a clock that all workers have in common
---@param dict table an ngx.shared dict
---@param name string buckets of one name are one bucket
---@return riskscreen.nginx.SharedBucket
function M.new(settings, now, dict, name)
  local prefix = "riskscreen:bucket:" .. name .. ":"
  return setmetatable({
    now = now,
    dict = dict,
    rate = settings.rate,
    burst = buckets.burst(settings),
    own = buckets.new(settings, now),
    keys = {
      spent = prefix .. "spent",
      raise = prefix .. "raise:",
      share = prefix .. "share",
      pause = prefix .. "pause",
      lesson = prefix .. "lesson",
    },
  }, Bucket)
end

return M
