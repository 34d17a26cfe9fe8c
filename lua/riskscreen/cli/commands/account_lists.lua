-- riskscreen blacklist add, import and export: the account's blacklist. commands/operations.lua has the other verbs of
-- the account's lists.

local addresses = require "riskscreen.address"
local build = require "riskscreen.options.build"
local columns_of = require("riskscreen.cli.output").columns
local inputs = require "riskscreen.cli.input"
local json = require "riskscreen.json"
local option_of = require "riskscreen.cli.option"
local options = require "riskscreen.options"
local plain_name = require("riskscreen.rows").plain_name
local progress = require "riskscreen.cli.progress"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local ADDRESS = "0x00000000000000000000000000000000000b1ac1" -- for an example

local NO_NAMES = "blacklist add takes the addresses alone, and their network by -n, without name="

local LIKE_RISKS = "%s is not read as the risks; did you mean 'risks'? Its values are such as high/scam. "
  .. "--ignore-columns NAME passes a column over"

local report_columns = { "line", "address", "network", "state", "reason" }

local export_columns = { "address", "network", "risks" }

-- "high/scam;low/porn", perhaps with " / SOURCE" after a type, as risks; the source is the service's own.
local function risks_of(written)
  local risks = {}
  for part in written:gmatch "[^;]+" do
    local level, kind, source = part:match "^%s*([%w-]+)%s*/%s*([%w-]+)%s*(.*)$"
    if level and not source:find "^[^/]" and not source:find("/", 2, true) then
      risks[#risks + 1] = { riskLevel = level, riskType = kind }
    elseif part:find "%S" then
      return nil, ("must be such as high/scam (got %s)"):format(text.show(part))
    end
  end
  return risks
end

local RISK = "Risk of the addresses, or of rows that name none, such as high/scam. It may be repeated."
local risk_option = tables.merge(
  build.checked("risk", "table", function(list)
    return risks_of(table.concat(list, ";"))
  end, RISK),
  { list = true, argument = "LEVEL/TYPE" }
)

local function problem_of(address, network)
  if not network then
    return "it names no network; -n NETWORK gives one"
  end
  return select(2, addresses.validate(address, network))
end

-- Adds the rows without a problem, writes what became of each, and returns the status.
local function add(context, rows)
  local items, sent, code = {}, {}, status.done
  for _, row in ipairs(rows) do
    if row.problem then
      row.state, row.reason, code = "invalid", row.problem, status.invalid_rows
    else
      items[#items + 1], sent[#sent + 1] = tables.pick(row, { "address", "network", "risks" }), row
    end
  end
  if items[1] then
    local line, requests = progress.line(context), 0
    local function draw()
      requests = requests + 1
      line.draw(("%s for %s"):format(text.count(requests, "request"), text.count(#items, "row", text.grouped(#items))))
    end
    local client = context:client({ on = { request = draw } }, true)
    local report, err = client.blacklist:add({ list = items }, { timeout = context.options.timeout })
    line.clear()
    report = report or status.ensure(err.report, err)
    for _, index in ipairs(report.added) do
      sent[index].state = "added"
    end
    for _, state in ipairs { "refused", "uncertain", "unsent" } do
      for _, fate in ipairs(report[state]) do
        sent[fate.index].state, sent[fate.index].reason = state, tostring(fate.error):gsub("^riskscreen: ", "")
        code = status.unknown
      end
    end
  end
  for index, row in ipairs(rows) do
    rows[index] = tables.pick(row, report_columns)
  end
  context:write_records(report_columns, rows)
  return context:ended(code)
end

local function run_add(context)
  local rows, network = {}, context:network(true)
  for index, address in ipairs(context.arguments.address) do
    local problem = problem_of(address, network)
    problem = problem and address:find "^[%l_]+=" and NO_NAMES or problem
    rows[index] = not problem and { address = address, network = network, risks = context.options.risk or {} }
      or status.misuse(problem)
  end
  return add(context, rows)
end

-- An import replaces the stored risks. So a column that says them in another way must not be passed over.
local function is_like_risks(plain)
  return plain == "level" or plain == "type" or plain:find("risk", 1, true) or text.nearest(plain, { "risks" })
end

local function run_import(context)
  local input, rows, ignored = inputs.open(context, context.arguments.file), {}, {}
  for _, name in ipairs(context.options.ignore_columns or {}) do
    ignored[plain_name(name)] = true
  end
  for row in input:each() do
    local network = row.network or context:network()
    for name in pairs(row.fields) do
      local plain = plain_name(name)
      if plain ~= "risks" and not ignored[plain] and is_like_risks(plain) then
        status.misuse(LIKE_RISKS, text.show(name))
      end
    end
    local cell = columns_of.cells({ { name = "risks" } }, { risks = input:field(row, "risks") })[1]
    local risks, message = risks_of(tostring(cell or ""))
    local problem = problem_of(row.address, network) or message and "risks " .. message
    if problem then
      input:count_invalid(row.line, problem)
    end
    rows[#rows + 1] = { line = row.line, address = row.address, network = network, problem = problem }
    rows[#rows].risks = risks and risks[1] and risks or context.options.risk or {}
  end
  input:close()
  return add(context, rows)
end

local function export(context)
  local output = context:output(export_columns)
  for item in context:client().blacklist:each({ pageSize = 100 }, { timeout = context.options.timeout }) do
    local risks = {}
    for index, risk in ipairs(item.risks ~= json.null and item.risks or {}) do
      risks[index] = ("%s/%s"):format(risk.riskLevel or "?", risk.riskType or "?")
    end
    output:add { address = item.address, network = item.network, risks = risks[1] and risks or nil }
  end
  output:finish()
end

local function run_export(context)
  local path = context.options.output
  context.format = context.format == "table" and "csv" or context.format
  if not path or path == "-" then
    return export(context)
  end
  inputs.replacing(path, function(out)
    context.world = tables.merge(context.world, { out = out })
    export(context)
  end)
end

local timeout_option = option_of.pick(options.call, { "timeout" })[1]

local statuses = {
  done = "all were added",
  unknown = "some were refused, or may have been added: the column 'state' tells",
  invalid_rows = "all others were added, and some rows have no address",
}

return {
  {
    name = "blacklist add",
    summary = "Add addresses to the account's blacklist.",
    arguments = { { name = "address", count = "+", doc = "Addresses of the network that -n names." } },
    options = { risk_option, timeout_option },
    examples = { { line = "blacklist add " .. ADDRESS .. " -n eth --risk high/scam", what = "With a risk" } },
    statuses = statuses,
    calls = true,
    run = run_add,
  },
  {
    name = "blacklist import",
    summary = "Add the addresses of a CSV file to the account's blacklist.",
    description = "The file has a header with address, and perhaps network and risks, such as high/scam;low/porn. "
      .. "blacklist export writes this form.",
    arguments = { { name = "file", doc = "CSV file, plain or gzip; '-' is stdin." } },
    options = tables.concat({ risk_option, timeout_option }, inputs.options),
    examples = { { line = "blacklist import ours.csv -n eth --risk high/scam", what = "A file without risks" } },
    statuses = statuses,
    calls = true,
    run = run_import,
  },
  {
    name = "blacklist export",
    summary = "Write the whole blacklist as CSV, for blacklist import.",
    options = {
      option_of.text("output", "FILE", "File to write, replaced once the list is complete; by default stdout.", "o"),
      timeout_option,
    },
    examples = { { line = "blacklist export -o blacklist.csv", what = "Into a file" } },
    calls = true,
    run = run_export,
  },
}
