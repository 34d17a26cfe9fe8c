-- riskscreen watch: screens a file of addresses again and again, and prints what has changed.

local build = require "riskscreen.options.build"
local configuration = require "riskscreen.cli.configuration"
local decision_record = require "riskscreen.cli.decision_record"
local files = require "riskscreen.util.files"
local inputs = require "riskscreen.cli.input"
local option_of = require "riskscreen.cli.option"
local outputs = require "riskscreen.cli.output"
local status = require "riskscreen.cli.status"
local store = require "riskscreen.store"
local tables = require "riskscreen.util.tables"
local watches = require "riskscreen.watch"

-- The shell reads what a command leaves unread: writing to a closed pipe would end this program by SIGPIPE. The status
-- is written to a file: Lua 5.1 and LuaJIT do not report how the program of a pipe has ended.
local DRAINED = "(%s\n) ; echo $? >'%s' ; cat >/dev/null"

-- Runs a shell command with a change as its standard input; it has taken the change if its status is 0.
local function to_command(command)
  return function(text)
    local path = os.tmpname()
    local pipe, problem = io.popen(DRAINED:format(command, path), "w")
    if not pipe then
      return nil, problem
    end
    pipe:write(text, "\n")
    pipe:close()
    local code = tonumber((files.read(path)))
    os.remove(path)
    return code == 0 or nil, ("the command failed (exit %s)"):format(tostring(code))
  end
end

local function secret_of(context)
  local path = context.options.webhook_secret_file
  local secret = path and configuration.read_secret(path) or context.world.getenv "RISKSCREEN_WATCH_SECRET"
  return secret or status.misuse "--webhook needs RISKSCREEN_WATCH_SECRET or --webhook-secret-file"
end

local EVERY = "The time from the beginning of a cycle to the next, such as 30m or 1d; screenings are spread over it. "
  .. "A number alone is seconds. Default: 6h."

local order = { "id", "time", "watch", "address", "network", "action", "before", "risks", "risks_before", "reasons" }

-- Writes a change to the standard output, and gives it to the command.
local function receiver(context)
  local command = context.options.command and to_command(context.options.command)
  local write_line = outputs.line_writer(context:stream())
  return function(change)
    local line, taken, problem = outputs.json(change, order), true, nil
    if command then
      taken, problem = command(line)
    end
    if taken then
      taken, problem = write_line(line)
    end
    return taken and true, problem
  end
end

local function state_of(options)
  return options.state or options.file and options.file .. ".watch.db"
end

-- The files that a watch writes: SQLite makes some beside the state.
local function written(context)
  local path = state_of(context.options)
  return path and { path, path .. "-journal", path .. "-wal", path .. "-shm" } or {}
end

local function run(context)
  local options = context.options
  if not options.test and not options.file then
    status.misuse "--file is required"
  elseif context.quiet and not (options.webhook or options.command) then
    status.misuse "-q would throw the changes away: give --webhook or --command, too"
  elseif options.test and not (options.webhook or options.command) then
    status.misuse "--test needs --webhook or --command"
  end
  local client = context:client()
  local request = tables.merge(option_of.values(watches.options, options), {
    source = options.file or "",
    network = context:network(),
    on_change = receiver(context),
    webhook = options.webhook and { url = options.webhook, secret = secret_of(context) } or nil,
    on_failure = function(message)
      context:warn("a change was not delivered and is kept: " .. message)
    end,
  })
  local function watch_in(kept)
    return status.made(watches.new, client, tables.merge(request, { store = kept }))
  end
  local trial = watch_in(store.memory()) -- a mistake must not leave a state behind
  if options.test then
    local taken, problem = trial:test()
    context:warn(taken and "the test was taken" or "the test was not taken: " .. problem)
    return taken and status.done or status.unknown
  end
  inputs.refuse_stream(options.file, "--file")
  inputs.refuse_stream(state_of(options), "--state")
  inputs.open(context, options.file, options.max_invalid):close()
  local kept = status.ensure(store.sqlite(state_of(options)))
  local watch = watch_in(kept)
  local function tell(summary)
    local figures = "%d screened, %d changed, %d without an answer, %d waiting"
    local goes_on = summary.finished and "" or "; the cycle goes on at the next run"
    context:warn(figures:format(summary.screened, summary.changed, summary.failed, summary.waiting) .. goes_on)
    return summary.finished and summary.waiting == 0 and summary.failed == 0 and status.done or status.unknown
  end
  local outcome, failure
  context:catch_signals(function()
    watch:stop()
  end)
  if options.every and not options.once then
    context:warn(("screening %s every %.15g s; Ctrl-C ends it"):format(options.file, options.every))
  end
  if options.once then
    outcome, failure = watch:once()
  else
    outcome, failure = watch:run(tell)
  end
  kept:close()
  status.ensure(outcome, failure)
  return context:ended(options.once and tell(outcome) or nil)
end

return {
  name = "watch",
  summary = "Screen a file of addresses again and again, and print what has changed, one JSON object a line.",
  description = "The state file keeps the last verdict of each address, the place in the cycle, and changes that no "
    .. "receiver has taken yet. The first verdict of an address is printed unless it is allow. A change may come "
    .. "twice, with the same id, where the program was killed meanwhile. The environment variable "
    .. "RISKSCREEN_WATCH_SECRET is the key of the webhook's signature.",
  options = tables.concat({
    option_of.text("file", "PATH", "File of rows: CSV with a column address, or JSON lines."),
    tables.merge(build.checked("every", "string", option_of.duration, EVERY), { argument = "TIME" }),
    build.flag("once", nil, "One cycle, as fast as --rate allows, for cron or a timer."),
    build.flag("test", nil, "Send one test change to --command and --webhook, and end."),
    decision_record.include,
    decision_record.meta,
    option_of.text("state", "PATH", "The state file; by default FILE.watch.db."),
    option_of.text("command", nil, "A shell command that gets each change as its standard input."),
    option_of.text("webhook", "URL", "Where each change is posted, signed."),
    option_of.text("webhook_secret_file", "PATH", "A file with the key of the signature."),
  }, option_of.pick(watches.options, { "rate", "daily_cap", "name" }), inputs.options),
  examples = {
    { line = "watch --file customers.csv -n eth --every 6h", what = "Until it is interrupted" },
    { line = "watch --test --webhook https://example.com/changes", what = "Try a receiver" },
    { line = "watch --file customers.csv -n eth --once --command 'mail -s risk ops@example.com'", what = "From cron" },
  },
  statuses = {
    done = "every address was screened, and every change, or the test, was taken",
    unknown = "--once: no answer, a change that waits, or the daily cap; a test was not taken",
  },
  verdict = "output",
  written = written,
  run = run,
}
