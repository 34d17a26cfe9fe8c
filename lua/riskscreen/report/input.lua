-- Reads the decisions of files: CSV with a header, or one JSON object on each line. One row is in memory at a time. The
-- first lines that have a fault are noted.
local csv = require "riskscreen.util.csv"
local json = require "riskscreen.json"
local lines = require "riskscreen.util.lines"
local rows = require "riskscreen.report.row"

local PIECE = 65536 -- bytes that are read at a time
local MAX_LINE = 4194304 -- bytes of a line of JSON
local MAX_NOTES = 20 -- faults that are named

-- A function that returns the pieces of a file, and whether the file begins as JSON.
local function pieces_of(file)
  local first, problem = file:read(PIECE)
  local is_json = first and first:find "^[\239\187\191%s]*{" ~= nil
  return function()
    if first or problem then
      local piece, fault = first, problem
      first, problem = nil, nil
      return piece, fault
    end
    return file:read(PIECE)
  end,
    is_json
end

local function json_rows(read)
  local next_line = lines.reader(read, MAX_LINE)
  return function()
    local line, number
    repeat
      line, number = next_line()
    until not line or line:find "%S"
    if not line then
      return nil, number
    end
    local found, fault = json.decode(line)
    if type(found) == "table" and found.lost and not found.action then
      return false, number, ("%s decisions could not be recorded here"):format(tostring(found.lost))
    elseif type(found) == "table" and not json.is_array(found) then
      local row, has_action = rows.of(found)
      return row, number, not has_action and "it has no verdict" or nil
    end
    return false, number, found and "it is not an object" or tostring(fault)
  end
end

local function csv_rows(read)
  local next_row = csv.reader(read)
  local names
  return function()
    local fields, number, fault = next_row()
    if fields and not names then
      names = fields
      for index, name in ipairs(names) do
        names[index] = name:match "^%s*(.-)%s*$"
      end
      if not rows.names_action(names) then
        return nil, "the header has no column `action`"
      end
      fields, number, fault = next_row()
    end
    if not fields then
      return fields, number, fault
    end
    local found = {}
    for index, name in ipairs(names) do
      found[name] = fields[index]
    end
    local row, has_action = rows.of(found, names)
    if #fields ~= #names then
      fault = ("it has %d fields, and the header has %d"):format(#fields, #names)
      return false, number, fault
    end
    return row, number, not has_action and "it has no verdict" or nil
  end
end

-- A function that returns the next row of a file and the number of its line. With a fault as third value the row has no
-- verdict, and counts as `unknown`. In place of a row it returns `false` for a line that cannot be read, and nil at the
-- end. If the file cannot be read on, it returns nil and the reason.
local function reader(file)
  local read, is_json = pieces_of(file)
  return is_json and json_rows(read) or csv_rows(read)
end

---@class riskscreen.report.Input
---@field sources { name: string, rows: integer }[]
---@field notes string[] the first faults
---@field faults integer
---@field unreadable integer lines that are not counted
local Input = {}
Input.__index = Input

function Input:note(message)
  self.faults = self.faults + 1
  if self.faults <= MAX_NOTES then
    self.notes[#self.notes + 1] = message
  end
end

function Input:read_file(name, file, add)
  local count, next_row = 0, reader(file)
  local row, line, fault = next_row()
  while row ~= nil do
    if row then
      count = count + 1
      add(row)
    else
      self.unreadable = self.unreadable + 1
    end
    if fault then
      local effect = row and "counts as unknown" or "cannot be read and is not counted"
      self:note(("%s, line %d %s: %s."):format(name, line, effect, fault))
    end
    row, line, fault = next_row()
  end
  self.sources[#self.sources + 1] = { name = name, rows = count }
  return line and ("%s cannot be read: %s"):format(name, line)
end

local M = {}

---Reads files one after the other.
---@param sources (string|file*)[] paths, and open files
---@param add fun(row: riskscreen.report.Row)
---@return riskscreen.report.Input|nil
---@return string|nil problem
function M.read(sources, add)
  local self = setmetatable({ sources = {}, notes = {}, faults = 0, unreadable = 0 }, Input)
  for _, source in ipairs(sources) do
    local file, problem, name = source, nil, "standard input"
    if type(source) == "string" then
      file, problem = io.open(source, "rb")
      name = source:match "[^/]+$" or source
    end
    if not file then
      return nil, "the input cannot be read: " .. problem
    end
    local ok, failure = pcall(self.read_file, self, name, file, add)
    if type(source) == "string" then
      file:close()
    end
    if not ok then
      error(failure, 0)
    elseif failure then
      return nil, failure
    end
  end
  if self.faults > MAX_NOTES then
    self.notes[#self.notes + 1] = ("%d more lines have a fault."):format(self.faults - MAX_NOTES)
  end
  return self
end

return M
