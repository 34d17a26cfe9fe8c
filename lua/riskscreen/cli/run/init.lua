-- `riskscreen screen --file`: screens every row of a file into a file of results, and survives any end of the process.
-- ../input.lua reads the rows, state.lua keeps what was answered, ../progress.lua shows the run. With --retry-failed
-- the rows of a complete run, read by earlier.lua, go to a new file, with new answers in place of the failed ones.

local addresses = require "riskscreen.address"
local configuration = require "riskscreen.cli.configuration"
local earlier_results = require "riskscreen.cli.run.earlier"
local identities = require "riskscreen.cli.run.identity"
local inputs = require "riskscreen.cli.input"
local lookups = require "riskscreen.policy.lookups"
local outputs = require "riskscreen.cli.output"
local policies = require "riskscreen.policy"
local progress_line = require "riskscreen.cli.progress"
local riskscreen = require "riskscreen"
local runtime = require "riskscreen.runtime"
local screening = require "riskscreen.cli.screening"
local states = require "riskscreen.cli.run.state"
local status = require "riskscreen.cli.status"
local system = require "riskscreen.system"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local RECORD_EVERY = 1 -- seconds between two times that the output is forced to the disk
local MOST_WAITING = 2000 -- answers that are not in the output, at which it is written earlier
local DRAW_EVERY = 0.2 -- seconds
local MOST_AT_ONCE = 2000 -- rows that are copied or passed over before other tasks run
local MOST_SHOWN = 20 -- invalid rows that are printed
local DEFAULT_REQUESTS = 32 -- at a time
local DEFAULT_TIMEOUT = 10 -- seconds, of a client
local UNFINISHED = ".part" -- after the output's name, until the rows that failed have new answers

---@class riskscreen.cli.Run
---@field context riskscreen.cli.Context
---@field input riskscreen.cli.Input
---@field out file* the output
---@field state? riskscreen.cli.State none where the output is stdout
---@field copied? riskscreen.cli.Earlier the results of a complete run, as far as they are copied
---@field passed? riskscreen.cli.Earlier the same, as far as the input is read
---@field columns riskscreen.cli.Column[]
---@field row_source? "sandbox" where a column says that the sandbox answers
local Run = {}
Run.__index = Run

local M = {}

local function order_of(columns)
  return tables.pluck(columns, "name")
end

-- Rows of the output: line and address first, the kept columns of the input last. A column of the input that is called
-- `action` must not take the place of the decision.
local function columns_for(keep, source)
  local columns = tables.concat({ { name = "line" } }, screening.columns(source), { { name = "time" } })
  local own = tables.set(order_of(columns))
  for _, name in ipairs(keep or {}) do
    if own[name] then
      status.misuse(("--keep: the results have a column %s of their own"):format(text.show(name)))
    end
    columns[#columns + 1] = { name = name }
  end
  return columns
end

function Run:set_row_source(source)
  self.row_source, self.columns = source, columns_for(self.keep, source)
end

function Run:row_text(record)
  if self.format == "jsonl" then
    return outputs.json.encode(record, order_of(self.columns)) .. "\n"
  end
  return outputs.csv.line(outputs.columns.cells(self.columns, record), #self.columns)
end

function Run:header()
  if self.format == "jsonl" then
    return ""
  end
  return outputs.csv.line(order_of(self.columns), #self.columns)
end

-- Takes the answer about a row.
function Run:take(number, row, record, problem)
  record.line = row.line
  record.time = os.date "!%Y-%m-%dT%H:%M:%SZ"
  for index, name in ipairs(self.keep) do
    record[name] = row.kept[index]
  end
  local is_invalid = record.error == "invalid_argument"
  local answer = {
    text = self:row_text(record),
    action = record.action,
    invalid = is_invalid and problem or nil,
    line = row.line,
    failed = record.error ~= nil and not is_invalid or nil,
  }
  self.waiting = self.waiting + 1
  if self.state then
    self.state:take(number, answer, not answer.failed)
    self:save_soon()
  else
    self.answers[number] = answer
  end
end

-- Saves once for all answers that come in the same turn of the loop.
function Run:save_soon()
  if self.is_saving then
    return
  end
  self.is_saving = true
  riskscreen.defer(function()
    self.is_saving = false
    if not self.closed then
      local ok, failure = pcall(self.state.save, self.state)
      self.failure = self.failure or not ok and failure or nil
    end
  end)
end

local function copied(progress)
  local copy = tables.copy(progress)
  copy.counts = tables.copy(progress.counts)
  return copy
end

function Run:report_invalid(answer)
  self.shown = self.shown + 1
  if self.shown <= MOST_SHOWN then
    self:clear()
    self.context:warn(("line %d: %s"):format(answer.line, answer.invalid))
  end
end

-- The answer to the next row of the output: that of the earlier run unless it failed, or a new one.
function Run:next_answer()
  local number = self.progress.position + 1
  local earlier = self.copied and self.copied:row(number)
  return earlier and not earlier.failed and earlier or self.answers[number]
end

-- Writes the answers that are next in the order of the input, and records them once they are on the disk. Returns
-- whether there are more.
function Run:write_ready()
  local progress, written = self.progress, {}
  local answers, last = self.answers, self.progress.position + MOST_AT_ONCE
  if self.state then
    self.state:save()
  end
  local answer = self:next_answer()
  while answer and progress.position < last do
    if answer.failed and not self.before_failures then
      self.before_failures = copied(progress)
    elseif not answer.failed and not answer.invalid and not answer.is_earlier then
      self.before_failures = nil
    end
    status.ensure_written(self.out:write(answer.text))
    progress.position = progress.position + 1
    progress.offset = progress.offset + #answer.text
    progress.counts[answer.action] = (progress.counts[answer.action] or 0) + 1
    if answer.invalid then
      progress.invalid = progress.invalid + 1
      if not answer.is_earlier then
        self:report_invalid(answer)
      end
    elseif answer.failed then
      progress.failed = progress.failed + 1
    end
    if not answer.is_earlier then
      written[#written + 1] = progress.position
    end
    if not self.state then
      answers[progress.position] = nil
    end
    answer = self:next_answer()
  end
  self.waiting = self.waiting - #written
  self:record(written)
  return answer ~= nil
end

function Run:write_all()
  local has_more
  repeat
    has_more = self:write_ready()
  until not has_more
end

function Run:record(written)
  if self.state then
    status.ensure_written(system.sync(self.out))
    self.state:record(self.progress, written)
  else
    status.ensure_written(self.out:flush())
  end
  self.recorded = runtime.now()
end

function Run:write_if_due()
  if self.failure then
    error(self.failure, 0)
  elseif self.waiting >= MOST_WAITING or runtime.now() - self.recorded >= RECORD_EVERY then
    self:write_ready()
  end
end

-- Removes the progress line.
function Run:clear()
  if self.is_drawn then
    self.context.world.err:write "\r\27[K"
    self.is_drawn = false
  end
end

function Run:draw()
  local rows, counts = self.progress.position, tables.copy(self.progress.counts)
  for number, answer in pairs(self.answers) do
    if number > self.progress.position then
      rows = rows + 1
      counts[answer.action] = (counts[answer.action] or 0) + 1
    end
  end
  local elapsed = runtime.now() - self.started
  local rate = elapsed > 0 and (rows - self.first) / elapsed or 0
  local share = self.input.size and self.input.size > 0 and math.min(1, self.input.read_bytes / self.input.size)
  local known = share and share > self.first_share and elapsed > 1
  local left = known and elapsed * (1 - share) / (share - self.first_share) or nil
  local now = { share = share or nil, rows = rows, rate = rate, counts = counts, left = left }
  self.context.world.err:write("\r", progress_line.line(now, self.terminal), "\27[K")
  self.context.world.err:flush()
  self.is_drawn = true
end

-- Whether the earlier run has the answer to a row.
function Run:has_passed(number, row)
  if not self.passed then
    return false
  end
  local earlier = self.passed:row(number)
  if not earlier or earlier.line ~= row.line then
    status.misuse(("%s was changed: it has no row for line %d. --force starts again"):format(self.path, row.line))
  elseif number % MOST_AT_ONCE == 0 then
    self:write_ready()
    riskscreen.sleep(0)
  end
  return not earlier.failed
end

-- The address and the network of the next row that can be screened. Rows before it that cannot are answered here.
function Run:source()
  local network = self.context:network()
  return function()
    while true do
      local row = self.input.next()
      if not row then
        return nil
      end
      self.taken = self.taken + 1
      local number = self.taken
      local fault = row.fault or not (row.network or network) and "it names no network; -n NETWORK gives one"
      local has_passed = self:has_passed(number, row)
      local is_answered = has_passed or number <= self.progress.position or self.answers[number]
      if fault and not is_answered then
        local reasons = { fault }
        local record = { address = row.address, action = "unknown", reasons = reasons, error = "invalid_argument" }
        record.source = self.row_source
        self:take(number, row, record, fault)
        self:write_if_due()
      elseif not is_answered then
        self.sent = self.sent + 1
        self.rows[self.sent] = { number = number, row = row }
        return { address = row.address, network = row.network }
      end
    end
  end
end

function Run:screen(client)
  local request = screening.request(self.context, self:source())
  request.ordered = false
  request.stop_after_failures = self.context.options.stop_after_failures
  for decision in client:screen_all(request) do
    local entry = self.rows[decision.index]
    self.rows[decision.index] = nil
    local problem = decision.reasons[1] and decision.reasons[1].message:gsub("^riskscreen: %S+ ", "")
    self:take(entry.number, entry.row, screening.record(decision, self.row_source), problem)
    self:write_if_due()
  end
end

-- Takes failures at the end of the output back: the run stops, and a failed call is made again when it is resumed.
function Run:take_back_failures()
  local before = self.before_failures
  if self.state and before then
    self.progress = before
    status.ensure_written(system.truncate(self.out, before.offset))
    self:record {}
  end
end

-- Draws the progress, and writes the output also while no answer comes.
function Run:tick()
  riskscreen.defer(function()
    while not self.closed do
      if self.terminal then
        self:draw()
      end
      riskscreen.sleep(DRAW_EVERY)
      if not self.closed and self.waiting > 0 and not self.failure then
        local ok, failure = pcall(self.write_if_due, self)
        self.failure = not ok and failure or nil
      end
    end
  end)
end

function Run:close()
  self.closed = true
  self:clear()
  self.input.close()
  if self.state then
    self.state:close()
    self.out:close()
  end
  if self.copied then
    self.copied:close()
    self.passed:close()
  end
end

function Run:summary()
  local progress, parts = self.progress, {}
  local rows = progress_line.grouped(progress.position)
  parts[1] = ("%s rows: %s"):format(rows, progress_line.counts(progress.counts))
  if progress.invalid > 0 then
    parts[#parts + 1] = ("%s invalid"):format(progress_line.grouped(progress.invalid))
  end
  if progress.failed > 0 then
    local remedy = self.state and ": the same command with --retry-failed asks again" or ""
    parts[#parts + 1] = ("%s failed%s"):format(progress_line.grouped(progress.failed), remedy)
  end
  return (self.path and self.path .. ": " or "") .. table.concat(parts, "; ")
end

function Run:exit_status()
  local worst = "allow"
  for action, count in pairs(self.progress.counts) do
    worst = count > 0 and status.worst(worst, action) or worst
  end
  return self.progress.invalid > 0 and status.invalid_rows or status[worst]
end

-- Puts the complete output of a run with --retry-failed in the place of the earlier one. Also after a crash.
local function replace_earlier(path, progress)
  if progress.earlier and progress.finished and configuration.exists(path .. UNFINISHED) then
    status.ensure_written(os.rename(path .. UNFINISHED, path))
    local directory = io.open(path:match "^.*/" or ".", "rb")
    if directory then
      system.sync(directory)
      directory:close()
    end
  end
end

-- The whole run. A failure of the service that goes on, and every other end, leaves a state that can be resumed.
function Run:go(client)
  self.started, self.recorded = runtime.now(), runtime.now()
  self:tick()
  local ok, failure = pcall(self.screen, self, client)
  if ok then
    self:write_all()
    self.progress.finished = true
    self:record {}
    replace_earlier(self.path, self.progress)
  elseif type(failure) == "table" and failure.failures then
    self:write_all()
    self:take_back_failures()
  end
  self:close()
  if self.shown > MOST_SHOWN then
    self.context:warn(
      ("and %d more invalid rows: their column 'error' is invalid_argument"):format(self.shown - MOST_SHOWN)
    )
  end
  if ok then
    self.context:tell(self:summary())
    return self:exit_status()
  end
  if self.state then
    self.context:warn(
      ("stopped after %s rows; the same command with --resume goes on"):format(
        progress_line.grouped(self.state.progress.position)
      )
    )
  end
  error(failure, 0)
end

-- The path of the output: beside the input, or nil for stdout.
local function output_path(options, format)
  if options.output then
    return options.output ~= "-" and options.output or nil
  elseif options.file == "-" then
    return nil
  end
  local base = options.file:gsub("%.gz$", ""):gsub("%.[%w]+$", "")
  return base .. ".results." .. format
end

-- The file to which a run goes on to write. With --retry-failed it begins again if the run is complete.
local function place_of(run, path)
  local progress, retries = run.state.progress, run.context.options.retry_failed
  replace_earlier(path, progress)
  if retries and not progress.finished and not progress.earlier then
    status.misuse "--retry-failed: the run is not complete; --resume goes on with it"
  end
  local begins = retries and progress.finished and progress.failed > 0
  if not begins and (progress.finished or not progress.earlier) then
    return path
  end
  local file = io.open(path, "rb")
  local size = file and file:seek "end"
  if file then
    file:close()
  end
  if size ~= (begins and progress.offset or progress.earlier) then
    status.misuse(("--retry-failed: %s was changed since its run. --force starts again"):format(path))
  end
  if begins then
    run.state:begin_again()
  end
  run.copied = earlier_results.open(path, run.format, run.columns)
  run.passed = earlier_results.open(path, run.format, run.columns)
  return path .. UNFINISHED
end

-- Opens the state and the output. The state's lock comes first: another run may be writing the output.
local function open_output(run, path, identity)
  local options = run.context.options
  local state_path, resumes = path .. ".state", options.resume or options.retry_failed
  if not resumes and not options.force and (configuration.exists(path) or configuration.exists(state_path)) then
    status.misuse(
      ("%s exists: --resume goes on with its run, --force starts again, -o names another file"):format(path)
    )
  elseif resumes and not configuration.exists(state_path) then
    status.misuse(("there is no run to resume: %s is missing"):format(state_path))
  end
  local state = states.open(state_path)
  run.state = state
  if resumes and state:has_begun() then
    local began = state:identity()
    local difference = identities.difference(began, identity)
    if difference then
      status.misuse(
        ("--resume: this is another run: %s. Give the same arguments, or --force to start again"):format(difference)
      )
    end
    run:set_row_source(began.source)
    local place = place_of(run, path)
    run.out = io.open(place, state.progress.offset > 0 and "r+b" or "w+b")
    local size = run.out and run.out:seek "end"
    if not size or size < state.progress.offset then
      local message = "--resume: %s is shorter than the run has recorded; it was changed. --force starts again"
      status.misuse(message:format(path))
    end
    assert(system.truncate(run.out, state.progress.offset))
    run.out:seek "end"
  else
    os.remove(path .. UNFINISHED)
    local problem
    run.out, problem = io.open(path, "w+b")
    if not run.out then
      status.misuse("the output cannot be written: " .. problem)
    end
    state:clear()
    state:begin(identity)
  end
  if state.progress.offset == 0 then -- a run that was ended before this has no header
    local header = run:header()
    run.out:write(header)
    assert(system.sync(run.out))
    state.progress.offset = #header
    state:record(state.progress, {})
  end
  run.progress, run.answers = state.progress, state.answers
  for _ in pairs(state.answers) do
    run.waiting = run.waiting + 1
  end
end

-- The rate as a setting of the client, and no more rows at a time than it can answer before their timeouts.
local function limit_rate(context)
  local options, values = context.options, context.configuration.values
  if options.rate then
    values["rate_limit.rate"] = { value = options.rate, text = tostring(options.rate), source = "--rate" }
  end
  local rate = context:setting "rate_limit.rate"
  if rate then
    local timeout = options.timeout or context:setting "timeout" or DEFAULT_TIMEOUT
    options.concurrency = math.max(1, math.min(options.concurrency, math.floor(rate * timeout / 4)))
  end
end

local function new_run(context)
  local options, world = context.options, context.world
  local input = inputs.open(options.file, options, world.input)
  if not input.has_network and not context:network() and input.has_rows then
    status.misuse "the file has no column 'network': give -n NETWORK, or name the column with --network-column"
  end
  return setmetatable({
    context = context,
    input = input,
    format = context.format == "jsonl" and "jsonl" or "csv",
    keep = options.keep or {},
    columns = columns_for(options.keep),
    rows = {},
    answers = {},
    taken = 0,
    sent = 0,
    waiting = 0,
    shown = 0,
    terminal = not context.quiet and world.columns(world.err) or nil,
  }, Run)
end

---Screens a file.
---@param context riskscreen.cli.Context of the verb `screen`
---@return integer status
function M.run(context)
  if context.format == "json" then
    status.misuse "--json has no place for rows as they come: use --jsonl or --csv with --file"
  end
  local run = new_run(context)
  limit_rate(context)
  local client, source = context:client { concurrency = math.max(DEFAULT_REQUESTS, context.options.concurrency) }
  run:set_row_source(source)
  local path = output_path(context.options, run.format)
  run.path = path
  if not path and (context.options.resume or context.options.retry_failed) then
    status.misuse((context.options.resume and "--resume" or "--retry-failed") .. " needs a file of results: -o FILE")
  elseif path then
    open_output(run, path, identities.of(context, run.input, run.format, source))
  else
    run.out = context:stream()
    run.progress = states.new_progress()
    run.out:write(run:header())
  end
  if run.progress.finished then
    run:close()
    context:warn("the run is complete: " .. run:summary())
    return run:exit_status()
  end
  run.first, run.first_share = run.progress.position + run.waiting, 0
  return run:go(client)
end

---Reads the whole file and says what a run would do, without a call.
---@param context riskscreen.cli.Context
---@return integer status
function M.dry_run(context)
  local run = new_run(context)
  local network, policy = context:network(), context:policy() or policies.new()
  local level = context.options.address_check
  local wanted = lookups.wanted(policy, context.options.include)
  local figures = { rows = 0, addresses = 0, invalid = 0, calls = 0 }
  for row in run.input.next do
    figures.rows = figures.rows + 1
    local its_network = row.network or network
    local valid, problem = nil, row.fault
    if not problem then
      valid, problem = addresses.validate(row.address, its_network, level)
    end
    if valid then
      figures.addresses = figures.addresses + 1
      for _, lookup in ipairs(wanted) do
        figures.calls = figures.calls + (lookups.applies(lookup, its_network) and 1 or 0)
      end
    else
      figures.invalid = figures.invalid + 1
      run:report_invalid { line = row.line, invalid = problem }
    end
  end
  run.input.close()
  local rate = context.options.rate or context:setting "rate_limit.rate"
  local cost = context.options.cost
  figures.credits = cost and figures.calls * cost or nil
  figures.seconds = rate and figures.calls / rate or nil
  if context.format ~= "table" then
    context:write_record({ "rows", "addresses", "invalid", "calls", "credits", "seconds" }, figures)
  elseif not context.quiet then
    local grouped = progress_line.grouped
    context.world.out:write(
      ("rows       %s\n"):format(grouped(figures.rows)),
      ("addresses  %s\n"):format(grouped(figures.addresses)),
      ("invalid    %s\n"):format(grouped(figures.invalid)),
      ("calls      %s at most: a repeated address is asked for once\n"):format(grouped(figures.calls)),
      ("credits    %s\n"):format(
        cost and ("%g"):format(figures.credits)
          or "unknown: the service publishes no prices; --cost N is the price of a call"
      ),
      ("time       %s\n"):format(
        rate and progress_line.duration(figures.seconds) .. " at " .. ("%g"):format(rate) .. " calls a second"
          or "unknown without --rate"
      )
    )
  end
  return figures.invalid > 0 and status.invalid_rows or status.done
end

return M
