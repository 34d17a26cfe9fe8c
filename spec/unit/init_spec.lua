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

  it("knows no other names", function()
    assert.is_nil(riskscreen.nothing_of_this_name)
  end)
end)
