-- A worker of a queue: takes jobs as a consumer of the stream's group, screens them and finishes them. A job stays the
-- worker's until it is finished; the jobs of a worker that died are claimed by the others.
local addresses = require "riskscreen.address"
local build = require "riskscreen.options.build"
local calls = require "riskscreen.call"
local decisions = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local kept = require "riskscreen.json.kept"
local policies = require "riskscreen.policy"
local random = require "riskscreen.util.random"
local redis = require "riskscreen.redis"
local runtime = require "riskscreen.runtime"
local scripts = require "riskscreen.queue.scripts"
local tables = require "riskscreen.util.tables"
local time = require "riskscreen.util.time"

local LONGEST_WAIT = 1 -- seconds that one command waits in Redis
local SHORT_WAIT = 0.1 -- the same at the end of a queue, while other workers have its last jobs
local FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30 -- seconds between two attempts at a job
local BATCH = 100 -- jobs that are finished at once
local AHEAD = 3 -- jobs without an outcome that a worker has for each task, so that tasks need not wait for Redis
local PATIENCE = 10 -- seconds for which a worker that stops tries to finish jobs
local DEAD_AFTER = 3600 -- seconds

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

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
  { name = "request", type = "table", doc = "More fields for each screening of an address, such as include." },
  { name = "name", type = "string", doc = "Name of the worker in the group; by default one that nobody else has." },
  build.callback(
    "on_result",
    "on_result(result): takes each result before its job is finished. It may get the result of an input twice, if a "
      .. "worker dies meanwhile; where it raises, the job is tried again."
  ),
  build.callback("on_problem", "on_problem(err): a failure after which the worker goes on."),
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
---@field entry string of the stream
---@field id string
---@field key string
---@field item string
---@field kept string the outcome of an earlier input with the same subject, or ""
---@field input riskscreen.QueueInput
---@field outcome? string the JSON text of an ended job
---@field use? "shared"|"remember"|"own" of the outcome, for scripts.done
---@field reason? string why an ended job is a dead letter

---@class riskscreen.QueueWorker
---@field name string
---@field finished integer results that it has made
---@field private queue riskscreen.Queue
---@field private identity? string of its decisions about addresses
---@field private decides? riskscreen.Policy the policy in `identity`
---@field private held table<string, riskscreen.QueueJob> by entry
---@field private count integer of held jobs
---@field private unfinished integer held jobs without an outcome
---@field private ready riskscreen.QueueJob[] not begun yet, from `first` to `last`
---@field private first integer
---@field private last integer
---@field private ended riskscreen.QueueJob[] whose ends are to be sent to Redis
---@field private is_full boolean nobody reads the results
---@field private screeners integer tasks that screen
---@field private is_over boolean all jobs are finished, or given up
---@field private is_closing boolean no further jobs come
---@field private is_lost boolean Redis refuses to finish jobs
---@field private stopped boolean
---@field private failure? riskscreen.Error
local Worker = { __name = "riskscreen.QueueWorker" }
Worker.__index = Worker

---The result of an input: its outcome, and what was added. Other fields of an input are not used.
---@param outcome table
---@param entry { id: string, item: string }
---@return riskscreen.QueueResult
function M.result_of(outcome, entry)
  local source, row = entry.id:match "^(.*)/(%d+)$"
  local input = tables.pick(kept.decode(entry.item) or {}, { "address", "network", "transaction", "fields" })
  return tables.merge(tables.merge(outcome, input), { id = entry.id, source = source, row = tonumber(row) })
end

-- The client's state. It has the access key, so no field of a worker leads to it.
local function state_of(self)
  return calls.state_of(self.settings.client)
end

---@return riskscreen.QueueWorker|nil
---@return string|nil misuse of the client
function M.new(queue, settings)
  local state = calls.state_of(settings.client)
  local misuse = not state and "must be made by riskscreen.new" or calls.identity.problem(state, true)
  if misuse then
    return nil, misuse
  end
  return setmetatable({
    queue = queue,
    redis = queue.redis,
    settings = settings,
    policy = settings.policy or policies.new(),
    name = settings.name or "worker-" .. random.token(8),
    finished = 0,
    held = {},
    count = 0,
    unfinished = 0,
    ready = {},
    first = 1,
    last = 0,
    ended = {},
    signal = runtime.tasks.signal(),
    arrival = runtime.tasks.signal(),
    finishing = runtime.tasks.signal(),
    stopping = runtime.tasks.signal(),
    over = runtime.tasks.signal(),
    stopped = false,
  }, Worker)
end

function Worker:tell(err)
  if self.settings.on_problem then
    self.settings.on_problem(err)
  end
end

-- Outcomes

-- The identity of decisions about addresses. The program may give its client another policy while the worker runs.
local function identity_of(self)
  local request = self.settings.request or {}
  local policy = request.policy or self.settings.client.policy
  if not self.identity or policy ~= self.decides then
    self.decides, self.identity = policy, calls.identity.decision(state_of(self), policy, request)
  end
  return self.identity
end

-- Whether the local lists say anything about an address. Then it has an outcome of its own.
local function is_listed(self, input)
  local lists = state_of(self).lists
  if not lists then
    return false
  end
  local decision, notes = lists:decide(addresses.normalize(input.address, input.network), input.network)
  return decision ~= nil or notes ~= nil
end

-- The outcome that came with a job, if it may be used. One from the future is of a clock that was wrong.
local function kept_outcome(self, job)
  local outcome = job.kept ~= "" and json.decode(job.kept)
  local is_own = type(outcome) == "table" and outcome.identity == identity_of(self)
  local age = is_own and time.age(outcome.time, os.time())
  local is_fresh = age and age <= self.queue.settings.remember
  return is_fresh and not is_listed(self, job.input) and outcome or nil
end

local function outcome_of(self, decision, identity)
  local reasons, risks = decisions.reasons(decision, state_of(self).is_sandbox), decisions.risks(decision)
  return {
    action = decision.action,
    reasons = reasons[1] and reasons or json.empty_array(),
    risks = risks[1] and risks or json.empty_array(),
    error = decision.error and decision.error.kind or nil,
    identity = identity,
    time = os.time(),
  }
end

-- Sends outcomes to Redis. The script passes over a job that another worker has finished.
local function finish(self, jobs)
  local arguments = { self.queue.base, self.queue.group, self.queue.settings.remember }
  for index, job in ipairs(jobs) do
    local last = 6 * index + 3
    arguments[last - 5], arguments[last - 4], arguments[last - 3] = job.entry, job.key, job.id
    arguments[last - 2], arguments[last - 1], arguments[last] = job.item, job.outcome, job.use
  end
  local reply, err = self.redis:script(scripts.done, self.queue.keys, arguments)
  if not reply then
    return nil, err
  end
  self.finished = self.finished + reply[1]
  self.is_full = reply[2] >= self.queue.settings.results
  return true
end

local function bury(self, job)
  local arguments = { self.queue.base, self.queue.group, job.entry, job.key, job.id, job.item, job.reason }
  return self.redis:script(scripts.bury, self.queue.keys, arguments)
end

-- Takes the ended jobs that one command can send: several with outcomes, or one dead letter.
local function next_ended(self)
  local batch, rest = {}, {}
  for _, job in ipairs(self.ended) do
    local fits = not rest[1] and #batch < BATCH and (not batch[1] or (job.outcome and batch[1].outcome))
    local list = fits and batch or rest
    list[#list + 1] = job
  end
  return batch, rest
end

local function flush(self)
  while self.ended[1] do
    local batch, rest = next_ended(self)
    self.ended = rest
    local ok, err
    if batch[1].outcome then
      ok, err = finish(self, batch)
    else
      ok, err = bury(self, batch[1])
    end
    if ok then
      for _, job in ipairs(batch) do
        self.held[job.entry] = nil
        self.count = self.count - 1
      end
      self.signal:notify()
    elseif not err.retryable or (self.stopped and runtime.now() - self.stopped_at > PATIENCE) then
      self:fail(err)
      return
    else
      self:tell(err)
      self.ended = tables.concat(batch, self.ended)
      runtime.sleep(FIRST_PAUSE)
    end
  end
end

local function finisher(self)
  while not (self.screeners == 0 and not self.ended[1]) and not self.is_lost do
    if self.ended[1] then
      flush(self)
    else
      self.finishing:wait(LONGEST_WAIT)
    end
  end
  self.is_over = true
  self.over:notify()
end

-- Screening

-- How many jobs the worker can take. Where Redis is slow to take outcomes, they count.
local function room(self)
  local most = AHEAD * self.settings.concurrency
  return math.min(most - self.unfinished, 2 * most - self.count)
end

local function hold(self, job)
  self.held[job.entry] = job
  self.count = self.count + 1
  self.unfinished = self.unfinished + 1
end

local function add_ended(self, job)
  self.ended[#self.ended + 1] = job
  self.unfinished = self.unfinished - 1
  self.finishing:notify()
  if room(self) == self.settings.concurrency then
    self.signal:notify() -- the reader waits for that
  end
end

local function screen(self, input)
  local client = self.settings.client
  if type(input.transaction) == "table" then
    return self.policy:decide(client.kyt:screen(input.transaction))
  end
  local request = tables.copy(self.settings.request or {})
  request.address, request.network = input.address, input.network
  return client:screen(request)
end

local function report(self, job, outcome)
  local on_result = self.settings.on_result
  if not on_result then
    return true
  end
  return runtime.tasks.contain(on_result, M.result_of(outcome, job))
end

-- The outcome of a job and its use; or nil and the error of the screening.
local function decide(self, job)
  local outcome = kept_outcome(self, job)
  if outcome then
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
      local ok, problem = report(self, job, outcome)
      if ok then
        job.outcome, job.use = assert(json.encode(outcome)), use
        return true
      end
      err = errors.new("api", "on_result failed: " .. tostring(problem), { retryable = true })
    elseif errors.ends_run(err) then
      self:fail(err) -- the jobs stay
      return false
    elseif not err.retryable then
      job.reason = tostring(err)
      return true
    end
    self:tell(err)
    if not self.stopped then
      self.stopping:wait(math.max(pause, math.min(err.retry_after or 0, LONGEST_PAUSE)))
    end
    if self.stopped then
      return false
    end
    pause = math.min(2 * pause, LONGEST_PAUSE)
  end
end

local function next_job(self)
  local job = self.ready[self.first]
  if job then
    self.ready[self.first] = nil
    self.first = self.first + 1
    if self.first > self.last then
      self.first, self.last = 1, 0
    end
  end
  return job
end

local function screener(self)
  while not (self.is_closing and self.last == 0) and not self.failure do
    local job = next_job(self)
    if not job then
      self.arrival:wait()
    elseif not self.stopped and work_on(self, job) then
      add_ended(self, job)
    end
  end
  self.screeners = self.screeners - 1
  self.finishing:notify()
end

-- Jobs

local function job_of(entry)
  local fields = tables.pick(redis.fields(entry[2]), { "id", "key", "item", "kept" })
  local job = tables.merge({ id = "", key = "", item = "", kept = "" }, fields)
  job.entry, job.input = entry[1], kept.decode(job.item)
  return job
end

local function accept(self, entry)
  if self.held[entry[1]] or not entry[2] then
    return
  end
  local job = job_of(entry)
  hold(self, job)
  if type(job.input) ~= "table" then
    job.reason = "the job is not readable"
    add_ended(self, job)
    return
  end
  self.last = self.last + 1
  self.ready[self.last] = job
  self.arrival:notify()
end

-- Jobs that were given to many workers are poison: they end each worker that gets them.
local function accept_claimed(self, entries)
  local base, group = self.queue.base, self.queue.group
  for _, entry in ipairs(entries) do
    local found = not self.held[entry[1]] and self.redis:call("XPENDING", base .. "jobs", group, entry[1], entry[1], 1)
    local deliveries = found and found[1] and found[1][4] or 1
    if deliveries > self.queue.settings.deliveries and entry[2] then
      local job = job_of(entry)
      hold(self, job)
      job.reason = ("%d workers had the job and did not finish it"):format(deliveries - 1)
      add_ended(self, job)
    else
      accept(self, entry)
    end
  end
end

-- Takes the jobs of workers that are silent.
local function claim(self, free)
  local queue = self.queue
  local idle = ("%.0f"):format(queue.settings.claim_after * 1000)
  local reply, err =
    self.redis:call("XAUTOCLAIM", queue.base .. "jobs", queue.group, self.name, idle, "0-0", "COUNT", free)
  if not reply then
    return nil, err
  end
  accept_claimed(self, reply[2])
  return true
end

-- Reads further jobs. Waits for them in Redis, unless the worker ends when its own jobs are finished.
local function read(self, free)
  local queue = self.queue
  local command = { "XREADGROUP", "GROUP", queue.group, self.name, "COUNT", free, "STREAMS", queue.base .. "jobs", ">" }
  local is_last = self.drains and self.count > 0
  if not is_last then
    table.insert(command, 7, "BLOCK")
    table.insert(command, 8, (self.drains and SHORT_WAIT or LONGEST_WAIT) * 1000)
  end
  local reply, err = self.redis:wait(LONGEST_WAIT, unpack(command))
  if reply == nil then
    return nil, err
  end
  for _, entry in ipairs(reply and reply[1][2] or {}) do
    accept(self, entry)
  end
  if is_last and not reply and self.count > 0 then
    self.signal:wait(FIRST_PAUSE)
  end
  return true
end

-- One round: claims what is due, then reads. Returns nil and an error.
local function take(self, free)
  local queue, now = self.queue, runtime.now()
  local ok, err = queue:prepare()
  if ok and now >= self.claim_at then
    ok, err = claim(self, free)
    self.claim_at = now + queue.settings.claim_after / 2
  elseif ok then
    ok, err = read(self, free)
  end
  if err and err.code == "NOGROUP" then
    queue.prepared = false -- Redis has lost its data
  end
  return ok, err
end

local function is_drained(self)
  return self.drains and self.count == 0 and self.redis:call("XLEN", self.queue.base .. "jobs") == 0
end

local function reader(self)
  local concurrency = self.settings.concurrency
  while not self.stopped and not is_drained(self) do
    local free = room(self)
    if self.is_full then
      local length = self.redis:call("XLEN", self.queue.base .. "results")
      self.is_full = not length or length >= self.queue.settings.results
    end
    if free < concurrency or self.is_full then
      self.signal:wait(FIRST_PAUSE)
    else
      local ok, err = take(self, free)
      if not ok and not err.retryable and err.code ~= "NOGROUP" then
        self:fail(err)
      elseif not ok then
        self:tell(err)
        self.stopping:wait(FIRST_PAUSE)
      end
    end
  end
  self.is_closing = true
  self.arrival:notify()
end

-- Claims the jobs that the worker has already. That sets the time since which they are silent.
local function claim_held(self, ...)
  local command = { "XCLAIM", self.queue.base .. "jobs", self.queue.group, self.name, 0 }
  for entry in pairs(self.held) do
    command[#command + 1] = entry
  end
  for _, option in ipairs { ... } do
    command[#command + 1] = option
  end
  self.redis:call(unpack(command))
end

-- Tells Redis that the held jobs are worked on.
local function heart(self)
  local queue = self.queue
  local beat = runtime.now()
  while not self.is_over do
    self.over:wait(math.min(LONGEST_WAIT, queue.settings.claim_after / 10))
    if runtime.now() - beat >= queue.settings.claim_after / 3 and self.count > 0 then
      beat = runtime.now()
      claim_held(self, "JUSTID")
    end
  end
end

-- Gives the jobs that it has not finished to other workers at once, and leaves the group.
local function leave(self)
  local queue = self.queue
  if self.count > 0 then
    claim_held(self, "IDLE", ("%.0f"):format(queue.settings.claim_after * 1000), "JUSTID")
  end
  local pending = self.redis:call("XPENDING", queue.base .. "jobs", queue.group, "-", "+", 1, self.name)
  if pending and not pending[1] then
    self.redis:call("XGROUP", "DELCONSUMER", queue.base .. "jobs", queue.group, self.name)
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
  local ok, err = self.queue:prepare()
  if not ok and not err.retryable then
    return nil, err
  end
  self.drains = how and how.drain
  self.screeners, self.is_closing, self.is_over = self.settings.concurrency, false, false
  self.claim_at = runtime.now()
  remove_dead(self)
  local function bound(body)
    return function()
      body(self)
    end
  end
  local bodies = { bound(reader), bound(finisher), bound(heart) }
  for _ = 1, self.settings.concurrency do
    bodies[#bodies + 1] = bound(screener)
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
  if not self.stopped then
    self.stopped, self.stopped_at = true, runtime.now()
    self.stopping:notify()
    self.signal:notify()
    self.arrival:notify()
  end
end

---@private
function Worker:fail(err)
  self.failure = self.failure or err
  self.is_lost = self.is_lost or err.kind == "storage"
  self:stop()
end

return M
