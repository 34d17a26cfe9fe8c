-- A table for people: aligned, no wider than the terminal, each row one line. If its columns do not fit even when they
-- are cut, each record is a block of "name  value" lines.

local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local text_of = require("riskscreen.cli.output.columns").text

local GAP = "  "
local LONGEST_CELL = 4096 -- bytes
local SHORTEST_COLUMN = 12 -- columns that are cut keep so much

local colours = { allow = "32", review = "33", block = "31", unknown = "35", header = "1" }

local M = {}

-- The number of characters of a printable text.
local function width(cell)
  local _, continuations = cell:gsub("[\128-\191]", "")
  return #cell - continuations
end

local function cut(cell, limit)
  if width(cell) <= limit then
    return cell
  end
  local kept, count, position = {}, 0, 1
  while count < limit - 1 do
    local character = cell:match("^[%z\1-\127\192-\255][\128-\191]*", position)
    kept[#kept + 1], position, count = character, position + #character, count + 1
  end
  return table.concat(kept) .. "…"
end

-- The widths that make a table fit, or nil: the columns that may be cut have one greatest width.
local function fitted(columns, natural, limit)
  for longest = math.min(limit, math.max(SHORTEST_COLUMN, tables.unpack(natural))), SHORTEST_COLUMN, -1 do
    local widths, total = {}, #GAP * (#columns - 1)
    for index, size in ipairs(natural) do
      widths[index] = columns[index].whole and size or math.min(size, longest)
      total = total + widths[index]
    end
    if total <= limit then
      return widths
    end
  end
end

local function painted(cell, colour, is_coloured)
  return is_coloured and colour and ("\27[%sm%s\27[0m"):format(colour, cell) or cell
end

local function row_line(columns, widths, cells, is_coloured, colour)
  local parts = {}
  for index, column in ipairs(columns) do
    local cell = cut(cells[index], widths[index])
    local padding = index < #columns and (" "):rep(widths[index] - width(cell)) or ""
    parts[index] = painted(cell, colour or column.colour and colours[cell], is_coloured) .. padding
  end
  return (table.concat(parts, GAP):gsub(" +$", "")) .. "\n"
end

local function blocks(columns, rows, is_coloured)
  local lines, longest = {}, 0
  for _, column in ipairs(columns) do
    longest = math.max(longest, width(column.name))
  end
  for number, cells in ipairs(rows) do
    if number > 1 then
      lines[#lines + 1] = "\n"
    end
    for index, column in ipairs(columns) do
      if cells[index] ~= "" then
        local name = painted(column.name, colours.header, is_coloured)
        local value = painted(cells[index], column.colour and colours[cells[index]], is_coloured)
        lines[#lines + 1] = name .. (" "):rep(longest - width(column.name)) .. GAP .. value .. "\n"
      end
    end
  end
  return table.concat(lines)
end

-- The columns that have a value in some row, the cells of the rows, and the widths of the columns.
local function filled(columns, rows)
  local kept, cells, widths = {}, {}, {}
  for index, column in ipairs(columns) do
    local place, has_value, widest = #kept + 1, false, width(column.name)
    for number, row in ipairs(rows) do
      local cell = text.printable(text_of(row[index]), LONGEST_CELL)
      cells[number] = cells[number] or {}
      cells[number][place] = cell -- the next column takes the place of one without a value
      has_value, widest = has_value or row[index] ~= nil, math.max(widest, width(cell))
    end
    if has_value then
      kept[place], widths[place] = column, widest
    end
  end
  return kept, cells, widths
end

---The text of a table. Columns without any value are left out.
---@param columns riskscreen.cli.Column[]
---@param rows any[][] cells, with holes
---@param limit integer|nil columns of the terminal; nil: no limit
---@param is_coloured boolean
---@param as_block? boolean one record: a block of lines
---@return string
function M.render(columns, rows, limit, is_coloured, as_block)
  local kept, cells, natural = filled(columns, rows)
  local widths = not as_block and fitted(kept, natural, limit or math.huge)
  if not widths then
    return blocks(kept, cells, is_coloured)
  end
  local lines = { row_line(kept, widths, tables.pluck(kept, "name"), is_coloured, colours.header) }
  for index, row in ipairs(cells) do
    lines[index + 1] = row_line(kept, widths, row, is_coloured)
  end
  return table.concat(lines)
end

return M
