-- riskscreen blacklist add, import and export: the account's blacklist. commands/operations.lua has the other verbs of
-- the account's lists.

local addresses = require "riskscreen.address"
local inputs = require "riskscreen.cli.input"
local json = require "riskscreen.json"
local option_of = require "riskscreen.cli.option"
local options = require "riskscreen.options"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local report_columns = { "line", "address", "network", "state", "reason" }

local export_columns = { "address", "network", "risks" }

local risk_option = {
  name = "risk",
  type = "table",
  list = true,
  argument = "LEVEL/TYPE",
  doc = "Risk of the addresses, such as high/scam. It may be repeated.",
}

-- "high/scam" or "high / scam / User-Defined" as the fields of a risk; the source is the service's own.
local function risk_of(written)
  local level, kind = written:match "^%s*([%w-]+)%s*/%s*([%w-]+)"
  return level and { riskLevel = level, riskType = kind }
end

local function risks_of(list, place)
  local risks = {}
  for index, written in ipairs(list) do
    risks[index] = risk_of(written)
    if not risks[index] then
      return nil, ("%s must be such as high/scam (got %s)"):format(place, text.show(written))
    end
  end
  return risks
end

-- The state of each item after the call, by its position.
local function states_of(report)
  local states = {}
  for _, index in ipairs(report.added) do
    states[index] = { state = "added" }
  end
  for _, state in ipairs { "refused", "uncertain", "unsent" } do
    for _, fate in ipairs(report[state]) do
      states[fate.index] = { state = state, reason = (tostring(fate.error):gsub("^riskscreen: ", "")) }
    end
  end
  return states
end

-- Adds items, writes what became of each, and returns the status. A row may have a problem already.
local function add(context, rows)
  local items, positions = {}, {}
  for index, row in ipairs(rows) do
    if not row.problem then
      items[#items + 1] = tables.pick(row, { "address", "network", "risks" })
      positions[#items] = index
    end
  end
  local states, code = {}, status.done
  if items[1] then
    local client = context:client()
    local report, err = client.blacklist:add({ list = items }, { timeout = context.options.timeout })
    report = report or err.report or error(err, 0)
    for position, state in pairs(states_of(report)) do
      states[positions[position]] = state
    end
    code = #report.added == #items and status.done or status.unknown
  end
  local output = context:output(report_columns)
  for index, row in ipairs(rows) do
    local state = states[index] or { state = "invalid", reason = row.problem }
    output:add(tables.merge(tables.pick(row, { "line", "address", "network" }), state))
    code = row.problem and code == status.done and status.invalid_rows or code
  end
  output:finish()
  return code
end

local function problem_of(address, network)
  if not network then
    return "it names no network; -n NETWORK gives one"
  end
  return select(2, addresses.validate(address, network))
end

local function run_add(context)
  local rows, network = {}, context:network(true)
  local risks, problem = risks_of(context.options.risk or {}, "--risk")
  if not risks then
    status.misuse(problem)
  end
  for index, address in ipairs(context.arguments.address) do
    rows[index] = { address = address, network = network, risks = risks, problem = problem_of(address, network) }
    if rows[index].problem then
      status.misuse(rows[index].problem)
    end
  end
  return add(context, rows)
end

local function run_import(context)
  local input = inputs.open(context, context.arguments.file)
  local default, problem = risks_of(context.options.risk or {}, "--risk")
  if not default then
    status.misuse(problem)
  end
  local rows = {}
  for row in input:each() do
    local network = row.network or context:network()
    local given = {}
    for written in (tostring(input:field(row, "risks") or "") .. ";"):gmatch "([^;]*);" do
      given[#given + 1] = written:find "%S" and written or nil
    end
    local risks, wrong = risks_of(given, "risks")
    rows[#rows + 1] = {
      line = row.line,
      address = row.address,
      network = network,
      risks = risks and (risks[1] and risks or default),
      problem = problem_of(row.address, network) or wrong,
    }
    if rows[#rows].problem then
      input:count_invalid(row.line, rows[#rows].problem)
    end
  end
  input:close()
  return add(context, rows)
end

local function run_export(context)
  local client = context:client()
  local out = context.options.output and io.open(context.options.output, "wb")
  if context.options.output and not out then
    status.misuse("the file cannot be written: " .. context.options.output)
  end
  context.format = context.format == "table" and "csv" or context.format
  context.world = out and tables.merge(context.world, { out = out }) or context.world
  local output = context:output(export_columns)
  for item in client.blacklist:each({ pageSize = 100 }, { timeout = context.options.timeout }) do
    local risks = {}
    for index, risk in ipairs(item.risks ~= json.null and item.risks or {}) do
      risks[index] = ("%s/%s"):format(risk.riskLevel or "?", risk.riskType or "?")
    end
    output:add { address = item.address, network = item.network, risks = risks[1] and risks or nil }
  end
  output:finish()
  if out and not out:close() then
    status.fail(status.unknown, "the file cannot be written: " .. context.options.output)
  end
end

local timeout_option = option_of.pick(options.call, { "timeout" })[1]

local statuses = {
  { status = status.done, what = "all were added" },
  { status = status.unknown, what = "some were refused, or may have been added: the column 'state' tells" },
  { status = status.invalid_rows, what = "all others were added, and some rows have no address" },
}

return {
  {
    name = "blacklist add",
    summary = "Add addresses to the account's blacklist.",
    arguments = { { name = "address", count = "+", doc = "Addresses of the network that -n names." } },
    options = { risk_option, timeout_option },
    examples = {
      {
        line = "blacklist add 0x00000000000000000000000000000000000b1ac1 -n eth --risk high/scam",
        what = "One address with a risk",
      },
    },
    statuses = statuses,
    run = run_add,
  },
  {
    name = "blacklist import",
    summary = "Add the addresses of a CSV file to the account's blacklist.",
    description = "The file has a header with address, and perhaps network and risks, such as high/scam;low/porn. "
      .. "blacklist export writes this form.",
    arguments = { { name = "file", doc = "CSV file, plain or gzip; '-' is stdin." } },
    options = tables.concat(
      { tables.merge(risk_option, { doc = "Risk of rows that name none, such as high/scam." }), timeout_option },
      inputs.options
    ),
    examples = { { line = "blacklist import ours.csv -n eth --risk high/scam", what = "A file without risks" } },
    statuses = statuses,
    run = run_import,
  },
  {
    name = "blacklist export",
    summary = "Write the whole blacklist as CSV, for blacklist import.",
    options = {
      { name = "output", type = "string", short = "o", argument = "FILE", doc = "File to write; by default stdout." },
      timeout_option,
    },
    examples = { { line = "blacklist export -o blacklist.csv", what = "Into a file" } },
    run = run_export,
  },
}
