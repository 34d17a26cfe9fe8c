-- The exit statuses of the `riskscreen` command, as a script uses them.
local cjson = require "cjson"
local cli = require "spec.support.cli"
local commands = require "riskscreen.cli.commands"
local command_line = require "spec.support.command_line"
local interrupted_runs = require "spec.support.interrupted_runs"
local operations = require "riskscreen.interface.operations"
local run = cli.run
local sandbox = require "riskscreen.sandbox"
local tables = require "riskscreen.util.tables"
local temporary = require "spec.support.temporary"
local words_of = require("riskscreen.util.text").words

local function address(name)
  return sandbox.scenario(name).address
end

local CLEAN, THEFT, FAULT = address "clean-eth", address "type-hack", address "fault-500"
local REVIEW

-- An address that the sandbox's service answers with a verdict.
local function find_verdict(action)
  for number = 1, 60 do
    local spelled = ("0x%040x"):format(number)
    local _, out = run { "screen", "--sandbox", spelled, "-n", "eth", "--jsonl" }
    if cjson.decode(out).action == action then
      return spelled
    end
  end
end

describe("the status of a run over a file", function()
  after_each(temporary.clean)

  setup(function()
    REVIEW = assert(find_verdict "review")
  end)

  local function status_of(list, ...)
    local path = temporary.path "in.csv"
    temporary.write(path, "address\n" .. table.concat(list, "\n") .. "\n")
    local arguments = { "screen", "--sandbox", "-n", "eth", "--file", path, "-o", "-", "-q", "--set", "retry=false" }
    return (run(tables.concat(arguments, { ... })))
  end

  it("is that of the worst verdict, and of invalid rows only where every other row is allow", function()
    assert.equal(0, status_of { CLEAN })
    assert.equal(5, status_of { CLEAN, "0x12" })
    assert.equal(5, status_of { "0x12" })
    assert.equal(1, status_of { CLEAN, "0x12", REVIEW })
    assert.equal(2, status_of { "0x12", THEFT, FAULT, REVIEW })
    assert.equal(6, status_of { FAULT, "0x12", REVIEW })
  end)

  it("is told with numbers that agree with their nouns", function()
    local path, output = temporary.path "in.csv", temporary.path "out.csv"
    temporary.write(path, "address\n" .. CLEAN .. "\n")
    local _, _, err = run { "screen", "--sandbox", "-n", "eth", "--file", path, "-o", output }
    assert.matches(": 1 row: allow 1,", err, 1, true)
    temporary.write(path, "address\n" .. CLEAN .. "\n0x1\n0x2\n")
    for _, line in ipairs {
      { "screen", "--file", path, "-o", output, "--max-invalid", "1", "--force" },
      { "watch", "--file", path, "--once" },
      { "report", output, "-o", temporary.path "page.html" },
      { "screen", "--file", path, "--rate", "0.5", "--timeout", "1" },
      { "doctor", "--assumptions", "--budget", "1" },
      { "doctor", "--set", "rate_limit.rate=1", "--csv" },
    } do
      temporary.write(output, "address,action\n" .. CLEAN .. ",allow\n")
      line[#line + 1] = "--sandbox"
      line[#line + 1] = "--network=eth"
      local _, out, message = run(line)
      err = message .. out
      local _, page = pcall(temporary.read, temporary.path "page.html")
      local plural = (" " .. err .. (page or "")):match "%f[%d]1 %a+s%f[%W]"
      assert.is_nil(plural, plural and err)
    end
  end)

  it("is the same when the complete run is looked at again", function()
    local path, output = temporary.path "in.csv", temporary.path "out.csv"
    temporary.write(path, "address\n0x12\n" .. THEFT .. "\n")
    for _, option in ipairs { "--force", "--resume" } do
      assert.equal(2, (run { "screen", "--sandbox", "-n", "eth", "--file", path, "-o", output, option }))
    end
  end)

  it("is 0 for what is milder than --fail-on", function()
    for level, expected in pairs {
      invalid = { 5, 1, 6, 2 },
      review = { 0, 1, 6, 2 },
      unknown = { 0, 0, 6, 2 },
      block = { 0, 0, 0, 2 },
    } do
      local found = {}
      for index, text in ipairs { "0x12", REVIEW, FAULT, THEFT } do
        found[index] = status_of({ CLEAN, text }, "--fail-on", level)
      end
      assert.same(expected, found, level)
    end
    assert.equal(4, status_of({ CLEAN }, "--fail-on", "blocks"))
  end)
end)

describe("the status of addresses and transactions", function()
  it("tells a failure of the service from an address that is unknown", function()
    local arguments = { "screen", "--sandbox", "-n", "eth", "-q", "--set", "retry=false" }
    assert.equal(6, (run(tables.concat(arguments, { FAULT }))))
    assert.equal(6, (run(tables.concat(arguments, { FAULT, "0x12" }))))
    assert.equal(3, (run(tables.concat(arguments, { "0x12" }))))
    assert.equal(2, (run(tables.concat(arguments, { FAULT, THEFT }))))
    assert.equal(0, (run(tables.concat(arguments, { "0x12", "--fail-on", "block" }))))
  end)

  it("is no interruption where an argument has that word, and refuses a parameter that comes twice", function()
    local status, _, err = run { "blacklist", "add", "x interrupted!", "-n", "eth", "--sandbox" }
    assert.equal(4, status, err)
    assert.matches("x interrupted!", err, 1, true)
    status, _, err =
      run { "call", "getAddressRisk", "address=" .. CLEAN, "address=" .. THEFT, "-n", "eth", "--sandbox" }
    assert.equal(4, status)
    assert.matches("address is given twice", err, 1, true)
    status, _, err = run { "score", CLEAN, "-n", "eth", "--sandbox" }
    assert.equal(4, status)
    assert.matches("an argument must be name=value, such as network=eth", err, 1, true)
  end)

  it("is not 0 by --fail-on where nothing is configured", function()
    local status = run { "screen", "0x12", "-n", "eth", "-q", "--fail-on", "block" }
    assert.equal(4, status)
  end)

  it("is that of the service's failure in the other verbs", function()
    local nowhere = { env = { RISKSCREEN_BASE_URL = "http://127.0.0.1:1", RISKSCREEN_ACCESS_KEY = "a-key-of-a-test" } }
    for _, verb in ipairs {
      { "risk", CLEAN },
      { "entity", CLEAN },
      { "blacklist", "list" },
      { "kyt", "submit", "0x" .. ("5f"):rep(32) },
      { "call", "getAddressRisk", "address=" .. CLEAN },
    } do
      local status = run(tables.concat(verb, { "-n", "eth", "--set", "retry=false" }), nowhere)
      assert.equal(6, status, verb[1])
    end
  end)

  it("is not that of a server whose port is taken", function()
    local taken = sandbox.serve()
    finally(function()
      taken:close()
    end)
    local port = taken.url:match "%d+$"
    for _, verb in ipairs { "sandbox", "webhook listen --accept-unauthenticated" } do
      local status, _, err = run(words_of(verb .. " --port " .. port))
      assert.equal(3, status, err)
      assert.matches("could not listen on 127.0.0.1:" .. port, err, 1, true)
    end
  end)

  it("is explained in the help of the verbs that can end with it", function()
    local calls = tables.set(words_of "screen watch call")
    local in_groups = { "kyt submit", "kyt wait", "kyt screen", "queue work", "blacklist import", "blacklist export" }
    for _, name in ipairs(in_groups) do
      calls[name] = true
    end
    for _, operation in ipairs(operations.list) do
      local method = operation.method:gsub("_", "-")
      local is_top = operation.namespace == "kya" or operation.namespace == "account"
      calls[is_top and method or operation.namespace .. " " .. method] = true
    end
    local decides = tables.set { "screen", "watch", "repl", "kyt wait", "kyt screen", "queue work" }
    for _, command in ipairs(commands.list()) do
      local name = command.name
      local help = select(2, run(words_of(name .. " --help")))
      local failed = help:find "\n +6 +the service did not answer"
      local unrecorded = help:find "\n +7 +a decision could not be recorded"
      assert.equal(calls[name] or false, failed ~= nil, name)
      assert.equal(decides[name] or false, unrecorded ~= nil, name)
    end
  end)
end)

describe("a refused access key", function()
  it("stops a run at once, and the run goes on with another key", function()
    local directory, remove = cli.directory()
    local service = cli.sandbox()
    finally(function()
      service.close()
      remove()
    end)
    local lines = { "address" }
    for number = 1, 500 do
      lines[number + 1] = ("0x%040x"):format(number)
    end
    temporary.write(directory .. "/in.csv", table.concat(lines, "\n") .. "\n")
    local line = ("%s %%s %s screen --file %s/in.csv -n eth %%s"):format(service.environment, cli.command, directory)
    local refused = "RISKSCREEN_ACCESS_KEY=the-old-key-of-an-account"
    local output, status = command_line.run(line:format(refused, ""))
    assert.equal(6, status, output)
    assert.matches("stopped after 0 rows; the same command with --resume goes on", output, 1, true)
    assert.matches("riskscreen: unauthorized: risk: the service refused the access key", output, 1, true)
    -- 32 rows are under way and 64 taken; on a busy machine some more end before the first refusal is seen.
    assert.is_true(#service.targets() <= 160, #service.targets() .. " requests")
    output, status = command_line.run(line:format(refused, "-o - "))
    assert.equal(6, status, output)
    -- The other key is one of the sandbox's own, whose decisions have another identity.
    for _, key in ipairs { "the-new-key-of-an-account", "sandbox-key" } do
      output, status = command_line.run(line:format("RISKSCREEN_ACCESS_KEY=" .. key, "--resume"))
      assert.equal(2, status, output)
      assert.equal(501, #interrupted_runs.rows(directory .. "/in.results.csv"))
      command_line.run(line:format(refused, "--force"))
    end
  end)
end)

describe("a missing package", function()
  -- The command without some modules.
  local function without(name, arguments)
    local preload = [[-e 'package.preload["%s"] = function() error("module \39%s\39 not found:", 0) end']]
    local base = "XDG_CONFIG_HOME=/nonexistent %s %s bin/riskscreen.in %s"
    local lua = os.getenv "RISKSCREEN_LUA" or "lua5.4"
    return command_line.run(base:format(lua, preload:format(name, name):gsub("\\39", "'\\''"), arguments))
  end

  after_each(temporary.clean)

  for name, case in pairs {
    argparse = { "screen %s -n eth", "lua-argparse" },
    ["dbd.sqlite3"] = { "screen --sandbox -n eth --file in.csv", "lua-dbi-sqlite3" },
    ["riskscreen.server"] = { "sandbox", "libmicrohttpd-dev" },
  } do
    it("is named in one line with the status of misuse: " .. name, function()
      local path = temporary.path "in.csv"
      temporary.write(path, "address\n" .. CLEAN .. "\n")
      local output, status = without(name, (case[1]:gsub("%%s", CLEAN):gsub("in%.csv", path)))
      assert.equal(4, status, output)
      local last = output:match "([^\n]*)\n$"
      assert.matches("^riskscreen: ", last)
      assert.matches(case[2], last, 1, true)
    end)
  end
end)

describe("a file of Lua that the user gives", function()
  local function given(arguments, content)
    local path = temporary.path "given.lua"
    temporary.write(path, content)
    return command_line.run(("XDG_CONFIG_HOME=/nonexistent %s %s %s"):format(cli.command, arguments, path))
  end

  after_each(temporary.clean)

  local screen = "screen --sandbox -n eth 0xf9410A55B94b72B3BE0e33912bE89D4F7dA143f3 --policy"
  for how, case in pairs {
    ["while it is loaded"] = { "os.exit(0)", 4 },
    ["when its failure is shown"] = { "error(setmetatable({}, { __tostring = function() os.exit(0) end }))", 3 },
    ["later, by a hook"] = { "debug.sethook(function() pcall(os.exit, 0) end, '', 100) return {}", 2 },
    ["later, by a finalizer"] = { "kept = setmetatable({}, { __gc = function() os.exit(0) end }) return {}", 2 },
    ["by a failure that cannot be shown"] = {
      "error(setmetatable({}, { __tostring = function(self) error(self, 0) end }))",
      4,
    },
  } do
    it("does not end the command with a status of its own " .. how, function()
      local output, status = given(screen, case[1])
      assert.equal(case[2], status, output)
    end)
  end

  it("does not end the search of explore", function()
    for content, wanted in pairs {
      ["return function() os.exit(0) end"] = 2,
      ["os.exit(0)"] = 3,
      ["return function() error(setmetatable({}, { __tostring = function(self) error(self, 0) end })) end"] = 4,
    } do
      local output, status = given("explore", content)
      assert.equal(wanted, status, output)
    end
  end)
end)
