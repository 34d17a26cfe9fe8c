local loaders = require "riskscreen.lists.loaders"

-- The entries that a loader finds in a text that comes in pieces of `size` bytes.
local function load(kind, content, size)
  local at, rows, invalid = 1, {}, {}
  local sink = {}
  function sink.row(row)
    rows[#rows + 1] = row
  end
  function sink.invalid(line, problem)
    invalid[#invalid + 1] = { line, problem }
  end
  local ok, problem = loaders[kind](function()
    local piece = content:sub(at, at + (size or 7) - 1)
    at = at + #piece
    return piece ~= "" and piece or nil
  end, sink)
  return ok and rows, ok and invalid or problem
end

describe("a list as text", function()
  it("has an address a line, perhaps a network, and a note", function()
    local rows, invalid = load("text", "\239\187\191# ours\r\nA1\r\nB2 eth # why\n\n  C3,btc\nD4")
    assert.same({
      { address = "A1", network = "", note = "", line = 2 },
      { address = "B2", network = "eth", note = " why", line = 3 },
      { address = "C3", network = "btc", note = "", line = 5 },
      { address = "D4", network = "", note = "", line = 6 },
    }, rows)
    assert.same({}, invalid)
  end)

  it("has no more words in a line", function()
    local rows, invalid = load("text", "A1 eth since May\nB2")
    assert.equal(1, #rows)
    assert.equal(1, invalid[1][1])
  end)
end)

describe("a list as CSV", function()
  it("has its columns by their names, in any order", function()
    local rows = load("csv", 'Note;Expires;owner;ADDRESS\n"a ""b""";2026-12-31;x;A1\n;;;B2\n')
    assert.same({
      { note = 'a "b"', expires = "2026-12-31", owner = "x", address = "A1", line = 2 },
      { note = "", expires = "", owner = "", address = "B2", line = 3 },
    }, rows)
  end)

  it("has address, network, note and expires without a header", function()
    assert.same({ { address = "A1", network = "eth", note = "why", line = 1 } }, (load("csv", "A1,eth,why\n")))
  end)

  it("is refused for a column that looks misspelt, which could let an entry last for ever", function()
    local rows, problem = load("csv", "address,expire\nA1,2026-12-31\n")
    assert.is_false(rows or false)
    assert.matches("did you mean 'expires'", problem)
    assert.matches("stands twice", (select(2, load("csv", "address,note,note\n"))))
  end)

  it("reports rows that are not CSV", function()
    local rows, invalid = load("csv", 'address,note\nA1,"x"y\nB2,\n')
    assert.equal("B2", rows[1].address)
    assert.equal(2, invalid[1][1])
  end)
end)

describe("a list as JSON", function()
  it("is an array of texts and objects", function()
    assert.same({
      { address = "A1", line = 1 },
      { address = "B2", network = "eth", note = "why", expires = 5, line = 2 },
    }, (load("json", '["A1", {"address":"B2","network":"eth","note":"why","expires":5,"source":"x"}]')))
  end)

  it("is refused where it is no array, or no JSON", function()
    assert.matches("array", (select(2, load("json", '{"address":"A1"}'))))
    assert.is_false(load("json", "[") or false)
  end)

  it("reports an object with a misspelt field", function()
    local rows, invalid = load("json", '["A1", {"adress":"B2"}]')
    assert.equal(1, #rows)
    assert.same({ 2, "'adress' is not a field of a list; did you mean 'address'?" }, invalid[1])
  end)

  it("may have one value a line", function()
    local rows, invalid = load("jsonl", '"A1"\n\n{"address":"B2"}\n{\n')
    assert.same({ { address = "A1", line = 1 }, { address = "B2", line = 3 } }, rows)
    assert.equal(4, invalid[1][1])
  end)
end)

describe("the kind of a list file", function()
  it("is that of its ending", function()
    local kinds = { ["a.rsl"] = "rsl", ["b/A.CSV"] = "csv", x = "text", ["x.txt"] = "text", ["s.xml"] = "xml" }
    for path, kind in pairs(kinds) do
      assert.equal(kind, loaders.kind_of(path))
    end
    assert.is_nil(loaders.kind_of "list.exe")
  end)
end)
