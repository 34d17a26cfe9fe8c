-- riskscreen screen: decides about addresses.

local build = require "riskscreen.options.build"
local decision_record = require "riskscreen.cli.decision_record"
local files = require "riskscreen.util.files"
local inputs = require "riskscreen.cli.input"
local option_of = require "riskscreen.cli.option"
local run_options = require "riskscreen.options"
local runs = require "riskscreen.cli.run"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"

local ADDRESS = "0x16e998a4a64a384aa74dd757e5a6858ab909262e" -- for the examples

-- Options that mean nothing without --file.
local of_file = tables.concat(
  {
    option_of.text("output", "FILE", "Where the results go; '-' is stdout. By default FILE.results.csv.", "o"),
    build.flag("resume", nil, "Go on with a run that was interrupted."),
    build.flag("retry_failed", nil, "Ask again for the rows of a complete run that failed, and replace their answers."),
    build.flag("force", nil, "Start again, over the results of an earlier run."),
    build.flag("dry_run", nil, "Say what --file would do: addresses, invalid rows, calls, credits, time."),
  },
  inputs.options,
  {
    inputs.keep,
    build.number("rate", "calls a second", nil, 0.001, 1000000, "Calls a second on average."),
    build.number("cost", "credits", nil, 0, 1000000, "Credits that a call costs, for --dry-run."),
  },
  option_of.pick(run_options.map, { "stop_after_failures" })
)

local always = {
  option_of.text("file", "FILE", "Screen the rows of a file, CSV or JSON lines; '-' is stdin.", "f"),
  status.fail_on,
  decision_record.concurrency,
  decision_record.meta,
}

local function screen_addresses(context, addresses)
  context:network(true)
  local client, source = context:client()
  local meta = context.options.meta
  local output = context:output(decision_record.columns(source, meta))
  local worst, run = status.allow, client:screen_all(decision_record.request(context, addresses))
  context:catch_signals(function()
    run:finish()
  end)
  for decision in run do
    context:check_time()
    local record = decision_record.record(decision, client, source, meta)
    output:add(record)
    worst = status.worse(worst, status.of_decision(record.action, record.error))
  end
  output:finish()
  return context:ended(worst)
end

local function run(context)
  local given, options_given = context.arguments.address, context.options
  if options_given.file and given[1] then
    status.misuse "give addresses or --file, not both"
  elseif options_given.file then
    return options_given.dry_run and runs.dry_run(context) or runs.run(context)
  elseif not given[1] then
    status.misuse "there is nothing to screen: give addresses, or --file FILE"
  end
  for _, option in ipairs(of_file) do
    if options_given[option.name] and options_given[option.name] ~= option.default then
      status.misuse(option_of.flag(option.name) .. " needs --file")
    end
  end
  for _, argument in ipairs(given) do
    if files.exists(argument) then -- it would be taken for an address, and be unknown
      status.misuse("%s is a file: screen its rows with --file %s", argument, argument)
    end
  end
  return screen_addresses(context, given)
end

return {
  name = "screen",
  summary = "Decide whether addresses may pass: allow, review, block or unknown.",
  description = "With --file every row becomes a row of the results, in the same order. The run keeps a state beside "
    .. "the results. After Ctrl-C, a crash or a power cut the same command with --resume goes on, and asks for no "
    .. "address again whose answer was recorded.",
  arguments = { { name = "address", count = "*", doc = "Addresses of the network that -n names." } },
  options = tables.concat(always, of_file, decision_record.options),
  examples = {
    { line = "screen " .. ADDRESS .. " -n eth", what = "The exit status is the verdict" },
    { line = "screen -q " .. ADDRESS .. " -n eth --fail-on block && echo pass", what = "Review and unknown pass, too" },
    { line = "screen --file addresses.csv", what = "A file; the results are in addresses.results.csv" },
    { line = "screen --file addresses.csv --resume", what = "Go on after an interruption" },
    { line = "screen --file addresses.csv.gz --dry-run --rate 50", what = "What a run would cost" },
  },
  statuses = tables.merge(status.of_decisions, { invalid_rows = "rows are invalid, and the others are allow" }),
  verdict = "status",
  written = runs.written,
  run = run,
}
