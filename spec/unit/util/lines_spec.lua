local lines = require "riskscreen.util.lines"

-- The lines of some pieces, each with its number; the reason why there are no more.
local function lines_of(pieces, longest, fault)
  local index, found = 0, {}
  local next_line = lines.reader(function()
    index = index + 1
    return pieces[index], not pieces[index] and fault or nil
  end, longest or 100)
  local line, number = next_line()
  while line do
    found[#found + 1] = ("%d %s"):format(number, line)
    line, number = next_line()
  end
  return found, number
end

describe("The lines of a text in pieces", function()
  it("have their numbers, whatever the pieces are", function()
    local expected = { "1 one", "2 ", "3 two\r", "4 three" }
    assert.same(expected, lines_of { "one\n\ntwo\r\nthree" })
    assert.same(expected, lines_of { "o", "ne\n", "\n", "two\r\nth", "ree\n" })
    assert.same({}, lines_of {})
    assert.same({ "1 " }, lines_of { "\n" })
  end)

  it("begin after a byte order mark", function()
    assert.same({ "1 one", "2 \239\187\191two" }, lines_of { "\239\187", "\191one\n\239\187\191two" })
  end)

  it("end with the reason where the text cannot be read on", function()
    local found, problem = lines_of({ "one\ntw" }, 100, "disk gone")
    assert.same({ "1 one" }, found)
    assert.equal("disk gone", problem)
  end)

  it("end before a line that is too long", function()
    local found, problem = lines_of({ "one\n", ("x"):rep(60), ("x"):rep(60) }, 100)
    assert.same({ "1 one" }, found)
    assert.equal("line 2 is longer than 100 bytes", problem)
  end)
end)
