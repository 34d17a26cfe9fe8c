-- riskscreen screen: decides about addresses.

local option_of = require "riskscreen.cli.option"
local screening = require "riskscreen.cli.screening"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"

local options = tables.concat(screening.options, {
  option_of.adapted(screening.concurrency, { doc = "Addresses at a time." }),
})

local function run(context)
  local addresses = context.arguments.address
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

return {
  name = "screen",
  summary = "Decide whether addresses may pass: allow, review, block or unknown.",
  arguments = {
    { name = "address", count = "+", doc = "Addresses of the network that -n names." },
  },
  options = options,
  examples = {
    {
      line = "screen 0x16e998a4a64a384aa74dd757e5a6858ab909262e -n eth",
      what = "One address; the exit status is its verdict",
    },
    { line = "screen -q ADDRESS -n btc && echo pass", what = "In a script" },
  },
  statuses = status.of_decisions,
  run = run,
}
