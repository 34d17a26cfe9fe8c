-- riskscreen queue: screens files of any size with workers on any number of machines, over Redis.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local decision_record = require "riskscreen.cli.decision_record"
local inputs = require "riskscreen.cli.input"
local option_of = require "riskscreen.cli.option"
local queue_results = require "riskscreen.cli.queue_results"
local queues = require "riskscreen.queue"
local redis = require "riskscreen.redis"
local signals = require "riskscreen.cli.signals"
local status = require "riskscreen.cli.status"
local system = require "riskscreen.system"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local REDIS_URL = "RISKSCREEN_REDIS_URL"
local STATUS =
  "waiting working following results dead added done shared requeued foreign per_second left oldest workers"

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
  local options, world = context.options, context.world
  local input = inputs.open(context, path)
  local network, names = context:network(), options.keep or {}
  local terminal = not context.quiet and world.columns(world.err)
  local next_row, so_far = input:each(), { invalid = 0 }
  local function bound(counts)
    if counts.invalid > options.max_invalid then
      status.misuse(("%s: more invalid rows than %d: --max-invalid N takes more"):format(path, options.max_invalid))
    end
  end
  local totals, err = queue:add(run, function()
    bound(so_far)
    local row = next_row()
    if not row then
      return nil
    end
    local fields = names[1] and {} or nil
    for _, name in ipairs(names) do
      fields[name] = input:field(row, name)
    end
    return { address = row.address, network = row.network or network, fields = fields }
  end, function(counts)
    so_far = counts
    if terminal then
      world.err:write("\r", text.grouped(counts.rows), " rows\27[K")
    end
  end)
  input:close()
  if terminal then
    world.err:write "\r\27[K"
  end
  bound(totals or so_far)
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
    status.misuse(("%s: %s: --run NAME"):format(path, err.message))
  end
  status.ensure(totals, err)
  local added, invalid = text.grouped(totals.added), text.grouped(totals.invalid)
  local rows = text.count(totals.rows, "row", text.grouped(totals.rows))
  local known = totals.rows - totals.added
  local were = text.grouped(known) .. (known == 1 and " was" or " were")
  context:tell(("%s: %s added, %s in the queue, %s invalid"):format(rows, added, were, invalid))
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
    request = { include = options.include, timeout = options.timeout, address_check = options.address_check },
    on_problem = function(err)
      if not context.quiet then
        context.world.notice("goes on after: " .. tostring(err))
      end
    end,
  }
  local forget = signals.catch(context, function()
    worker:stop()
  end)
  local finished, err = worker:run { drain = options.drain }
  forget()
  context:tell(text.count(worker.finished, "result", text.grouped(worker.finished)))
  status.ensure(finished, err)
  return signals.status()
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

local function run_dead(context)
  local queue = open(context)
  local output, after = context:output { { name = "id", whole = true }, "address", "network", "reason" }, nil
  repeat
    local letters = status.ensure(queue:dead(after))
    for _, letter in ipairs(letters) do
      output:add(queue_results.with_input(letter))
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

local function run_results(context)
  local options = context.options
  local queue, client = open(context)
  local forget = signals.catch(context)
  local file = queue_results.open(options.output, queue, ("%s@%s"):format(options.name, client:server()))
  local count, repeated = 0, 0
  while not system.ending() do
    local results = status.ensure(queue:results(nil, options.follow and 1 or 0))
    if results[1] then
      local written = file:add(results)
      count, repeated = count + written, repeated + #results - written
      status.ensure(queue:forget(results))
    elseif not options.follow then
      break
    end
  end
  forget()
  file:close()
  local known = repeated > 0 and (", and %s that the file had"):format(text.grouped(repeated)) or ""
  local dead = status.ensure(queue:status()).dead
  local lacking = dead > 0 and ("; %s dead letters have no result: queue dead"):format(text.grouped(dead)) or ""
  context:tell(text.count(count, "result", text.grouped(count)) .. known .. lacking)
  return signals.status()
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
    }, { inputs.keep }, inputs.options, of_add, common),
    examples = { { line = "queue add customers.csv -n eth --run march", what = "Waits while the queue is full" } },
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
      { status = status.unknown, what = "a failure of this machine that a further job would meet too" },
    },
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
