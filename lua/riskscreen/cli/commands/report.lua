-- riskscreen report: the results of a run, or a journal, as a page for people.

local files = require "riskscreen.util.files"
local inputs = require "riskscreen.cli.input"
local journals = require "riskscreen.journal"
local option_of = require "riskscreen.cli.option"
local report = require "riskscreen.report"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"

local columns = { "rows" }
for _, action in ipairs { "allow", "review", "block", "unknown" } do
  columns[#columns + 1] = { name = action, path = { "actions", action } }
end
columns = tables.concat(columns, { "unreadable", "output" })

local function run(context)
  local sources, path = {}, context.options.output
  for _, name in ipairs(context.arguments.file) do
    for _, source in ipairs(name == "-" and { context.world.input } or journals.files(name)) do
      -- A file counts once. The parts of a journal may be named beside it.
      local is_known = false
      for _, other in ipairs(sources) do
        is_known = is_known or source == other or files.are_one(source, other)
      end
      sources[#sources + 1] = not is_known and source or nil
    end
  end
  local summary = status.ensure(report.write(tables.merge(context.options, {
    input = sources,
    output = path == "-" and context.world.out or path,
  })))
  for _, note in ipairs(summary.notes) do
    context:warn(note)
  end
  if path ~= "-" then
    summary.output = path
    context:write_record(columns, summary)
  end
  return summary.unreadable > 0 and status.invalid_rows or status.done
end

return {
  name = "report",
  summary = "Write results as one page of charts and rows, to open in a browser.",
  description = "The files are what `screen --csv`, `screen --jsonl` or `screen --file` write, or journals. "
    .. "The page holds all of its data: it needs no network, and it sends nothing.",
  arguments = { { name = "file", count = "+", doc = "CSV with a header, or JSON lines; - is the standard input." } },
  options = tables.concat(
    option_of.pick(report.options, { "output", "title" }, {
      output = { type = "string", short = "o", argument = "PATH", default = "report.html", required = false },
    }),
    inputs.options
  ),
  examples = {
    { line = "report results.csv -o report.html", what = "The results of a run" },
    { line = "report journal.jsonl -o june.html --title 'June 2026'", what = "A journal, with a title" },
  },
  statuses = {
    done = "the page is written",
    invalid_rows = "the page is written, but lines of the input cannot be read",
  },
  run = run,
}
