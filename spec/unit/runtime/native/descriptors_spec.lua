-- A program that has no descriptor left, and so cannot load a module either.
local program = require "spec.support.program"

local function run(body)
  local started = program.start("no_descriptors", { body }, { before = "ulimit -n 40" })
  local lines = {}
  for line in started:lines() do
    lines[#lines + 1] = line
  end
  started:close()
  return lines
end

describe("a program without a descriptor left", function()
  it("gets a decision from a client that has called nothing yet", function()
    local lines = run "native"
    assert.matches("^unknown .*: the loop cannot wait for descriptors", lines[1])
  end)

  it("gets the decisions and the results of its calls", function()
    assert.same({ "block", "unknown", "unknown invalid_argument", "r1", "unknown network", "told" }, run "transport")
  end)
end)
