local files = require "riskscreen.util.files"
local temporary = require "spec.support.temporary"

describe("two files", function()
  after_each(temporary.clean)

  it("are one by any link, and open ones too", function()
    local path, link = temporary.path "one", temporary.path "two"
    temporary.write(path, "x")
    assert(os.execute(("ln -s %s %s"):format(path, link)))
    local file = io.open(path)
    assert.is_true(files.are_one(path, link))
    assert.is_true(files.are_one(file, link))
    assert.is_false(files.are_one(path, path .. "x"))
    assert.is_false(files.are_one("/dev/null", "/dev/null"))
    file:close()
  end)
end)

describe("a file behind links", function()
  after_each(temporary.clean)

  it("has its name, and what belongs to it stands beside it", function()
    local path, link = temporary.path "target", temporary.path "link"
    temporary.write(path, "x")
    assert(os.execute(("ln -s %s %s"):format(path, link)))
    assert.equal(path, files.target(path))
    assert.equal(path, files.target(link))
    assert.equal(path .. ".riskscreen-part", files.unfinished(link))
    assert.equal("/dev/null", files.target "/dev/null")
  end)

  it("has its name also before it is there", function()
    local target, link, second = temporary.path "target", temporary.path "link", temporary.path "second"
    assert(os.execute(("ln -s target %s; ln -s %s %s"):format(link, link, second)))
    assert.equal(target, files.target(link))
    assert.equal(target, files.target(second))
    assert.is_true(files.write(second, "new"))
    assert.equal("new", files.read(target))
    assert.equal(target, files.target(second))
  end)

  it("is replaced, and the link stays", function()
    local path, link = temporary.path "target", temporary.path "link"
    temporary.write(path, "old")
    assert(os.execute(("ln -s %s %s"):format(path, link)))
    assert.is_true(files.write(link, "new"))
    assert.equal("new", files.read(path))
    assert.equal(path, files.target(link))
  end)
end)

describe("a file that is replaced", function()
  after_each(temporary.clean)

  it("is replaced by one program at a time", function()
    local path = temporary.path "file"
    temporary.write(path, "old")
    local file, finish = files.replace(path)
    local other, problem = files.replace(path)
    assert.same({ nil, "another program is writing it" }, { other, problem })
    assert.is_nil((files.write(path, "other")))
    file:write "new"
    assert.equal("old", files.read(path))
    assert.is_true(finish(true))
    assert.equal("new", files.read(path))
    assert.is_true(files.write(path, "later"))
    assert.same({ "file" }, temporary.names())
  end)

  it("is replaced after a program that was killed", function()
    local path = temporary.path "file"
    temporary.write(path .. ".riskscreen-part", "half")
    assert.is_true(files.write(path, function(before)
      return before .. "new"
    end))
    assert.equal("new", files.read(path))
    assert.same({ "file" }, temporary.names())
  end)
end)
