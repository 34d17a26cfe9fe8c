local cjson = require "cjson"
local commands = require "riskscreen.cli.commands"
local operations = require "riskscreen.interface.operations"
local run = require("spec.support.cli").run
local sandbox = require "riskscreen.sandbox"
local tables = require "riskscreen.util.tables"
local temporary = require "spec.support.temporary"

local function address(name)
  return sandbox.scenario(name).address
end

describe("the command", function()
  it("shows its help", function()
    local status, out, err = run { "--help" }
    assert.equal(0, status)
    assert.matches("Usage: riskscreen", out, 1, true)
    assert.matches("screen +Decide whether addresses may pass", out)
    assert.equal("", err)
  end)

  it("shows its version", function()
    local status, out = run { "--version" }
    assert.equal(0, status)
    assert.equal("riskscreen " .. require "riskscreen.version" .. "\n", out)
  end)

  it("has the status of misuse without a verb, so that an empty word is no `allow`", function()
    for _, arguments in ipairs { {}, { "blacklist" } } do
      local status, out, err = run(arguments)
      assert.equal(4, status)
      assert.equal("", out)
      assert.matches("Usage:", err, 1, true)
    end
  end)

  it("takes a network in any case, and knows which one a token's standard means", function()
    assert.equal(0, (run { "screen", "--sandbox", address "clean-eth", "-n", "ETH" }))
    for written, network in pairs { TRC20 = "tron", erc20 = "eth", BEP20 = "bsc" } do
      local status, _, err = run { "screen", "--sandbox", address "clean-eth", "-n", written }
      assert.equal(4, status)
      assert.matches(("did you mean '%s'?"):format(network), err, 1, true)
    end
  end)

  it("refuses a workbook as the output, and a policy that is no Lua", function()
    local path, policy = temporary.path "in.csv", temporary.path "p.json"
    temporary.write(path, "address\n" .. address "clean-eth" .. "\n")
    temporary.write(policy, '{ "rules": [] }')
    for ending in pairs { xlsx = true, XLS = true } do
      local status, _, err = run { "screen", "--sandbox", "-n", "eth", "--file", path, "-o", path .. "." .. ending }
      assert.equal(4, status)
      assert.matches("no workbook", err, 1, true)
    end
    local status, _, err = run { "screen", "--sandbox", "-n", "eth", address "clean-eth", "--policy", policy }
    assert.equal(4, status)
    assert.matches("a policy is a file of Lua", err, 1, true)
  end)

  it("takes no help among other arguments for a wish: its status is that of `allow`", function()
    for _, line in ipairs {
      { "screen", "-n", "eth", "-h" },
      { "screen", "-n", "eth", address "clean-eth", "--help" },
      { "-n", "eth", "screen", "-h" },
      { "screen", "-q", "-h" },
      { "list", "check", "deny.rsl", "--version" },
      { "journal", "verify", "-h", "decisions.jsonl" },
    } do
      local status, out, err = run(line)
      assert.same({ 4, "" }, { status, out })
      assert.matches("stand alone, or behind a verb", err, 1, true)
    end
    local configured = { RISKSCREEN_NETWORK = "eth" }
    local helps =
      { { "list", "check", "-h" }, { "list", "--help" }, { "screen", "-h" }, { "-h" }, { "help", "screen" } }
    for _, line in ipairs(helps) do
      local status, out = run(line)
      assert.equal(0, status)
      assert.matches("Usage:", out, 1, true)
      -- An address from elsewhere may be "-h".
      assert.equal(line[1] == "screen" and 4 or 0, (run(line, { env = configured })))
    end
  end)

  it("names the nearest verb and option", function()
    local status, _, err = run { "scren" }
    assert.equal(4, status)
    assert.matches("unknown command 'scren'", err, 1, true)
    assert.matches("screen", err, 1, true)
    status, _, err = run { "screen", "--jsno", "x" }
    assert.equal(4, status)
    assert.matches("'--json'", err, 1, true)
    assert.matches("Run 'riskscreen screen --help'", err, 1, true)
  end)

  it("refuses an option that is given twice, and one that a verb would pass by", function()
    local path = temporary.path "rows.csv"
    temporary.write(path, "address\n" .. address "clean-eth" .. "\n")
    for _, line in ipairs {
      { "screen", "--file", path, "--file", path, "-n", "eth" },
      { "screen", address "clean-eth", "-n", "eth", "-n", "bsc" },
      { "screen", address "clean-eth", "-n", "eth", "--policy", path, "--policy", path },
    } do
      local status, out, err = run(tables.concat({ "--sandbox" }, line))
      assert.same({ 4, "" }, { status, out })
      assert.matches("must be used at most 1 time", err, 1, true)
    end
    local status, _, err = run { "list", "build", path, "-o", path .. ".rsl", "-n", "eth" }
    temporary.clean()
    assert.equal(4, status)
    assert.matches("-n does not narrow a list", err, 1, true)
  end)

  it("checks an option by the library's own table, and names the flag", function()
    local status, _, err = run { "risk", address "clean-eth", "-n", "eth", "--timeout", "0" }
    assert.equal(4, status)
    assert.matches("--timeout must be between 0.001 and 86400 seconds (got 0)", err, 1, true)
  end)

  it("says that the sandbox answers where nothing is configured", function()
    local _, out, err = run { "risk", address "clean-eth", "-n", "eth", "--json" }
    assert.matches("no service is configured, so the built-in sandbox answers", err, 1, true)
    assert.equal(address "clean-eth", cjson.decode(out).address)
  end)
end)

describe("screen", function()
  for name, expected in pairs { ["clean-eth"] = 0, ["type-sanction"] = 2, ["fault-500"] = 6 } do
    it(("ends with the status %d for %s"):format(expected, name), function()
      assert.equal(expected, (run { "screen", "--sandbox", address(name), "-n", "eth", "--set", "retry=false" }))
    end)
  end

  it("ends with the status of the worst address", function()
    assert.equal(2, (run { "screen", address "clean-eth", address "type-sanction", "-n", "eth" }))
  end)

  it("is unknown about a text that is no address, never allow", function()
    local status, out = run { "screen", "0x1234", "-n", "eth" }
    assert.equal(3, status)
    assert.matches("unknown", out, 1, true)
  end)

  it("writes records with the same fields as JSON, JSON lines and CSV", function()
    local function screened(format)
      local _, out = run { "screen", address "type-sanction", "-n", "eth", format }
      return out
    end
    local record = cjson.decode(screened "--json")[1]
    assert.equal("block", record.action)
    assert.same({ "sanction" }, record.risk_types)
    assert.same(record, cjson.decode(screened "--jsonl"))
    local csv = screened "--csv"
    assert.matches(
      "^address,network,action,reasons,risk_levels,risk_types,risk_sources,entity,error,degraded,source\r\n",
      csv
    )
  end)

  it("names the sandbox as the source of each of its answers, in every format", function()
    for format, expected in pairs { ["--jsonl"] = '"source":"sandbox"}', ["--csv"] = ",sandbox\r", ["-q"] = "" } do
      local _, out = run { "screen", address "clean-eth", "-n", "eth", format, "--sandbox" }
      assert.matches(expected, out, 1, true)
    end
    local _, out = run { "screen", address "clean-eth", "-n", "eth" }
    assert.matches(" source *\n.* sandbox *\n$", out)
  end)

  it("writes nothing with --quiet but the exit status", function()
    local status, out = run { "screen", "-q", address "type-sanction", "-n", "eth" }
    assert.equal(2, status)
    assert.equal("", out)
  end)

  it("names --file where an argument is a file", function()
    local status, _, err = run { "screen", "examples/addresses.csv", "-n", "eth" }
    assert.equal(4, status)
    assert.matches("examples/addresses.csv is a file: screen its rows with --file examples/addresses.csv", err, 1, true)
  end)
end)

describe("riskscreen sandbox", function()
  it("refuses a file of answers that it cannot read, by its name", function()
    local code, _, err = run { "sandbox", "--answers", "/nowhere/answers.json" }
    assert.equal(4, code)
    local message = "riskscreen: answers must be the path of a JSON object: /nowhere/answers.json: No such file"
    assert.matches(message, err, 1, true)
  end)
end)

describe("an allow of the sandbox", function()
  local CLEAN = { "screen", address "clean-eth", "-n", "eth" }

  after_each(temporary.clean)

  local function with(...)
    return tables.concat(CLEAN, { ... })
  end

  it("is written, but has the status of a wrong configuration where nothing is configured", function()
    for _, format in ipairs { "--json", "--jsonl", "--csv" } do
      local status, out, err = run(with(format))
      assert.equal(4, status)
      assert.matches("allow", out, 1, true)
      assert.matches("the status is 4, not 0, because no service is configured; --sandbox accepts", err, 1, true)
    end
    local status, out, err = run(with "-q")
    assert.equal(4, status)
    assert.equal("", out)
    assert.matches("the status is 4, not 0", err, 1, true)
  end)

  it("has its own status where the sandbox is asked for", function()
    local profile = temporary.path "sandbox.conf"
    temporary.write(profile, "sandbox = true\n")
    assert.equal(0, (run(with "--sandbox")))
    assert.equal(0, (run(CLEAN, { env = { RISKSCREEN_SANDBOX = "true" } })))
    assert.equal(0, (run(with("--profile", profile))))
    assert.equal(4, (run(CLEAN, { env = { RISKSCREEN_SANDBOX = "false" } })))
  end)

  it("does not change another status", function()
    local status, _, err = run { "screen", address "clean-eth", address "type-hack", "-n", "eth" }
    assert.equal(2, status)
    assert.is_nil(err:find("the status is", 1, true))
    assert.equal(0, (run { "risk", address "clean-eth", "-n", "eth" }))
  end)

  it("is no answer to a verb that changes the account, unless it is asked for", function()
    local hash, clean = "0x" .. ("5f"):rep(32), address "clean-eth"
    for _, line in ipairs {
      { "blacklist", "add", clean, "-n", "eth", "--risk", "high/hack" },
      { "kyt", "submit", hash, "-n", "eth", "--direction", "received" },
      { "whitelist", "add", ('list=[{"address":"%s","network":"eth"}]'):format(clean) },
      { "call", "addBlacklistAddresses", ('list=[{"address":"%s","network":"eth"}]'):format(clean) },
    } do
      local status, out, err = run(line)
      assert.same({ 4, "" }, { status, out })
      assert.matches("no service is configured: set base_url and an access key, or give --sandbox", err, 1, true)
      assert.equal(0, (run(tables.concat(line, { "--sandbox" }))))
    end
    assert.equal(0, (run { "call", "getAddressRisk", "address=" .. clean, "network=eth" }))
  end)

  it("removes by an address alone, and by names, and says how to add without them", function()
    local clean = address "clean-eth"
    for _, list in ipairs { "blacklist", "whitelist" } do
      for _, line in ipairs { { clean, "-n", "eth" }, { "address=" .. clean, "network=eth" } } do
        local _, _, err = run(tables.concat({ list, "remove", "--sandbox" }, line))
        assert.matches("address is not on the list (got '" .. clean .. "')", err, 1, true)
      end
      for _, line in ipairs { { clean, clean }, { clean, "address=" .. clean } } do
        local status, _, err = run(tables.concat({ list, "remove", "-n", "eth", "--sandbox" }, line))
        assert.equal(4, status)
        assert.matches("address is given twice", err, 1, true)
      end
      local status, _, err = run { list, "remove", "nobody", "-n", "eth", "--sandbox" }
      assert.equal(4, status)
      assert.matches("an argument must be an address, or name=value, such as network=eth", err, 1, true)
    end
    local status, _, err = run { "blacklist", "add", "address=" .. clean, "network=eth", "-n", "eth", "--sandbox" }
    assert.equal(4, status)
    assert.matches("blacklist add takes the addresses alone, and their network by -n", err, 1, true)
  end)

  it("has that status for a file too, and for its complete run", function()
    local path = temporary.path "addresses.csv"
    local output = temporary.path "results.csv"
    temporary.write(path, "address,network\n" .. address "clean-eth" .. ",eth\n")
    local arguments = { "screen", "--file", path, "-o", output }
    local status, _, err = run(arguments)
    assert.equal(4, status, err)
    assert.matches(",allow,", temporary.read(output), 1, true)
    assert.equal(4, (run(tables.concat(arguments, { "--resume" }))))
    assert.equal(4, (run { "screen", "--file", path, "-o", "-", "-q" }))
    assert.equal(0, (run(tables.concat(arguments, { "--resume", "--sandbox" }))))
    assert.equal(0, (run { "screen", "--file", path, "--dry-run" }))
  end)

  it("goes on only in the output that its run has written", function()
    local path, output = temporary.path "addresses.csv", temporary.path "results"
    temporary.write(path, "address,network\n" .. address "clean-eth" .. ",eth\n")
    for _, format in ipairs { "--csv", "--jsonl" } do
      local line = { "screen", "--sandbox", "--file", path, "-o", output, format }
      assert.equal(0, (run(tables.concat(line, { "--force" }))))
      local whole = temporary.read(output)
      assert.equal(0, (run(tables.concat(line, { "--resume" }))))
      local foreign = {
        (whole:gsub("allow", "block")),
        "",
        whole:sub(1, -2),
        whole:sub(1, -2) .. "x",
        (("a,b\n"):rep(1000):gsub("\n", "; ")),
      }
      for _, content in ipairs(foreign) do
        temporary.write(output, content)
        local status, _, err = run(tables.concat(line, { "--resume" }))
        assert.equal(4, status)
        assert.matches("results is not what the run has recorded; it was changed", err)
        assert.equal(content, temporary.read(output))
        collectgarbage() -- the end of the program releases the lock of the state
        collectgarbage()
      end
      -- Behind the rows of a complete run stands nothing of it.
      temporary.write(output, whole .. "# checked\n")
      assert.equal(4, (run(tables.concat(line, { "--resume" }))))
      assert.equal(whole .. "# checked\n", temporary.read(output))
      collectgarbage()
      collectgarbage()
    end
  end)

  it("writes anew what a killed run has written after its last record", function()
    local path, output = temporary.path "addresses.csv", temporary.path "results"
    temporary.write(path, "address,network\n" .. address "clean-eth" .. ",eth\nx,eth\n")
    local line = { "screen", "--sandbox", "--file", path, "-o", output }
    assert.equal(4, (run(tables.concat(line, { "--max-invalid", "0" }))))
    local before = temporary.read(output)
    temporary.write(output, before .. "1,0x")
    assert.equal(5, (run(tables.concat(line, { "--resume", "--max-invalid", "1" }))))
    assert.equal(before, temporary.read(output):sub(1, #before))
    assert.matches("\r\n3,x,eth,unknown,", temporary.read(output), 1, true)
  end)

  it("takes no more invalid rows than --max-invalid, however often it is resumed", function()
    local path, output = temporary.path "addresses.csv", temporary.path "results"
    temporary.write(path, "address,network\na,eth\nb,eth\nc,eth\nd,eth\ne,eth\n")
    local line = { "screen", "--sandbox", "--file", path, "-o", output, "--max-invalid" }
    assert.equal(4, (run(tables.concat(line, { "2" }))))
    for _ = 1, 3 do
      local status, _, err = run(tables.concat(line, { "2", "--resume" }))
      assert.equal(4, status)
      assert.matches("more invalid rows than 2", err, 1, true)
    end
    assert.equal(5, (run(tables.concat(line, { "5", "--resume" }))))
  end)

  it("has the status of misuse where the policy's file returns nothing, before anything is sent", function()
    local policy = temporary.path "policy.lua"
    temporary.write(policy, 'local rules = { { any = true, action = "block" } }')
    for _, line in ipairs {
      { "screen", address "clean-eth", "-n", "eth", "--sandbox" },
      { "kyt", "screen", "0x" .. ("5f"):rep(32), "-n", "eth", "--set", "base_url=http://127.0.0.1:1" },
    } do
      local status, out, err = run(tables.concat(line, { "--policy", policy }))
      assert.same({ 4, "" }, { status, out })
      assert.matches("must return a policy or its options", err)
    end
  end)

  it("has that status for a transaction", function()
    local policy = temporary.path "policy.lua"
    temporary.write(
      policy,
      [[return require("riskscreen").score_policy { rules = { { score_at_least = "0", action = "allow" } } }]]
    )
    local arguments = { "kyt", "screen", "0x" .. ("5f"):rep(32), "-n", "eth", "--direction", "received" }
    arguments = tables.concat(arguments, { "--policy", policy, "--set", "polling.first=0.05", "--json" })
    local status, out, err = run(arguments)
    assert.equal(4, status, err)
    assert.equal("allow", cjson.decode(out).action)
    assert.equal(0, (run(tables.concat(arguments, { "--sandbox" }))))
  end)
end)

describe("screen --file", function()
  after_each(temporary.clean)

  describe("with answers of the sandbox", function()
    local SERVICE =
      { env = { RISKSCREEN_BASE_URL = "http://127.0.0.1:1", RISKSCREEN_ACCESS_KEY = "a key of a service" } }
    local path, output, arguments

    before_each(function()
      path, output = temporary.path "addresses.csv", temporary.path "results.csv"
      temporary.write(path, ("address,network\n%s,eth\n0x12,eth\n"):format(address "clean-eth"))
      arguments = { "screen", "--file", path, "-o", output, "--set", "retry=false", "--stop-after-failures", "1" }
    end)

    local function with(...)
      return tables.concat(arguments, { ... })
    end

    it("says so in each row of the results", function()
      run(arguments)
      local header, first, second = temporary.read(output):match "^(.-)\r\n(.-)\r\n(.-)\r\n$"
      assert.matches(",degraded,source,time$", header)
      assert.matches(",eth,allow,.*,sandbox,%d%d%d%d%-[^,]*$", first)
      assert.matches("invalid_argument,,sandbox,", second, 1, true)
      run { "screen", "--file", path, "-o", output, "--force", "--jsonl" }
      for line in temporary.read(output):gmatch "[^\n]+" do
        assert.equal("sandbox", cjson.decode(line).source)
      end
    end)

    for _, option in ipairs { "--resume", "--retry-failed" } do
      it("is not continued with a service: " .. option, function()
        run(arguments)
        local before = temporary.read(output)
        local status, _, err = run(with(option), SERVICE)
        assert.equal(4, status)
        assert.matches("service was 'the sandbox' and is 'http://127.0.0.1:1'", err, 1, true)
        assert.equal(before, temporary.read(output))
      end)

      it("does not continue the run of a service: " .. option, function()
        assert.equal(6, (run(arguments, SERVICE)))
        local before = temporary.read(output)
        assert.is_nil(before:find("source,time", 1, true))
        local status, _, err = run(with(option))
        assert.equal(4, status)
        assert.matches("service was 'http://127.0.0.1:1' and is 'the sandbox'", err, 1, true)
        assert.equal(before, temporary.read(output))
      end)
    end
  end)

  it("names the file that is in the way, and the options that help", function()
    local path, output = temporary.path "addresses.csv", temporary.path "results.csv"
    temporary.write(path, "address,network\n" .. address "type-hack" .. ",eth\n")
    local arguments = { "screen", "--sandbox", "--file", path, "-o", output }
    assert.equal(2, (run(arguments)))
    local state = output .. ".state"
    for _, case in ipairs { { lost = output, kept = state }, { lost = state, kept = output } } do
      os.remove(case.lost)
      local status, _, err = run(arguments)
      assert.equal(4, status)
      assert.matches(case.kept .. " exists: --force starts again, -o names another file", err, 1, true)
      assert.equal(2, (run(tables.concat(arguments, { "--force" }))))
    end
  end)

  it("copies no column of the file over a column of the results", function()
    local path = temporary.path "addresses.csv"
    temporary.write(path, "address,network,action,label\n" .. address "type-hack" .. ",eth,allow,x\n")
    for _, format in ipairs { "--csv", "--jsonl" } do
      local status, out, err = run { "screen", "--sandbox", "--file", path, "-o", "-", "--keep", "action", format }
      assert.equal(4, status)
      assert.equal("", out)
      assert.matches("--keep: the results have a column 'action' of their own", err, 1, true)
    end
    temporary.write(path, "address,network,time,Verdict,label\n" .. address "type-hack" .. ",eth,1,allow,a\n")
    for _, names in ipairs { "network,time", "verdict", "Verdict" } do -- a report would take it for a second one
      local status, _, err = run { "screen", "--sandbox", "--file", path, "-o", "-", "--keep", names }
      assert.equal(4, status)
      assert.matches("--keep: the results have a column '%l+' of their own", err)
    end
    local _, _, err = run { "screen", "--sandbox", "--file", path, "-o", "-", "--keep", "label,label" }
    assert.matches("--keep: 'label' is given twice", err, 1, true)
  end)
end)

describe("the help of a verb that ends by itself", function()
  for _, command in ipairs(commands.list()) do
    if command.name ~= "sandbox" and command.name ~= "webhook listen" then
      it("has the status of success: " .. command.name, function()
        local arguments = {}
        for word in (command.name .. " --help"):gmatch "%S+" do
          arguments[#arguments + 1] = word
        end
        local _, out = run(arguments)
        assert.matches("\n +0 +%S", out)
      end)
    end
  end
end)

describe("a verb of an operation", function()
  local names = {}
  for _, command in ipairs(commands.list()) do
    names[command.name] = command
  end

  it("is there for every operation", function()
    for _, name in ipairs {
      "entity",
      "risk",
      "counterparties",
      "basic",
      "freeze-events",
      "usage",
      "blacklist list",
      "whitelist list",
      "kyt submit",
    } do
      assert.truthy(names[name], name)
    end
  end)

  it("appears with an operation that is added to the table", function()
    local added = {
      name = "getAddressLabels",
      namespace = "kya",
      method = "labels",
      http = "GET",
      path = "/api/v1/tracker/kya/labels",
      section = "0",
      parameters = operations.by_name.getAddressRisk.parameters,
      lookup = "network",
      envelope = "standard",
      idempotent = true,
      doc = "The labels of an address.",
    }
    table.insert(operations.list, added)
    operations.by_name[added.name] = added
    finally(function()
      table.remove(operations.list)
      operations.by_name[added.name] = nil
    end)
    local _, help = run { "labels", "--help" }
    assert.matches("The labels of an address.", help, 1, true)
    -- The sandbox does not know it, so the call ends with its answer.
    local status, _, err = run { "labels", address "clean-eth", "-n", "eth" }
    assert.equal(6, status)
    assert.matches("getAddressLabels", err, 1, true)
  end)

  it("writes one row for each record of its answer", function()
    local status, out = run { "counterparties", address "clean-eth", "-n", "eth", "--csv" }
    assert.equal(0, status)
    assert.matches("entities,risks,dir,chain,address,amount,symbol,transactionNumbers\r\n", out, 1, true)
  end)

  it("reports the service's failure with a status of its own", function()
    local status, out, err = run { "risk", address "fault-500", "-n", "eth", "--set", "retry=false" }
    assert.equal(6, status)
    assert.equal("", out)
    assert.matches("HTTP 500", err, 1, true)
  end)
end)
