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

-- The first file of one list to which a file of another list belongs, and whether these are one file; or nil.
local function common(list, others)
  for _, file in ipairs(list) do
    for _, other in ipairs(others) do
      if files.belong(file, other) then
        return type(other) == "string" and other or "a standard stream", files.are_one(file, other)
      end
    end
  end
end

---Ends the command if a file that it writes is one that it reads, or the journal, also by links. The files that stand
---beside them count, too: the head of a journal, the state of a run, and an unfinished file.
---@param context riskscreen.cli.Context
---@param has_client? boolean it writes the journal, and reads the local lists if it decides
function M.refuse_loss(context, has_client)
  local given, its, written = context.arguments, context.options, context.command.written
  local journal, own = context:setting "journal", given.input or given.file or given.journal
  local read = tables.concat({ its.file }, type(own) == "table" and own or { own }, { its.webhook_secret_file })
  for index, path in ipairs(read) do
    read[index] = path == "-" and context.world.input or path
  end
  read = tables.concat(read, configuration.files(context.configuration, has_client and context.command.verdict))
  local paths = written and written(context) or { its.output ~= "-" and its.output or nil }
  written = tables.concat({ context.world.out }, paths)
  local lost, is_input = common(written, read)
  local also = common({ journal }, has_client and tables.concat(written, read) or written)
  if lost then
    local what = is_input and "is the input %s, which" or "belongs to the input %s, and what it has"
    status.misuse("the output " .. what .. " would be lost: -o names another file", lost)
  elseif also then
    local message = "the journal %s is also %s, or belongs to it: give the journal a file of its own"
    status.misuse(message, journal, also)
  end
  local _ = has_client and journal and M.refuse_stream(journal, "--journal")
end

---Whether a path names a stream, a pipe or a device, which cannot be read again, or nothing.
---@param path string
---@return boolean
function M.is_stream(path)
  return path == "-" or path == "" or files.is_special(path) and files.kind(path) ~= "directory"
end

---Ends the command if a file is a stream, a pipe, a device or a directory.
---@param path string
---@param flag string
function M.refuse_stream(path, flag)
  if M.is_stream(path) or files.is_special(path) then
    status.misuse("%s is no file: %s must name a file", text.show(path), flag)
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
  if input.lacks_network and not context:network() then
    status.misuse "the file has no column 'network': give -n NETWORK, or name the column with --network-column"
  end
  return input
end

return M
