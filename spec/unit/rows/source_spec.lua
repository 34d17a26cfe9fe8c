-- Lines of a file, on every Lua, and the items of a list.
local sources = require "riskscreen.rows.source"

describe("the reader of a file", function()
  local file

  before_each(function()
    file = assert(io.tmpfile())
  end)

  after_each(function()
    file:close()
  end)

  local function write(content)
    file:write(content)
    file:seek "set"
  end

  local function take(count)
    local read, lines = sources.reader(file), {}
    for index = 1, count do
      lines[index] = read()
    end
    return lines
  end

  it("goes on where another has stopped, or where the program says", function()
    write "one\ntwo\nthree\nfour"
    assert.same({ "one" }, take(1))
    assert.same({ "two", "three" }, take(2))
    assert.same({ "four" }, take(3))
    file:seek "set"
    assert.same({ "one", "two" }, take(2))
    file:seek("set", 4)
    assert.same({ "two" }, take(1))
  end)

  it("keeps NUL bytes and the lines after them", function()
    write "a\0b\nc\n\0\n\0d"
    assert.same({ "a\0b", "c", "\0", "\0d" }, take(9))
  end)

  it("joins pieces to a line", function()
    local long = ("x"):rep(200000)
    write(long .. "\nshort\n" .. long)
    assert.same({ long, "short", long }, take(9))
  end)

  it("skips blank lines and strips line ends and a byte order mark", function()
    write "\239\187\191one\r\n\r\n  \ntwo\r\n\239\187\191three"
    assert.same({ "one", "two", "\239\187\191three" }, take(9))
  end)
end)

describe("the reader of a list", function()
  local function take_all(list, on_item)
    local read = sources.reader(list)
    local items, item, problem = {}, read()
    while item do
      items[#items + 1] = item
      on_item(list)
      item, problem = read()
    end
    return items, problem
  end

  it("fails where items were taken out of the list: those that moved would be left out", function()
    local items, problem = take_all({ "a", "b", "c", "d" }, function(list)
      table.remove(list, 1)
    end)
    assert.same({ "a" }, items)
    assert.equal("the list became shorter while it was read", problem)
  end)

  it("takes items that are added, and lets those go that were taken", function()
    local index = 0
    local items, problem = take_all({ "a", "b" }, function(list)
      index = index + 1
      list[index] = nil
      list[index + 2] = index == 1 and "c" or nil
    end)
    assert.same({ "a", "b", "c" }, items)
    assert.is_nil(problem)
  end)
end)
