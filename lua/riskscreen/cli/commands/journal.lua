-- riskscreen journal: checks, shows and replays the record of decisions.

local build = require "riskscreen.options.build"
local configuration = require "riskscreen.cli.configuration"
local journal = require "riskscreen.journal"
local option_of = require "riskscreen.cli.option"
local policies = require "riskscreen.policy"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"

local fault_columns = { "file", "line", "seq", "reason", "message" }

local entry_columns = { "seq", "time", "input", "network", "action", "reasons", "source", "request_id", "id", "policy" }

local replay_columns = { "seq", "time", "input", "network", "before", "after", "reasons", "problem" }

local path_argument = { name = "journal", doc = "The journal's file." }

local key_option = option_of.text("key_file", "FILE", "File that holds the key of the chain, where it has one.")

local function counted(number, noun)
  return ("%d %s%s"):format(number, noun, number == 1 and "" or "s")
end

local function run_verify(context)
  local key = context.options.key_file and configuration.read_secret(context.options.key_file)
  local report = status.ensure(journal.verify(context.arguments.journal, { key = key }))
  local output = context:output(fault_columns)
  for _, fault in ipairs(report.faults) do
    output:add(fault)
  end
  output:finish()
  local files = counted(#report.files, "file")
  local verdict = report.ok and "the chain holds" or counted(#report.faults, "fault")
  context:tell(("%s in %s: %s"):format(counted(report.lines, "line"), files, verdict))
  return report.ok and status.done or status.block
end

local function is_shown(entry, wanted)
  return (not wanted.action or entry.action == wanted.action)
    and (not wanted.address or entry.address == wanted.address or entry.input == wanted.address)
    and (not wanted.since or entry.time >= wanted.since)
    and (not wanted.until_time or entry.time < wanted.until_time)
end

local function run_show(context)
  local options = context.options
  local wanted = { action = options.action, address = options.address, since = options.since }
  wanted.until_time = options["until"]
  local output, count = context:output(entry_columns), 0
  for entry in journal.entries(context.arguments.journal) do
    if count == options.limit then
      break
    elseif is_shown(entry, wanted) then
      output:add(entry)
      count = count + 1
    end
  end
  output:finish()
end

local function run_replay(context)
  local policy = context:policy() or policies.new()
  local output = context:output(replay_columns)
  local count, changed, undecided = 0, 0, 0
  for row in journal.replay(context.arguments.journal, policy) do
    count = count + 1
    changed = changed + (row.changed and 1 or 0)
    undecided = undecided + (row.problem and 1 or 0)
    if row.changed or row.problem or context.options.all then
      local record = tables.pick(row, replay_columns)
      record.reasons = row.decision and tables.pluck(row.decision.reasons, "message") or nil
      output:add(record)
    end
  end
  output:finish()
  local figures = "%s: %d would change, %d cannot be made again"
  context:tell(figures:format(counted(count, "decision"), changed, undecided))
  if undecided > 0 then
    return status.unknown
  end
  return changed > 0 and status.review or status.done
end

local actions = { "allow", "review", "block", "unknown" }

return {
  {
    name = "journal verify",
    summary = "Check the chain of a journal: no line was changed, dropped or moved.",
    arguments = { path_argument },
    options = { key_option },
    examples = { { line = "journal verify decisions.jsonl", what = "Name each line that does not hold" } },
    statuses = {
      { status = status.done, what = "the chain holds" },
      { status = status.block, what = "the chain does not hold" },
      { status = status.unknown, what = "the journal cannot be read" },
    },
    run = run_verify,
  },
  {
    name = "journal show",
    summary = "Show the decisions of a journal, the oldest first.",
    arguments = { path_argument },
    options = {
      { name = "action", type = "string", values = actions, doc = "Only decisions with this action." },
      { name = "address", type = "string", doc = "Only decisions about this address." },
      option_of.text("since", "TIME", "Only from this time on: 2026-01-31, or with T12:00:00Z."),
      { name = "until", type = "string", argument = "TIME", doc = "Only before this time." },
      build.count("limit", "decisions", nil, 1, 2 ^ 53, "The most to show."),
    },
    examples = {
      { line = "journal show decisions.jsonl --action block --since 2026-01-01", what = "This year's blocks" },
    },
    run = run_show,
  },
  {
    name = "journal replay",
    summary = "Decide the decisions of a journal again, by another policy.",
    description = "The journal must have the answers: record = true, or --journal-record.",
    arguments = { path_argument },
    options = { { name = "all", type = "boolean", doc = "Also show decisions that stay as they are." } },
    examples = { { line = "journal replay decisions.jsonl --policy new.lua", what = "What would change" } },
    statuses = {
      { status = status.done, what = "no decision would change" },
      { status = status.review, what = "a decision would change" },
      { status = status.unknown, what = "a decision cannot be made again" },
    },
    run = run_replay,
  },
}
