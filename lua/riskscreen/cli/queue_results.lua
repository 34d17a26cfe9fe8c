-- The CSV file of `riskscreen queue results`. The last cell of each row is the position of its result. So the
-- file alone tells where to go on. A row that was cut by a kill is removed.

local outputs = require "riskscreen.cli.output"
local status = require "riskscreen.cli.status"
local system = require "riskscreen.system"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local TAIL = 1024 * 1024 -- bytes at the end of the file in which the last whole row is sought
local LONGEST_CELL = 10000 -- bytes

---@type riskscreen.cli.Column[]
local columns = outputs.columns.named {
  "source",
  "row",
  "address",
  "network",
  "action",
  "reasons",
  "risks",
  "error",
  "time",
  "fields",
  "position",
}

---@class riskscreen.cli.ResultFile
---@field position? string of the last result in the file
---@field private out file*
local File = {}
File.__index = File

-- The position in the last whole row, and the length of the file up to its end. A cell holds no line break.
local function last_row(out)
  local size = out:seek "end"
  local start = math.max(0, size - TAIL)
  out:seek("set", start)
  local tail = out:read "*a" or ""
  local whole = tail:match "^(.*\n)"
  if not whole then
    return nil, start == 0 and 0 or nil
  end
  return whole:match ",(%d+%-%d+)\r\n$", start + #whole
end

local M = { columns = columns }

---Opens the file, or makes it.
---@param path string
---@return riskscreen.cli.ResultFile
function M.open(path)
  local out = io.open(path, "r+b")
  local is_new = not out
  if is_new then
    local problem
    out, problem = io.open(path, "w+b")
    status.ensure_written(out, problem)
  end
  local locked = system.lock(out)
  if not locked then
    status.misuse(("%s is being written by another program"):format(path))
  end
  local position, size = last_row(out)
  local header = outputs.csv.line(tables.pluck(columns, "name"), #columns)
  if size == 0 then
    out:seek "set"
    status.ensure_written(system.truncate(out, 0))
    status.ensure_written(out:write(header))
  elseif not size or not (position or size == #header) then
    status.misuse(("%s is not a file of this command"):format(path))
  else
    status.ensure_written(system.truncate(out, size))
    out:seek "end"
  end
  status.ensure_written(system.sync(out))
  return setmetatable({ out = out, position = position }, File)
end

-- A value without line breaks.
local function plain(value)
  return type(value) == "string" and text.printable(value, LONGEST_CELL) or value
end

---Writes results and returns when they are on the disk.
---@param results riskscreen.QueueResult[]
function File:write(results)
  for _, result in ipairs(results) do
    local cells = outputs.columns.cells(columns, result)
    for index = 1, #columns do
      cells[index] = plain(cells[index])
    end
    status.ensure_written(self.out:write(outputs.csv.line(cells, #columns)))
  end
  status.ensure_written(system.sync(self.out))
  self.position = results[#results].position
end

function File:close()
  self.out:close()
end

return M
