local csv = require "riskscreen.util.csv"
local random = require "spec.support.random"

-- Reads a text in pieces of a size; the rows, each with its line.
local function rows_of(text, size)
  local from = 1
  local next_row = csv.reader(function()
    local piece = text:sub(from, from + (size or 7) - 1)
    from = from + #piece
    return piece ~= "" and piece or nil
  end)
  local rows = {}
  for fields, line, fault in next_row do
    rows[#rows + 1] = { fields = fields, line = line, fault = fault }
  end
  return rows
end

local function fields_of(text, size)
  local list = {}
  for index, row in ipairs(rows_of(text, size)) do
    list[index] = row.fields
  end
  return list
end

describe("CSV", function()
  it("gives the fields of each row, with empty ones", function()
    assert.same({ { "a", "b", "" }, { "", "", "3" } }, fields_of "a,b,\n,,3\n")
  end)

  it("reads a last row without an end, and skips empty lines", function()
    assert.same({ { "a" }, { "b" } }, fields_of "a\r\n\r\n\nb")
  end)

  it("reads quotes with separators, quotes and line ends inside", function()
    assert.same({ { "h", "i" }, { 'a,"b"', "1\n2\r\n3" } }, fields_of 'h,i\n"a,""b""","1\n2\r\n3"\r\n')
  end)

  it("reads what a spreadsheet exports: a byte order mark and semicolons or tabs", function()
    assert.same({ { "address", "net" }, { "x,y", "eth" } }, fields_of "\239\187\191address;net\nx,y;eth\n")
    assert.same({ { "address", "net" }, { "x;y", "eth" } }, fields_of "address\tnet\nx;y\teth\n")
  end)

  it("says on which line a row begins", function()
    local rows = rows_of 'a\n"1\n2"\nb\n'
    assert.equal(1, rows[1].line)
    assert.equal(2, rows[2].line)
    assert.equal(4, rows[3].line)
  end)

  it("reports a row that is not CSV and reads on", function()
    local rows = rows_of 'a,b\n"x"y,2\n"p"\n3,4\n'
    assert.is_false(rows[2].fields)
    assert.equal("text follows a closing quote", rows[2].fault)
    assert.equal(2, rows[2].line)
    assert.same({ "3", "4" }, rows[4].fields)
  end)

  it("reports a quote without an end", function()
    local rows = rows_of 'a\n1\n"2\n3\n'
    assert.is_false(rows[3].fields)
    assert.equal(3, rows[3].line)
    assert.equal("a quote has no end", rows[3].fault)
  end)

  it("passes on a failure of its source", function()
    local next_row = csv.reader(function()
      return nil, "disk gone"
    end)
    local row, problem = next_row()
    assert.is_nil(row)
    assert.equal("disk gone", problem)
  end)

  it("refuses a row without an end instead of holding it", function()
    local pieces = 0
    local next_row = csv.reader(function()
      pieces = pieces + 1
      return ("x"):rep(65536)
    end)
    local row, problem = next_row()
    assert.is_nil(row)
    assert.equal("line 1 is longer than 1048576 bytes", problem)
    assert.is_true(pieces < 20)
  end)

  it("reads back any fields, in pieces of any size", function()
    local numbers = random.new(20)
    local parts = { "a", '"', ",", ";", "\n", "\r\n", "é", " ", "\0" }
    for _ = 1, 300 do
      local expected, lines = { { "head", "er" } }, { "head,er" }
      for _ = 1, 3 do
        local fields, cells = {}, {}
        for column = 1, 2 do
          local text = ""
          for _ = 1, numbers.integer(5) - 1 do
            text = text .. numbers.pick(parts)
          end
          fields[column], cells[column] = text, '"' .. text:gsub('"', '""') .. '"'
        end
        expected[#expected + 1], lines[#lines + 1] = fields, table.concat(cells, ",")
      end
      assert.same(expected, fields_of(table.concat(lines, "\n") .. "\n", numbers.integer(9)))
    end
  end)
end)
