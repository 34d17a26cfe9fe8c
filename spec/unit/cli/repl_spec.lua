-- riskscreen repl: the prompt.
local cli = require "spec.support.cli"

local function input(text)
  local next_line = text:gmatch "([^\n]*)\n"
  return {
    read = function()
      return next_line()
    end,
  }
end

local function answers(lines)
  local status, out = cli.run({ "repl", "--sandbox", "-q" }, { input = input(lines) })
  assert.equal(0, status)
  return out
end

describe("riskscreen repl", function()
  after_each(function()
    rawset(_G, "riskscreen", nil)
    rawset(_G, "client", nil)
  end)

  it("has the library and a client", function()
    local address = require("riskscreen").sandbox.scenario("type-hack").address
    local out =
      answers(("client:screen { address = %q, network = 'eth' }.action\nriskscreen._VERSION\n"):format(address))
    assert.equal("block\n" .. require "riskscreen.version" .. "\n", out)
  end)

  it("runs statements over several lines", function()
    assert.equal("3\n", answers "for _ = 1, 1 do\nx = 3\nend\nx\n")
  end)

  it("says what the input lacks where it ends within a statement", function()
    assert.matches("^1\nstdin:%d+: .* near [^\n]*<eof>[^\n]*\n$", answers "1\nprint(\n")
  end)

  it("goes on after an error", function()
    assert.matches("^stdin:1: [^\n]+\n[^\n]*boom\n2\n$", answers "x y\nerror 'boom'\n1 + 1\n")
  end)
end)
