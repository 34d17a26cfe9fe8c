-- A queue in Redis. Producers add addresses or transactions, and workers of any machine screen them. Each input gets
-- exactly one result, or becomes a dead letter. scripts.lua changes the queue, worker.lua screens, and
-- status.lua counts.
local addresses = require "riskscreen.address"
local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local kept = require "riskscreen.json.kept"
local redis = require "riskscreen.redis"
local runtime = require "riskscreen.runtime"
local scripts = require "riskscreen.queue.scripts"
local statuses = require "riskscreen.queue.status"
local text = require "riskscreen.util.text"
local workers = require "riskscreen.queue.worker"

local GROUP = "workers"
local BATCH = 500 -- inputs that are added at once, and results that are read at once
local FULL_PAUSE = 0.2 -- seconds until a full queue is tried again
local LONGEST_SOURCE = 200 -- bytes
local LONGEST_WAIT = 1 -- seconds that one command waits in Redis
local REPLICA_WAIT, REPLICA_TRIES = 0.1, 10 -- seconds of each wait for replicas

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

local M = {}

---@type riskscreen.Option[]
M.options = {
  build.required(build.object("redis", "riskscreen.Redis", "riskscreen.redis.new", "The Redis that holds the queue.")),
  build.text("name", build.forms.word, "The name of the queue.", "default"),
  build.count("capacity", "inputs", 100000, 1, 100000000, "The most inputs that wait; then `add` waits."),
  build.count("results", "results", 100000, 1, 100000000, "The most results that nobody has read; then workers wait."),
  build.number(
    "remember",
    "seconds",
    600,
    0,
    86400,
    "How long an address's outcome is used for further inputs with the same address, by workers whose service, "
      .. "account, policy and options are the same; 0: not at all."
  ),
  build.seconds("claim_after", 60, "Time after which the jobs of a silent worker are given to another.", 1, 3600),
  build.count("deliveries", "workers", 5, 1, 1000, "Workers that may get a job and die; then it is a dead letter."),
  build.count(
    "replicas",
    "replicas",
    0,
    0,
    100,
    "Replicas that must have inputs before `add` returns, and results before they are read."
  ),
}

M.worker_options = workers.options

---@class riskscreen.QueueInput an address, or a transaction
---@field address? string
---@field network? string
---@field transaction? table the parameters of `client.kyt:screen`
---@field fields? table<string, any> is kept and comes back with the result

---@class riskscreen.QueueResult
---@field position string in the order of the results, for `forget` and `results`
---@field id string source and row of the input, such as "customers.csv/17": the same whenever it is read
---@field source string
---@field row integer
---@field address? string
---@field network? string
---@field transaction? table
---@field fields? table<string, any>
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
    group = GROUP,
  }, Queue)
end

---Checks that the server may hold a queue, and makes the group of its workers.
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Queue:prepare()
  if self.prepared then
    return true
  end
  -- In a Cluster the first command finds the node that has the keys.
  local info
  local length, err = self.redis:call("XLEN", self.base .. "jobs")
  if length then
    info, err = self.redis:call("INFO", "memory")
    err = err or redis.eviction_problem(info)
  end
  if err then
    return nil, err
  end
  err = select(2, self.redis:call("XGROUP", "CREATE", self.base .. "jobs", GROUP, "0", "MKSTREAM"))
  if err and err.code ~= "BUSYGROUP" then
    return nil, err
  end
  self.prepared = true
  return true
end

-- The subject of an input, its text, and the outcome of one that cannot be screened.
local function read_input(input)
  local key, item, problem = "", "{}"
  if type(input) ~= "table" then
    problem = ("an input must be a table with address and network, or transaction (got %s)"):format(text.kind(input))
  else
    item, problem = kept.encode(input)
    item = item or "{}"
  end
  if not problem and type(input.transaction) ~= "table" then
    problem = select(2, addresses.validate(input.address, input.network, "format"))
    -- A worker may refuse a wrong checksum: such a text has no share in the outcome of the address.
    key = addresses.key(input.address, input.network, "checksum") or ""
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
local function read_replicated(self, command)
  local wanted, acknowledged = self.settings.replicas, 0
  for _ = 1, REPLICA_TRIES do
    local replies, err = self.redis:pipeline {
      command,
      { "SET", self.base .. "replicated", "1" },
      { "WAIT", wanted, REPLICA_WAIT * 1000 },
    }
    for _, reply in ipairs(replies or {}) do
      err = err or errors.is(reply) and reply or nil
    end
    if err then
      return nil, err
    elseif replies[3] >= wanted then
      return replies[1]
    end
    acknowledged = replies[3]
  end
  local message = "queue: only %d of %d replicas have the last changes"
  return nil, errors.new("storage", message:format(acknowledged, wanted), { reason = "busy", retryable = true })
end

-- Whether the queue keeps the rows of a source up to one, also after a failover. Returns nil and an error if that is
-- not known.
local function keeps_rows(self, source, last)
  if self.settings.replicas == 0 then
    return true
  end
  local row, err = read_replicated(self, { "HGET", self.base .. "sources", source })
  if row == nil then
    return nil, err
  end
  return (tonumber(row) or 0) >= last
end

-- Adds a batch of rows, and waits while the queue is full. Returns nil and an error, or the counts.
local function add_batch(self, source, first, batch, totals)
  local rows = #batch / 3
  while true do
    local arguments = { self.base, source, first, self.settings.capacity }
    for index = 1, #batch do
      arguments[index + 4] = batch[index]
    end
    local reply, err = self.redis:script(scripts.add, self.keys, arguments)
    if not reply then
      return nil, err
    end
    totals.added, totals.invalid = totals.added + reply[2], totals.invalid + reply[3]
    local is_added = reply[1] >= first + rows - 1
    if is_added then
      is_added, err = keeps_rows(self, source, reply[1])
    end
    if is_added or err then
      return is_added, err
    end
    runtime.sleep(FULL_PAUSE)
  end
end

local function iterator_of(inputs)
  if type(inputs) == "function" then
    return inputs
  end
  local index = 0
  return function()
    index = index + 1
    return inputs[index]
  end
end

---Adds inputs, and waits while the queue is full. Rows of the source that the queue has already are passed over. So
---after a failure of Redis, or any other end, repeat `add` with the same inputs in the same order.
---@param source string name of the inputs, such as the name of their file
---@param inputs riskscreen.QueueInput[]|fun(): riskscreen.QueueInput|nil
---@param on_progress? fun(totals: { rows: integer, added: integer, invalid: integer })
---@return { rows: integer, added: integer, invalid: integer }|nil totals
---@return riskscreen.Error|nil err
function Queue:add(source, inputs, on_progress)
  if type(source) ~= "string" or source == "" or #source > LONGEST_SOURCE or source:find "%c" then
    error(
      ("queue:add: source must be a text of at most %d bytes (got %s)"):format(LONGEST_SOURCE, text.show(source)),
      2
    )
  elseif type(inputs) ~= "function" and type(inputs) ~= "table" then
    error(("queue:add: inputs must be a list or a function (got %s)"):format(text.kind(inputs)), 2)
  end
  local ok, err = self:prepare()
  if not ok then
    return nil, err
  end
  local totals = { rows = 0, added = 0, invalid = 0 }
  local read, batch, finished = iterator_of(inputs), {}, false
  while not finished do
    local input = read()
    finished = input == nil
    if not finished then
      totals.rows = totals.rows + 1
      batch[#batch + 1], batch[#batch + 2], batch[#batch + 3] = read_input(input)
    end
    if #batch == 3 * BATCH or (finished and #batch > 0) then
      ok, err = add_batch(self, source, totals.rows - #batch / 3 + 1, batch, totals)
      if not ok then
        return nil, err
      end
      batch = {}
      if on_progress then
        on_progress(totals)
      end
    end
  end
  return totals
end

---Reads results in their order.
---@param after? string position of the last result that was read; by default the first one is read
---@param seconds? number how long to wait for a result
---@return riskscreen.QueueResult[]|nil results at most 500
---@return riskscreen.Error|nil err
function Queue:results(after, seconds)
  text.expect("queue:results: after", after, "string", true)
  text.expect("queue:results: seconds", seconds, "number", true)
  local command = { "XREAD", "COUNT", BATCH, "STREAMS", self.base .. "results", after or "0-0" }
  local reply, err
  if seconds and seconds > 0 then
    local block = math.ceil(math.min(seconds, LONGEST_WAIT) * 1000)
    reply, err = self.redis:wait(LONGEST_WAIT, "XREAD", "BLOCK", block, unpack(command, 2))
  else
    reply, err = self.redis:call(unpack(command))
  end
  if reply and self.settings.replicas > 0 then
    reply, err = read_replicated(self, command)
  end
  if reply == nil then
    return nil, err
  end
  local list = {}
  for index, entry in ipairs(reply and reply[1][2] or {}) do
    local fields = redis.fields(entry[2])
    local outcome = json.decode(fields.outcome) or { action = "unknown", reasons = {}, risks = {} }
    list[index] = workers.result_of(outcome, fields)
    list[index].position = entry[1]
  end
  return list
end

---Removes results up to a position: they have been read.
---@param position string
---@return integer|nil removed
---@return riskscreen.Error|nil err
function Queue:forget(position)
  text.expect("queue:forget: position", position, "string")
  local milliseconds, number = position:match "^(%d+)%-(%d+)$"
  if not milliseconds then
    error(("queue:forget: expected the position of a result (got %s)"):format(text.show(position)), 2)
  end
  return self.redis:call("XTRIM", self.base .. "results", "MINID", ("%s-%.0f"):format(milliseconds, number + 1))
end

---The dead letters, oldest first: inputs that no worker could finish.
---@param after? string
---@return { position: string, id: string, source: string, row: integer, address?: string, network?: string,
---transaction?: table, fields?: table, reason: string }[]|nil letters at most 500
---@return riskscreen.Error|nil err
function Queue:dead(after)
  text.expect("queue:dead: after", after, "string", true)
  local reply, err = self.redis:call("XRANGE", self.base .. "dead", after and "(" .. after or "-", "+", "COUNT", BATCH)
  if reply == nil then
    return nil, err
  end
  local list = {}
  for index, entry in ipairs(reply) do
    local fields = redis.fields(entry[2])
    list[index] = workers.result_of({ position = entry[1], reason = fields.reason }, fields)
  end
  return list
end

---Makes all dead letters jobs again.
---@return integer|nil count
---@return riskscreen.Error|nil err
function Queue:requeue()
  local sum = 0
  while true do
    local count, err = self.redis:script(scripts.requeue, self.keys, { self.base, BATCH })
    if not count then
      return nil, err
    end
    sum = sum + count
    if count < BATCH then
      return sum
    end
  end
end

---The state of the queue.
---@return riskscreen.QueueStatus|nil
---@return riskscreen.Error|nil err
function Queue:status()
  return statuses.read(self)
end

---The state of the queue in Prometheus' text format.
---@return string|nil
---@return riskscreen.Error|nil err
function Queue:metrics()
  local status, err = self:status()
  if not status then
    return nil, err
  end
  return statuses.prometheus(status, self.settings.name)
end

---A worker, which screens the jobs of the queue with a client.
---@param given riskscreen.QueueWorkerOptions
---@return riskscreen.QueueWorker
function Queue:worker(given)
  local settings = check.arguments("queue:worker", workers.options, given)
  local worker, misuse = workers.new(self, settings)
  return worker or error("queue:worker: client " .. misuse, 2)
end

return M
