-- Any bytes as a file of rows. The rows do not depend on the pieces, and line numbers only grow. A field that is
-- written as the command writes it reads the same.
local rows = require "riskscreen.rows"
local write = require("riskscreen.cli.output").csv

local MOST_ROWS = 10000

-- An open file, as far as the reader needs one.
local function source_of(text, size)
  local from, source = 1, {}
  function source.read()
    local piece = text:sub(from, from + size - 1)
    from = from + #piece
    return piece ~= "" and piece or nil
  end
  return source
end

local function read(text, size)
  local input, err = rows.open(source_of(text, size), { name = "F", allow_empty = true })
  local found, last = {}, 0
  while input do
    local row
    row, err = input:next()
    if not row then
      break
    end
    assert(row.line > last or input.file.kind ~= "text", "a row begins on the line of the row before it")
    last = row.line
    assert(type(row.fields) == "table" and row.address ~= nil, "a row without fields")
    local cells = { tostring(row.line), tostring(row.address), tostring(row.network), row.fault }
    for _, name in ipairs(input.names) do
      cells[#cells + 1] = tostring(row.fields[name])
    end
    found[#found + 1] = table.concat(cells, "\0")
    assert(#found < MOST_ROWS or #text > MOST_ROWS, "more rows than bytes")
  end
  assert(err == nil or (err.kind == "invalid_argument" and err.message ~= ""), "a refusal without a reason")
  found[#found + 1] = err and err.message
  return found
end

-- A cell with an apostrophe in front of a formula is not the text that it was.
local function check_field(text)
  if text:find "^[=+%-@\t\r]" or text:find "^[\239]" then
    return
  end
  local line = write({ "a", text }, 2)
  local input = rows.open(source_of("address,x\r\n" .. line, 64), {})
  local row = input and input:next()
  assert(not row or row.fields.x == text, "a field that was written reads differently")
end

return function(data)
  local size, text = (data:byte(1) or 1) + 1, data:sub(2)
  local pieces, whole = read(text, size), read(text, #text + 1)
  assert(#pieces == #whole, "the pieces change the number of rows")
  for index, row in ipairs(pieces) do
    assert(row == whole[index], "the pieces change a row")
  end
  check_field(text)
end
