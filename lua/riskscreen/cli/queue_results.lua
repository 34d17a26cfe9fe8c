-- The CSV file of `riskscreen queue results`. It names the queue of its rows, and no row is in it twice. A result may
-- come again after a kill, or from a Redis that has lost changes. Redis has no other row of the file any more.
local core = require "riskscreen.core"
local inputs = require "riskscreen.cli.input"
local outputs = require "riskscreen.cli.output"
local records = require("riskscreen.rows").records
local results_files = require "riskscreen.cli.results"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local RESULT = "source row address network action reasons risks error time fields queue"
local columns = outputs.columns.named(text.words(RESULT))
local SUBJECT, QUEUE = 4, #columns -- up to the network, the columns say which row it is

---@class riskscreen.cli.QueueResults
---@field private path string
---@field private out riskscreen.cli.Results
---@field private queue string the queue and its Redis
---@field private subjects table<string, table<integer, integer>> by run and row, a digest of address and network
local File = {}
File.__index = File

local M = {}

---A result or a dead letter with the columns of its input.
---@param entry table
---@return table
function M.with_input(entry)
  return tables.merge(tables.pick(entry.input or {}, { "address", "network", "fields" }), entry)
end

-- The cells of a result, with the input as it was added.
function File:cells_of(result)
  local record = tables.merge(M.with_input(result), { queue = self.queue })
  record.fields = record.fields ~= nil and outputs.json(record.fields) or nil
  return outputs.columns.cells(columns, record)
end

-- Whether a row is in the file; from now on it is. Another address in its place ends the command.
function File:has_row(cells)
  local source, row = cells[1], tonumber(cells[2]) or 0
  local number = tonumber(text.hex(core.sha256(cells[3] .. " " .. cells[4])):sub(1, 8), 16)
  local of_run = self.subjects[source] or {}
  local before = of_run[row]
  self.subjects[source], of_run[row] = of_run, before or number
  if before and before ~= number then
    local message = "%s has another address in row %d of the run %s: -o names another file"
    status.misuse(message:format(self.path, row, text.show(source)))
  end
  return before ~= nil
end

-- Reads the rows of the file. Returns its length up to the last whole row, and the line end that this row lacks.
function File:read()
  local header = outputs.csv_header(columns)
  local beginning = self.out:part(0, #header)
  if beginning ~= header:sub(1, #beginning) then
    status.misuse(("%s is not a file of this command"):format(self.path))
  elseif beginning ~= header then
    return 0, header
  end
  local whole, lacking, next_row = #header, "", self.out:rows()
  next_row() -- the header
  for _, cells, position, lacks_end in next_row do
    if cells[QUEUE] ~= self.queue then
      if lacks_end then
        break
      end
      local message = "%s has the results of the queue %s, and this one is %s: -o names another file"
      status.misuse(message:format(self.path, text.show(cells[QUEUE]), text.show(self.queue)))
    end
    self:has_row(cells)
    whole, lacking = position, lacks_end and "\r\n" or ""
  end
  return whole, lacking
end

-- Whether a row that is not whole was cut by a kill: Redis has its result until the row is on the disk.
function File:is_cut(queue, rest)
  local results
  repeat
    results = status.ensure(queue:results(results and results[#results].position))
    for _, result in ipairs(results) do
      local subject = outputs.csv(self:cells_of(result), SUBJECT):sub(1, -3) .. ","
      if subject:sub(1, #rest) == rest:sub(1, #subject) then
        return not rest:find "\n"
      end
    end
  until not results[1]
  return false
end

---Opens the file, or makes it.
---@param path string
---@param queue riskscreen.Queue
---@param name string of the queue and its Redis
---@return riskscreen.cli.QueueResults
function M.open(path, queue, name)
  inputs.refuse_stream(path, "-o")
  results_files.open(path, "ab"):close()
  local self = setmetatable({ path = path, out = results_files.open(path, "r+b"), queue = name, subjects = {} }, File)
  if not self.out:lock() then
    status.misuse(("%s is being written by another program"):format(path))
  end
  local size, lacking = self:read()
  local rest = size > 0 and text.trim(self.out:part(size)) or ""
  if rest ~= "" and not self:is_cut(queue, rest) then
    local message = "%s: the row behind byte %.0f is not whole, and Redis does not have its result: add its run again, "
      .. "mend the file, or -o names another file"
    status.misuse(message:format(path, size))
  end
  self.out:cut(size)
  self.out:write(lacking)
  self.out:sync()
  return self
end

---Writes results that are not in the file, and returns their number when they are on the disk.
---@param results riskscreen.QueueResult[]
---@return integer
function File:add(results)
  local count = 0
  for _, result in ipairs(results) do
    local row, cells = outputs.csv(self:cells_of(result), QUEUE), {}
    records.split(row:sub(1, -3), ",", cells, true)
    if not self:has_row(cells) then
      self.out:write(row)
      count = count + 1
    end
  end
  self.out:sync()
  return count
end

function File:close()
  self.out:close()
end

return M
