local riskscreen = require "riskscreen"

describe("require 'riskscreen'", function()
  it("gives new, errors and sleep", function()
    assert.is_function(riskscreen.new)
    assert.is_function(riskscreen.sleep)
    assert.equal(require "riskscreen.errors", riskscreen.errors)
  end)

  it("refuses a Lua with 32-bit numbers", function()
    local interpreter = os.getenv "RISKSCREEN_LUA" or "lua5.4"
    local command = [[%s -e 'math.maxinteger = 2147483647; print(pcall(require, "riskscreen"))']]
    local pipe = assert(io.popen(command:format(interpreter)))
    local output = pipe:read "*a"
    pipe:close()
    assert.matches("^false.*64%-bit integers and doubles", output)
  end)

  it("loads what a call needs, and the rest when it is first named", function()
    local interpreter = os.getenv "RISKSCREEN_LUA" or "lua5.4"
    local program = [[require "riskscreen"
      local count = 0
      for name in pairs(package.loaded) do count = count + (name:find "^riskscreen" and 1 or 0) end
      print(count)]]
    local pipe = assert(io.popen(("%s -e '%s'"):format(interpreter, program)))
    local count = pipe:read "*n"
    pipe:close()
    assert.is_true(count <= 60, count .. " modules")
  end)

  it("names the package of a room that is not installed, at the caller's line", function()
    local interpreter = os.getenv "RISKSCREEN_LUA" or "lua5.4"
    local program = [[local riskscreen = require "riskscreen", require "riskscreen.util.missing"
      package.path, package.cpath = "", ""
      print(select(2, pcall(function() return riskscreen.store end)))]]
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(program)
    file:close()
    local pipe = assert(io.popen(interpreter .. " " .. path))
    local output = pipe:read "*l"
    pipe:close()
    os.remove(path)
    assert.matches(":3: the Lua module riskscreen.store is not installed for ", output, 1, true)
    assert.matches(": apt install lua-riskscreen-durable", output, 1, true)
  end)

  it("knows no other names", function()
    assert.is_nil(riskscreen.nothing_of_this_name)
  end)
end)
