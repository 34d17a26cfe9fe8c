-- The output of a verb: records as a table for people, or as JSON, JSON lines or CSV for programs.

local columns_of = require "riskscreen.cli.output.columns"
local files = require "riskscreen.util.files"
local json = require "riskscreen.json"
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

local M = { columns = columns_of, table = render }

local slashes = { ["/"] = "/" }

---The JSON text of a value on one line. The members of an object always come in the same order.
---@param value any
---@param order? string[] the first members of an object; the others follow by name
---@return string
function M.json(value, order)
  -- The encoder escapes each slash, which JSON does not ask for.
  return (json.ordered(value, order):gsub("\\(.)", slashes))
end

-- A cell of CSV by RFC 4180. One that a spreadsheet would take for a formula gets an apostrophe in front.
local function csv_cell(value)
  if type(value) ~= "string" then
    return columns_of.text(value)
  elseif value:find "^[=+%-@\t\r]" then
    value = "'" .. value
  end
  if value:find '[",\r\n]' or value:find "^%s" or value:find "%s$" then
    value = '"' .. value:gsub('"', '""') .. '"'
  end
  return value
end

---A line of CSV with its end.
---@param cells any[]
---@param count integer
---@return string
function M.csv(cells, count)
  local written = {}
  for index = 1, count do
    written[index] = csv_cell(cells[index])
  end
  return table.concat(written, ",") .. "\r\n"
end

---The header of CSV.
---@param columns riskscreen.cli.Column[]
---@return string
function M.csv_header(columns)
  return M.csv(tables.pluck(columns, "name"), #columns)
end

-- Whether the standard output is a file whose last line has no end, as a full disk or a kill leaves it.
local function is_torn(out)
  local file = out == io.stdout and files.kind "/dev/stdout" == "file" and io.open("/dev/stdout", "rb") or nil
  local last = file and file:seek("end", -1) and file:read(1)
  return file and file:close() and last and last ~= "\n"
end

---A function that writes a line for a program and flushes it. It begins on a new line where a part of one may be.
---@param out table
---@return fun(line: string): any, any ok or nil and the problem
function M.line_writer(out)
  local before = is_torn(out) and "\n" or ""
  return function(line)
    local written, problem = out:write(before, line, "\n")
    if written then
      written, problem = out:flush()
    end
    before = written and "" or "\n"
    return written, problem
  end
end

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
  write(self, M.csv(columns_of.cells(self.columns, record), #self.columns))
end

function writers.jsonl(self, record)
  write(self, M.json(record, self.order), "\n")
end

function writers.json(self, record)
  local before = self.single and "" or self.count == 1 and "[\n" or ",\n"
  write(self, before, M.json(record, self.order))
end

function finishers.json(self)
  write(self, self.single and "\n" or self.count == 0 and "[]\n" or "\n]\n")
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
  local fields = { columns = columns, order = order, single = single or false, rows = {}, count = 0 }
  local self = setmetatable(tables.merge(settings, fields), Output)
  if self.format == "csv" then
    write(self, M.csv_header(columns))
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
