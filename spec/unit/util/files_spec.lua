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
    assert.equal(path .. ".part", files.unfinished(link))
    assert.equal("/dev/null", files.target "/dev/null")
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
