-- Compiles list files to one .rsl file. The core sorts and writes it, so the memory does not grow with the list.
local check = require "riskscreen.options.check"
local core = require "riskscreen.util.core"
local entries = require "riskscreen.lists.entry"
local errors = require "riskscreen.errors"
local files = require "riskscreen.lists.file"
local loaders = require "riskscreen.lists.loaders"
local options = require "riskscreen.options.lists"
local text = require "riskscreen.util.text"

local MAX_PROBLEMS = 100 -- that are kept with their text
local WANTED_KINDS = "its name must end in .csv, .json, .jsonl, .txt or .xml"

local M = {}

---@class riskscreen.ListBuild
---@field output string the file to write
---@field inputs string|string[] the files to read
---@field title? string
---@field strict? boolean writes nothing if a row is no entry
---@field address_check? "checksum"|"format"
---@field time? number Unix seconds of the build; by default now
---@field buffer? integer bytes of memory for sorting

---@class riskscreen.ListProblem
---@field file string
---@field line? integer
---@field message string

---@class riskscreen.ListReport
---@field entries integer in the list
---@field rows integer that were read
---@field repeated integer entries that were left out, because another one is about the same address and network
---@field invalid integer rows that are no entries
---@field problems riskscreen.ListProblem[] the first of them
---@field skipped { symbol: string, count: integer, reason: string }[] of OFAC's files
---@field size integer bytes of the file

local function failure(message)
  return errors.new("list", message, { sent = false, attempts = 0 })
end

-- The report of a build that begins.
local function new_report()
  return { rows = 0, invalid = 0, problems = {}, skipped = {} }
end

local function add_skipped(report, symbol, reason)
  for _, known in ipairs(report.skipped) do
    if known.symbol == symbol then
      known.count = known.count + 1
      return
    end
  end
  table.insert(report.skipped, { symbol = symbol, count = 1, reason = reason })
end

local function sink_of(path, writer, level, report)
  local sink = {}
  function sink.invalid(line, message)
    report.invalid = report.invalid + 1
    if #report.problems < MAX_PROBLEMS then
      table.insert(report.problems, { file = path, line = line, message = message })
    end
  end
  function sink.skipped(symbol, _, reason)
    add_skipped(report, text.printable(symbol, 20), reason)
  end
  function sink.row(row)
    report.rows = report.rows + 1
    local entry, problem = entries.read(row, level)
    if not entry then
      return sink.invalid(row.line, problem)
    end
    for _, place in ipairs(entry.places) do
      local added, message = writer:add(place.scope, place.address, entry.note, entry.expires)
      if not added then
        report.failure = report.failure or message
      end
    end
  end
  return sink
end

-- Reads one file. Returns true, or nil and the fault.
local function read_file(path, writer, level, report)
  local kind = loaders.kind_of(path)
  if not kind or kind == "rsl" then
    return nil, WANTED_KINDS
  end
  local read, close = files.pieces(path)
  if not read then
    return nil, close
  end
  local ok, problem = loaders[kind](function()
    if report.failure then
      return nil, report.failure
    end
    return read()
  end, sink_of(path, writer, level, report))
  close()
  return ok, problem
end

local function finish(writer, settings, report)
  if settings.strict and report.invalid > 0 then
    local first = report.problems[1]
    local place = first.line and ("%s:%d"):format(first.file, first.line) or first.file
    return nil, ("%d rows are no entries, the first is %s: %s"):format(report.invalid, place, first.message)
  end
  local written, problem = writer:finish(settings.time or os.time(), text.printable(settings.title or "", 190))
  if not written then
    return nil, ("%s is not written: %s"):format(text.show(settings.output), problem)
  end
  report.entries, report.repeated, report.size = written.entries, written.repeated, written.size
  return report
end

---Compiles lists to one file. The old file of that name counts until the new one is complete.
---@param given riskscreen.ListBuild
---@return riskscreen.ListReport|nil report
---@return riskscreen.Error|nil err with `report` where rows were refused
function M.build(given)
  local settings = check.arguments("build", options.build, given)
  if not core then
    return nil, errors.new("unsupported", "lists are compiled by the C core, which is not there", { sent = false })
  end
  local writer, problem = core.list_writer(settings.output, settings.buffer)
  if not writer then
    return nil, failure(problem)
  end
  local report = new_report()
  for _, path in ipairs(settings.inputs) do
    local ok, fault = read_file(path, writer, settings.address_check, report)
    if not ok then
      writer:close()
      return nil, failure(("%s is not read: %s"):format(text.show(path), fault))
    end
  end
  local done, message = finish(writer, settings, report)
  writer:close()
  if not done then
    local err = failure(message)
    err.report = report
    return nil, err
  end
  return done
end

return M
