-- The file of results of a run. It decides which file that is, whether the run may write it, and where the run goes on.
-- The answers are kept in state.lua. With --retry-failed the results of the complete run are read again, row by row.

local calls = require "riskscreen.call"
local core = require "riskscreen.core"
local decision_record = require "riskscreen.cli.decision_record"
local files = require "riskscreen.util.files"
local inputs = require "riskscreen.cli.input"
local json = require "riskscreen.json"
local outputs = require "riskscreen.cli.output"
local results = require "riskscreen.cli.results"
local states = require "riskscreen.cli.run.state"
local status = require "riskscreen.cli.status"
local system = require "riskscreen.system"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local STATE = ".state"

local actions = tables.set { "allow", "review", "block", "unknown" }

-- The identity covers policy, include, address_check and service; they stand here for a message that names the cause.
local names =
  text.words "input format network policy include address_check service columns meta content identity lists journal"
local LATER = { content = true, identity = true, lists = true, journal = true } -- one that had none may go on with one

local function lists_of(context)
  local given = {}
  for _, name in ipairs { "deny", "allow", "allow_without_call" } do
    local value = context:setting("lists." .. name)
    given[#given + 1] = value and name .. " " .. outputs.json(value) or nil
  end
  return given[1] and table.concat(given, ", ")
end

local M = {}

---The columns of the output: line and address first, the kept columns of the input last. A column of the input that is
---called `action` must not take the place of the decision.
---@param keep? string[]
---@param source? "sandbox"
---@param meta? table<string, string>
---@return riskscreen.cli.Column[]
function M.columns(keep, source, meta)
  local columns = tables.concat({ { name = "line" } }, decision_record.columns(source, meta), { { name = "time" } })
  return decision_record.with(columns, "--keep", outputs.columns.named(keep or {}))
end

---Puts the complete output of a run with --retry-failed in the place of the earlier one. Also after a crash.
---@param path string
---@param progress riskscreen.cli.Progress
function M.replace_earlier(path, progress)
  if progress.earlier and progress.finished and files.exists(files.unfinished(path)) then
    status.ensure_written(files.rename(files.unfinished(path), path))
  end
end

---The file that a run writes; its state stands beside it.
---@param context riskscreen.cli.Context
---@return string[]
function M.written(context)
  return { context.options.file and M.path(context.options, context.format == "jsonl" and "jsonl" or "csv") or nil }
end

---The path of the output, behind links: beside the input, or nil for stdout.
---@param options table of the verb
---@param format "csv"|"jsonl"
---@return string|nil
function M.path(options, format)
  if options.output and text.lower(options.output):find "%.xls%l?$" then
    local message = "-o %s: the results are CSV or JSON lines, and no workbook; name a file such as out.csv"
    status.misuse(message, text.show(options.output))
  end
  local is_stream = options.output == "-" or not options.output and inputs.is_stream(options.file)
  local base = options.file:gsub("%.gz$", ""):gsub("%.[%w]+$", "")
  return not is_stream and files.target(options.output or base .. ".results." .. format) or nil
end

---@class riskscreen.cli.EarlierRow: riskscreen.cli.Answer
---@field line integer of the input
---@field is_earlier true

---@class riskscreen.cli.Earlier: riskscreen.cli.Results
---@field row fun(number: integer): riskscreen.cli.EarlierRow|nil the row with a number, which must not be smaller than
---before; nil after the last row

local readers = {}

function readers.csv(file, columns)
  local next_row = file:rows()
  next_row() -- the header
  return function()
    local row, cells = next_row()
    if row then
      local record = {}
      for index, column in ipairs(columns) do
        record[column.name] = cells[index] ~= "" and cells[index] or nil
      end
      return row .. "\r\n", record
    end
  end
end

function readers.jsonl(file)
  local next_line = file:lines()
  return function()
    local line = next_line()
    return line and line .. "\n", line and json.decode(line)
  end
end

-- Opens the results of a complete run, for a run that asks again for the rows that failed.
local function open_earlier(path, format, columns)
  local file = results.open(path, "rb")
  local read, at, current = readers[format](file, columns), 0, nil
  function file.row(number)
    while at < number do
      local written, record = read()
      at = at + 1
      if written and not (type(record) == "table" and actions[record.action]) then
        status.misuse("%s was changed: row %d is none of a run. --force starts again", path, at)
      end
      local is_invalid = record and record.error == "invalid_argument"
      current = written
        and {
          text = written,
          line = tonumber(record.line),
          action = record.action,
          invalid = is_invalid or nil,
          failed = record.error ~= nil and not is_invalid or nil,
          is_earlier = true,
        }
    end
    return current
  end
  return file
end

-- Whether a file is what a run has recorded, up to its length then. Behind it, a killed run may have written more.
local function has_recorded(run, out, length, digest, is_complete)
  local header = length > 0 and run:header() or ""
  local found = out:part(0, #header) == header and out:digest_to(length)
  return found and (digest or found) == found and not (is_complete and out:part(length, 1) ~= "")
end

-- The file to which a run goes on to write. With --retry-failed it begins again if the run is complete.
local function place_of(run, path)
  local progress, retries = run.state.progress, run.context.options.retry_failed
  M.replace_earlier(path, progress)
  if retries and not progress.finished and not progress.earlier then
    status.misuse "--retry-failed: the run is not complete; --resume goes on with it"
  end
  local begins = retries and progress.finished and progress.failed > 0
  if not begins and (progress.finished or not progress.earlier) then
    return path
  end
  local length = begins and progress.offset or progress.earlier
  local file = files.exists(path) and results.open(path, "rb")
  local is_same = file and has_recorded(run, file, length, begins and progress.digest or progress.earlier_digest, true)
  local _ = file and file:close()
  if not is_same then
    status.misuse("--retry-failed: %s was changed or removed since its run. --force starts again", path)
  end
  if begins then
    run.state:begin_again()
  end
  run.copied = open_earlier(path, run.format, run.columns)
  run.passed = open_earlier(path, run.format, run.columns)
  return files.unfinished(path)
end

-- Opens the output where the run goes on. That of a run with --retry-failed has the permissions of the earlier one.
local function open_place(place, path, offset)
  if place ~= path and offset == 0 then
    os.remove(place)
    status.ensure_written(system.make_like(place, path))
  end
  return files.exists(place) and results.open(place, "r+b") or nil
end

-- The facts that must be the same when a run is resumed. Of local lists only the names count: they are asked for every
-- row, and may change during a run.
local function identity_of(run, client)
  local context, input, source = run.context, run.input, run.row_source
  local options = context.options
  local policy = context:setting "policy"
  local policy_text = policy and not files.is_special(policy) and files.read(policy) or nil
  local encoding = options.encoding ~= "utf-8" and options.encoding or nil
  local file = input.file
  local size = file.size and ("%d bytes, "):format(file.size) or ""
  -- More of a pipe may come at once or not. Its rows are compared one by one.
  local beginning = file.is_whole and file.beginning or file.beginning:sub(1, 4)
  return {
    input = size .. "beginning with the digest " .. text.hex(core.sha256(beginning)):sub(1, 16),
    format = run.format,
    network = context:network(),
    policy = policy_text and policy .. " " .. text.hex(core.sha256(policy_text)):sub(1, 16) or nil,
    include = options.include and table.concat(options.include, ",") or nil,
    address_check = options.address_check ~= nil and tostring(options.address_check) or nil,
    service = source and "the sandbox" or context:setting "base_url",
    source = source, -- not compared: 0.1.0 has no such column
    identity = calls.identity.decision(calls.state_of(client), client.policy, options),
    content = file.is_whole and file.digest() or nil, -- the rows of a pipe are compared as they come
    meta = options.meta and outputs.json(options.meta) or nil,
    lists = lists_of(context),
    journal = context:setting "journal",
    columns = table.concat({
      options.address_column or "",
      options.network_column or "",
      table.concat(options.keep or {}, ","),
      options.delimiter or encoding and "", -- a run without these is one of an earlier version
      encoding,
    }, ";"),
  }
end

-- The first difference between two runs as a sentence, or nil. The second result is true if it may be the account.
local function difference_of(before, now)
  for _, name in ipairs(names) do
    if before[name] ~= now[name] and not (LATER[name] and before[name] == nil) then
      if name == "identity" then
        return "the account, or another setting that decisions depend on, is another one", true
      end
      local was, is = text.show(before[name] or "none"), text.show(now[name] or "none")
      return ("%s was %s and is %s"):format(name, was, is)
    end
  end
end

---Opens the state and the output. The state's lock comes first: another run may be writing the output.
---@param run riskscreen.cli.Run
---@param path string
---@param client riskscreen.Client
function M.open(run, path, client)
  local options, identity = run.context.options, identity_of(run, client)
  local state_path, resumes = path .. STATE, options.resume or options.retry_failed
  if resumes and options.force then
    status.misuse "--force starts again, --resume and --retry-failed go on: give one of them"
  end
  local has_results, has_state = files.exists(path), files.exists(state_path)
  if not resumes and not options.force and (has_results or has_state) then
    local there = has_results and path or state_path
    local resume = has_results and has_state and "--resume goes on with its run, " or ""
    status.misuse("%s exists: %s--force starts again, -o names another file", there, resume)
  elseif resumes and not has_state then
    status.misuse("there is no run to resume: %s is missing", state_path)
  end
  local state = states.open(state_path)
  run.state = state
  if resumes and state.progress then
    local began = state:identity()
    local difference, is_account = difference_of(began, identity)
    local has_answers = state.progress.position > 0 or state.progress.earlier or next(state.answers)
    if difference and (has_answers or not is_account) then
      status.misuse("--resume: this is another run: %s. Give the same arguments, or --force to start again", difference)
    end
    local source = run.row_source
    run:set_row_source(began.source)
    run.out = open_place(place_of(run, path), path, state.progress.offset)
    local progress = state.progress
    if not (run.out and has_recorded(run, run.out, progress.offset, progress.digest, progress.finished)) then
      local message = "--resume: %s is not what the run has recorded; it was changed. --force starts again"
      status.misuse(message, path)
    elseif difference then -- a run without an answer, such as one with a wrong key, goes on with another account
      run:set_row_source(source)
      state:begin(identity)
    end
    run.out:cut(state.progress.offset)
  else
    os.remove(files.unfinished(path))
    run.out = results.open(path, "w+b")
    state:begin(identity)
  end
  if state.progress.offset == 0 then -- a run that was ended before this has no header
    run.out:write(run:header())
    run.out:sync()
    state.progress.offset, state.progress.digest = run.out.position, run.out:digest()
    state:record(state.progress)
  end
  run.progress, run.answers = state.progress, state.answers
  run.chains = { [run.progress.position] = run.progress.chain, [run.progress.rows or 0] = run.progress.last_chain }
  run.last_known = math.max(run.progress.position, run.progress.rows or 0)
  run.input.invalid_count = run.progress.invalid -- --max-invalid holds for the whole run
  for number, answer in pairs(state.answers) do
    run.waiting = run.waiting + 1
    run.input.invalid_count = run.input.invalid_count + (answer.invalid and 1 or 0)
    run.chains[number], run.last_known = answer.chain, math.max(run.last_known, number)
  end
end

return M
