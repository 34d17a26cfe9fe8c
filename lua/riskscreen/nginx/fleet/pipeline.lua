-- Commands of this worker's requests to Redis. A timer sends the waiting ones in one piece. So a request waits on a
-- semaphore, never longer than its deadline. A worker has one connection, however slow Redis is.
local clock = require("riskscreen.runtime").nginx_time

local ngx = _G.ngx

local LONGEST_BATCH = 128 -- commands
local MAX_WAITING = 1000 -- commands
local MAX_BATCHES = 10000 -- of one timer: nginx keeps a little memory of each until the timer ends
local IDLE = 1 -- seconds without commands after which the timer ends
local MOST_FAILURES = 10 -- that the circuit is told of one batch

---@class riskscreen.nginx.PipelineJob a command, which is a list of texts, and what becomes of it
---@field semaphore? table of the request that waits
---@field reply? any
---@field problem? string
---@field is_abandoned? boolean the request has given up before the command was sent

---@class riskscreen.nginx.Pipeline
---@field private client table a client of riskscreen.redis
---@field private breaker riskscreen.Breaker
---@field private longest number seconds that a batch may take
---@field private failed fun(problem: string) told of the first batch that fails after others
---@field private is_failing? boolean
---@field private looked_at? number when the circuit was last looked at
---@field private is_open? boolean the circuit, by then
---@field private jobs riskscreen.nginx.PipelineJob[]
---@field private runner? { is_begun: boolean } the timer
---@field private wake? table semaphore
local Pipeline = {}
Pipeline.__index = Pipeline

-- The next batch, without the jobs that nobody waits for any more.
local function take(self)
  local batch, rest = {}, {}
  for _, job in ipairs(self.jobs) do
    if not job.is_abandoned then
      local list = #batch < LONGEST_BATCH and batch or rest
      list[#list + 1] = job
    end
  end
  self.jobs = rest
  return batch
end

-- Tells the circuit how a batch ended. A slow Redis fails each of its commands.
local function report(self, permit, commands, err)
  local count = type(err) == "table" and err.reason == "timeout" and #commands or 1
  for _ = 1, math.min(count, MOST_FAILURES) do
    self.breaker:report(permit, err ~= nil)
  end
  self.looked_at = nil
end

local function send(self, commands)
  local permit = self.breaker:admit(self.longest)
  self.looked_at = nil
  if not permit then
    return nil, "circuit"
  end
  local ran, replies, err = pcall(self.client.pipeline, self.client, commands)
  if not ran then
    replies, err = nil, replies
  end
  report(self, permit, commands, err)
  if err and not self.is_failing then
    self.failed(err)
  end
  self.is_failing = err ~= nil
  return replies, err and "error" or nil
end

local function run(self, jobs)
  if not jobs[1] then
    return
  end
  local replies, problem = send(self, jobs)
  for index = 1, #jobs do
    local job = jobs[index]
    job.reply, job.problem = replies and replies[index], problem
    if job.semaphore then
      job.semaphore:post(1)
    end
  end
end

local function serve(self, runner)
  runner.is_begun = true
  local batches = 0
  repeat
    local is_idle = false
    if self.jobs[1] then
      batches = batches + 1
      run(self, take(self))
    else
      is_idle = not self.wake:wait(IDLE) and not self.jobs[1]
    end
  until is_idle or batches == MAX_BATCHES or self.runner ~= runner
  if self.runner == runner then
    self.runner = nil
    if self.jobs[1] then
      self:start()
    end
  end
end

---@private
function Pipeline:start()
  self.wake = self.wake or require("ngx.semaphore").new()
  local runner = { is_begun = false }
  self.runner = runner
  local created = ngx.timer.at(0, function()
    serve(self, runner)
  end)
  if not created then
    self.runner, self.jobs = nil, {}
  end
  return created
end

local function push(self, job)
  local jobs = self.jobs
  local count = #jobs
  if count >= MAX_WAITING then
    return false
  end
  jobs[count + 1] = job
  if not self.runner then
    return self:start()
  elseif count == 0 then
    self.wake:post(1)
  end
  return true
end

---Whether the circuit is open. It is looked up once per clock value. Only one command at a time probes it.
---@return boolean
function Pipeline:refuses()
  local now = clock()
  if now ~= self.looked_at then
    self.looked_at, self.is_open = now, self.breaker:refuses() ~= nil
  end
  return self.is_open or (self.jobs[1] ~= nil and self.breaker.state == "half_open")
end

---Sends a command and waits for its reply.
---@param seconds number
---@param command riskscreen.nginx.PipelineJob a new table
---@return any reply nil if there is none; false for Redis' nil; { err = … } for an error
---@return "circuit"|"full"|"timeout"|"error"|nil problem
function Pipeline:call(seconds, command)
  if self:refuses() then
    return nil, "circuit"
  end
  command.semaphore = require("ngx.semaphore").new()
  if not push(self, command) then
    return nil, "full"
  elseif not command.semaphore:wait(seconds) then
    command.is_abandoned = true
    -- nginx drops timers when too many run.
    if self.runner and not self.runner.is_begun then
      self.runner, self.jobs = nil, {}
    end
    return nil, "timeout"
  end
  return command.reply, command.problem
end

---Sends a command without waiting for it.
---@param command riskscreen.nginx.PipelineJob a new table
---@return boolean accepted
function Pipeline:post(command)
  return not self:refuses() and push(self, command) or false
end

local M = {}

---@param client table a client of riskscreen.redis
---@param breaker riskscreen.Breaker
---@param longest number seconds that a batch may take
---@param failed fun(problem: any)
---@return riskscreen.nginx.Pipeline
function M.new(client, breaker, longest, failed)
  return setmetatable({ client = client, breaker = breaker, longest = longest, failed = failed, jobs = {} }, Pipeline)
end

return M
