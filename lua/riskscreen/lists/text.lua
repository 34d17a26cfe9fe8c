-- Reads the entries of a list file that is not compiled: rows, or the XML of OFAC (ofac.lua).
local entries = require "riskscreen.lists.entry"
local rows = require "riskscreen.rows"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local MAX_PROBLEMS = 100 -- that are kept with their text

---@class riskscreen.ListProblem
---@field file string
---@field line? integer
---@field message string

---@class riskscreen.ListText what is known of the files that are read
---@field rows integer
---@field invalid integer rows that are no entries
---@field expired integer entries that have expired already
---@field problems riskscreen.ListProblem[] the first rows that are no entries, and the last one
---@field skipped { symbol: string, count: integer, reason: string }[] of OFAC's files
---@field unknown integer of those skipped, the addresses whose kind is not known

local M = {}

---@return riskscreen.ListText
function M.facts()
  return { rows = 0, invalid = 0, expired = 0, problems = {}, skipped = {}, unknown = 0 }
end

---The problem of a row with its place.
---@param problem riskscreen.ListProblem
---@return string
function M.show(problem)
  return (problem.line and ("%s:%d"):format(problem.file, problem.line) or problem.file) .. ": " .. problem.message
end

-- Takes one row. Returns the reason why the file is refused, or nil.
local function take(path, row, facts, settings, add)
  facts.rows = facts.rows + 1
  local entry, problem, is_fatal = entries.read(row, settings.level)
  if is_fatal then
    return ("line %s: %s"):format(tostring(row.line), problem)
  elseif not entry then
    facts.invalid = facts.invalid + 1
    facts.problems[math.min(facts.invalid, MAX_PROBLEMS)] = { file = path, line = row.line, message = problem }
    return nil
  elseif entry.expires ~= 0 and entry.expires <= settings.now then
    facts.expired = facts.expired + 1
  end
  for _, place in ipairs(entry.places) do
    local added, failure = add(place, entry.note, entry.expires)
    if added == nil and failure then
      return failure
    end
  end
end

local function read_xml(path, file, facts, settings, add)
  local failure
  local ok, problem = require("riskscreen.lists.ofac").load(function()
    if failure then
      return nil, failure
    end
    return file.read()
  end, {
    row = function(row)
      failure = failure or take(path, row, facts, settings, add)
    end,
    skipped = function(symbol, reason, is_unknown)
      symbol = text.printable(symbol, 60)
      facts.unknown = facts.unknown + (is_unknown and 1 or 0)
      for _, known in ipairs(facts.skipped) do
        if known.symbol == symbol then
          known.count = known.count + 1
          return
        end
      end
      table.insert(facts.skipped, { symbol = symbol, count = 1, reason = reason })
    end,
  })
  return ok and not failure or nil, failure or problem
end

local function read_rows(path, file, facts, settings, add)
  local own = tables.concat(settings.ignore_columns or {}, { "note", "expires" }) -- may hold the name of a network
  local input, err = rows.open(file, tables.merge(settings, { ignore_columns = own }))
  local problem = input and entries.unknown_field(input:other_names(input.names))
  local row, invalid
  while input and not (err or problem) do
    row, err = input:next()
    if not row then
      break
    end
    problem, invalid =
      row.value and entries.unknown_field(input:other_names(tables.sorted_keys(row.fields))), facts.invalid
    if not problem then
      row.note, row.expires = input:field(row, "note"), input:field(row, "expires")
      problem = take(path, row, facts, settings, add)
      err = facts.invalid > invalid and input:invalid(row.line, facts.problems[#facts.problems].message) or nil
    end
  end
  problem = problem or err and err.message
  return not problem or nil, problem
end

---Reads a file.
---@param path string
---@param facts riskscreen.ListText is added to
---@param settings table the options of options/rows.lua, `level` (how addresses are checked), `now` (Unix seconds) and
---`longest` (bytes)
---@param add fun(place: riskscreen.ListPlace, note: string, expires: number): any, string?
---@return true|nil
---@return string|nil problem
function M.read(path, facts, settings, add)
  local file, problem = rows.file(path)
  if not file then
    return nil, problem
  end
  local is_packed = file.beginning:sub(1, 2) == "\31\139"
  local ok
  if file.kind == "xml" and settings.takes_xml then
    ok, problem = read_xml(path, file, facts, settings, add)
  elseif file.kind == "xml" then
    problem = "it is XML: compile it first with `riskscreen list build`"
  elseif settings.longest and (is_packed or (file.size or 0) > settings.longest) then
    local fault = "it is compressed, or longer than %d bytes; compile it with `riskscreen list build`"
    problem = fault:format(settings.longest)
  else
    -- The file is opened once: it may be a pipe.
    ok, problem = read_rows(path, file, facts, settings, add)
  end
  file.close()
  return ok, problem
end

return M
