-- Readers of list files: text, CSV, JSON, JSON lines, and the XML of OFAC (ofac.lua). Each reads pieces of a text and
-- calls `sink.row` for every row. A row that is malformed goes to `sink.invalid`.
local csv = require "riskscreen.util.csv"
local entries = require "riskscreen.lists.entry"
local json = require "riskscreen.json"
local lines = require "riskscreen.util.lines"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local LONGEST_LINE = 65536 -- bytes
local LONGEST_JSON = 64 * 1024 * 1024 -- bytes

---@class riskscreen.ListSink
---@field row fun(row: riskscreen.ListRow)
---@field invalid fun(line: integer|nil, problem: string)
---@field skipped fun(symbol: string, line: integer|nil, reason: string) of OFAC's files

---@alias riskscreen.ListReader fun(): string|nil, string|nil the next piece; nil at the end, with a message at a fault
---@alias riskscreen.ListLoader fun(read: riskscreen.ListReader, sink: riskscreen.ListSink): true|nil, string|nil

local M = {}

-- Calls a function for each line of a text in pieces. Returns true, or nil and the reason why it cannot be read.
local function each_line(read, call)
  local next_line = lines.reader(read, LONGEST_LINE)
  while true do
    local line, number = next_line()
    if not line then
      return not number or nil, number
    end
    call((line:gsub("\r$", "")), number)
  end
end

-- An address a line, perhaps its network after a space or a comma, and a note after "#".
function M.text(read, sink)
  return each_line(read, function(line, number)
    local content, note = line:match "^([^#]*)#?(.*)$"
    local address, network, rest = content:match "^%s*([^%s,;]+)[%s,;]*([^%s,;]*)%s*(.-)%s*$"
    if address and rest == "" then
      sink.row { address = address, network = network, note = note, line = number }
    elseif address then
      sink.invalid(number, ("expected an address and at most a network (got %s)"):format(text.show(content)))
    end
  end)
end

-- The fields by column: of a header, or the fixed ones where the first row has no column "address".
local function columns_of(row)
  local names, has_address = {}, false
  for index, name in ipairs(row) do
    names[index] = name:match("^%s*(.-)%s*$"):lower()
    has_address = has_address or names[index] == "address"
  end
  local first_problem = entries.misspelt(names[1])
  if not has_address and not first_problem then
    return entries.FIELDS, false
  end
  local known = tables.set(entries.FIELDS)
  for _, name in ipairs(names) do
    local problem = entries.misspelt(name)
    if problem then
      return nil, problem
    elseif known[name] == "seen" then
      return nil, ("the column %s stands twice"):format(text.show(name))
    end
    known[name] = known[name] and "seen"
  end
  return names, true
end

function M.csv(read, sink)
  local next_row, columns = csv.reader(read), nil
  while true do
    local row, line, fault = next_row()
    if row == nil then
      return not line or nil, line
    elseif row and not columns then
      local is_header
      columns, is_header = columns_of(row)
      if not columns then
        return nil, ("line %d: %s"):format(line, is_header)
      end
      row = not is_header and row
      fault = nil
    end
    if row then
      local fields = { line = line }
      for index, name in ipairs(columns) do
        fields[name] = row[index]
      end
      sink.row(fields)
    elseif fault then
      sink.invalid(line, fault)
    end
  end
end

-- The row of a JSON value: a text, or an object.
local function json_row(value, line, sink)
  if type(value) ~= "table" then
    return sink.row { address = value, line = line }
  end
  for name in pairs(value) do
    local problem = entries.misspelt(name)
    if problem then
      return sink.invalid(line, problem)
    end
  end
  sink.row { address = value.address, network = value.network, note = value.note, expires = value.expires, line = line }
end

-- Of an array the line is the position of the element.
function M.json(read, sink)
  local pieces, size = {}, 0
  while true do
    local piece, problem = read()
    if problem then
      return nil, problem
    elseif not piece then
      break
    end
    pieces[#pieces + 1], size = piece, size + #piece
    if size > LONGEST_JSON then
      return nil, ("it is longer than %d bytes; write one value a line into a file .jsonl"):format(LONGEST_JSON)
    end
  end
  local list, problem = json.decode(table.concat(pieces))
  if type(list) ~= "table" or not tables.sequence_length(list) then
    return nil, list == nil and tostring(problem) or "it must be an array"
  end
  for position, value in ipairs(list) do
    json_row(value, position, sink)
  end
  return true
end

function M.jsonl(read, sink)
  return each_line(read, function(line, number)
    if line:find "%S" then
      local value, problem = json.decode(line)
      if value == nil then
        return sink.invalid(number, tostring(problem))
      end
      json_row(value, number, sink)
    end
  end)
end

function M.xml(read, sink)
  return require("riskscreen.lists.ofac").load(read, sink)
end

local by_ending = {
  csv = "csv",
  tsv = "csv",
  json = "json",
  jsonl = "jsonl",
  ndjson = "jsonl",
  txt = "text",
  list = "text",
  xml = "xml",
}

---The kind of a file by its ending; nil for another ending.
---@param path string
---@return "csv"|"json"|"jsonl"|"text"|"xml"|"rsl"|nil
function M.kind_of(path)
  local ending = path:match "%.(%w+)$"
  ending = ending and ending:lower()
  return ending == "rsl" and "rsl" or by_ending[ending or "txt"]
end

return M
