-- riskscreen journal: checks, shows and replays the record of decisions.

local addresses = require "riskscreen.address"
local build = require "riskscreen.options.build"
local configuration = require "riskscreen.cli.configuration"
local date = require "riskscreen.util.date"
local decision_record = require "riskscreen.cli.decision_record"
local journal = require "riskscreen.journal"
local option_of = require "riskscreen.cli.option"
local policies = require "riskscreen.policy"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local DAY = 86400 -- seconds
local MOST_LAST = 100000 -- decisions that are held in memory

local fault_columns = { "file", "line", "seq", "reason", "message" }

local entry_columns = text.words "seq time input network action outcome reasons source request_id meta lost id policy"

local replay_columns = { "seq", "time", "input", "network", "before", "after", "reasons", "problem" }

local path_argument = { name = "journal", doc = "The journal's file." }

local days_ago = { today = 0, yesterday = 1 }

-- The time that a text names, as a line of a journal has it.
local function moment(written)
  local now, seconds = os.time(), date.parse_time(written)
  local ago = written:find "%a$" and option_of.duration(written)
  if days_ago[written] then
    seconds = now - now % DAY - days_ago[written] * DAY
  elseif ago then
    seconds = now - ago
  elseif not seconds then
    return nil, "must be a date such as 2026-01-31 or 2026-01-31T12:00:00Z, or yesterday, or a time ago such as 1h"
  end
  return os.date("!%Y-%m-%dT%H:%M:%SZ", math.ceil(math.max(seconds, 0)))
end

local function moment_option(name, doc)
  return tables.merge(build.checked(name, "string", moment, doc), { argument = "TIME" })
end

-- A function that names a fault of a journal; the rest follows.
local function teller(context)
  return function(fault)
    local line = fault.line > 0 and (", line %d"):format(fault.line) or ""
    context:warn(("%s%s: %s"):format(fault.file, line, fault.message))
    context.is_damaged = true
  end
end

local function run_verify(context)
  local key_file = context:setting "journal_key_file"
  local key = key_file and configuration.read_secret(key_file)
  local report = status.ensure(journal.verify(context.arguments.journal, { key = key }))
  context:write_records(fault_columns, report.faults)
  local files = text.count(#report.files, "file")
  local first = (report.first or 1) > 1 and (" from line %d on"):format(report.first) or ""
  local faults = (report.has_more and "more than " or "") .. text.count(#report.faults, "fault")
  local verdict = report.ok and "the chain holds" .. first or faults
  context:tell(("%s in %s: %s"):format(text.count(report.lines, "line"), files, verdict))
  return report.ok and status.done or status.block
end

local function is_shown(entry, options, spellings)
  local meta = entry.meta or {}
  for name, value in pairs(options.meta or {}) do
    if meta[name] ~= value then
      return false
    end
  end
  local time = tostring(entry.time)
  return (not options.action or entry.action == options.action)
    and (not options.address or spellings[entry.address] or entry.input == options.address)
    and (not options.since or time >= options.since)
    and (not options["until"] or time < options["until"])
end

local function run_show(context)
  local options = context.options
  if options.limit and options.tail then
    status.misuse "give --limit or --tail, not both"
  end
  local output, count, last = context:output(entry_columns), 0, {}
  local spellings = tables.set(addresses.spellings(options.address or "", "format"))
  for entry in journal.entries(context.arguments.journal, nil, teller(context)) do
    context:check_time()
    if count == options.limit then
      break
    elseif is_shown(entry, options, spellings) then
      count = count + 1
      if options.tail then
        last[count % options.tail + 1] = entry
      else
        output:add(entry)
      end
    end
  end
  for number = math.max(1, count - (options.tail or 0) + 1), options.tail and count or 0 do
    output:add(last[number % options.tail + 1])
  end
  output:finish()
  if count == 0 then
    context:tell(text.count(count, "decision"))
  end
  if options.address and count == 0 and not next(spellings) then
    status.misuse("--address: %s is no address, and no decision has it as its input", text.show(options.address))
  end
  return context.is_damaged and status.unknown or status.done
end

local function run_replay(context)
  local policy = context:policy() or policies.new()
  local output = context:output(replay_columns)
  local count, changed, undecided = 0, 0, 0
  for row in journal.replay(context.arguments.journal, policy, teller(context)) do
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
  context:tell(figures:format(text.count(count, "decision"), changed, undecided))
  if undecided > 0 or context.is_damaged then
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
    examples = { { line = "journal verify decisions.jsonl", what = "Name each line that does not hold" } },
    statuses = { done = "the chain holds", block = "the chain does not hold", unknown = "the journal cannot be read" },
    run = run_verify,
  },
  {
    name = "journal show",
    summary = "Show the decisions of a journal, the oldest first.",
    arguments = { path_argument },
    options = {
      { name = "action", type = "string", values = actions, doc = "Only decisions with this action." },
      { name = "address", type = "string", doc = "Only decisions about this address, in any spelling." },
      tables.merge(decision_record.meta, { doc = "Only decisions with this fact, such as case=17. Repeat it." }),
      moment_option("since", "Only from this time on: 2026-01-31, 2026-01-31T12:00:00Z, yesterday, today, 1h (ago)."),
      moment_option("until", "Only before this time."),
      build.count("limit", "decisions", nil, 1, 2 ^ 53, "The most to show."),
      build.count("tail", "decisions", nil, 1, MOST_LAST, "Only the last so many."),
    },
    examples = {
      { line = "journal show decisions.jsonl --action block --since yesterday", what = "Blocks since yesterday" },
      { line = "journal show decisions.jsonl --meta case=17 --tail 20", what = "The last 20 decisions of a case" },
    },
    statuses = { done = "done", unknown = "a line or a file cannot be read, or is missing; the rest is shown" },
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
      done = "no decision would change",
      review = "a decision would change",
      unknown = "a decision cannot be made again, or a line or a file cannot be read",
    },
    run = run_replay,
  },
}
