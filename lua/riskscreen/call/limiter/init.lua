-- The rate limit of a client. Calls queue for tokens by priority, and within a priority in the order of their arrival.
-- The tokens are in bucket.lua, or in shared_bucket.lua if several machines share them.
local buckets = require "riskscreen.call.limiter.bucket"
local priorities = require("riskscreen.options.reliability").priorities
local tables = require "riskscreen.util.tables"
local time = require "riskscreen.util.time"

local DAY = 86400 -- seconds
local GRACE = 1 -- seconds after its deadline; an entry that is still queued then was left behind by an error

local ranks = {}
for rank, priority in ipairs(priorities) do
  ranks[priority] = rank
end

---@class riskscreen.LimiterEntry a call in the queue
---@field limiter riskscreen.Limiter
---@field rank integer of its priority
---@field cost number tokens
---@field deadline number
---@field blocks boolean the call waits outside of tasks
local Entry = {}
Entry.__index = Entry

---@class riskscreen.Limiter
---@field private bucket riskscreen.Bucket|riskscreen.Lease
---@field private daily? riskscreen.DailyCap
---@field queue riskscreen.LimiterEntry[] by rank, and within a rank by arrival
local Limiter = {}
Limiter.__index = Limiter

-- The entry whose turn it is. Entries that an error has left behind are removed.
local function first_in_line(limiter, now)
  local queue = limiter.queue
  while queue[1] and now > queue[1].deadline + GRACE do
    table.remove(queue, 1)
  end
  return queue[1]
end

-- Queues a call. Blocking calls wait within each other on one stack, so the last one must leave first.
local function join(limiter, priority, deadline, cost)
  local queue, blocks = limiter.queue, limiter.tasks.blocks()
  local entry = { limiter = limiter, rank = ranks[priority], cost = cost, deadline = deadline, blocks = blocks }
  entry.signal = limiter.tasks.signal()
  setmetatable(entry, Entry)
  for index, other in ipairs(blocks and queue or {}) do
    if other.blocks then
      entry.rank = other.rank
      table.insert(queue, index, entry)
      return entry
    end
  end
  tables.insert_sorted(queue, "rank", entry)
  return entry
end

local function wake_first(limiter)
  local first = first_in_line(limiter, limiter.now())
  if first then
    first.signal:notify()
  end
end

---Leaves the queue, also when the waiting task is stopped.
function Entry:abandon()
  local limiter = self.limiter
  for index, entry in ipairs(limiter.queue) do
    if entry == self then
      table.remove(limiter.queue, index)
      wake_first(limiter)
      return
    end
  end
end

-- Asks the machines' common bucket for more tokens, on behalf of the first entry.
local function refill(limiter, entry, now)
  local waiting = 0
  for _, other in ipairs(limiter.queue) do
    waiting = waiting + other.cost
  end
  return limiter.bucket:refill(priorities[entry.rank], entry.cost, waiting, entry.deadline - now)
end

-- Waits for the entry's turn and takes its tokens; or nil, the seconds after which there may be tokens, and the reason.
local function await_turn(limiter, entry)
  while true do
    local now = limiter.now()
    if now >= entry.deadline then
      return nil, limiter.bucket:wait(entry.cost)
    end
    local first = first_in_line(limiter, now)
    local wait = first == entry and limiter.bucket:claim(entry.cost) or first.deadline + GRACE - now
    if first == entry and wait <= 0 then
      return true
    elseif first == entry and limiter.bucket.refill then
      local retry_after, cap, err
      wait, retry_after, cap, err = refill(limiter, entry, now)
      if not wait then
        return nil, retry_after, cap, err
      end
    end
    if first == entry and now + wait >= entry.deadline then
      return nil, wait
    elseif wait > 0 then
      entry.signal:wait(math.min(wait, entry.deadline - now))
    end
  end
end

-- The cap of a day (UTC): the tokens that its calls have taken. Workers of nginx share it; a watch keeps it.
---@class riskscreen.DailyCap
---@field private cap number
---@field day? integer
---@field began number monotonic seconds when that day began here
---@field taken number on that day
local DailyCap = {}

-- The tokens taken today, and their key in the shared memory.
function DailyCap:today()
  local day, now = math.floor(self.clock() / DAY), self.now()
  -- A date that is set back does not give the day's tokens a second time, unless a day has passed.
  if not self.day or day > self.day or now - self.began >= DAY then
    self.day, self.began, self.taken = day, now, 0
  end
  local key = self.shared and ("%s%.0f"):format(self.prefix, self.day)
  local taken = key and self.shared:get(key)
  return type(taken) == "number" and taken or self.taken, key
end

function DailyCap:left()
  return self.cap - self:today()
end

function DailyCap:take(cost)
  local _, key = self:today()
  self.taken = self.taken + cost
  if key then
    self.shared:incr(key, cost, 0, 2 * DAY)
  end
end

-- Gives tokens of a day back. Those of a past day are no tokens of this one.
function DailyCap:give_back(cost, day)
  self:today()
  if day == nil or day == self.day then
    self:take(-cost)
  end
end

-- The seconds until the next day.
function DailyCap:rest()
  return time.wait((self.day + 1) * DAY, self.clock(), DAY)
end

local M = {}

---A cap of a day. It goes on with `day`, `began` and `taken` of an earlier program. After a restart of the machine the
---monotonic clock is behind `began`, and the day is counted from now.
---@param settings { cap: number, clock: (fun(): number), now: (fun(): number), shared?: riskscreen.SharedMemory,
---prefix?: string, day?: integer, began?: number, taken?: number }
---@return riskscreen.DailyCap
function M.daily(settings)
  local now = settings.now()
  local kept = { taken = settings.taken or 0, began = math.min(settings.began or now, now) }
  return tables.object(DailyCap, tables.merge(settings, kept))
end

---@param settings riskscreen.BucketSettings|{ daily?: number, shared?: table }
---@param runtime { now: (fun(): number), tasks: table }
---@param shared? riskscreen.SharedMemory of all workers
---@param name? string of the bucket in the shared memory
---@param clock? fun(): number Unix seconds, for `daily`
---@return riskscreen.Limiter
function M.new(settings, runtime, shared, name, clock)
  local limiter = setmetatable({ now = runtime.now, tasks = runtime.tasks, queue = {} }, Limiter)
  if settings.shared then
    limiter.bucket = require("riskscreen.call.limiter.shared_bucket").new(settings, runtime.now, clock, name)
  else
    limiter.bucket = buckets.new(settings, runtime.now, shared, name)
    local prefix = ("riskscreen:daily:%s:"):format(tostring(name))
    limiter.daily = settings.daily
      and M.daily { cap = settings.daily, clock = clock, now = runtime.now, shared = shared, prefix = prefix }
  end
  return limiter
end

---Takes the tokens of a request, if there are enough and no call waits for them.
---@param cost? number tokens; by default 1
---@return boolean taken
function Limiter:try(cost)
  cost = cost or 1
  if first_in_line(self, self.now()) or (self.daily and self.daily:left() < cost) or self.bucket:claim(cost) > 0 then
    return false
  elseif self.daily then
    self.daily:take(cost)
  end
  return true
end

-- Waits for the tokens; or nil and the seconds after which there may be enough.
local function await_tokens(limiter, priority, deadline, cost)
  local wait = limiter.bucket:wait(cost)
  if limiter.now() + wait >= deadline then
    return nil, wait
  end
  local entry = join(limiter, priority, deadline, cost)
  local hold = limiter.tasks.hold(entry)
  local taken, retry_after, cap, err = await_turn(limiter, entry)
  limiter.tasks.release(entry, hold)
  entry:abandon()
  return taken, retry_after, cap, err
end

---Waits for the tokens of a request and takes them, unless there cannot be enough before the deadline, or today.
---@param priority "high"|"normal"|"low"
---@param deadline number by the clock
---@param cost? number tokens; by default 1
---@return boolean|nil taken
---@return number|nil retry_after seconds
---@return string|nil cap that is used up, if that is the reason
---@return riskscreen.Error|nil err of Redis, if that is the reason
function Limiter:acquire(priority, deadline, cost)
  cost = cost or 1
  if self:try(cost) then
    return true
  end
  local daily = self.daily
  if daily and daily:left() < cost then
    return nil, daily:rest(), "daily"
  end
  local taken, retry_after, cap, err = await_tokens(self, priority, deadline, cost)
  if not taken then
    return nil, retry_after, cap, err
  elseif daily and daily:left() < cost then
    -- Another call has taken the last ones of the day meanwhile.
    self.bucket:refund(cost)
    wake_first(self)
    return nil, daily:rest(), "daily"
  elseif daily then
    daily:take(cost)
  end
  return true
end

---The day of the tokens that were taken last, where the calls of a day have a cap.
---@return integer|nil
function Limiter:day()
  return self.daily and self.daily.day
end

---Gives back the tokens of a request that was not sent. One that failed to connect keeps those of the rate, so that
---attempts have a limit, too. Machines that share a limit have one token for the rate and the day.
---@param cost? number by default 1
---@param has_failed? boolean to connect
---@param day? integer on which they were taken, as `day` said; by default today
function Limiter:refund(cost, has_failed, day)
  if not has_failed or self.bucket.refill then
    self.bucket:refund(cost or 1)
  end
  if self.daily then
    self.daily:give_back(cost or 1, day)
  end
  wake_first(self)
end

---The service has refused a request because there are too many.
---@param retry_after? number seconds for which it wants none
function Limiter:refused(retry_after)
  self.bucket:refused(retry_after)
end

---The rate in force, the tokens, the number of waiting calls, and the seconds for which a refusal stops everything.
---@return { rate: number, tokens: number, waiting: integer, paused: number, left_today?: number,
---away?: boolean }
function Limiter:status()
  local status = self.bucket:status()
  status.waiting = #self.queue
  status.left_today = self.daily and self.daily:left() or status.left_today
  return status
end

return M
