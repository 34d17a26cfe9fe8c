-- riskscreen queue: screens files of any size with workers on any number of machines, over Redis.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local decision_record = require "riskscreen.cli.decision_record"
local inputs = require "riskscreen.cli.input"
local core = require "riskscreen.core"
local option_of = require "riskscreen.cli.option"
local outputs = require "riskscreen.cli.output"
local progress = require "riskscreen.cli.progress"
local queues = require "riskscreen.queue"
local records = require("riskscreen.rows").records
local redis = require "riskscreen.redis"
local results_files = require "riskscreen.cli.results"
local status = require "riskscreen.cli.status"
local system = require "riskscreen.system"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local REDIS_URL = "RISKSCREEN_REDIS_URL"
local STATUS =
  "waiting working following results dead added done shared requeued foreign per_second left oldest workers"

local ALSO_READ = "results of this queue were also removed by another program, or lost by Redis: one program at a time "
  .. "reads the results of a queue, and other files may have some of these rows, too"

local result_columns =
  outputs.columns.named(text.words "source row address network action reasons risks error time fields queue")
local SUBJECT, QUEUE = 4, #result_columns -- up to the network, the columns say which row it is

local SENTINEL = "A Sentinel to ask for the master, in place of the URL's host. Repeat it for each Sentinel."
local sentinels = option_of.pick(redis.options, { "sentinels" })[1]

local common = tables.concat(
  { option_of.text("redis", "URL", "The Redis; by default " .. REDIS_URL .. ".") },
  option_of.pick(sentinels.fields, { "hosts", "name" }, {
    hosts = { name = "sentinel", required = false, list = true, argument = "HOST:PORT", doc = SENTINEL },
    name = { name = "master", required = false, argument = "NAME" },
  }),
  option_of.pick(queues.options, { "name" })
)

local of_add = option_of.pick(queues.options, { "capacity", "replicas" })
local of_work = option_of.pick(queues.options, { "results", "remember", "claim_after", "deliveries" })
local of_results = option_of.pick(queues.options, { "replicas" })

local statuses = { done = "done", unknown = "Redis failed" }

-- The queue, and the client of Redis.
local function open(context)
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
  local client = redis.with(settings)
  return queues.new(tables.merge(option_of.values(queues.options, options), { redis = client })), client
end

-- Adds the rows of a file or a pipe from the first one on. Returns what `add` returns.
local function add_rows(context, queue, path, run)
  local options, line = context.options, progress.line(context)
  local input, network, so_far = inputs.open(context, path), context:network(), { invalid = 0 }
  local next_row = input:each()
  local function bound()
    if so_far.invalid > options.max_invalid then
      status.misuse("%s: more invalid rows than %d: --max-invalid N takes more", path, options.max_invalid)
    end
  end
  local totals, err = queue:add(run, function()
    bound()
    local row = next_row()
    local fields = row and (options.keep or options.meta) and input:fields_of(row, options.keep or {})
    fields = fields and tables.merge(fields, options.meta)
    return row and { address = row.address, network = row.network or network, fields = fields }
  end, function(counts)
    so_far = counts
    line.draw(text.grouped(counts.rows) .. " rows")
  end)
  input:close()
  so_far = totals or so_far
  bound()
  return totals, err
end

local function run_add(context)
  local options, path = context.options, context.arguments.file
  local queue, run, is_stream = open(context), options.run or options.source, inputs.is_stream(path)
  if options.run and options.source then
    status.misuse "--run and --source name the same: give one of them"
  elseif is_stream and not run then
    status.misuse "give the rows of a pipe a name with --run: the same name again passes over the rows that it had"
  end
  decision_record.with_facts(outputs.columns.named(options.keep or {}), options.meta) -- no name twice
  local problem = run and queues.run_problem(run)
  if problem then
    status.misuse(problem)
  end
  local totals, err
  repeat
    if err then
      context:warn "Redis has lost rows: begins again"
    end
    totals, err = add_rows(context, queue, path, run or "default")
  until totals or is_stream or err.reason ~= "lost"
  if err and err.field == "inputs" then
    status.misuse("%s: %s: --run NAME", path, err.message)
  end
  status.ensure(totals, err)
  local rows, known = text.count(totals.rows, "row", text.grouped(totals.rows)), totals.rows - totals.added
  local figures = "%s: %s added, %s %s in the queue, %s invalid"
  local added, were = text.grouped(totals.added), known == 1 and "was" or "were"
  context:tell(figures:format(rows, added, text.grouped(known), were, text.grouped(totals.invalid)))
  return totals.invalid > 0 and status.invalid_rows or status.done
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
  local worker = queue:worker {
    client = client,
    concurrency = options.concurrency,
    request = tables.pick(options, { "include", "timeout", "address_check", "meta" }),
    on_problem = function(err)
      if not context.quiet then
        context.world.notice("goes on after: " .. tostring(err))
      end
    end,
  }
  context:catch_signals(function()
    worker:stop()
  end)
  local finished, err = worker:run { drain = options.drain }
  context:tell(text.count(worker.finished, "result", text.grouped(worker.finished)))
  status.ensure(finished, err)
  return context:ended()
end

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
  context:write_record(text.words(STATUS), found)
end

-- A result or a dead letter with the columns of its input.
local function with_input(entry)
  local input = type(entry.input) == "table" and entry.input or {} -- another program may have written it
  return tables.merge(tables.pick(input, { "address", "network", "fields" }), entry)
end

local function run_dead(context)
  local queue = open(context)
  local output, after = context:output { { name = "id", whole = true }, "address", "network", "reason" }, nil
  repeat
    local letters = status.ensure(queue:dead(after))
    for _, letter in ipairs(letters) do
      output:add(with_input(letter))
      after = letter.position
    end
  until not letters[1]
  output:finish()
end

local function run_requeue(context)
  local queue = open(context)
  local count = status.ensure(queue:requeue())
  context:tell(text.count(count, "job", text.grouped(count)) .. " again")
end

-- The file of `queue results`. It names the queue of its rows, and no row is in it twice. A result may come again after
-- a kill, or from a Redis that has lost changes. Redis has no other row of the file any more.
---@class riskscreen.cli.QueueResults
---@field path string
---@field out riskscreen.cli.Results
---@field queue string the queue and its Redis
---@field subjects table<string, table<integer, integer>> by run and row, a digest of address and network
local Results = {}
Results.__index = Results

-- The cells of a result, with the input as it was added.
function Results:cells_of(result)
  local record = tables.merge(with_input(result), { queue = self.queue })
  record.fields = record.fields ~= nil and outputs.json(record.fields) or nil
  return outputs.columns.cells(result_columns, record)
end

-- Whether a row is in the file; from now on it is. Another address in its place ends the command.
function Results:has_row(cells)
  local source, row = cells[1], tonumber(cells[2]) or 0
  local number = tonumber(text.hex(core.sha256(cells[3] .. " " .. cells[4])):sub(1, 8), 16)
  local of_run = self.subjects[source] or {}
  local before = of_run[row]
  self.subjects[source], of_run[row] = of_run, before or number
  if before and before ~= number then
    local message = "%s has another address in row %d of the run %s: -o names another file"
    status.misuse(message, self.path, row, text.show(source))
  end
  return before ~= nil
end

-- Reads the rows of the file. Returns its length up to the last whole row, and the line end that this row lacks.
function Results:read()
  local header = outputs.csv_header(result_columns)
  local beginning = self.out:part(0, #header)
  if beginning ~= header:sub(1, #beginning) then
    status.misuse("%s is not a file of this command", self.path)
  elseif beginning ~= header then
    return 0, header
  end
  local whole, lacking, next_row = #header, "", self.out:rows()
  next_row() -- the header
  for _, cells, position, lacks_end in next_row do
    if cells[QUEUE] ~= self.queue then
      if lacks_end then
        break
      end
      local message = "%s has the results of the queue %s, and this one is %s: -o names another file"
      status.misuse(message, self.path, text.show(cells[QUEUE]), text.show(self.queue))
    end
    self:has_row(cells)
    whole, lacking = position, lacks_end and "\r\n" or ""
  end
  return whole, lacking
end

-- Whether a row that is not whole was cut by a kill: Redis has its result until the row is on the disk.
function Results:is_cut(queue, rest)
  local results
  repeat
    results = status.ensure(queue:results(results and results[#results].position))
    for _, result in ipairs(results) do
      local subject = outputs.csv(self:cells_of(result), SUBJECT):sub(1, -3) .. ","
      if subject:sub(1, #rest) == rest:sub(1, #subject) then
        return not rest:find "\n"
      end
    end
  until not results[1]
  return false
end

-- Opens the file of a queue, or makes it.
local function open_results(path, queue, name)
  inputs.refuse_stream(path, "-o")
  results_files.open(path, "ab"):close()
  local self =
    setmetatable({ path = path, out = results_files.open(path, "r+b"), queue = name, subjects = {} }, Results)
  if not self.out:lock() then
    status.misuse("%s is being written by another program", path)
  end
  local size, lacking = self:read()
  local rest = size > 0 and text.trim(self.out:part(size)) or ""
  if rest ~= "" and not self:is_cut(queue, rest) then
    local message = "%s: the row behind byte %.0f is not whole, and Redis does not have its result: add its run again, "
      .. "mend the file, or -o names another file"
    status.misuse(message, path, size)
  end
  self.out:cut(size)
  self.out:write(lacking)
  self.out:sync()
  return self
end

-- Writes results that are not in the file, and returns their number when they are on the disk.
function Results:add(results)
  local count = 0
  for _, result in ipairs(results) do
    local row, cells = outputs.csv(self:cells_of(result), QUEUE), {}
    records.split(row:sub(1, -3), ",", cells)
    if not self:has_row(cells) then
      self.out:write(row)
      count = count + 1
    end
  end
  self.out:sync()
  return count
end

local function run_results(context)
  local options = context.options
  local queue, client = open(context)
  context:catch_signals()
  local file = open_results(options.output, queue, ("%s@%s"):format(options.name, client:server()))
  local count, repeated = 0, 0
  while not system.ending() do
    local results = status.ensure(queue:results(nil, options.follow and 1 or 0))
    if results[1] then
      local written = file:add(results)
      count, repeated = count + written, repeated + #results - written
      if status.ensure(queue:forget(results)) < #results then
        context.world.notice(ALSO_READ)
      end
    elseif not options.follow then
      break
    end
  end
  file.out:close()
  local known = repeated > 0 and (", and %s that the file had"):format(text.grouped(repeated)) or ""
  local dead = status.ensure(queue:status()).dead
  local lacking = dead > 0 and ("; %s dead letters have no result: queue dead"):format(text.grouped(dead)) or ""
  context:tell(text.count(count, "result", text.grouped(count)) .. known .. lacking)
  return context:ended()
end

return {
  {
    name = "queue add",
    summary = "Add the rows of a CSV file to a queue in Redis.",
    description = "The same command passes over the rows that the run has already, so it is repeated after any end. "
      .. "Further rows may follow them; changed rows are refused. Another run screens the same rows anew.",
    arguments = { { name = "file", doc = "CSV with a column address; '-' is stdin." } },
    options = tables.concat({
      option_of.text("run", "NAME", "The name of the run, in the queue and in the results; by default 'default'."),
      option_of.text("source", "NAME", "The same, for the rows of a pipe."),
    }, { inputs.keep, decision_record.meta }, inputs.options, of_add, common),
    examples = { { line = "queue add customers.csv -n eth --run march", what = "Waits while the queue is full" } },
    statuses = {
      done = "every row is in the queue",
      invalid_rows = "every row is in the queue, and some cannot be screened",
      unknown = "Redis failed",
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
      decision_record.meta,
    }, decision_record.options, of_work, common),
    examples = { { line = "queue work --set rate_limit.rate=100 --share-rate", what = "100 calls a second in all" } },
    statuses = { done = "the queue is empty", unknown = "a failure of this machine that a further job would meet too" },
    verdict = "output",
    run = run_work,
  },
  {
    name = "queue results",
    summary = "Write the results of a queue to a CSV file, each once.",
    description = "The results leave Redis once the file is on the disk. The same command goes on with a file "
      .. "that exists, and adds no row that it has. One program at a time reads the results of a queue.",
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
