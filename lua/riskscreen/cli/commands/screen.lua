-- riskscreen screen: decides about addresses.

local build = require "riskscreen.options.build"
local option_of = require "riskscreen.cli.option"
local run_options = require "riskscreen.options"
local runs = require "riskscreen.cli.run"
local screening = require "riskscreen.cli.screening"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"

local options = tables.concat({
  {
    name = "file",
    type = "string",
    short = "f",
    argument = "FILE",
    doc = "Screen the rows of a CSV file; '-' is stdin.",
  },
  {
    name = "output",
    type = "string",
    short = "o",
    argument = "FILE",
    doc = "Where the results of --file go; '-' is stdout. By default FILE.results.csv.",
  },
  { name = "resume", type = "boolean", doc = "Go on with a run that was interrupted." },
  { name = "force", type = "boolean", doc = "Start again, over the results of an earlier run." },
  {
    name = "dry_run",
    type = "boolean",
    doc = "Say what --file would do: addresses, invalid rows, calls, credits, time.",
  },
  {
    name = "address_column",
    type = "string",
    argument = "NAME",
    doc = "Column of the addresses; by default address, wallet or addr.",
  },
  {
    name = "network_column",
    type = "string",
    argument = "NAME",
    doc = "Column of the networks; by default network, chain or blockchain.",
  },
  { name = "keep", type = "table", list = true, argument = "NAMES", doc = "Columns of FILE to copy to the results." },
  build.number("rate", "calls a second", nil, 0.001, 1000000, "Calls a second on average."),
  build.number("cost", "credits", nil, 0, 1000000, "Credits that a call costs, for --dry-run."),
  option_of.pick(run_options.map, { "stop_after_failures" })[1],
  option_of.adapted(screening.concurrency, { doc = "Addresses at a time." }),
}, screening.options)

-- Options that mean nothing without --file.
local of_file = {
  "output",
  "resume",
  "force",
  "dry_run",
  "address_column",
  "network_column",
  "keep",
  "rate",
  "cost",
  "stop_after_failures",
}

local function screen_addresses(context, addresses)
  local client = context:client()
  local output = context:output(screening.columns)
  local worst
  for decision in client:screen_all(screening.request(context, addresses)) do
    output:add(screening.record(decision))
    worst = status.worst(worst, decision.action)
  end
  output:finish()
  return status[worst]
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
  for _, name in ipairs(of_file) do
    if options_given[name] then
      status.misuse(option_of.flag(name) .. " needs --file")
    end
  end
  return screen_addresses(context, given)
end

return {
  name = "screen",
  summary = "Decide whether addresses may pass: allow, review, block or unknown.",
  description = "With --file every row becomes a row of the results, in the same order. The run keeps a state beside "
    .. "the results. After Ctrl-C, a crash or a power cut the same command with --resume goes on, and asks for no "
    .. "address again that was answered.",
  arguments = { { name = "address", count = "*", doc = "Addresses of the network that -n names." } },
  options = options,
  examples = {
    {
      line = "screen 0x16e998a4a64a384aa74dd757e5a6858ab909262e -n eth",
      what = "One address; the exit status is its verdict",
    },
    { line = "screen -q ADDRESS -n btc && echo pass", what = "In a script" },
    {
      line = "screen --file addresses.csv",
      what = "A file; the results are in addresses.results.csv",
    },
    { line = "screen --file addresses.csv --resume", what = "Go on after an interruption" },
    { line = "screen --file addresses.csv.gz --dry-run --rate 50", what = "What a run would cost" },
  },
  statuses = tables.concat(status.of_decisions, {
    { status = status.invalid_rows, what = "a file was screened to its end, and some of its rows are invalid" },
  }),
  run = run,
}
