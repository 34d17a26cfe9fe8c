-- The tokens of a rate limit that several machines share. Redis grants them in batches. A batch is valid for a short
-- time, so that no machine saves tokens. In any T seconds all machines together take at most burst + rate × T tokens.
-- The reason: the bucket in Redis holds burst - rate × lifetime, and a token is used within its lifetime or lost.
-- init.lua uses this in place of bucket.lua.
local buckets = require "riskscreen.call.limiter.bucket"
local is_forked = require "riskscreen.util.forked"
local scripts = require "riskscreen.call.limiter.scripts"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local LIFETIME = 1 -- seconds that a token is valid at most
local HELD_PART = 0.5 -- of the burst: at most so much is granted within a lifetime ahead of the bucket
local AHEAD = 0.25 -- of the lifetime: tokens are asked for in advance for the requests of so long a time
local RESERVES = { high = 0, normal = 0.1, low = 0.2 } -- of the bucket, left for higher priorities
local AWAY = 1 -- seconds after a failure of Redis before it is asked again
local DEFAULT_PAUSE, MAX_PAUSE = 1, 60 -- seconds
local PACE_WINDOW = 1 -- seconds over which the pace of the requests is averaged
local ROUNDING = 1e-6 -- tokens
local DAY = 86400 -- seconds

---@class riskscreen.TokenBatch
---@field tokens number
---@field valid_until number by the clock
---@field day string by the clock of Redis

---@class riskscreen.Lease
---@field private batches riskscreen.TokenBatch[] the oldest first
---@field private unspent riskscreen.TokenBatch what was not used and is given back to the cap; below 0: what was used
---without Redis
---@field private used { day: string, tokens: number } by this program, for a Redis that has lost its data
---@field private left? number of the day's cap, as last heard
---@field private turns table<string, number> by priority: the time of our turn by the clock of Redis
---@field private ask_at table<string, number> by priority: the same time by ours
---@field private pace number tokens a second, lately
---@field private away_until? number Redis failed; it is not asked before
---@field private away_error? riskscreen.Error
---@field private allowance? number tokens that may be used until Redis is back
---@field private own? riskscreen.Bucket for the time without Redis
local Lease = {}
Lease.__index = Lease

local M = {}

---@param settings table the checked option `rate_limit`, with `shared`
---@param now fun(): number seconds
---@param clock fun(): number Unix seconds, for the cap while Redis is away
---@param name string of the limit where `shared` gives none
---@return riskscreen.Lease
function M.new(settings, now, clock, name)
  local shared, burst = settings.shared, settings.burst or math.max(2, settings.rate)
  local lifetime = math.min(LIFETIME, burst * HELD_PART / settings.rate)
  return setmetatable({
    now = now,
    clock = clock,
    settings = settings,
    redis = shared.redis,
    keys = { shared.redis:key("rate_limit:" .. (shared.name or name)) },
    share = shared.away == "share" and shared.share or nil,
    burst = burst,
    lifetime = lifetime,
    capacity = burst - settings.rate * lifetime,
    born = "",
    pace = 0,
    paced_at = now(),
    paused_until = -math.huge,
  }, Lease)
end

-- Forgets what a forked child's parent was granted, and what the parent tells Redis itself.
local function begin(lease)
  lease.batches, lease.latest, lease.turns, lease.ask_at = {}, nil, {}, {}
  lease.unspent, lease.used = { tokens = 0, day = "0" }, { day = "0", tokens = 0 }
end

-- Adds tokens to a day's count. Those of a past day change nothing any more.
local function note(count, tokens, day)
  if tonumber(day) > tonumber(count.day) then
    count.day, count.tokens = day, 0
  end
  count.tokens = count.tokens + (day == count.day and tokens or 0)
end

-- The valid tokens.
local function held(lease)
  if is_forked(lease) then
    begin(lease)
  end
  local now, batches, sum = lease.now(), lease.batches, 0
  while batches[1] and batches[1].valid_until <= now do
    note(lease.unspent, batches[1].tokens, batches[1].day)
    table.remove(batches, 1)
  end
  for _, batch in ipairs(batches) do
    sum = sum + batch.tokens
  end
  return sum
end

local function take(lease, cost)
  local batches = lease.batches
  while cost > ROUNDING and batches[1] do
    local batch = batches[1]
    local tokens = math.min(cost, batch.tokens)
    batch.tokens, cost = batch.tokens - tokens, cost - tokens
    lease.latest = batch
    if batch.tokens <= ROUNDING then
      table.remove(batches, 1)
    end
  end
end

-- The tokens a second that were taken lately.
local function pace_at(lease, now)
  return lease.pace * math.exp((lease.paced_at - now) / PACE_WINDOW)
end

local function add(lease, tokens, valid_until, day)
  tables.insert_sorted(lease.batches, "valid_until", { tokens = tokens, valid_until = valid_until, day = day })
end

---The seconds until there may be tokens, as far as that is known.
---@return number
function Lease:wait()
  return math.max(0, self.paused_until - self.now())
end

---Takes tokens that are held if there are enough: then 0, otherwise the seconds after which to ask for more.
---@param cost number tokens
---@return number seconds
function Lease:claim(cost)
  local wait = self:wait()
  if wait > 0 then
    return wait
  elseif held(self) < cost - ROUNDING then
    return math.huge
  end
  take(self, cost)
  local now = self.now()
  self.pace, self.paced_at = pace_at(self, now) + cost / PACE_WINDOW, now
  return 0
end

-- Tokens from a bucket of our own, while Redis is away.
local function refill_alone(lease, cost)
  local now, used = lease.now(), lease.used
  if not lease.share then
    return nil, lease.away_until - now, nil, lease.away_error
  elseif lease.allowance and lease.allowance < cost then
    return nil, lease.away_until - now, "share"
  end
  local wait = lease.own:claim(cost)
  if wait > 0 then
    return wait
  end
  lease.allowance = lease.allowance and lease.allowance - cost
  local day = ("%.0f"):format(math.max(math.floor(lease.clock() / DAY), tonumber(used.day)))
  note(lease.used, cost, day)
  note(lease.unspent, -cost, day)
  add(lease, cost, now + lease.lifetime, day)
  return 0
end

local function go_away(lease, err)
  local now = lease.now()
  if lease.share and not lease.away_until then
    local rate, burst = lease.settings.rate * lease.share, math.max(1, lease.burst * lease.share)
    local left = lease.left or lease.settings.daily
    lease.own, lease.allowance = buckets.new({ rate = rate, burst = burst }, lease.now), left and left * lease.share
    lease.own:claim(burst) -- the tokens that this machine still holds may be used now
  end
  lease.away_until, lease.away_error = now + AWAY, err
end

local function text_of(number)
  return text.number("%.6f", number)
end

-- The arguments of the script. Tokens are given back only once, because the reply to it may be lost.
local function arguments(lease, priority, missing, wanted, patience)
  local settings, used, unspent = lease.settings, lease.used, lease.unspent
  return {
    text_of(settings.rate),
    text_of(lease.capacity),
    text_of(RESERVES[priority]),
    priority,
    text_of(missing),
    text_of(wanted),
    text_of(settings.rate * lease.lifetime * AHEAD),
    text_of(patience),
    text_of(lease.turns[priority] or 0),
    text_of(settings.daily or 0),
    text_of(unspent.tokens),
    unspent.day,
    lease.born,
    used.day,
    text_of(used.tokens),
  }
end

local function read_grant(lease, reply, asked_at, priority)
  local granted, wait, cap = text.to_number(reply[1]), text.to_number(reply[2]), reply[3]
  local day = reply[5]
  lease.born, lease.left = reply[6], text.to_number(reply[7])
  if granted > 0 then
    -- Tokens of a day are not used on the next one.
    add(lease, granted, asked_at + math.min(lease.lifetime, text.to_number(reply[8])), day)
    note(lease.used, granted, day)
    lease.turns[priority], lease.ask_at[priority] = nil, nil
    return 0
  elseif cap ~= "" then
    return nil, wait, cap
  end
  lease.turns[priority], lease.ask_at[priority] = text.to_number(reply[4]), lease.now() + wait
  return wait
end

---Asks for tokens for the call whose turn it is, and for those behind it. Waits for Redis.
---@param priority "high"|"normal"|"low"
---@param cost number tokens of the call
---@param waiting number tokens of all waiting calls
---@param patience number seconds that the call can wait
---@return number|nil wait 0: claim again; above 0: seconds after which to ask again; nil: there will be no tokens
---@return number|nil retry_after seconds
---@return string|nil cap the cap that is used up
---@return riskscreen.Error|nil err of Redis
function Lease:refill(priority, cost, waiting, patience)
  local now = self.now()
  if self.paused_until > now then
    return self.paused_until - now
  elseif self.away_until and now < self.away_until then
    return refill_alone(self, cost)
  elseif (self.ask_at[priority] or 0) > now then
    return self.ask_at[priority] - now
  end
  local tokens = held(self)
  local missing = cost - tokens
  local wanted = math.max(missing, waiting - tokens) + pace_at(self, now) * self.lifetime * AHEAD
  local given = arguments(self, priority, missing, wanted, patience)
  local sent_back = self.unspent
  self.unspent = { tokens = 0, day = sent_back.day }
  local reply, err = self.redis:script(scripts.grant, self.keys, given)
  if not reply then
    note(self.unspent, math.min(0, sent_back.tokens), sent_back.day)
    go_away(self, err)
    return refill_alone(self, cost)
  end
  if sent_back.tokens > 0 and sent_back.day == self.used.day then
    note(self.used, -sent_back.tokens, sent_back.day)
  end
  self.away_until, self.away_error, self.own = nil, nil, nil
  return read_grant(self, reply, now, priority)
end

---Gives back the tokens of a request that was not sent.
---@param cost number
function Lease:refund(cost)
  if self.latest then
    add(self, cost, self.latest.valid_until, self.latest.day)
  end
end

---The service has refused a request because there are too many: no machine sends for a while.
---@param retry_after? number seconds for which it wants none
function Lease:refused(retry_after)
  local pause = math.min(retry_after or DEFAULT_PAUSE, MAX_PAUSE)
  self.paused_until = math.max(self.paused_until, self.now() + pause)
  local done, err = self.redis:script(scripts.refused, self.keys, { text_of(pause) })
  if not done then
    go_away(self, err)
  end
end

---@return { rate: number, tokens: number, paused: number, left_today?: number, away: boolean }
function Lease:status()
  return {
    rate = self.settings.rate,
    tokens = held(self),
    paused = self:wait(),
    left_today = self.left,
    away = self.away_until ~= nil,
  }
end

return M
