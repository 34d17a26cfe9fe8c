-- The one place of the version is lua/riskscreen/version.lua.
local version = require "riskscreen.version"

local function text_of(path)
  local file = assert(io.open(path))
  local text = file:read "*a"
  file:close()
  return text
end

describe("the version", function()
  it("is a semantic one", function()
    assert.is_truthy(version:find "^%d+%.%d+%.%d+$")
  end)

  it("is the library's and the core's", function()
    assert.equal(version, require("riskscreen")._VERSION)
    assert.equal(version, require("riskscreen.core").version)
  end)

  it("is the one at the head of the changelog", function()
    assert.equal(version, text_of("CHANGELOG.md"):match "\n## (%S+) %([^\n]+%)\n")
  end)
end)

describe("a core of another version", function()
  local names = { "riskscreen.core", "riskscreen.util.core" }

  local function require_with(core)
    local kept, preloaded = {}, package.preload["riskscreen.core"]
    for _, name in ipairs(names) do
      kept[name], package.loaded[name] = package.loaded[name], nil
    end
    package.preload["riskscreen.core"] = function()
      return core
    end
    local ok, result = pcall(require, "riskscreen.util.core")
    package.preload["riskscreen.core"] = preloaded
    for _, name in ipairs(names) do
      package.loaded[name] = kept[name]
    end
    return ok, result
  end

  it("is refused with both versions and the remedy", function()
    local ok, problem = require_with { version = "0.1.0" }
    assert.is_false(ok)
    assert.is_truthy(problem:find("riskscreen.core has version 0.1.0", 1, true), problem)
    assert.is_truthy(problem:find(version .. ": install both from one release", 1, true), problem)
    assert.is_truthy(problem:find("restart nginx: a reload keeps the old core", 1, true), problem)
  end)

  it("is loaded if the versions agree", function()
    local core = { version = version }
    local ok, result = require_with(core)
    assert.is_true(ok)
    assert.equal(core, result)
  end)
end)
