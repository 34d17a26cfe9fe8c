-- The file of rows that a verb reads: its options, and how its faults end the command.
local files = require "riskscreen.util.files"
local options = require "riskscreen.options.rows"
local rows = require "riskscreen.rows"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"

local M = {
  ---@type riskscreen.cli.Option[] of every verb that reads rows
  options = options,
  ---@type riskscreen.cli.Option
  keep = { name = "keep", type = "table", list = true, argument = "NAMES", doc = "Columns to copy to the results." },
}

---The files that a verb writes beside stdout: a whole file is written beside the one that it replaces.
---@param path string|nil "-" is stdout
---@return string[]
function M.written(path)
  return path and path ~= "-" and { path, files.unfinished(path) } or {}
end

-- Ends the command if a file is the journal, also by links.
local function refuse_journal(context, file)
  local journal = context:setting "journal"
  if journal and (files.are_one(file, journal) or files.are_one(file, files.target(journal) .. ".head")) then
    local other = type(file) == "string" and file or "a standard stream"
    status.misuse(("the journal %s is also %s: give the journal a file of its own"):format(journal, other))
  end
end

---Ends the command if a file that it writes is one that it reads, or the journal, also by links.
---@param context riskscreen.cli.Context
function M.refuse_loss(context)
  local given, written = context.arguments, context.command.written
  local read = tables.concat({ context.options.file }, { given.input or given.file or given.journal })
  written = tables.concat({ context.world.out }, written and written(context) or M.written(context.options.output))
  for _, output in ipairs(written) do
    for _, path in ipairs(type(read[1]) == "table" and read[1] or read) do
      -- The head of a journal and the state of a run stand beside them.
      local own = { path == "-" and context.world.input or path, files.target(path) .. ".head", path .. ".state" }
      for index, file in ipairs(own) do
        if files.are_one(output, file) then
          local what = index == 1 and "is the input %s, which" or "belongs to the input %s, and"
          status.misuse(("the output " .. what .. " would be lost: -o names another file"):format(path))
        end
      end
    end
    refuse_journal(context, output)
  end
end

---Ends the command if a file that it reads again is a stream, a pipe or a device.
---@param path string
---@param flag string
function M.refuse_stream(path, flag)
  if path == "-" or files.is_special(path) then
    status.misuse(("%s cannot be read again: %s must name a file"):format(path, flag))
  end
end

---Opens a file of addresses. A file that is refused ends the command before the first call.
---@param context riskscreen.cli.Context
---@param path string "-" is stdin
---@return riskscreen.Rows
function M.open(context, path)
  local source = path == "-" and context.world.input or path
  local name = path == "-" and "stdin" or path
  refuse_journal(context, source)
  local input =
    status.ensure(rows.open(source, rows.options_of(context.options, { name = name, checked_first = true })))
  local lacking = input:lacks(context.options.keep or {}, "--keep")
  if lacking then
    status.misuse(lacking.message)
  elseif not input.has_network and not context:network() and not input.is_empty then
    status.misuse "the file has no column 'network': give -n NETWORK, or name the column with --network-column"
  end
  return input
end

return M
