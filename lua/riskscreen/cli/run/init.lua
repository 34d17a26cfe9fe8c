-- `riskscreen screen --file`: screens every row of a file into a file of results, and survives any end of the process.
-- The rows come from riskscreen.rows, and the file of results from output.lua. The answers are kept in state.lua, and
-- ../progress.lua shows the run. With --retry-failed the rows of a complete run go to a new file. Failed rows get new
-- answers there.

local addresses = require "riskscreen.address"
local core = require "riskscreen.core"
local decision_record = require "riskscreen.cli.decision_record"
local errors = require "riskscreen.errors"
local inputs = require "riskscreen.cli.input"
local lookups = require "riskscreen.policy.lookups"
local output = require "riskscreen.cli.run.output"
local outputs = require "riskscreen.cli.output"
local policies = require "riskscreen.policy"
local progress_line = require "riskscreen.cli.progress"
local results = require "riskscreen.cli.results"
local riskscreen = require "riskscreen"
local runtime = require "riskscreen.runtime"
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
local NO_NETWORK = "it names no network; -n NETWORK gives one"

---@class riskscreen.cli.Run
---@field context riskscreen.cli.Context
---@field input riskscreen.Rows
---@field out riskscreen.cli.Results
---@field path? string of the output; none where that is stdout
---@field state riskscreen.cli.State
---@field copied? riskscreen.cli.Earlier the results of a complete run, as far as they are copied
---@field passed? riskscreen.cli.Earlier the same, as far as the input is read
---@field chain string of the digests of the rows that were read from a pipe
---@field chains table<integer, string> by number of the row: what an earlier part of the run has kept
---@field last_known integer the last row that an earlier part of the run has read
---@field columns riskscreen.cli.Column[]
---@field row_source? "sandbox" where a column says that the sandbox answers
local Run = {}
Run.__index = Run

local M = { written = output.written }

function Run:set_row_source(source)
  self.row_source, self.columns = source, output.columns(self.keep, source, self.context.options.meta)
end

function Run:row_text(record)
  if self.format == "jsonl" then
    return outputs.json(record, tables.pluck(self.columns, "name")) .. "\n"
  end
  return outputs.csv(outputs.columns.cells(self.columns, record), #self.columns)
end

function Run:header()
  return self.format == "jsonl" and "" or outputs.csv_header(self.columns)
end

-- Takes the answer about a row.
function Run:take(number, row, record, problem, chain)
  local own = { line = row.line, time = os.date "!%Y-%m-%dT%H:%M:%SZ" }
  record = tables.merge(tables.merge(record, own), self.input:fields_of(row, self.keep))
  local is_invalid = record.error == "invalid_argument"
  if is_invalid then
    self.input:count_invalid(row.line, problem)
  end
  local answer = {
    text = self:row_text(record),
    action = record.action,
    invalid = is_invalid and problem or nil,
    line = row.line,
    failed = record.error ~= nil and not is_invalid or nil,
    chain = chain,
  }
  self.waiting = self.waiting + 1
  self.state:take(number, answer)
  self:save_soon()
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

function Run:report_invalid(line, problem)
  self.shown = self.shown + 1
  if self.shown <= MOST_SHOWN then
    self.context:warn(("line %d: %s"):format(line, problem))
  elseif self.shown == MOST_SHOWN + 1 then
    self.context:warn "more invalid rows follow, which are not named here"
  end
end

-- The answer to the next row of the output: that of the earlier run unless it failed, or a new one.
function Run:next_answer()
  local number = self.progress.position + 1
  local earlier = self.copied and self.copied.row(number)
  return earlier and not earlier.failed and earlier or self.answers[number]
end

-- Writes the answer to the next row.
function Run:write(answer)
  local progress, is_new = self.progress, not answer.is_earlier
  if answer.failed and not self.before_failures then
    self.before_failures = tables.merge(progress, { counts = tables.copy(progress.counts) })
  elseif is_new and not (answer.failed or answer.invalid) then
    self.before_failures = nil
  end
  self.out:write(answer.text)
  progress.position, progress.chain, progress.offset = progress.position + 1, answer.chain, self.out.position
  progress.counts[answer.action] = (progress.counts[answer.action] or 0) + 1
  progress.invalid = progress.invalid + (answer.invalid and 1 or 0)
  progress.failed = progress.failed + (answer.failed and 1 or 0)
  self.waiting = self.waiting - (is_new and 1 or 0)
  if is_new and answer.invalid then
    self:report_invalid(answer.line, answer.invalid)
  end
end

-- Writes the answers that are next in the order of the input, and records them once they are on the disk. Returns
-- whether there are more.
function Run:write_ready()
  self.state:save()
  local count, answer = 0, self:next_answer()
  while answer and count < MOST_AT_ONCE do
    self:write(answer)
    count, answer = count + 1, self:next_answer()
  end
  self:record()
  return answer ~= nil
end

function Run:write_all()
  repeat
    local has_more = self:write_ready()
  until not has_more
end

function Run:record()
  self.out:sync()
  self.progress.digest = self.out:digest()
  self.state:record(self.progress)
  self.recorded = runtime.now()
end

function Run:write_if_due()
  if self.failure then
    error(self.failure, 0)
  elseif self.waiting >= MOST_WAITING or runtime.now() - self.recorded >= RECORD_EVERY then
    self:write_ready()
  end
end

function Run:draw()
  local rows, counts = self.progress.position + self.waiting, self.progress.counts
  local elapsed = runtime.now() - self.started
  local rate = elapsed > 0 and (rows - self.first) / elapsed or 0
  local file = self.input.file
  local share = file.size and file.size > 0 and math.min(1, file.read_bytes / file.size)
  local left = share and share > 0 and elapsed > 1 and elapsed * (1 - share) / share or nil
  local now = { share = share or nil, rows = rows, rate = rate, counts = counts, left = left }
  self.line.draw(progress_line.of_run(now, self.line.width))
end

-- Whether the earlier run has the answer to a row.
function Run:has_passed(number, row)
  if not self.passed then
    return false
  end
  local earlier = self.passed.row(number)
  if not earlier or earlier.line ~= row.line then
    status.misuse("%s was changed: it has no row for line %d. --force starts again", self.path, row.line)
  elseif number % MOST_AT_ONCE == 0 then
    self:write_ready()
    riskscreen.sleep(0)
  end
  return not earlier.failed
end

-- Chains the digests of a pipe's rows up to this one. A run that goes on must find the rows that it had.
function Run:check_pipe(row)
  if self.input.file.is_whole then
    return -- the file's digest is in the identity of the run
  end
  if row then
    local kept = self.input:fields_of(row, self.keep)
    local content = outputs.json { before = self.chain, address = row.address, network = row.network, kept = kept }
    self.chain = text.hex(core.sha256(content)):sub(1, 16)
  end
  local expected, is_short = self.chains[self.taken], not row and self.taken < self.last_known
  if is_short or expected and expected ~= self.chain or self.progress.finished and self.taken > self.last_known then
    status.misuse("up to row %d the input is not that of the run. --force starts again", self.taken)
  end
end

-- The address and the network of the next row that has no answer yet.
function Run:source()
  return function()
    while not system.ending() do
      local row, err = self.input:next()
      if err and system.ending() then
        break -- the signal has ended the wait for a pipe
      end
      errors.ensure(row, err)
      self.taken = self.taken + (row and 1 or 0)
      self:check_pipe(row)
      if not row then
        self.is_read = true
        return nil
      end
      local number = self.taken
      local has_passed = self:has_passed(number, row)
      if not (has_passed or number <= self.progress.position or self.answers[number]) then
        self.sent = self.sent + 1
        self.rows[self.sent] = { number = number, row = row, chain = self.chain }
        return { address = row.address, network = row.network }
      end
    end
    self.is_ended_early = true
  end
end

function Run:screen(client)
  local request = decision_record.request(self.context, self:source())
  request.ordered = false
  request.stop_after_failures = self.context.options.stop_after_failures
  self.screening = client:screen_all(request)
  for decision in self.screening do
    if decision.action == "unknown" and errors.ends_run(decision.error) then
      error(decision.error, 0)
    end
    local entry = self.rows[decision.index]
    self.rows[decision.index] = nil
    local record = decision_record.record(decision, client, self.row_source, self.context.options.meta)
    if not (entry.row.network or request.network) then
      record.reasons = { NO_NETWORK }
    end
    local problem = record.reasons[1] and record.reasons[1]:gsub("^riskscreen: %S+ ", "")
    self:take(entry.number, entry.row, record, problem, entry.chain)
    self:write_if_due()
  end
end

-- Takes failures at the end of the output back. The run stops, and a failed call is made again when it is resumed.
function Run:take_back_failures()
  local before = self.before_failures
  if self.path and before then
    self.progress = before
    self.out:cut(before.offset)
    self:record()
  end
end

-- Draws the progress, and writes the output also while no answer comes.
function Run:tick()
  riskscreen.defer(function()
    while not self.closed do
      if self.line.width then
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
  for _, opened in pairs { self.input, self.state, self.path and self.out, self.copied, self.passed } do
    opened:close()
  end
end

function Run:summary()
  local progress, parts = self.progress, {}
  local rows = text.count(progress.position, "row", text.grouped(progress.position))
  parts[1] = ("%s: %s"):format(rows, progress_line.counts(progress.counts))
  if progress.invalid > 0 then
    parts[#parts + 1] = ("%s invalid"):format(text.grouped(progress.invalid))
  end
  if progress.failed > 0 then
    local remedy = self.path and ": the same command with --retry-failed asks again" or ""
    parts[#parts + 1] = ("%s failed%s"):format(text.grouped(progress.failed), remedy)
  end
  return (self.path and self.path .. ": " or "") .. table.concat(parts, "; ")
end

-- The worst verdict wins. Invalid rows are unknown in the results, and count apart here.
function Run:exit_status()
  local progress = self.progress
  local worst = progress.invalid > 0 and status.invalid_rows or status.allow
  for action, count in pairs(progress.counts) do
    if count > (action == "unknown" and progress.invalid or 0) then
      worst = status.worse(worst, status.of_decision(action, progress.failed > 0 and "server" or nil))
    end
  end
  return worst
end

-- Begins no further row, and none of those that were read ahead.
function Run:stop()
  if self.screening then
    local taken = self.screening:finish().taken
    self.is_ended_early = not self.is_read or self.screening:where().taken < taken
  end
end

-- The whole run. A failure of the service that goes on, and every other end, leaves a state that can be resumed. At a
-- signal the calls under way are finished, because they are paid, and the journal must have their decisions.
function Run:go(client)
  self.context:catch_signals(function()
    self:stop()
  end)
  self.started, self.recorded, self.first = runtime.now(), runtime.now(), self.progress.position + self.waiting
  self:tick()
  local ok, failure = pcall(self.screen, self, client)
  if ok and self.is_ended_early then
    ok, failure = pcall(status.fail, status.interrupted, "interrupted")
  end
  if ok then
    self:write_all()
    self.progress.finished, self.progress.chain = true, self.chain
    self:record()
    output.replace_earlier(self.path, self.progress)
  elseif errors.is(failure) or self.is_ended_early then
    self:write_all()
    self:take_back_failures()
  end
  self:close()
  if ok then
    self.context:tell(self:summary())
    return self:exit_status()
  end
  if self.path then
    -- Where the run was ended, answers of the state are not in the output yet.
    local position = self.state.progress.position + self.waiting
    local rows = text.count(position, "row", text.grouped(position))
    self.context:warn(("stopped after %s; the same command with --resume goes on"):format(rows))
  end
  error(failure, 0)
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
    if rate * timeout < 1 then
      local message = "a rate of %g has less than one request in the timeout of %gs: give a --timeout above %g"
      status.misuse(message, rate, timeout, 1 / rate)
    end
    options.concurrency = math.max(1, math.min(options.concurrency, math.floor(rate * timeout / 4)))
  end
end

local function new_run(context)
  local options = context.options
  local input = inputs.open(context, options.file)
  return setmetatable({
    context = context,
    input = input,
    format = context.format == "jsonl" and "jsonl" or "csv",
    keep = options.keep or {},
    columns = output.columns(options.keep, nil, options.meta),
    rows = {},
    answers = {},
    chain = "",
    chains = {},
    last_known = 0,
    taken = 0,
    sent = 0,
    waiting = 0,
    shown = 0,
    line = progress_line.line(context),
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
  local path = output.path(context.options, run.format)
  run.path = path
  if not path and (context.options.resume or context.options.retry_failed) then
    status.misuse((context.options.resume and "--resume" or "--retry-failed") .. " needs a file of results: -o FILE")
  elseif path then
    inputs.refuse_stream(path, "-o")
    local opened, failure = pcall(output.open, run, path, client)
    if not opened then
      run:close()
      error(failure, 0)
    end
  else
    run.out, run.state = results.stream(context:stream()), states.open()
    run.progress, run.answers = run.state.progress, run.state.answers
    run.out:write(run:header())
  end
  if run.progress.finished then
    local _ = not run.input.file.is_whole and run:source()()
    run:close()
    context:warn("the run is complete: " .. run:summary())
    return run:exit_status()
  end
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
  for row in run.input:each() do
    figures.rows = figures.rows + 1
    local its_network = row.network or network
    local valid, problem = addresses.validate(row.address, its_network, level)
    if valid then
      figures.addresses = figures.addresses + 1
      for _, lookup in ipairs(wanted) do
        figures.calls = figures.calls + (lookups.applies(lookup, its_network) and 1 or 0)
      end
    else
      figures.invalid = figures.invalid + 1
      run.input:count_invalid(row.line, problem)
      run:report_invalid(row.line, problem)
    end
  end
  run:close()
  local rate, cost = context.options.rate or context:setting "rate_limit.rate", context.options.cost
  figures.credits = cost and figures.calls * cost or nil
  figures.seconds = rate and figures.calls / rate or nil
  context:write_record({ "rows", "addresses", "invalid", "calls", "credits", "seconds" }, figures)
  if not cost then
    context:tell "credits need --cost, the price of a call"
  end
  if not rate then
    context:tell "seconds need --rate"
  end
  return figures.invalid > 0 and status.invalid_rows or status.done
end

return M
