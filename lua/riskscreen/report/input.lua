-- Reads the decisions of a file: CSV with a header, or one JSON object on each line. One row is in memory at a time.
local csv = require "riskscreen.util.csv"
local json = require "riskscreen.json"
local lines = require "riskscreen.util.lines"
local rows = require "riskscreen.report.row"

local PIECE = 65536 -- bytes that are read at a time
local MAX_LINE = 4194304 -- bytes of a line of JSON

local M = {}

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

---A function that returns the next row of a file and the number of its line. With a fault as third value the row has no
---verdict, and counts as `unknown`; `false` in place of the row: the line cannot be read. At the end, nil; where the
---file cannot be read on, nil and the reason.
---@param file file*
---@return fun(): riskscreen.report.Row|false|nil, integer|string|nil, string|nil
function M.reader(file)
  local read, is_json = pieces_of(file)
  return is_json and json_rows(read) or csv_rows(read)
end

return M
