-- riskscreen queue: screens files of any size with workers on any number of machines, over Redis.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local decision_record = require "riskscreen.cli.decision_record"
local grouped = require("riskscreen.cli.progress").grouped
local inputs = require "riskscreen.cli.input"
local option_of = require "riskscreen.cli.option"
local outputs = require "riskscreen.cli.output"
local queues = require "riskscreen.queue"
local redis = require "riskscreen.redis"
local riskscreen = require "riskscreen"
local status = require "riskscreen.cli.status"
local system = require "riskscreen.system"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local REDIS_URL = "RISKSCREEN_REDIS_URL"
local TAIL = 1024 * 1024 -- bytes at the end of the file in which the last whole row is sought
local LONGEST_CELL = 10000 -- bytes
local LOOK_EVERY = 0.1 -- seconds between two looks for a signal

local sentinels = option_of.pick(redis.options, { "sentinels" })[1]
local sentinel_options = option_of.pick(sentinels.fields, { "hosts", "name" })

local common = tables.concat({
  { name = "redis", type = "string", argument = "URL", doc = "The Redis; by default " .. REDIS_URL .. "." },
  tables.merge(sentinel_options[1], {
    name = "sentinel",
    required = false,
    list = true,
    argument = "HOST:PORT",
    doc = "A Sentinel to ask for the master, in place of the URL's host. Repeat it for each Sentinel.",
  }),
  tables.merge(sentinel_options[2], { name = "master", required = false, argument = "NAME" }),
}, option_of.pick(queues.options, { "name" }))

local of_add = option_of.pick(queues.options, { "capacity", "replicas" })
local of_work = option_of.pick(queues.options, { "results", "remember", "claim_after", "deliveries" })
local of_results = option_of.pick(queues.options, { "replicas" })

local redis_failed = { status = status.unknown, what = "Redis failed" }
local statuses = { { status = status.done, what = "done" }, redis_failed }

-- The checked options of the client of Redis.
local function redis_settings(context)
  local options = context.options
  local url = options.redis or context.world.getenv(REDIS_URL)
  if (options.sentinel == nil) ~= (options.master == nil) then
    status.misuse "--sentinel and --master go together: Sentinels know a master by its name"
  elseif not url and not options.sentinel then
    status.misuse("the queue needs a Redis: set " .. REDIS_URL .. ", such as redis://127.0.0.1:6379, or give --redis")
  end
  local settings, problem = check.options(redis.options, { url = url })
  if not settings then
    status.misuse(problem.message)
  end
  if options.sentinel then
    settings.sentinels = { hosts = options.sentinel, name = options.master }
  end
  return settings
end

-- The queue, and the client of Redis.
local function open(context)
  local client = redis.with(redis_settings(context))
  return queues.new(tables.merge(option_of.values(queues.options, context.options), { redis = client })), client
end

local function run_add(context)
  local options, world = context.options, context.world
  local path = context.arguments.file
  local queue = open(context)
  local input = inputs.open(context, path)
  local network, names = context:network(), options.keep or {}
  if path == "-" and not options.source then
    status.misuse "give the rows of stdin a name with --source: a second run with it passes over the rows of the first"
  end
  local terminal = not context.quiet and world.columns(world.err)
  local next_row = input:each()
  local totals = status.ensure(queue:add(options.source or path, function()
    local row = next_row()
    if not row then
      return nil
    end
    local fields = names[1] and {} or nil
    for _, name in ipairs(names) do
      fields[name] = input:field(row, name)
    end
    return { address = row.address, network = row.network or network, fields = fields }
  end, function(totals)
    if totals.invalid > options.max_invalid then
      status.misuse(("%s: more than %d rows are invalid: --max-invalid N takes more"):format(path, options.max_invalid))
    elseif terminal then
      world.err:write("\r", grouped(totals.rows), " rows\27[K")
    end
  end))
  input:close()
  if terminal then
    world.err:write "\r\27[K"
  end
  local added, invalid = grouped(totals.added), grouped(totals.invalid)
  local rows = text.count(totals.rows, "row", grouped(totals.rows))
  local known = grouped(totals.rows - totals.added)
  context:tell(("%s: %s added, %s of them invalid, %s were in the queue"):format(rows, added, invalid, known))
  return totals.invalid > 0 and status.invalid_rows or status.done
end

-- Calls `stop` at the first SIGINT or SIGTERM, until the returned function is called.
local function stop_at_signal(context, stop)
  assert(system.catch_end())
  local finished = false
  riskscreen.defer(function()
    while not finished do
      riskscreen.sleep(LOOK_EVERY)
      if not finished and system.ending() then
        finished = true
        context:tell "stopping: screenings under way are finished; a second signal ends at once"
        stop()
      end
    end
  end)
  return function()
    finished = true
  end
end

local function run_work(context)
  local options = context.options
  local queue, redis_client = open(context)
  if options.share_rate and not context:setting "rate_limit.rate" then
    status.misuse "--share-rate needs the setting rate_limit.rate: --set rate_limit.rate=100"
  end
  local client = context:client {
    concurrency = options.concurrency,
    rate_limit = options.share_rate and { shared = { redis = redis_client } } or nil,
  }
  local problems = {}
  local worker = queue:worker {
    client = client,
    concurrency = options.concurrency,
    request = { include = options.include, timeout = options.timeout, address_check = options.address_check },
    on_problem = function(err)
      local message = tostring(err)
      if not problems[message] then
        problems[message] = true
        context:tell("goes on after: " .. message)
      end
    end,
  }
  local forget = stop_at_signal(context, function()
    worker:stop()
  end)
  local finished, err = worker:run { drain = options.drain }
  forget()
  context:tell(text.count(worker.finished, "result", grouped(worker.finished)))
  status.ensure(finished, err)
  return system.ending() and status.interrupted or status.done
end

local status_columns = {
  "waiting",
  "working",
  "following",
  "results",
  "dead",
  "added",
  "done",
  "shared",
  "requeued",
  "per_second",
  "left",
  "oldest",
  "workers",
}

local function run_status(context)
  local queue = open(context)
  if context.options.metrics then
    status.ensure_written(context.world.out:write(status.ensure(queue:metrics())))
    return
  end
  local found = status.ensure(queue:status())
  if context.format ~= "json" and context.format ~= "jsonl" then
    found.workers = #found.workers
  end
  context:write_record(status_columns, found)
end

local dead_columns = { { name = "id", whole = true }, "address", "network", "reason" }

local function run_dead(context)
  local queue = open(context)
  local output, after = context:output(dead_columns), nil
  repeat
    local letters = status.ensure(queue:dead(after))
    for _, letter in ipairs(letters) do
      output:add(letter)
      after = letter.position
    end
  until not letters[1]
  output:finish()
end

local function run_requeue(context)
  local queue = open(context)
  local count = status.ensure(queue:requeue())
  context:tell(text.count(count, "job", grouped(count)) .. " again")
end

-- The CSV file of `riskscreen queue results`. The last cell of each row is the position of its result. So the
-- file alone tells where to go on. A row that was cut by a kill is removed.

---@type riskscreen.cli.Column[]
local result_columns = outputs.columns.named {
  "source",
  "row",
  "address",
  "network",
  "action",
  "reasons",
  "risks",
  "error",
  "time",
  "fields",
  "position",
}

---@class riskscreen.cli.ResultFile
---@field position? string of the last result in the file
---@field private out file*
local File = {}
File.__index = File

-- The position in the last whole row, and the length of the file up to its end. A cell holds no line break.
local function last_row(out)
  local size = out:seek "end"
  local start = math.max(0, size - TAIL)
  out:seek("set", start)
  local tail = out:read "*a" or ""
  local whole = tail:match "^(.*\n)"
  if not whole then
    return nil, start == 0 and 0 or nil
  end
  return whole:match ",(%d+%-%d+)\r\n$", start + #whole
end

-- Opens the file, or makes it.
local function open_results(path)
  local out = io.open(path, "r+b")
  local is_new = not out
  if is_new then
    local problem
    out, problem = io.open(path, "w+b")
    status.ensure_written(out, problem)
  end
  local locked = system.lock(out)
  if not locked then
    status.misuse(("%s is being written by another program"):format(path))
  end
  local position, size = last_row(out)
  local header = outputs.csv_header(result_columns)
  if size == 0 then
    out:seek "set"
    status.ensure_written(system.truncate(out, 0))
    status.ensure_written(out:write(header))
  elseif not size or not (position or size == #header) then
    status.misuse(("%s is not a file of this command"):format(path))
  else
    status.ensure_written(system.truncate(out, size))
    out:seek "end"
  end
  status.ensure_written(system.sync(out))
  return setmetatable({ out = out, position = position }, File)
end

-- A value without line breaks.
local function plain(value)
  return type(value) == "string" and text.printable(value, LONGEST_CELL) or value
end

---Writes results and returns when they are on the disk.
---@param results riskscreen.QueueResult[]
function File:write(results)
  for _, result in ipairs(results) do
    local cells = outputs.columns.cells(result_columns, result)
    for index = 1, #result_columns do
      cells[index] = plain(cells[index])
    end
    status.ensure_written(self.out:write(outputs.csv(cells, #result_columns)))
  end
  status.ensure_written(system.sync(self.out))
  self.position = results[#results].position
end

function File:close()
  self.out:close()
end

local function run_results(context)
  local options = context.options
  local queue = open(context)
  local stopped = false
  local forget = stop_at_signal(context, function()
    stopped = true
  end)
  local count, file = 0, open_results(options.output)
  -- Results that the file has are removed; after a kill there may be some.
  if file.position then
    status.ensure(queue:forget(file.position))
  end
  while not stopped do
    local results = status.ensure(queue:results(file.position, options.follow and 1 or 0))
    if results[1] then
      file:write(results)
      status.ensure(queue:forget(file.position))
      count = count + #results
    elseif not options.follow then
      break
    end
  end
  forget()
  file:close()
  context:tell(text.count(count, "result", grouped(count)))
  return stopped and status.interrupted or status.done
end

return {
  {
    name = "queue add",
    summary = "Add the rows of a CSV file to a queue in Redis.",
    description = "The same command passes over the rows that the queue has already, so it is repeated after any end.",
    arguments = { { name = "file", doc = "CSV with a column address; '-' is stdin." } },
    options = tables.concat({
      option_of.text("source", "NAME", "The name of these rows in the queue and in the results; by default FILE."),
    }, { inputs.keep }, inputs.options, of_add, common),
    examples = { { line = "queue add customers.csv -n eth", what = "Waits while the queue is full" } },
    statuses = {
      { status = status.done, what = "every row is in the queue" },
      { status = status.invalid_rows, what = "every row is in the queue, and some cannot be screened" },
      redis_failed,
    },
    run = run_add,
  },
  {
    name = "queue work",
    summary = "Screen the addresses of a queue, until a signal ends it.",
    description = "Start it on as many machines as you like. At SIGINT or SIGTERM it finishes its screenings. "
      .. "The addresses of a worker that is killed are screened by another one.",
    options = tables.concat({
      { name = "drain", type = "boolean", doc = "End when the queue is empty." },
      build.flag("share_rate", nil, "The setting rate_limit holds for all workers of this Redis together."),
      decision_record.concurrency,
    }, decision_record.options, of_work, common),
    examples = {
      {
        line = "queue work --set rate_limit.rate=100 --share-rate",
        what = "100 calls a second on all machines",
      },
    },
    statuses = {
      { status = status.done, what = "the queue is empty" },
      { status = status.unknown, what = "a failure that a further job would meet too, such as a wrong access key" },
    },
    verdict = "output",
    run = run_work,
  },
  {
    name = "queue results",
    summary = "Write the results of a queue to a CSV file, each once.",
    description = "The results leave Redis once the file is on the disk. The same command goes on with a file "
      .. "that exists. One program at a time reads the results of a queue.",
    options = tables.concat({
      { name = "output", type = "string", required = true, short = "o", argument = "FILE", doc = "The CSV file." },
      { name = "follow", type = "boolean", doc = "Wait for further results, until a signal ends it." },
    }, of_results, common),
    examples = { { line = "queue results -o results.csv --follow", what = "While the workers work" } },
    statuses = statuses,
    run = run_results,
  },
  {
    name = "queue status",
    summary = "Show what waits in a queue, who works, and how fast.",
    options = tables.concat({
      { name = "metrics", type = "boolean", doc = "In the text format of Prometheus." },
    }, common),
    examples = { { line = "queue status --json", what = "With each worker" } },
    statuses = statuses,
    run = run_status,
  },
  {
    name = "queue dead",
    summary = "List the inputs that no worker could finish, with the reasons.",
    options = common,
    examples = { { line = "queue dead --csv", what = "As CSV" } },
    statuses = statuses,
    run = run_dead,
  },
  {
    name = "queue requeue",
    summary = "Give all dead inputs to the workers again.",
    options = common,
    examples = { { line = "queue requeue", what = "After the reason is mended" } },
    statuses = statuses,
    run = run_requeue,
  },
}
