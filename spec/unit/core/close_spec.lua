-- Finalizers of a program that run after those of the library's objects, while the Lua state closes.
local program = require "spec.support.program"

local function run(...)
  local started, lines = program.start("at_close", { ... }), {}
  for line in started:lines() do
    lines[#lines + 1] = line
  end
  started:close()
  return lines
end

describe("a finalizer at the end of a program", function()
  it("gets an error from a client that is closed already", function()
    assert.same({ "unknown", " the origin is closed" }, run "client")
  end)

  it("gets an error from a loop that is closed already", function()
    assert.same({ "waited", " the loop is closed" }, run "loop")
  end)

  it("writes to a journal", function()
    local path = os.tmpname()
    assert.same({ "written", "written" }, run("journal", path))
    os.remove(path)
    os.remove(path .. ".head")
  end)
end)
