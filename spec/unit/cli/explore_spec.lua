local cli = require "spec.support.cli"
local command_line = require "spec.support.command_line"
local json = require "riskscreen.json"
local temporary = require "spec.support.temporary"

local WRONG = [[
  return {
    client = { retry = false },
    faults = 1,
    random = 0,
    program = function(client, world)
      for _, input in ipairs(world.inputs) do
        local action = client:screen({ address = input.address, network = input.network }).action
        world[(action == "allow" or action == "unknown") and "pay" or "hold"](input.id)
      end
    end,
  }
]]

-- One that survives, and writes a line when the search has begun.
local RIGHT = [[
  local is_told
  return function(client, world)
    if not is_told then
      io.stderr:write "begun\n"
      is_told = true
    end
    for _, input in ipairs(world.inputs) do
      if not world.paid(input.id) then
        local decision = client:screen { address = input.address, network = input.network }
        world[decision.action == "allow" and "pay" or "hold"](input.id)
      end
    end
  end
]]

describe("riskscreen explore", function()
  local function file(content)
    local path = os.tmpname()
    temporary.write(path, content)
    finally(function()
      os.remove(path)
    end)
    return path
  end

  it("prints the shortest schedule after which a program goes wrong, with the status 2", function()
    local status, out, err = cli.run { "explore", file(WRONG) }
    assert.equal(2, status)
    assert.matches("^paid 'good' without an allow\n", out)
    assert.matches('\nschedule: { { at = "request 1", fault = "timeout" } }\n$', out)
    assert.equal("riskscreen: 2 schedules with at most 1 fault\n", err)
  end)

  it("writes a finding as JSON", function()
    local status, out = cli.run { "explore", file(WRONG), "--json" }
    local finding = assert(json.decode(out))
    assert.equal(2, status)
    assert.same({ { at = "request 1", fault = "timeout" } }, finding.schedule)
    assert.equal("unallowed", finding.problem)
  end)

  it("ends with 0 where nothing is found, and draws its progress on a terminal", function()
    local status, out, err = cli.run({ "explore", "examples/payouts.lua", "--faults", "1" }, { columns = 80 })
    assert.equal(0, status)
    assert.equal("", out)
    assert.matches("\r%d+ schedules with at most 1 fault", err)
    assert.matches("1,000 of them drawn at random\n$", err)
  end)

  it("writes nothing where it is to be quiet", function()
    local status, out, err = cli.run({ "explore", file(WRONG), "--quiet" }, { columns = 80 })
    assert.same({ 2, "", "" }, { status, out, err })
  end)

  -- LuaJIT raises the interrupt within the program, which may catch it.
  local on_most_luas = rawget(_G, "jit") and pending or it

  on_most_luas("tells what was explored when it is interrupted", function()
    local line = ("%s explore %s --faults 20"):format(cli.command, file(RIGHT))
    local output, status = command_line.interrupt(line, "^begun")
    assert.equal(130, status)
    assert.matches("explored so far: [%d,]+ schedules? with at most", output)
  end)

  it("refuses a file that cannot be read, and one that returns no program", function()
    assert.equal(3, (cli.run { "explore", "nowhere.lua" }))
    assert.equal(3, (cli.run { "explore", file "return (" }))
    local status, _, err = cli.run { "explore", file "return 17" }
    assert.equal(4, status)
    assert.matches("program must be a function (got a number)", err, 1, true)
    status, _, err = cli.run { "explore", file "return { program = print, fault = 1 }" }
    assert.equal(4, status)
    assert.matches("unknown option 'fault'", err, 1, true)
  end)
end)
