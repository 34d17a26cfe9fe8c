-- The rate limit of a client. Calls queue for tokens by priority, and within a priority in the order of their arrival.
-- token_bucket.lua has the tokens.
local buckets = require "riskscreen.call.token_bucket"
local priorities = require("riskscreen.options.reliability").priorities

local GRACE = 1 -- seconds after its deadline; an entry that is still queued then was left behind by an error

local ranks = {}
for rank, priority in ipairs(priorities) do
  ranks[priority] = rank
end

---@class riskscreen.LimiterEntry a call in the queue
---@field limiter riskscreen.Limiter
---@field rank integer of its priority
---@field deadline number
---@field blocks boolean the call waits outside of tasks
local Entry = {}
Entry.__index = Entry

---@class riskscreen.Limiter
---@field private bucket riskscreen.Bucket
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
local function join(limiter, priority, deadline)
  local queue, blocks, rank = limiter.queue, limiter.tasks.blocks(), ranks[priority]
  local position = #queue + 1
  while position > 1 and queue[position - 1].rank > rank do
    position = position - 1
  end
  for index, other in ipairs(blocks and queue or {}) do
    if other.blocks then
      position, rank = index, other.rank
      break
    end
  end
  local entry = { limiter = limiter, rank = rank, deadline = deadline, blocks = blocks }
  entry.signal = limiter.tasks.signal()
  table.insert(queue, position, setmetatable(entry, Entry))
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

---@param settings riskscreen.BucketSettings
---@param runtime { now: (fun(): number), tasks: table }
---@param shared? riskscreen.SharedMemory of all workers
---@param name? string of the bucket in the shared memory
---@return riskscreen.Limiter
function M.new(settings, runtime, shared, name)
  return setmetatable({
    now = runtime.now,
    tasks = runtime.tasks,
    bucket = buckets.new(settings, runtime.now, shared, name),
    queue = {},
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
  status.waiting = #self.queue
  return status
end

return M
