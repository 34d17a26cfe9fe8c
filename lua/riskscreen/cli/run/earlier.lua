-- The results of a complete run, row by row, for a run that asks again for the rows that failed.

local json = require "riskscreen.json"
local records = require("riskscreen.rows").records
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"

local PIECE = 65536 -- bytes

local actions = tables.set { "allow", "review", "block", "unknown" }

---@class riskscreen.cli.EarlierRow: riskscreen.cli.Answer
---@field line integer of the input
---@field is_earlier true

---@class riskscreen.cli.Earlier
---@field private path string
---@field private file file*
---@field private read fun(): string|nil, table|nil the text and the record of the next row
---@field private number integer of the current row
---@field private current? riskscreen.cli.EarlierRow
local Earlier = {}
Earlier.__index = Earlier

local readers = {}

function readers.csv(file, columns)
  local next_row = records.rows(records.lines(function()
    return file:read(PIECE)
  end))
  next_row() -- the header
  local cells = {}
  return function()
    local row, _, has_quotes = next_row()
    if row then
      local record = {}
      records.split(row, ",", cells, has_quotes)
      for index, column in ipairs(columns) do
        record[column.name] = cells[index] ~= "" and cells[index] or nil
      end
      return row .. "\r\n", record
    end
  end
end

function readers.jsonl(file)
  return function()
    local line = file:read "*l"
    return line and line .. "\n", line and json.decode(line)
  end
end

local M = {}

---@param path string
---@param format "csv"|"jsonl"
---@param columns riskscreen.cli.Column[]
---@return riskscreen.cli.Earlier
function M.open(path, format, columns)
  local file = assert(io.open(path, "rb"))
  return setmetatable({ path = path, file = file, read = readers[format](file, columns), number = 0 }, Earlier)
end

---The row with a number, which must not be smaller than before; nil after the last row.
---@param number integer
---@return riskscreen.cli.EarlierRow|nil
function Earlier:row(number)
  while self.number < number do
    local written, record = self.read()
    self.number = self.number + 1
    if written and not (type(record) == "table" and actions[record.action]) then
      status.misuse(("%s was changed: row %d is none of a run. --force starts again"):format(self.path, self.number))
    end
    local is_invalid = record and record.error == "invalid_argument"
    self.current = written
      and {
        text = written,
        line = tonumber(record.line),
        action = record.action,
        invalid = is_invalid or nil,
        failed = record.error ~= nil and not is_invalid or nil,
        is_earlier = true,
      }
  end
  return self.current
end

function Earlier:close()
  self.file:close()
end

return M
