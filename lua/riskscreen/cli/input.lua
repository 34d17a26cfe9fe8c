-- The file of rows that a verb reads: its options, and how its faults end the command.
local configuration = require "riskscreen.cli.configuration"
local files = require "riskscreen.util.files"
local options = require "riskscreen.options.rows"
local riskscreen = require "riskscreen"
local rows = require "riskscreen.rows"
local status = require "riskscreen.cli.status"
local system = require "riskscreen.system"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local LOOK_EVERY = 0.005 -- seconds between two looks at an empty pipe
local GARBAGE = 1000 -- rows without an address with which a file is refused before it begins, and not in its midst

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

-- Ends the command if a file of one list is also in another one, by any link.
local function refuse_same(list, others, before, after)
  for _, file in ipairs(list) do
    for _, other in ipairs(others) do
      if files.are_one(file, other) then
        status.misuse(before .. (type(other) == "string" and other or "a standard stream") .. after)
      end
    end
  end
end

---Ends the command if a file that it writes is one that it reads, or the journal, also by links.
---@param context riskscreen.cli.Context
---@param has_client? boolean it writes the journal, and reads the local lists if it decides
function M.refuse_loss(context, has_client)
  local given, its, written, beside = context.arguments, context.options, context.command.written, {}
  local journal, own = context:setting "journal", given.input or given.file or given.journal
  local read = tables.concat({ its.file }, type(own) == "table" and own or { own }, { its.webhook_secret_file })
  for index, path in ipairs(read) do
    -- The head of a journal and the state of a run stand beside them.
    beside = tables.concat(beside, { files.target(path) .. ".head", files.target(path) .. ".state" })
    read[index] = path == "-" and context.world.input or path
  end
  read = tables.concat(read, configuration.files(context.configuration, has_client and context.command.verdict))
  written = tables.concat({ context.world.out }, written and written(context) or M.written(its.output))
  refuse_same(written, read, "the output is the input ", ", which would be lost: -o names another file")
  refuse_same(written, beside, "the output belongs to the input: ", " would be lost: -o names another file")
  local kept = journal and { journal, files.target(journal) .. ".head" } or {}
  local its_name, others = tostring(journal), has_client and tables.concat(written, read) or written
  refuse_same(kept, others, "the journal " .. its_name .. " is also ", ": give the journal a file of its own")
  local _ = has_client and journal and M.refuse_stream(journal, "--journal")
end

---Whether a path names a stream, a pipe or a device, which cannot be read again, or nothing.
---@param path string
---@return boolean
function M.is_stream(path)
  return path == "-" or path == "" or files.is_special(path)
end

---Ends the command if a file is a stream, a pipe or a device.
---@param path string
---@param flag string
function M.refuse_stream(path, flag)
  if M.is_stream(path) then
    status.misuse(("%s is no file: %s must name a file"):format(text.show(path), flag))
  end
end

---Runs a function with the open file that takes the place of another one when the function has ended well. A path that
---cannot be written ends the command before.
---@param path string
---@param run fun(out: file*): any
---@return any result of the function
function M.replacing(path, run)
  local out, finish = files.replace(path)
  status.ensure_written(out, finish)
  local ok, result = pcall(run, out)
  local written, problem = finish(ok)
  status.ensure(ok or nil, result)
  status.ensure_written(written, problem)
  return result
end

-- A standard input that waits for its pipe without holding up the calls under way.
local function without_wait(input)
  if io.type(input) ~= "file" or input:seek() then
    return input
  end
  local function read()
    while not system.ending() do
      local piece, problem = system.take(input)
      if piece then
        return piece ~= "" and piece or nil
      elseif piece == nil then
        return nil, problem
      end
      riskscreen.sleep(LOOK_EVERY)
    end
    return nil, "interrupted"
  end
  return { read = read }
end

---Opens a file of addresses. A file that is refused ends the command before the first call.
---@param context riskscreen.cli.Context
---@param path string "-" is stdin
---@param most_invalid? integer rows without an address that it may have; by default GARBAGE or more
---@return riskscreen.Rows
function M.open(context, path, most_invalid)
  local source, name = path, path
  if path == "-" then
    source, name = without_wait(context.world.input), "stdin"
  end
  local level = context.options.address_check
  if level == nil then
    level = context:setting "address_check"
  end
  local given = { name = name, checked_first = true, network = context:network() }
  given.most_invalid = most_invalid or level ~= false and math.max(GARBAGE, context.options.max_invalid) or nil
  local input = status.ensure(rows.open(source, tables.merge(context.options, given)))
  local lacking = input:lacks(context.options.keep or {}, "--keep")
  if lacking then
    status.misuse(lacking.message)
  elseif not input.has_network and not context:network() and not input.is_empty then
    status.misuse "the file has no column 'network': give -n NETWORK, or name the column with --network-column"
  end
  return input
end

return M
