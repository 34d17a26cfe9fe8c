-- Any text as CSV. Its rows do not depend on the pieces in which it is read, and their lines only grow. A row that is
-- written as the command writes it reads the same.
local csv = require "riskscreen.util.csv"
local write = require("riskscreen.cli.output").csv

local MOST_ROWS = 10000

local function rows_of(text, size)
  local from = 1
  local next_row = csv.reader(function()
    local piece = text:sub(from, from + size - 1)
    from = from + #piece
    return piece ~= "" and piece or nil
  end)
  local rows = {}
  while true do
    local fields, line, fault = next_row()
    if fields == nil then
      assert(line == nil, "a text in memory cannot fail")
      return rows
    end
    rows[#rows + 1] = { fields = fields, line = line, fault = fault }
    assert(#rows < MOST_ROWS or #text > MOST_ROWS, "more rows than bytes")
  end
end

local function same(left, right)
  if type(left) ~= "table" or type(right) ~= "table" then
    return left == right
  elseif #left ~= #right then
    return false
  end
  for index, value in ipairs(left) do
    if value ~= right[index] then
      return false
    end
  end
  return true
end

local function check_rows(rows)
  local last = 0
  for _, row in ipairs(rows) do
    assert(row.line > last, "a row begins on the line of the row before it")
    last = row.line
    assert(row.fields == false == (row.fault ~= nil), "a fault without a broken row")
    assert(row.fields == false or #row.fields > 0, "a row without a field")
  end
end

-- A cell with an apostrophe in front of a formula is not the text that it was.
local function is_plain(fields)
  for _, field in ipairs(fields) do
    if field:find "^[=+%-@\t\r]" then
      return false
    end
  end
  return #fields > 1
end

return function(data)
  local size = data:byte(1) or 1
  local text = data:sub(2)
  local rows = rows_of(text, size + 1)
  check_rows(rows)
  local whole = rows_of(text, #text + 1)
  assert(#whole == #rows, "the pieces change the number of rows")
  for index, row in ipairs(rows) do
    assert(same(row.fields, whole[index].fields) and row.line == whole[index].line, "the pieces change a row")
    if row.fields and is_plain(row.fields) then
      -- A header before it settles the separator.
      local again = rows_of("a,b\n" .. write.line(row.fields, #row.fields), 64)
      assert(#again == 2 and same(again[2].fields, row.fields), "a row that was written reads differently")
    end
  end
end
