-- The output of a verb: records as a table for people, or as JSON, JSON lines or CSV for programs.

local columns_of = require "riskscreen.cli.output.columns"
local csv = require "riskscreen.cli.output.csv"
local json = require "riskscreen.cli.output.json"
local render = require("riskscreen.cli.output.table").render
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"

---@class riskscreen.cli.Output
---@field format "table"|"json"|"jsonl"|"csv"
---@field quiet boolean
---@field private out table where `write` goes
---@field private columns riskscreen.cli.Column[]
---@field private single boolean one record, not a list of them
---@field private rows any[][]
---@field private count integer
local Output = {}
Output.__index = Output

local M = {
  formats = { "table", "json", "jsonl", "csv" },
  columns = columns_of,
  csv = csv,
  json = json,
  table = render,
}

-- A program that reads a part of the results must not take it for all of them.
local function write(self, ...)
  status.ensure_written(self.out:write(...))
end

local writers, finishers = {}, {}

function writers.table(self, record)
  self.rows[#self.rows + 1] = columns_of.cells(self.columns, record)
end

function finishers.table(self)
  if #self.rows > 0 then
    write(self, render(self.columns, self.rows, self.width, self.coloured, self.single))
  end
end

function writers.csv(self, record)
  write(self, csv.line(columns_of.cells(self.columns, record), #self.columns))
end

function writers.jsonl(self, record)
  write(self, json.encode(record, self.order), "\n")
end

function writers.json(self, record)
  local before = self.single and "" or self.count == 1 and "[\n" or ",\n"
  write(self, before, json.encode(record, self.order))
end

function finishers.json(self)
  if self.single then
    write(self, "\n")
  else
    write(self, self.count == 0 and "[]\n" or "\n]\n")
  end
end

---A new output. `context` says format, stream, width and colour.
---@param settings { format: string, out: table, width?: integer, coloured: boolean }
---@param columns (string|riskscreen.cli.Column)[] the fields of CSV and of the table; JSON has the whole record
---@param single? boolean one record, not a list
---@return riskscreen.cli.Output
function M.new(settings, columns, single)
  local order = {}
  columns = columns_of.named(columns)
  for index, column in ipairs(columns) do
    order[index] = (column.path or { column.name })[1]
  end
  local self = setmetatable({
    format = settings.format,
    out = settings.out,
    width = settings.width,
    coloured = settings.coloured,
    columns = columns,
    order = order,
    single = single or false,
    rows = {},
    count = 0,
  }, Output)
  if self.format == "csv" then
    write(self, csv.line(tables.pluck(columns, "name"), #columns))
  end
  return self
end

---Writes a record.
---@param record table
function Output:add(record)
  self.count = self.count + 1
  writers[self.format](self, record)
end

---Ends the output.
function Output:finish()
  if finishers[self.format] then
    finishers[self.format](self)
  end
  status.ensure_written(self.out:flush())
end

return M
