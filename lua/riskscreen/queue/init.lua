-- A queue in Redis. Producers add addresses or transactions, and workers of any machine screen them. Each input gets
-- exactly one result, or becomes a dead letter. scripts.lua changes the queue, entries.lua reads its streams,
-- worker.lua screens, and status.lua counts.
local addresses = require "riskscreen.address"
local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local digest = require "riskscreen.address.digest"
local entries = require "riskscreen.queue.entries"
local errors = require "riskscreen.errors"
local guard = require "riskscreen.util.guard"
local json = require "riskscreen.json"
local kept = require "riskscreen.json.kept"
local redis = require "riskscreen.redis"
local runtime = require "riskscreen.runtime"
local scripts = require "riskscreen.queue.scripts"
local sources = require "riskscreen.rows.source"
local statuses = require "riskscreen.queue.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local workers = require "riskscreen.queue.worker"

local ensure = errors.ensure

local BATCH = 500 -- inputs that are added at once, and results that are read at once
local FULL_PAUSE = 0.2 -- seconds until a full queue is tried again
local DIGEST = 16 -- bytes of the digest of rows
local LONGEST_NAME = 200 -- bytes of a run
local LONGEST_WAIT = 1 -- seconds that one command waits in Redis
local REPLICA_WAIT, REPLICA_TRIES = 0.1, 10 -- seconds of each wait for replicas

local M = {}

---The reason why a text cannot name a run; or nil. Two names must differ in a file of results and on a screen.
---@param run any
---@return string|nil
function M.run_problem(run)
  if type(run) ~= "string" or not run:find "^[^']" or text.printable(run, LONGEST_NAME) ~= run then
    local wanted = "run must be a UTF-8 text of at most %d bytes without hidden characters, and not begin with an "
    return (wanted .. "apostrophe (got %s)"):format(LONGEST_NAME, text.show(run))
  end
end

---@type riskscreen.Option[]
M.options = {
  build.required(build.object("redis", "riskscreen.Redis", "riskscreen.redis.new", "The Redis that holds the queue.")),
  build.text("name", build.forms.word, "The name of the queue.", "default"),
  build.count("capacity", "inputs", 100000, 1, 100000000, "The most inputs that wait; then `add` waits."),
  build.count("results", "results", 100000, 1, 100000000, "The most results that nobody has read; then workers wait."),
  build.number("remember", "seconds", 600, 0, 86400, "How long an outcome serves further inputs; 0: not at all."),
  build.seconds("claim_after", 60, "Time after which the jobs of a silent worker are given to another.", 1, 3600),
  build.count("deliveries", "workers", 5, 1, 1000, "Workers that may get a job and die; then it is a dead letter."),
  build.count("replicas", "replicas", 0, 0, 100, "Replicas that must have what `add` has added and `results` returns."),
}

M.worker_options = workers.options

---@class riskscreen.QueueInput an address, or a transaction
---@field address? string
---@field network? string
---@field transaction? table the parameters of `client.kyt:screen`
---@field fields? table<string, any> is kept and comes back with the result

---@class riskscreen.QueueResult
---@field position string in the order of the results, for `forget` and `results`
---@field id string run and row of the input, such as "march/17": the same whenever it is read
---@field source string the run
---@field row integer
---@field input riskscreen.QueueInput
---@field action riskscreen.Action
---@field reasons string[]
---@field risks string[] such as "high / hack"
---@field error? riskscreen.ErrorKind of an input that is invalid
---@field identity? string the identity of the decision about an address: service, account, policy and options
---@field time integer Unix seconds

---@class riskscreen.Queue
---@field private redis riskscreen.Redis
---@field private settings table
---@field private base string
---@field private keys string[] of each script
local Queue = { __name = "riskscreen.Queue" }
Queue.__index = Queue

---A queue. Nothing is sent to Redis yet.
---@param given { redis: riskscreen.Redis, name?: string, capacity?: integer, results?: integer, remember?: number,
---claim_after?: number, deliveries?: integer, replicas?: integer }
---@return riskscreen.Queue
function M.new(given)
  local settings = check.arguments("queue.new", M.options, given)
  local base = settings.redis:key("queue:" .. settings.name .. ":")
  return setmetatable({
    redis = settings.redis,
    settings = settings,
    base = base,
    -- The second key never exists. So a Cluster that moves the slot refuses a script before it begins, not half done.
    keys = { base .. "jobs", base .. "absent" },
    group = "workers",
  }, Queue)
end

-- The result of a function that raises error objects.
local function result(fn, ...)
  return errors.result(runtime.tasks.pcall(fn, ...))
end

-- Checks that the server may hold a queue, and makes the group of its workers.
local function prepare(self)
  if not self.prepared then
    local jobs = self.base .. "jobs"
    ensure(self.redis:call("XLEN", jobs)) -- in a Cluster it finds the node that has the keys
    ensure(nil, redis.eviction_problem(ensure(self.redis:call("INFO", "memory"))))
    local _, err = self.redis:call("XGROUP", "CREATE", jobs, self.group, "0", "MKSTREAM")
    ensure(nil, err and err.code ~= "BUSYGROUP" and err or nil)
    self.prepared = true
  end
  return true
end

---Checks that the server may hold a queue, and makes the group of its workers.
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Queue:prepare()
  text.expect_self(self, Queue, "queue:prepare")
  return result(prepare, self)
end

-- The subject of an input, its text, and the outcome of one that cannot be screened. Only a worker knows the networks
-- that its operator has added, so an unknown network is the worker's to judge.
local function read_input(input)
  local key, item, problem = "", "{}"
  if type(input) ~= "table" then
    problem = ("an input must be a table with address and network, or transaction (got %s)"):format(text.kind(input))
  else
    item, problem = kept.encode(input)
    item = item or "{}"
  end
  if not problem and type(input.transaction) ~= "table" then
    local address, network = input.address, input.network
    -- The worker's client knows the networks that its operator has added.
    local may_be_added = type(network) == "string"
      and type(address) == "string"
      and not addresses.network_names[network]
    problem = not may_be_added and select(2, addresses.validate(address, network, "format")) or nil
    -- A worker may refuse a wrong checksum: such a text has no share in the outcome of the address.
    key = may_be_added and network .. " " .. address or addresses.key(address, network, "checksum") or ""
  end
  if not problem then
    return key, item, ""
  end
  local outcome = { action = "unknown", reasons = { problem }, error = "invalid_argument", time = os.time() }
  outcome.risks = json.empty_array()
  return "", item, json.encode(outcome)
end

-- The reply to a command that reads, once enough replicas have the entries that it has read. One connection sends all,
-- so that one server has read and has asked its replicas. WAIT covers the writes before that of its own connection.
local function safely(self, command)
  local wanted, acknowledged = self.settings.replicas, 0
  if wanted == 0 then
    return ensure(self.redis:call(tables.unpack(command)))
  end
  for _ = 1, REPLICA_TRIES do
    local replies = ensure(self.redis:pipeline {
      command,
      { "SET", self.base .. "replicated", "1" },
      { "WAIT", wanted, REPLICA_WAIT * 1000 },
    })
    for _, reply in ipairs(replies) do
      ensure(nil, errors.is(reply) and reply or nil)
    end
    if replies[3] >= wanted then
      return replies[1]
    end
    acknowledged = replies[3]
  end
  local message = "queue: too few replicas have the last changes (%d, not %d)"
  error(errors.new("storage", message:format(acknowledged, wanted), { reason = "busy", retryable = true }), 0)
end

---@class riskscreen.queue.Run the rows that `add` reads
---@field name string
---@field row integer the last row that was read
---@field digest string of all rows up to it
---@field last string the last row that the queue has, as in Redis: its number and its digest
---@field known integer its number
---@field known_digest? string
---@field batch string[] digest, key, item and outcome of each row behind it
---@field totals { rows: integer, added: integer, invalid: integer }
---@field on_progress? fun(totals: table)

local function refuse(run, problem)
  local rows = text.count(run.known, "row")
  local message = "queue: the run %s has %s, and %s. A run with another name screens all rows"
  message = message:format(text.show(run.name), rows, problem)
  error(errors.new("invalid_argument", message, { field = "inputs", sent = false }), 0)
end

local OTHER_ROWS = "these begin with other rows: one was changed, inserted or removed"

-- Takes the last row that the queue has. Rows of the batch that it has already are passed over. It raises if they are
-- other rows, or if Redis has lost rows.
local function take_last(run, last)
  local number, known_digest = last:match "^(%d+) ?(%x*)$"
  local known = tonumber(number) or 0
  if known < run.known then
    local message = "queue: Redis has lost rows of the run %s: add the same rows again, from the first one on"
    error(errors.new("storage", message:format(text.show(run.name)), { reason = "lost", retryable = true }), 0)
  end
  local passed = math.min(known, run.row) - run.known
  run.last, run.known, run.known_digest = last, known, known_digest or ""
  if passed > 0 then
    local is_same = known > run.row or known_digest == "" or known_digest == run.batch[4 * passed - 3]
    run.batch = { tables.unpack(run.batch, 4 * passed + 1) }
    return is_same or refuse(run, OTHER_ROWS)
  end
end

-- Asks for the last row that the queue has of a run.
local function ask_last(self, run)
  take_last(run, safely(self, { "HGET", self.base .. "sources", run.name }) or "")
end

-- Adds the rows of the batch, and waits while the queue is full.
local function add_batch(self, run)
  while run.batch[1] do
    local first = { self.base, run.name, run.last, run.known, self.settings.capacity }
    local reply = ensure(self.redis:script(scripts.add, self.keys, tables.concat(first, run.batch)))
    run.totals.added = run.totals.added + reply[2]
    take_last(run, reply[1])
    if run.batch[1] and reply[2] == 0 then
      runtime.sleep(FULL_PAUSE)
    end
  end
  if run.on_progress then
    run.on_progress(run.totals)
  end
end

-- Takes the next input. It raises if the queue has another one in its row.
local function take_input(run, input)
  -- A function has no fingerprint; it cannot be kept either.
  local is_plain, content = pcall(tables.fingerprint, input)
  run.row, run.totals.rows = run.row + 1, run.row + 1
  run.digest = text.hex(digest.sha256(run.digest .. (is_plain and content or "")):sub(1, DIGEST))
  local key, item, outcome = read_input(input)
  run.totals.invalid = run.totals.invalid + (outcome ~= "" and 1 or 0)
  if run.row > run.known then
    for _, argument in ipairs { run.digest, key, item, outcome } do
      run.batch[#run.batch + 1] = argument
    end
  elseif run.row == run.known and run.known_digest ~= "" and run.known_digest ~= run.digest then
    refuse(run, OTHER_ROWS)
  end
end

-- Adds the rows of a run from the first one on. Returns the totals.
local function add_run(self, name, read, on_progress)
  local totals = { rows = 0, added = 0, invalid = 0 }
  local run = { name = name, row = 0, digest = "", last = "", known = 0, batch = {}, totals = totals }
  run.on_progress = on_progress and guard.notice("on_progress", on_progress)
  ask_last(self, run)
  for input in read do
    take_input(run, input)
    if run.row % BATCH == 0 then
      add_batch(self, run)
    end
  end
  add_batch(self, run)
  ask_last(self, run)
  return run.row >= run.known and totals or refuse(run, ("these are %.0f"):format(run.row))
end

---Adds the inputs of a run, and waits while the queue is full. Rows that the queue has already are passed over. So
---after any end repeat `add` with the same inputs in the same order. Further inputs may follow; other ones are refused.
---Inputs of a list are added again if Redis loses some meanwhile; for a function that is an error of reason "lost". A
---function that returns nil and a reason fails.
---@param run string name of the run: another one screens the same inputs anew
---@param inputs riskscreen.QueueInput[]|fun(): riskscreen.QueueInput|nil
---@param on_progress? fun(totals: { rows: integer, added: integer, invalid: integer }) of all rows so far
---@return { rows: integer, added: integer, invalid: integer }|nil totals
---@return riskscreen.Error|nil err
function Queue:add(run, inputs, on_progress)
  text.expect_self(self, Queue, "queue:add")
  local problem = M.run_problem(run)
  if problem then
    error("queue:add: " .. problem, 2)
  elseif type(inputs) ~= "function" and not (type(inputs) == "table" and tables.sequence_length(inputs)) then
    error(("queue:add: inputs must be a list without a gap, or a function (got %s)"):format(text.kind(inputs)), 2)
  end
  local totals, err
  repeat
    totals, err = result(function()
      prepare(self)
      return add_run(self, run, sources.items(inputs), on_progress)
    end)
  until totals or err.reason ~= "lost" or type(inputs) == "function"
  return totals, err
end

-- The entries of a stream behind a position, as results or dead letters.
local function read_stream(self, stream, after)
  local list
  repeat
    local range = { "XRANGE", self.base .. stream, after and "(" .. after or "-", "+", "COUNT", BATCH }
    list, after = entries.read(self, stream, safely(self, range))
  until list[1] or not after
  for index, entry in ipairs(list) do
    local outcome = stream == "dead" and { reason = entry.reason } or json.decode(entry.outcome or "")
    outcome = type(outcome) == "table" and outcome or { action = "unknown", reasons = {}, risks = {} }
    list[index] = entries.result(outcome, entry)
  end
  return list
end

---Reads results in their order.
---@param after? string position of the last result that was read; by default the first one is read
---@param seconds? number how long to wait for a result
---@return riskscreen.QueueResult[]|nil results at most 500
---@return riskscreen.Error|nil err
function Queue:results(after, seconds)
  text.expect_self(self, Queue, "queue:results")
  text.expect("queue:results: after", after, "string", true)
  text.expect("queue:results: seconds", seconds, "number", true)
  return result(function()
    if seconds and seconds > 0 then
      local block, key = math.ceil(math.min(seconds, LONGEST_WAIT) * 1000), self.base .. "results"
      local command = { "XREAD", "COUNT", 1, "BLOCK", block, "STREAMS", key, after or "0-0" }
      if not ensure(self.redis:wait(LONGEST_WAIT, tables.unpack(command))) then
        return {}
      end
    end
    return read_stream(self, "results", after)
  end)
end

---Removes results, because they were read.
---@param read riskscreen.QueueResult[]|string the results; or a position: all up to it. After a failover with lost
---changes a position may be that of a result that nobody has read.
---@return integer|nil removed
---@return riskscreen.Error|nil err
function Queue:forget(read)
  text.expect_self(self, Queue, "queue:forget")
  if type(read) == "table" and tables.sequence_length(read) then
    for _, one in ipairs(read) do
      text.expect("queue:forget: the position of a result", type(one) == "table" and one.position, "string")
    end
    return entries.remove(self, "results", read)
  end
  local milliseconds, number = (type(read) == "string" and read or ""):match "^(%d+)%-(%d+)$"
  if not milliseconds then
    error(("queue:forget: expected results, or the position of one (got %s)"):format(text.show(read)), 2)
  end
  return self.redis:call("XTRIM", self.base .. "results", "MINID", ("%s-%.0f"):format(milliseconds, number + 1))
end

---The dead letters, oldest first: inputs that no worker could finish.
---@param after? string
---@return { position: string, id: string, source: string, row: integer, input: riskscreen.QueueInput,
---reason: string }[]|nil letters at most 500
---@return riskscreen.Error|nil err
function Queue:dead(after)
  text.expect_self(self, Queue, "queue:dead")
  text.expect("queue:dead: after", after, "string", true)
  return result(read_stream, self, "dead", after)
end

---Makes all dead letters jobs again.
---@return integer|nil count
---@return riskscreen.Error|nil err
function Queue:requeue()
  text.expect_self(self, Queue, "queue:requeue")
  return result(function()
    local sum, list = 0, read_stream(self, "dead")
    while list[1] do
      sum = sum + ensure(self.redis:script(scripts.requeue, self.keys, entries.pairs({ self.base }, list)))
      list = read_stream(self, "dead")
    end
    return sum
  end)
end

---The state of the queue.
---@return riskscreen.QueueStatus|nil
---@return riskscreen.Error|nil err
function Queue:status()
  text.expect_self(self, Queue, "queue:status")
  return result(statuses.read, self)
end

---The state of the queue in Prometheus' text format.
---@return string|nil
---@return riskscreen.Error|nil err
function Queue:metrics()
  text.expect_self(self, Queue, "queue:metrics")
  return result(function()
    return statuses.prometheus(statuses.read(self), self.settings.name)
  end)
end

---A worker, which screens the jobs of the queue with a client.
---@param given riskscreen.QueueWorkerOptions
---@return riskscreen.QueueWorker
function Queue:worker(given)
  text.expect_self(self, Queue, "queue:worker")
  local settings = check.arguments("queue:worker", workers.options, given)
  local worker, misuse = workers.new(self, settings)
  return worker or error("queue:worker: client " .. misuse, 2)
end

return M
