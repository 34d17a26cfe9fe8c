-- The commands of ./dev as a person types them.
local command_line = require "spec.support.command_line"
local socket = require "socket"

local interrupt, run = command_line.interrupt, command_line.run

describe("./dev", function()
  it("names an unknown command and ends with status 2", function()
    local output, status = run "./dev tset"
    assert.equal("dev: unknown command 'tset'; ./dev help lists them\n", output)
    assert.equal(2, status)
  end)

  for _, command in ipairs {
    "sandbox",
    "gateway",
    "test",
    "fuzz",
    "bench",
    "soak",
    "lint",
    "build",
    "packages",
    "release",
  } do
    it(command .. " -h explains the command", function()
      local output, status = run("./dev " .. command .. " -h")
      assert.matches("./dev " .. command, output, 1, true)
      assert.is_nil(output:find "^#")
      assert.equal(0, status)
      assert.equal(output, (run("./dev " .. command .. " --help")))
    end)
  end
end)

describe("./dev riskscreen", function()
  it("runs the command of this checkout", function()
    local output, status = run "./dev riskscreen address check 0x12 -n eth --csv"
    assert.matches("0x12,false,", output, 1, true)
    assert.equal(2, status)
    assert.matches("Usage: riskscreen", (run "./dev riskscreen --help"), 1, true)
  end)
end)

describe("./dev env", function()
  it("puts the command on the PATH", function()
    local output, status = run [[sh -c 'eval "$(./dev env)"; cd /; riskscreen --version']]
    assert.matches("^riskscreen %d", output)
    assert.equal(0, status)
  end)
end)

describe("./dev test", function()
  it("runs the specs whose path holds a name", function()
    local output, status = run "./dev test unit/version_spec"
    assert.matches("5 successes / 0 failures / 0 errors", output, 1, true)
    assert.equal(0, status)
  end)

  it("refuses a name that no path holds", function()
    local output, status = run "./dev test version_spce"
    assert.equal("test: no spec file has 'version_spce' in its path\n", output)
    assert.equal(2, status)
  end)
end)

for command, lowest in pairs { sandbox = 0, gateway = 1 } do
  describe("./dev " .. command, function()
    for _, port in ipairs { "abc", "80800", "-1", "80.5", "0x50" } do
      it("refuses the port " .. port, function()
        local output, status = run(("./dev %s %s"):format(command, port))
        local message = "%s: PORT must be a whole number from %d to 65535 (got '%s')\n"
        assert.equal(message:format(command, lowest, port), output)
        assert.equal(2, status)
      end)
    end
  end)
end

describe("./dev sandbox", function()
  it("refuses a webhook address that is no URL", function()
    local output, status = run "./dev sandbox 0 example"
    assert.equal("sandbox: WEBHOOK_URL must begin with http:// or https:// (got 'example')\n", output)
    assert.equal(2, status)
  end)

  it("names the port that is taken", function()
    local listener = assert(socket.bind("127.0.0.1", 0))
    local port = select(2, listener:getsockname())
    local output, status = run("./dev sandbox " .. port)
    listener:close()
    assert.matches("^sandbox: [^\n]*" .. port .. "[^\n]*\n$", output)
    assert.equal(1, status)
  end)

  it("ends quietly when it is interrupted", function()
    local rest, status = interrupt("./dev sandbox", "^RISKSCREEN_ACCESS_KEY=")
    assert.equal("", rest)
    assert.equal(0, status)
  end)
end)

describe("luarocks make", function()
  it("builds in a directory that git ignores", function()
    assert.equal("build.luarocks/core.so\n", (command_line.run "git check-ignore build.luarocks/core.so"))
  end)
end)
