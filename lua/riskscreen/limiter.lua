-- The rate limit of a client: a token bucket at which calls stand in line, in the order in which they came and by
-- priority. It learns from refusals of the service: it pauses, then is slower, and recovers gradually. The clock and
-- the waiting are given to it.

local MAX_PAUSE = 60 -- seconds that a refusal may stop everything for
local DEFAULT_PAUSE = 1 -- seconds, where a refusal names no time
local RECOVERY = 60 -- seconds in which the rate grows from nothing to what was set
local LEAST_SHARE = 1 / 64 -- of the rate that was set
local ROUNDING = 1e-9 -- tokens
local GRACE = 1 -- seconds after its deadline at which an entry that is still there was left behind by an error

---@class riskscreen.LimiterEntry one call in line
---@field lane riskscreen.LimiterLane|nil nil once it has left
---@field deadline number
---@field outer? riskscreen.LimiterEntry the blocking call within which this one blocks
local Entry = {}
Entry.__index = Entry

---@class riskscreen.Limiter
---@field rate number tokens a second, as set
---@field share number of that rate in force
---@field burst number tokens that are saved at most
---@field tokens number
---@field filled_at number when `tokens` was true
---@field paused_until number
---@field lanes riskscreen.LimiterLane[] of entries, one for each priority
---@field innermost? riskscreen.LimiterEntry of the calls that block, the one that blocks last
---@field waiting integer
local Limiter = {}
Limiter.__index = Limiter

-- The line: a linked list for each priority.

local function unlink(entry)
  local lane = entry.lane
  if entry.before then
    entry.before.after = entry.after
  else
    lane.first = entry.after
  end
  if entry.after then
    entry.after.before = entry.before
  else
    lane.last = entry.before
  end
  entry.lane = nil
end

-- Before `follower`, or at the end.
local function link(entry, lane, follower)
  local leader = lane.last
  if follower then
    leader = follower.before
  end
  entry.lane, entry.before, entry.after = lane, leader, follower
  if leader then
    leader.after = entry
  else
    lane.first = entry
  end
  if follower then
    follower.before = entry
  else
    lane.last = entry
  end
end

-- Whose turn it is. What an error has left behind makes room.
local function first_in_line(limiter, now)
  for _, lane in ipairs(limiter.lanes) do
    while lane.first and now > lane.first.deadline + GRACE do
      unlink(lane.first)
      limiter.waiting = limiter.waiting - 1
    end
    if lane.first then
      return lane.first
    end
  end
end

local function innermost(limiter)
  local entry = limiter.innermost
  while entry and not entry.lane do
    entry = entry.outer
  end
  limiter.innermost = entry
  return entry
end

-- Calls that block are within each other on one stack: the last one to come must be the first to go.
local function join(limiter, priority, deadline)
  local entry = setmetatable({ limiter = limiter, deadline = deadline, signal = limiter.tasks.signal() }, Entry)
  if limiter.tasks.blocks() then
    entry.outer = innermost(limiter)
    limiter.innermost = entry
  end
  if entry.outer then
    link(entry, entry.outer.lane, entry.outer)
  else
    link(entry, limiter.lanes[priority])
  end
  limiter.waiting = limiter.waiting + 1
  return entry
end

local function wake_first(limiter)
  local first = first_in_line(limiter, limiter.now())
  if first then
    first.signal:notify()
  end
end

---Leaves the line; also what happens when the task that waits is stopped.
function Entry:abandon()
  if self.lane then
    unlink(self)
    self.limiter.waiting = self.limiter.waiting - 1
    wake_first(self.limiter)
  end
end

-- The bucket. While it recovers, its share of the rate grows evenly with time.

local function earned(limiter, seconds)
  local growing = math.min(seconds, (1 - limiter.share) * RECOVERY)
  local grown = limiter.share + growing / RECOVERY
  return limiter.rate * (growing * (limiter.share + grown) / 2 + (seconds - growing)), grown
end

local function time_to_earn(limiter, tokens)
  local share = limiter.share
  if share >= 1 then
    return tokens / limiter.rate
  end
  return RECOVERY * (math.sqrt(share * share + 2 * tokens / (limiter.rate * RECOVERY)) - share)
end

local function fill(limiter)
  local now = limiter.now()
  local from = math.max(limiter.filled_at, limiter.paused_until)
  if now > from then
    local tokens, share = earned(limiter, now - from)
    limiter.tokens = math.min(limiter.burst, limiter.tokens + tokens)
    limiter.share = share
  end
  limiter.filled_at = now
  return now
end

-- Seconds until there is a token.
local function time_to_token(limiter, now)
  local pause = math.max(0, limiter.paused_until - now)
  local missing = 1 - limiter.tokens
  return missing > ROUNDING and pause + time_to_earn(limiter, missing) or pause
end

-- Waits for the entry's turn and takes a token; or nil and the seconds after which there may be one.
local function stand_in_line(limiter, entry)
  while true do
    local now = fill(limiter)
    local wait = time_to_token(limiter, now)
    if now >= entry.deadline then
      return nil, wait
    end
    local first = first_in_line(limiter, now)
    if first ~= entry then
      wait = first.deadline + GRACE - now
    elseif wait <= 0 then
      limiter.tokens = limiter.tokens - 1
      return true
    elseif now + wait >= entry.deadline then
      return nil, wait
    end
    entry.signal:wait(math.min(wait, entry.deadline - now))
  end
end

local M = {
  ---The first passes the others.
  priorities = { "high", "normal", "low" },
}

---@class riskscreen.LimiterLane
---@field first? riskscreen.LimiterEntry
---@field last? riskscreen.LimiterEntry

---@param settings { rate: number, burst?: number } tokens a second; at most so many are saved, by default one second's
---@param runtime { now: (fun(): number), tasks: table }
---@return riskscreen.Limiter
function M.new(settings, runtime)
  local lanes = {}
  for index, name in ipairs(M.priorities) do
    lanes[index] = {}
    lanes[name] = lanes[index]
  end
  local burst = settings.burst or math.max(1, settings.rate)
  local now = runtime.now()
  return setmetatable({
    now = runtime.now,
    tasks = runtime.tasks,
    rate = settings.rate,
    share = 1,
    burst = burst,
    tokens = burst,
    filled_at = now,
    paused_until = now,
    lanes = lanes,
    waiting = 0,
  }, Limiter)
end

---Takes a token where nobody has to wait for it.
---@return boolean taken
function Limiter:try()
  local now = fill(self)
  if first_in_line(self, now) or time_to_token(self, now) > 0 then
    return false
  end
  self.tokens = self.tokens - 1
  return true
end

---Waits for a token and takes it, unless there can be none before the deadline.
---@param priority "high"|"normal"|"low"
---@param deadline number by the clock
---@return boolean|nil taken
---@return number|nil retry_after seconds
function Limiter:acquire(priority, deadline)
  if self:try() then
    return true
  end
  local now = self.now()
  local wait = time_to_token(self, now)
  if now + wait >= deadline then
    return nil, wait
  end
  local entry = join(self, priority, deadline)
  local hold = self.tasks.hold(entry)
  local taken, retry_after = stand_in_line(self, entry)
  self.tasks.release(entry, hold)
  entry:abandon()
  return taken, retry_after
end

---Gives back a token that was not used.
function Limiter:refund()
  self.tokens = math.min(self.burst, self.tokens + 1)
  wake_first(self)
end

---The service has refused a request because there are too many.
---@param retry_after? number seconds for which it wants none
function Limiter:refused(retry_after)
  local now = fill(self)
  -- Requests that were under way together are refused together: that is one lesson.
  if now >= self.paused_until then
    self.share = math.max(LEAST_SHARE, self.share / 2)
  end
  self.paused_until = math.max(self.paused_until, now + math.min(retry_after or DEFAULT_PAUSE, MAX_PAUSE))
  self.tokens = math.min(self.tokens, 0)
end

---How it stands: the rate in force, the calls in line, and the seconds that a refusal still stops everything for.
---@return { rate: number, tokens: number, waiting: integer, paused: number }
function Limiter:standing()
  local now = fill(self)
  return {
    rate = self.rate * self.share,
    tokens = self.tokens,
    waiting = self.waiting,
    paused = math.max(0, self.paused_until - now),
  }
end

return M
