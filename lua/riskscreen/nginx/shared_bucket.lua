-- The token bucket of bucket.lua for all workers together, in a shared dict. Who waits for its tokens is limiter.lua's.
-- Each worker's line reserves one token at a time, for whoever is first in it when the token is there: within a worker
-- priority and order count as ever, and workers with lines get their tokens in turn, however long the lines are.
--
-- The dict knows atomic additions, no transactions. The state is therefore one number: the time up to which everything
-- earned has been spent. Taking a token adds the time that earns one; so nobody takes what another has taken, and a
-- worker that dies loses one token at most.
local buckets = require "riskscreen.bucket"

local ROUNDING = 1e-6 -- seconds
local RAISE_MEMORY = 1 -- seconds for which it is known that somebody has cut what was saved to a burst
local LOOKS = 100 -- at what another worker is about to change
local SHORTEST_WAIT = 0.001 -- seconds
local MOST_AHEAD = 1024 -- tokens that may be reserved

---@class riskscreen.nginx.SharedBucket
---@field private own riskscreen.Bucket used while the dict is of no use
---@field private reserved? number when the token is there that the line has reserved
---@field private cost? number seconds that it has added
local Bucket = {}
Bucket.__index = Bucket

-- The share of the rate in force, and since when it grows.
local function learnt(self)
  local text = self.dict:get(self.keys.share)
  local share, since = tostring(text):match "^(%S+) (%S+)$"
  share, since = tonumber(share), tonumber(since)
  if share and since and share > 0 then
    return math.min(share, 1), since
  end
  return 1, 0
end

local function share_at(self, time)
  local share, since = learnt(self)
  return math.min(1, share + math.max(0, time - since) / buckets.RECOVERY)
end

local function paused_until(self, now)
  local till = self.dict:get(self.keys.pause)
  return type(till) == "number" and math.min(till, now + buckets.pause(math.huge)) or 0
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

-- The time up to which everything is spent; nil when the dict is of no use.
local function spent_until(self, now)
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
    elseif spent > math.max(now, paused_until(self, now)) + cost_at(self, now, MOST_AHEAD) then
      self.dict:set(self.keys.spent, now)
    else
      return spent
    end
  end
  -- Another worker has stopped in the middle: for the moment there is no token.
  return spent and now or nil
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
  local wait = math.max(due, paused_until(self, now)) - now
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
  if spent + cost > now + ROUNDING or paused_until(self, now) > now then
    return false
  end
  local due = self.dict:incr(self.keys.spent, cost)
  if due and due > now + ROUNDING then
    self.dict:incr(self.keys.spent, -cost)
  end
  return due ~= nil and due <= now + ROUNDING
end

-- A token for the line; nil when the dict is of no use.
local function reserve(self, now)
  local spent = spent_until(self, now)
  if not spent then
    return false
  end
  self.cost = cost_at(self, spent)
  self.reserved = self.dict:incr(self.keys.spent, self.cost)
  return true
end

---Takes a token for the first in line: nothing is left to wait for, or the seconds after which to come again.
---@return number seconds
function Bucket:claim()
  local now = self.now()
  local pause = paused_until(self, now)
  -- What was reserved before a refusal is no longer there.
  if self.reserved and self.reserved < pause then
    self.reserved = nil
  end
  if not self.reserved and not reserve(self, now) then
    return self.own:claim()
  end
  local wait = self.reserved and math.max(self.reserved, pause) - now or SHORTEST_WAIT
  if wait <= ROUNDING then
    self.reserved = nil
    return 0
  end
  return wait
end

---Nobody is in line any more.
function Bucket:leave()
  if self.reserved and self.reserved >= paused_until(self, self.now()) then
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
  local before, till = paused_until(self, now), now + pause
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
    paused = math.max(0, paused_until(self, now) - now),
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
