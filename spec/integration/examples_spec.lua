-- Each example runs as it stands, in a process of its own, under the Lua that runs this spec.

local cli = require "spec.support.cli"

local interpreter = os.getenv "RISKSCREEN_LUA" or "lua5.4"

local scenario = require("riskscreen.sandbox").scenario

local function run(command, redirection, environment)
  local line = ("%s %s %s %s; echo exit $?"):format(
    environment or "",
    interpreter,
    command,
    redirection or "2>/dev/null"
  )
  local pipe = assert(io.popen(line))
  local output = pipe:read "*a"
  pipe:close()
  local text, status = output:match "^(.*)exit (%d+)\n$"
  return text, tonumber(status)
end

describe("the example", function()
  it("screen_address refuses a sanctioned address and says why", function()
    local output, status = run "examples/screen_address.lua"
    assert.matches("^block%s", output)
    assert.matches("sanction", output, 1, true)
    assert.equal(1, status)
  end)

  it("screen_address lets a clean address pass, if a service says so", function()
    local example = "examples/screen_address.lua " .. scenario("clean-btc").address .. " btc"
    local output, status = run(example, "2>&1")
    assert.matches("\nallow%s", "\n" .. output) -- Lua 5.1 writes the standard error first
    assert.matches("the sandbox answers, and the exit status is 1", output, 1, true)
    assert.equal(1, status)
    local sandbox = cli.sandbox()
    output, status = run(example, "2>&1", sandbox.environment)
    sandbox.close()
    assert.matches("^allow%s", output)
    assert.equal(0, status)
  end)

  it("screen_address does not take an unknown network for a yes", function()
    local output, status = run "examples/screen_address.lua 0xab etherum"
    assert.matches("^unknown%s", output)
    assert.equal(1, status)
  end)

  for _, name in ipairs { "screen_address", "screen_list", "bulk_screen", "kyt_webhook" } do
    it(name .. " prints its usage when asked for help", function()
      local output, status = run("examples/" .. name .. ".lua --help")
      assert.matches("^usage: lua examples/" .. name .. "%.lua ", output)
      assert.equal(0, status)
    end)

    it(name .. " refuses wrong arguments with its usage", function()
      local output, status = run("examples/" .. name .. ".lua --verbose a b c", "2>&1")
      assert.matches("^usage: ", output)
      assert.equal(2, status)
    end)
  end

  local function with_rows(rows, check)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(rows)
    file:close()
    check(run("examples/screen_list.lua " .. path, "2>&1"))
    os.remove(path)
  end

  it("screen_list reports a row without a network and fails", function()
    with_rows("0x1\n" .. scenario("clean-eth").address .. ",eth\n", function(output, status)
      assert.matches("line 1: no network", output, 1, true)
      assert.matches("allow%s+1\n", output)
      assert.equal(1, status)
    end)
  end)

  it("screen_list fails when no address could be decided", function()
    with_rows(scenario("fault-500").address .. ",eth\n", function(output, status)
      assert.matches("unknown%s+1\n", output)
      assert.equal(1, status)
    end)
  end)

  it("screen_list says that a file cannot be read", function()
    local output, status = run("examples/screen_list.lua /nowhere.csv", "2>&1")
    assert.matches("^screen_list: /nowhere.csv: No such file", output)
    assert.equal(2, status)
  end)

  it("list_blacklist shows what it has added", function()
    local output, status = run "examples/list_blacklist.lua"
    assert.matches("0x00000000000000000000000000000000000b1ac0\teth\thigh scam", output, 1, true)
    assert.equal(0, status)
  end)

  it("kyt_webhook decides by a result that was delivered, and handles it once", function()
    local output, status = run "examples/kyt_webhook.lua"
    assert.matches("^submitted%s", output)
    assert.equal(1, select(2, output:gsub("received", "")))
    assert.matches("\nblock\trule 2 matches score 95.00\n", output, 1, true)
    assert.equal(1, status)
  end)

  it("payouts survives every schedule of faults", function()
    local finding, explored = require("riskscreen").explore.run(dofile "examples/payouts.lua", { random = 100 })
    assert.equal("nil", tostring(finding))
    assert.equal(2, explored.faults)
  end)

  it("policy decides by its own rules", function()
    local output, status = run "examples/policy.lua"
    assert.matches("clean%-eth%s+allow", output)
    assert.matches("type%-sanction%s+block", output)
    assert.matches("entity%-gambling%s+review", output)
    assert.matches("contract%s+review", output)
    assert.equal(0, status)
  end)

  it("screen_list gives every address of the file one verdict", function()
    local output, status = run "examples/screen_list.lua examples/addresses.csv"
    local rows, sum = 0, 0
    for line in io.lines "examples/addresses.csv" do
      rows = rows + (line:find "^address," and 0 or 1)
    end
    for _, count in output:match("by verdict\n(.-)\n\n"):gmatch "(%a+)%s+(%d+)" do
      sum = sum + tonumber(count)
    end
    assert.is_true(rows >= 200)
    assert.equal(rows, sum)
    assert.equal(0, status)
  end)

  it("paginate walks the account's lists", function()
    local output, status = run "examples/paginate.lua"
    local _, items = output:gsub("0x%x+\t", "")
    assert.is_true(items >= 16)
    assert.matches("page 5 of 5: 2 items\n3 of the whitelist\n$", output)
    assert.equal(0, status)
  end)

  for _, name in ipairs { "with_cqueues", "with_luv", "with_poll" } do
    it(name .. " screens in another program's loop", function()
      local output, status = run("examples/" .. name .. ".lua")
      for _, line in ipairs { "clean-eth\tallow\n", "high-eth\tblock\n", "type-sanction\tblock\n", "done\n" } do
        assert.matches(line, output, 1, true)
      end
      assert.equal(0, status)
    end)
  end

  it("game_loop screens its players while it draws", function()
    local output, status = run "examples/game_loop.lua"
    assert.matches("^Ada\tallow\nBob\tblock\nCem\tblock\nframes drawn meanwhile: %d+\n$", output)
    assert.equal(0, status)
  end)
end)
