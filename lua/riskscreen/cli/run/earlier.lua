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
---@field row fun(number: integer): riskscreen.cli.EarlierRow|nil the row with a number, which must not be smaller than
---before; nil after the last row
---@field close fun()

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
  local read, at, current = readers[format](file, columns), 0, nil
  local function row(number)
    while at < number do
      local written, record = read()
      at = at + 1
      if written and not (type(record) == "table" and actions[record.action]) then
        status.misuse(("%s was changed: row %d is none of a run. --force starts again"):format(path, at))
      end
      local is_invalid = record and record.error == "invalid_argument"
      current = written
        and {
          text = written,
          line = tonumber(record.line),
          action = record.action,
          invalid = is_invalid or nil,
          failed = record.error ~= nil and not is_invalid or nil,
          is_earlier = true,
        }
    end
    return current
  end
  return {
    row = row,
    close = function()
      file:close()
    end,
  }
end

return M
