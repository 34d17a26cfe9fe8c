-- A worker of a queue: its tasks take jobs as one consumer of the stream's group, screen them and finish them. One task
-- at a time reads jobs for all, and one sends their ends. A job stays the worker's until it is finished; the jobs of a
-- worker that died are claimed by the others.
local addresses = require "riskscreen.address"
local build = require "riskscreen.options.build"
local calls = require "riskscreen.call"
local decisions = require "riskscreen.policy.decision"
local entries = require "riskscreen.queue.entries"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local kept = require "riskscreen.json.kept"
local policies = require "riskscreen.policy"
local random = require "riskscreen.util.random"
local redis = require "riskscreen.redis"
local runtime = require "riskscreen.runtime"
local screening = require "riskscreen.client.screen"
local reliability = require "riskscreen.options.reliability"
local scripts = require "riskscreen.queue.scripts"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local time = require "riskscreen.util.time"

local LONGEST_WAIT = 1 -- seconds that one command waits in Redis
local SHORT_WAIT = 0.1 -- the same at the end of a queue, while other workers have its last jobs
local FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30 -- seconds between two attempts at a job
local BATCH = 100 -- jobs that are finished at once
local AHEAD = 3 -- jobs without an outcome that a worker has for each task, so that tasks need not wait for Redis
local PATIENCE = 10 -- seconds for which a worker that stops tries to finish jobs
local DEAD_AFTER = 3600 -- seconds

local ON_RESULT = "on_result(result): takes each result before its job is finished. It may get the result of an input "
  .. "twice, if a worker dies meanwhile; where it raises, the job is tried again."

local REQUEST = "More options of each screening, such as include; of a transaction, meta."

local M = {}

---@type riskscreen.Option[]
M.options = {
  build.required { name = "client", type = "table", doc = "The client that screens." },
  build.concurrency("jobs", 32, "Jobs that are screened at a time."),
  build.checked("policy", "table", function(value)
    if type(value.decide) ~= "function" then
      return nil, "must be made by riskscreen.policy or riskscreen.score_policy"
    end
    return value
  end, "Decides about transactions; by default the default policy. Addresses have the policy of the client."),
  build.group("request", screening.more, REQUEST, {}),
  { name = "name", type = "string", doc = "Name of the worker in the group; by default one that nobody else has." },
  build.callback("on_result", ON_RESULT),
  build.notice("on_problem", "on_problem(err): a failure after which the worker goes on."),
}

---@class riskscreen.QueueWorkerOptions
---@field client riskscreen.Client
---@field concurrency? integer
---@field policy? riskscreen.Policy|riskscreen.ScorePolicy
---@field request? table
---@field name? string
---@field on_result? fun(result: table)
---@field on_problem? fun(err: riskscreen.Error)

---@class riskscreen.QueueJob
---@field position string in the stream
---@field id string
---@field key string
---@field item string
---@field kept string the outcome of an earlier input with the same subject, or ""
---@field input riskscreen.QueueInput
---@field deaths integer workers that had the job before and did not finish it
---@field outcome? string of an ended job: JSON text, or the reason why it is a dead letter
---@field use? "shared"|"remember"|"own"|"dead" of the outcome, for scripts.done

---@class riskscreen.QueueWorker
---@field name string
---@field finished integer results that it has made
---@field private queue riskscreen.Queue
---@field private identity? string of its decisions about addresses
---@field private decides? riskscreen.Policy the policy in `identity`
---@field private held table<string, riskscreen.QueueJob> by position
---@field private count integer of held jobs
---@field private unfinished integer held jobs without an outcome
---@field private ready riskscreen.QueueJob[] not begun yet
---@field private ended riskscreen.QueueJob[] whose ends are to be sent to Redis
---@field private running integer tasks that screen
---@field private is_reading boolean a task reads jobs
---@field private is_sending boolean a task sends ends of jobs
---@field private is_full boolean nobody reads the results
---@field private is_lost boolean Redis refuses to finish jobs
---@field private tell fun(err: riskscreen.Error)
---@field private stopped boolean
---@field private failure? riskscreen.Error
local Worker = { __name = "riskscreen.QueueWorker" }
Worker.__index = Worker

-- The client's state. It has the access key, so no field of a worker leads to it.
local function state_of(self)
  return calls.state_of(self.settings.client)
end

---@return riskscreen.QueueWorker|nil
---@return string|nil misuse of the client
function M.new(queue, settings)
  local state = calls.state_of(settings.client)
  local misuse = not state and "must be made by riskscreen.new" or calls.identity.misuse(state, true)
  if misuse then
    return nil, misuse
  end
  return setmetatable({
    queue = queue,
    redis = queue.redis,
    settings = settings,
    policy = settings.policy or policies.new(),
    tell = settings.on_problem or function() end,
    name = settings.name or "worker-" .. random.token(8),
    finished = 0,
    held = {},
    count = 0,
    unfinished = 0,
    ready = {},
    ended = {},
    changed = runtime.tasks.signal(),
    stopping = runtime.tasks.signal(),
    stopped = false,
  }, Worker)
end

-- Ends the worker by a failure that further jobs would meet, too.
local function fail(self, err)
  self.failure = self.failure or err
  self.is_lost = self.is_lost or err.kind == "storage"
  self:stop()
end

-- Outcomes

-- The identity of decisions about addresses. The program may give its client another policy while the worker runs.
local function identity_of(self)
  local request = self.settings.request
  local policy = request.policy or self.settings.client.policy
  if not self.identity or policy ~= self.decides then
    self.decides, self.identity = policy, calls.identity.decision(state_of(self), policy, request)
  end
  return self.identity
end

-- Whether the local lists say anything about an address. Then it has an outcome of its own.
local function is_listed(self, input)
  local state = state_of(self)
  local lists, network = state.lists, input.network
  if not lists then
    return false
  end
  local like = addresses.alike(network, state.settings.extend)
  local decision, notes = lists:decide(addresses.normalize(input.address, like), network)
  return decision ~= nil or notes ~= nil
end

-- The outcome that came with a job, if it may be used. One from the future is of a clock that was wrong.
local function kept_outcome(self, job)
  local outcome = (job.kept or "") ~= "" and json.decode(job.kept)
  local is_own = type(outcome) == "table" and outcome.identity == identity_of(self)
  local age = is_own and time.age(outcome.time, os.time())
  local is_fresh = age and age <= self.queue.settings.remember
  return is_fresh and not is_listed(self, job.input) and outcome or nil
end

local function outcome_of(self, decision, identity)
  local state = state_of(self)
  return {
    action = decision.action,
    reasons = decisions.reasons(decision, state.is_sandbox),
    risks = decisions.risks(decision, state.hide_key),
    error = decision.error and decision.error.kind or nil,
    identity = identity,
    time = os.time(),
  }
end

-- Ends

-- Ends a job, and sends to Redis what has ended meanwhile, unless another task sends already. The script passes over a
-- job that another worker has finished.
local function add_ended(self, job)
  local queue = self.queue
  self.ended[#self.ended + 1] = job
  self.unfinished = self.unfinished - 1
  while self.ended[1] and not self.is_lost and not self.is_sending do
    self.is_sending = true
    local batch, arguments =
      { tables.unpack(self.ended, 1, BATCH) }, { queue.base, queue.group, queue.settings.remember }
    for index, ended in ipairs(batch) do
      local last = 4 * index + 3
      arguments[last - 3], arguments[last - 2] = ended.position, ended.id
      arguments[last - 1], arguments[last] = ended.outcome, ended.use
    end
    local reply, err = self.redis:script(scripts.done, queue.keys, arguments)
    if reply then
      self.finished, self.is_full = self.finished + reply[1], reply[2] >= queue.settings.results
      self.ended, self.count = { tables.unpack(self.ended, #batch + 1) }, self.count - #batch
      for _, ended in ipairs(batch) do
        self.held[ended.position] = nil
      end
      self.changed:notify()
    elseif not err.retryable or (self.stopped and runtime.now() - self.stopped_at > PATIENCE) then
      fail(self, err)
    else
      self.tell(err)
      runtime.sleep(FIRST_PAUSE)
    end
    self.is_sending = false
  end
end

-- Screening

local function screen(self, input)
  local client, transaction = self.settings.client, input.transaction
  if type(transaction) == "table" then
    local facts = { input = transaction.hash, meta = self.settings.request.meta }
    return screening.transaction(client, self.policy, facts, transaction.network, client.kyt:screen(transaction))
  end
  return client:screen(tables.merge(self.settings.request, { address = input.address, network = input.network }))
end

-- Records an outcome that is used again in the client's journal.
local function record(self, input, outcome)
  local state, request, reasons = state_of(self), self.settings.request, {}
  if state.settings.journal then
    for index = 1, #outcome.reasons - (state.is_sandbox and 1 or 0) do -- the last text says that it is simulated
      reasons[index] = { message = outcome.reasons[index] }
    end
    local again = { address = input.address, network = input.network, action = outcome.action, reasons = reasons }
    screening.new(state, self.settings.client.policy, request):record_again(again)
  end
end

-- The outcome of a job and its use; or nil and the error of the screening.
local function decide(self, job)
  local outcome = kept_outcome(self, job)
  if outcome then
    record(self, job.input, outcome)
    return outcome, "shared"
  end
  local identity = not job.input.transaction and identity_of(self) or nil
  local decision = screen(self, job.input)
  local err = decision.error
  if err and decision.action == "unknown" and err.kind ~= "invalid_argument" then
    return nil, nil, err
  end
  local is_shared = identity and not err and not is_listed(self, job.input)
  return outcome_of(self, decision, identity), is_shared and "remember" or "own"
end

-- Screens a job until it has an outcome or is a dead letter. Returns whether it has; it has not where the worker stops.
local function work_on(self, job)
  local pause = FIRST_PAUSE
  while true do
    local outcome, use, err = decide(self, job)
    if outcome then
      local on_result, ok, problem = self.settings.on_result, true, nil
      if on_result then
        ok, problem = runtime.tasks.contain(on_result, entries.result(outcome, { id = job.id, item = job.item }))
      end
      if ok then
        job.outcome, job.use = assert(json.encode(outcome)), use
        return true
      end
      err = errors.new("api", "on_result failed: " .. tostring(problem), { retryable = true })
    elseif errors.ends_run(err) then
      fail(self, err) -- the jobs stay
      return false
    elseif not err.retryable then
      job.outcome, job.use = tostring(err), "dead"
      return true
    end
    self.tell(err)
    if not self.stopped then
      local given = self.settings.request.retry
      self.stopping:wait(math.max(pause, reliability.asked_pause(state_of(self).settings, err, given)))
    end
    if self.stopped then
      return false
    end
    pause = math.min(2 * pause, LONGEST_PAUSE)
  end
end

-- Jobs

-- How many jobs the worker can take. Where Redis is slow to take outcomes, they count.
local function room(self)
  local most = AHEAD * self.settings.concurrency
  return math.min(most - self.unfinished, 2 * most - self.count)
end

-- Takes a job. Other workers that did not finish it count as dead: a job with many of them is poison.
local function accept(self, job, deaths)
  if self.held[job.position] then
    return
  end
  job.input, job.deaths, self.held[job.position] = kept.decode(job.item), deaths, job
  self.count, self.unfinished = self.count + 1, self.unfinished + 1
  if type(job.input) ~= "table" then
    job.outcome, job.use = "the job is not readable", "dead"
  elseif deaths >= self.queue.settings.deliveries then
    job.outcome, job.use = text.count(deaths, "worker") .. " had the job and did not finish it", "dead"
  end
  self.ready[#self.ready + 1] = job
end

-- Takes the jobs of workers that are silent.
local function claim(self)
  local queue, jobs = self.queue, self.queue.base .. "jobs"
  local idle = ("%.0f"):format(queue.settings.claim_after * 1000)
  local reply, err = self.redis:call("XAUTOCLAIM", jobs, queue.group, self.name, idle, "0-0", "COUNT", room(self))
  for _, job in ipairs(reply and entries.read(queue, "jobs", reply[2]) or {}) do
    local found = self.redis:call("XPENDING", jobs, queue.group, job.position, job.position, 1)
    accept(self, job, (found and found[1] and found[1][4] or 1) - 1)
  end
  return reply, err
end

-- Takes new jobs. Waits for them in Redis if it has none, or for the end of its own ones if it ends after them.
local function read_new(self)
  local queue, is_last = self.queue, self.drains and self.count > 0
  local command = { "XREADGROUP", "GROUP", queue.group, self.name, "COUNT", room(self) }
  if not is_last and not self.ready[1] then
    command = tables.concat(command, { "BLOCK", (self.drains and SHORT_WAIT or LONGEST_WAIT) * 1000 })
  end
  command = tables.concat(command, { "STREAMS", queue.base .. "jobs", ">" })
  local reply, err = self.redis:wait(LONGEST_WAIT, tables.unpack(command))
  for _, job in ipairs(reply and entries.read(queue, "jobs", reply[1][2]) or {}) do
    accept(self, job, 0)
  end
  if is_last and reply == false and self.count > 0 and not self.ready[1] then
    self.changed:wait(FIRST_PAUSE)
  end
  return reply, err
end

-- Takes jobs for all tasks: claims what is due, or reads. Stops the worker if it ends with the queue's last job.
local function read(self)
  local queue = self.queue
  local _, err = queue:prepare()
  if self.is_full then
    local length = self.redis:call("XLEN", queue.base .. "results")
    self.is_full = not length or length >= queue.settings.results
  end
  if not err and self.is_full then
    self.changed:wait(FIRST_PAUSE)
  elseif not err and self.drains and self.count == 0 and self.redis:call("XLEN", queue.base .. "jobs") == 0 then
    self:stop()
  elseif not err and runtime.now() >= self.claim_at then
    _, err = claim(self)
    self.claim_at = runtime.now() + queue.settings.claim_after / 2
  elseif not err then
    _, err = read_new(self)
  end
  if err and err.code == "NOGROUP" then
    queue.prepared = false -- Redis has lost its data
  elseif err and not err.retryable then
    fail(self, err)
  end
  if err then
    self.tell(err)
    self.stopping:wait(FIRST_PAUSE)
  end
end

local function screener(self)
  while not self.stopped do
    local reads = not self.is_reading and room(self) >= self.settings.concurrency
    if reads then
      self.is_reading = true
      read(self)
      self.is_reading = false
      self.changed:notify()
    end
    local job = not self.stopped and table.remove(self.ready, 1)
    if job and (job.use or work_on(self, job)) then
      add_ended(self, job)
    elseif not job and not reads then
      self.changed:wait(FIRST_PAUSE)
    end
  end
  self.running = self.running - 1
  self.changed:notify()
end

-- Tells Redis that the held jobs are worked on: claims them again, which sets the time since which they are silent.
local function heart(self)
  local queue, beat = self.queue, runtime.now()
  while self.running > 0 do
    self.changed:wait(math.min(LONGEST_WAIT, queue.settings.claim_after / 10))
    if runtime.now() - beat >= queue.settings.claim_after / 3 and self.count > 0 then
      beat = runtime.now()
      local command = { "XCLAIM", queue.base .. "jobs", queue.group, self.name, 0 }
      self.redis:call(tables.unpack(tables.concat(command, tables.sorted_keys(self.held), { "JUSTID" })))
    end
  end
end

-- Gives the jobs that it has not finished to other workers at once, and leaves the group. It does not count as dead.
local function leave(self)
  local queue = self.queue
  local jobs, idle = queue.base .. "jobs", ("%.0f"):format(queue.settings.claim_after * 1000)
  for position, job in pairs(self.held) do
    local claim_back = { "XCLAIM", jobs, queue.group, self.name, 0, position, "IDLE", idle }
    if not self.redis:call(tables.unpack(tables.concat(claim_back, { "RETRYCOUNT", job.deaths, "JUSTID" }))) then
      break
    end
  end
  local pending = self.redis:call("XPENDING", jobs, queue.group, "-", "+", 1, self.name)
  if pending and not pending[1] then
    self.redis:call("XGROUP", "DELCONSUMER", jobs, queue.group, self.name)
  end
end

-- Removes workers that ended without leaving and have no jobs.
local function remove_dead(self)
  local queue = self.queue
  for _, info in ipairs(self.redis:call("XINFO", "CONSUMERS", queue.base .. "jobs", queue.group) or {}) do
    local fields = redis.fields(info)
    if fields.pending == 0 and fields.idle > DEAD_AFTER * 1000 then
      self.redis:call("XGROUP", "DELCONSUMER", queue.base .. "jobs", queue.group, fields.name)
    end
  end
end

---Screens jobs until `stop` is called, and then finishes the screenings under way. Waits for Redis and for the service
---where they are away.
---@param how? { drain?: boolean } drain: ends when the queue has no job left
---@return integer|nil finished results
---@return riskscreen.Error|nil err a failure of the set-up, such as a wrong access key
function Worker:run(how)
  text.expect_self(self, Worker, "worker:run")
  local ok, err = self.queue:prepare()
  if not ok and not err.retryable then
    return nil, err
  end
  self.drains, self.running, self.claim_at = how and how.drain, self.settings.concurrency, runtime.now()
  remove_dead(self)
  local bodies = {}
  for index = 0, self.running do
    local body = index == 0 and heart or screener
    bodies[index + 1] = function()
      body(self)
    end
  end
  runtime.tasks.gather(bodies)
  leave(self)
  if self.failure then
    return nil, self.failure
  end
  return self.finished
end

---Ends `run` soon: screenings under way are finished, other jobs are left to other workers.
function Worker:stop()
  text.expect_self(self, Worker, "worker:stop")
  if not self.stopped then
    self.stopped, self.stopped_at = true, runtime.now()
    self.stopping:notify()
    self.changed:notify()
  end
end

return M
