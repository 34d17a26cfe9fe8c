-- Reads the decisions of files: CSV with a header, or one JSON object on each line. One row is in memory at a time. The
-- first lines that have a fault are noted.
local report_rows = require "riskscreen.report.row"
local rows = require "riskscreen.rows"

local MAX_NOTES = 20 -- faults that are named

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

-- A row of the report; or nil for a line that cannot be read. The second value is its fault.
local function decision_of(input, row)
  local found = row.value or row.fields
  if row.fault then
    return nil, row.fault
  elseif row.value and found.lost and not found.action then
    return nil, ("%s decisions could not be recorded here"):format(tostring(found.lost))
  end
  local decision, has_action = report_rows.of(found, not row.value and input.names or nil)
  return decision, not has_action and "it has no verdict" or nil
end

function Input:read_file(name, input, add)
  local count = 0
  for row in input:each() do
    local decision, fault = decision_of(input, row)
    if decision then
      count = count + 1
      add(decision)
    else
      self.unreadable = self.unreadable + 1
      local err = input:invalid(row.line, fault)
      if err then
        error(err, 0)
      end
    end
    if fault then
      local effect = decision and "counts as unknown" or "cannot be read and is not counted"
      self:note(("%s, line %d %s: %s."):format(name, row.line, effect, fault))
    end
  end
  self.sources[#self.sources + 1] = { name = name, rows = count }
end

local M = {}

---Reads files one after the other. A file that is refused raises an error object.
---@param sources (string|file*)[] paths, and open files
---@param settings table the options of options/rows.lua
---@param add fun(row: riskscreen.report.Row)
---@return riskscreen.report.Input
function M.read(sources, settings, add)
  local self = setmetatable({ sources = {}, notes = {}, faults = 0, unreadable = 0 }, Input)
  for _, source in ipairs(sources) do
    local name = type(source) == "string" and (source:match "[^/]+$" or source) or "standard input"
    local input, err = rows.open(source, rows.options_of(settings, { name = name, needs = report_rows.ACTION }))
    if not input then
      error(err, 0)
    end
    local ok, failure = pcall(self.read_file, self, name, input, add)
    input:close()
    if not ok then
      error(failure, 0)
    end
  end
  if self.faults > MAX_NOTES then
    self.notes[#self.notes + 1] = ("%d more lines have a fault."):format(self.faults - MAX_NOTES)
  end
  return self
end

return M
