-- Compiles list files to one .rsl file. The core sorts and writes it, so the memory does not grow with the list.
local check = require "riskscreen.options.check"
local core = require "riskscreen.util.core"
local errors = require "riskscreen.errors"
local files = require "riskscreen.util.files"
local list_files = require "riskscreen.lists.file"
local options = require "riskscreen.options.lists"
local random = require "riskscreen.util.random"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local texts = require "riskscreen.lists.text"

local M = {}

---@class riskscreen.ListBuild
---@field output string the file to write
---@field inputs string|string[] the files to read
---@field title? string
---@field strict? boolean writes nothing if a row is no entry
---@field address_check? "checksum"|"format"
---@field max_shrink? number share of the entries of the file that is replaced
---@field time? number Unix seconds of the build; by default now
---@field buffer? integer bytes of memory for sorting

---@class riskscreen.ListReport: riskscreen.ListText
---@field entries integer in the list
---@field repeated integer entries that were left out, because another one is about the same address and network
---@field size integer bytes of the file

local function failure(message, kind)
  return errors.new(kind or "list", message, { sent = false, attempts = 0 })
end

-- Writes the list under a name of its own, and gives it its name. Returns what is wrong with it, or nil.
local function finish(writer, path, settings, report)
  if settings.strict and report.problems[1] then
    local invalid = text.count(report.invalid, "row")
    return ("%s without an entry, the first is %s"):format(invalid, texts.show(report.problems[1]))
  elseif settings.strict and report.unknown > 0 then
    return text.count(report.unknown, "address") .. " left out: the spelling of the identifier is not known"
  end
  local written, problem = writer:finish(settings.time or os.time(), text.printable(settings.title or "", 190))
  if written and written.entries == 0 and not settings.allow_empty then
    problem = "it would have no entry"
  elseif written then
    local before, fault = list_files.open(settings.output, { kind = "allow" })
    if before then
      problem = list_files.shrinkage(before.facts.entries, written.entries, settings.max_shrink)
    elseif settings.max_shrink < 1 and files.exists(settings.output) then
      problem = fault .. ". So its entries cannot be counted: remove it, or set max_shrink to 1"
    end
  end
  local is_named = not problem
  if is_named then
    is_named, problem = os.rename(path, files.target(settings.output))
  end
  if is_named then
    report.entries, report.repeated, report.size = written.entries, written.repeated, written.size
    return nil
  end
  os.remove(path)
  local kind = (not written or is_named == nil) and "storage" or nil
  return ("%s is not written: %s"):format(text.show(settings.output), problem), kind
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
  local target = files.target(settings.output)
  local path = ("%s.%s"):format(files.unfinished(settings.output), random.token(8)) -- of this build alone
  if files.is_special(target) then
    return nil, failure(("%s is not written: it is no file"):format(text.show(settings.output)))
  end
  for _, input in ipairs(settings.inputs) do
    if files.are_one(target, input) then
      return nil, failure(("%s is an input, and would be lost"):format(text.show(input)))
    end
  end
  local writer, problem = core.list_writer(path, settings.buffer)
  if not writer then
    return nil, failure(problem, "storage")
  end
  local report = texts.facts()
  local reading = tables.merge(settings, {
    level = settings.address_check,
    now = settings.time or os.time(),
    takes_xml = true,
  })
  for _, input in ipairs(settings.inputs) do
    local ok, fault = texts.read(input, report, reading, function(place, note, expires)
      return writer:add(place.scope, place.address, note, expires)
    end)
    if not ok then
      writer:close()
      return nil, failure(("%s is not read: %s"):format(text.show(input), fault))
    end
  end
  local message, kind = finish(writer, path, settings, report)
  writer:close()
  local err = message and failure(message, kind)
  if err then
    err.report = report
    return nil, err
  end
  return report
end

return M
