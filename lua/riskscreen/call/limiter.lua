-- The rate limit of a client. Calls queue for tokens by priority, and within a priority in the order of their arrival.
-- token_bucket.lua has the tokens.
local buckets = require "riskscreen.call.token_bucket"
local priorities = require("riskscreen.options.reliability").priorities

local GRACE = 1 -- seconds after its deadline; an entry that is still queued then was left behind by an error

---@class riskscreen.LimiterEntry a call in the queue
---@field lane riskscreen.LimiterLane|nil nil after it has left
---@field deadline number
---@field outer? riskscreen.LimiterEntry the blocking call within which this call blocks
local Entry = {}
Entry.__index = Entry

---@class riskscreen.Limiter
---@field private bucket riskscreen.Bucket
---@field lanes riskscreen.LimiterLane[] one queue for each priority
---@field innermost? riskscreen.LimiterEntry the last of the calls that block
---@field waiting integer
local Limiter = {}
Limiter.__index = Limiter

-- A queue is a linked list.

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

-- Adds an entry before `follower`, or at the end.
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

-- The entry whose turn it is. Entries that an error has left behind are removed.
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

-- Queues a call. Blocking calls wait within each other on one stack, so the last one must leave first.
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

---Leaves the queue, also when the waiting task is stopped.
function Entry:abandon()
  if self.lane then
    local limiter = self.limiter
    unlink(self)
    limiter.waiting = limiter.waiting - 1
    wake_first(limiter)
  end
end

-- Waits for the entry's turn and takes a token; or nil and the seconds after which there may be a token.
local function await_turn(limiter, entry)
  while true do
    local now = limiter.now()
    if now >= entry.deadline then
      return nil, limiter.bucket:wait()
    end
    local first = first_in_line(limiter, now)
    local wait = first == entry and limiter.bucket:claim() or first.deadline + GRACE - now
    if first == entry and wait <= 0 then
      return true
    elseif first == entry and now + wait >= entry.deadline then
      return nil, wait
    end
    entry.signal:wait(math.min(wait, entry.deadline - now))
  end
end

local M = {}

---@class riskscreen.LimiterLane
---@field first? riskscreen.LimiterEntry
---@field last? riskscreen.LimiterEntry

---@param settings riskscreen.BucketSettings
---@param runtime { now: (fun(): number), tasks: table }
---@param shared? riskscreen.SharedMemory of all workers
---@param name? string of the bucket in the shared memory
---@return riskscreen.Limiter
function M.new(settings, runtime, shared, name)
  local lanes = {}
  for index, priority in ipairs(priorities) do
    lanes[index] = {}
    lanes[priority] = lanes[index]
  end
  return setmetatable({
    now = runtime.now,
    tasks = runtime.tasks,
    bucket = buckets.new(settings, runtime.now, shared, name),
    lanes = lanes,
    waiting = 0,
  }, Limiter)
end

---Takes a token, if there is one and no call waits for it.
---@return boolean taken
function Limiter:try()
  return not first_in_line(self, self.now()) and self.bucket:claim() <= 0
end

---Waits for a token and takes it, unless there can be no token before the deadline.
---@param priority "high"|"normal"|"low"
---@param deadline number by the clock
---@return boolean|nil taken
---@return number|nil retry_after seconds
function Limiter:acquire(priority, deadline)
  if self:try() then
    return true
  end
  local wait = self.bucket:wait()
  if self.now() + wait >= deadline then
    return nil, wait
  end
  local entry = join(self, priority, deadline)
  local hold = self.tasks.hold(entry)
  local taken, retry_after = await_turn(self, entry)
  self.tasks.release(entry, hold)
  entry:abandon()
  return taken, retry_after
end

---Gives back a token that was not used.
function Limiter:refund()
  self.bucket:refund()
  wake_first(self)
end

---The service has refused a request because there are too many.
---@param retry_after? number seconds for which it wants none
function Limiter:refused(retry_after)
  self.bucket:refused(retry_after)
end

---The rate in force, the tokens, the number of waiting calls, and the seconds for which a refusal stops everything.
---@return { rate: number, tokens: number, waiting: integer, paused: number }
function Limiter:status()
  local status = self.bucket:status()
  status.waiting = self.waiting
  return status
end

return M
