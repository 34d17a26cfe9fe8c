-- The file of rows that a verb reads: its options, and how its faults end the command.
local options = require "riskscreen.options.rows"
local rows = require "riskscreen.rows"
local status = require "riskscreen.cli.status"

local M = {
  ---@type riskscreen.cli.Option[] of every verb that reads rows
  options = options,
  ---@type riskscreen.cli.Option
  keep = { name = "keep", type = "table", list = true, argument = "NAMES", doc = "Columns to copy to the results." },
}

---Ends the command if a file that it reads or writes is the journal, also by links.
---@param context riskscreen.cli.Context
---@param file string|file*
function M.refuse_journal(context, file)
  local journal = context:setting "journal"
  if journal and (rows.are_one(file, journal) or rows.are_one(file, journal .. ".head")) then
    local other = type(file) == "string" and file or "a standard stream"
    status.misuse(("the journal %s is also %s: give the journal a file of its own"):format(journal, other))
  end
end

---Opens a file of addresses. A file that is refused ends the command before the first call.
---@param context riskscreen.cli.Context
---@param path string "-" is stdin
---@return riskscreen.Rows
function M.open(context, path)
  local source = path == "-" and context.world.input or path
  local name = path == "-" and "stdin" or path
  M.refuse_journal(context, source)
  local input =
    status.ensure(rows.open(source, rows.options_of(context.options, { name = name, checked_first = true })))
  M.refuse_output(context.world.out, context, path)
  local lacking = input:lacks(context.options.keep or {}, "--keep")
  if lacking then
    status.misuse(lacking.message)
  elseif not input.has_network and not context:network() and not input.is_empty then
    status.misuse "the file has no column 'network': give -n NETWORK, or name the column with --network-column"
  end
  return input
end

---Ends the command if a file to write is the file that is read, or the journal.
---@param output string|file*
---@param context riskscreen.cli.Context
---@param path string of the input
function M.refuse_output(output, context, path)
  if rows.are_one(output, path == "-" and context.world.input or path) then
    status.misuse(("the output is the input %s, which would be lost: -o names another file"):format(path))
  end
  M.refuse_journal(context, output)
end

return M
