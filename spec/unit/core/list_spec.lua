local build = require("riskscreen.lists.build").build
local core = require "riskscreen.core"
local list_files = require "spec.support.list_files"

local address = list_files.address

describe("a list in the core", function()
  local directory, path

  setup(function()
    directory = list_files.new()
    local rows = { "address,note" }
    for number = 1, 20000 do
      rows[#rows + 1] = address(number) .. ",n" .. number
    end
    directory:write("long.csv", table.concat(rows, "\n"))
    directory:write("short.csv", table.concat(rows, "\n", 1, 4))
    for _, name in ipairs { "long", "short" } do
      assert(build { output = directory:path(name .. ".rsl"), inputs = directory:path(name .. ".csv"), time = 7 })
    end
  end)

  before_each(function()
    path = directory:path "list.rsl"
  end)

  teardown(function()
    directory:remove()
  end)

  local function open(name)
    os.remove(path)
    directory:write("list.rsl", directory:read(name))
    return assert(core.list(path))
  end

  local function in_place(change)
    local file = assert(io.open(path, "r+b"))
    change(file)
    file:close()
  end

  it("is verified in steps, and searched only then", function()
    local list, steps = open "long.rsl", 1
    assert.error_matches(function()
      list:find(address(1), "eth", 1)
    end, "not verified")
    while not list:verify(1) do
      steps = steps + 1
    end
    assert.is_true(steps > 4)
    assert.equal("n1", (list:find(address(1), "eth", 1)))
    assert.is_true(list:verify(1))
  end)

  it("finds every entry of a long list and of a short one", function()
    local list = open "long.rsl"
    assert.is_true(list:verify(2 ^ 40))
    local found, strangers = 0, 0
    for number = 1, 20000 do
      found = found + (list:find(address(number), "eth", 1) == "n" .. number and 1 or 0)
      strangers = strangers + (list:find(address(number + 20000), "eth", 1) == false and 1 or 0)
    end
    assert.same({ 20000, 20000 }, { found, strangers })
    list = open "short.rsl"
    assert.is_true(list:verify(2 ^ 40))
    assert.equal("n3", (list:find(address(3), "eth", 1)))
    assert.is_false(list:find("", "eth", 1))
    assert.is_false(list:find(("x"):rep(1000), "", 1))
  end)

  for _, name in ipairs { "short.rsl", "long.rsl" } do
    it("is refused if a byte is changed or missing: " .. name, function()
      local content = directory:read(name)
      local places = { 1, 9, 13, 17, 25, 33, 41, 49, 53, 257, math.floor(#content / 2), #content }
      for _, at in ipairs(places) do
        local changed = string.char(content:byte(at) % 255 + 1)
        directory:write("list.rsl", content:sub(1, at - 1) .. changed .. content:sub(at + 1))
        local list, problem = core.list(path)
        if list then
          list, problem = list:verify(2 ^ 40)
        end
        assert.is_nil(list, "byte " .. at)
        assert.is_string(problem)
        directory:write("list.rsl", content:sub(1, at - 1))
        assert.is_nil((core.list(path)), "length " .. at - 1)
      end
    end)
  end

  it("goes on with the old content where the file is replaced by renaming", function()
    local list = open "long.rsl"
    assert.is_true(list:verify(2 ^ 40))
    directory:write("list.rsl", directory:read "short.rsl")
    assert.equal("n20000", (list:find(address(20000), "eth", 1)))
    os.remove(path)
    assert.equal("n20000", (list:find(address(20000), "eth", 1)))
  end)

  it("is refused, and kills nothing, where a mapped file is cut in place", function()
    local list = open "long.rsl"
    assert.is_true(list:verify(2 ^ 40))
    assert(os.execute(": > " .. path))
    local note, problem = list:find(address(1), "eth", 1)
    assert.is_nil(note)
    assert.matches("changed in place", problem)
  end)

  it("is refused where a file is cut while it is verified", function()
    local list = open "long.rsl"
    assert.is_false(list:verify(1))
    assert(os.execute("truncate -s 300000 " .. path))
    local done, problem = list:verify(2 ^ 40)
    assert.is_nil(done)
    assert.matches("ends too early", problem)
  end)

  it("does not notice what happens to the file of a short list, which it has copied", function()
    local list = open "short.rsl"
    assert.is_true(list:verify(2 ^ 40))
    in_place(function(file)
      file:write(("x"):rep(100))
    end)
    assert.equal("n1", (list:find(address(1), "eth", 1)))
  end)

  it("is refused if any user may write the file, and if it is none", function()
    open "short.rsl"
    assert(os.execute("chmod 666 " .. path))
    assert.matches("any user may write it", (select(2, core.list(path))))
    assert.matches("any user may write it", (select(2, core.list_identity(path))))
    assert.matches("not a regular file", (select(2, core.list "/dev/null")))
    assert.matches("No such file", (select(2, core.list(directory:path "none"))))
    assert.matches("not a compiled list", (select(2, core.list(directory:path "long.csv"))))
  end)

  it("has an identity that changes with the file", function()
    open "short.rsl"
    local first = assert(core.list_identity(path))
    assert.equal(first, (core.list_identity(path)))
    directory:write("list.rsl", directory:read "short.rsl")
    assert.are_not.equal(first, (core.list_identity(path)))
  end)

  it("raises when it is closed", function()
    local list = open "short.rsl"
    list:close()
    list:close()
    assert.error_matches(function()
      list:verify(1)
    end, "closed")
    assert.error_matches(function()
      list:facts()
    end, "closed")
  end)
end)

describe("a writer of lists in the core", function()
  it("refuses an entry that is empty or too long", function()
    local directory = list_files.new()
    local writer = assert(core.list_writer(directory:path "x.rsl", 4096))
    assert.is_nil((writer:add("", "a", "", 0)))
    assert.is_nil((writer:add("*", "", "", 0)))
    assert.is_nil((writer:add("*", ("a"):rep(256), "", 0)))
    assert.is_nil((writer:add("*", "a", ("n"):rep(1001), 0)))
    assert.is_true(writer:add("*", ("a"):rep(255), ("n"):rep(1000), 0))
    assert.equal(1, writer:finish(1, "").entries)
    assert.error_matches(function()
      writer:add("*", "a", "", 0)
    end, "closed")
    directory:remove()
  end)
end)
