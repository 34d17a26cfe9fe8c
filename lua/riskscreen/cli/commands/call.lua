-- riskscreen call: any operation by the interface's own name.

local operation_verbs = require "riskscreen.cli.commands.operations"
local operations = require "riskscreen.interface.operations"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local function run(context)
  local name = context.arguments.operation
  local operation = operations.by_name[name]
  if not operation then
    local hint = text.did_you_mean(name, tables.sorted_keys(operations.by_name))
    status.misuse(("unknown operation %s%s"):format(text.show(name), hint))
  end
  return operation_verbs.run(context, operation, context.arguments.parameters)
end

return {
  name = "call",
  summary = "Call any operation by its name in the interface.",
  description = "Operations: " .. table.concat(tables.pluck(operations.list, "name"), ", ") .. ".",
  arguments = {
    { name = "operation", doc = "Name of the operation.", completes = tables.pluck(operations.list, "name") },
    { name = "parameters", count = "*", doc = "Its parameters as name=value; a value in [ ] or { } is JSON." },
  },
  options = operation_verbs.call_options,
  examples = {
    {
      line = "call getAddressRisk address=0x16e998a4a64a384aa74dd757e5a6858ab909262e network=eth --json",
      what = "One operation with its own parameter names",
    },
  },
  run = run,
}
