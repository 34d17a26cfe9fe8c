-- The `riskscreen` command as a process: runs over files that end at any moment, real sandboxes, terminals.
local cli = require "spec.support.cli"
local commands = require "spec.support.page_commands"
local runs = require "spec.support.interrupted_runs"

local run = commands.run

describe("screen --file", function()
  it("has every row once, in order, however often it is ended", function()
    local options = { rows = 5000, ends = 5, concurrency = 16, shortest = 0.3, longest = 1, seed = 20 }
    local outcome, remove = runs.run(options)
    local faults = runs.faults(outcome, options)
    remove()
    assert.same({}, faults)
  end)

  it("gives the same results as a run that was not ended", function()
    local options = { rows = 1500, ends = 3, concurrency = 8, shortest = 0.25, longest = 0.6, seed = 7 }
    local outcome, remove = runs.run(options)
    local ended = runs.rows(outcome.output)
    options.ends = 0
    local whole, remove_whole = runs.run(options)
    local expected = runs.rows(whole.output)
    remove()
    remove_whole()
    assert.same(expected, ended)
    assert.equal(whole.statuses[1], outcome.statuses[#outcome.statuses])
  end)

  it("has its header also when it was ended before the header was on the disk", function()
    local directory, remove = cli.directory()
    local file = assert(io.open(directory .. "/input.csv", "w"))
    file:write(("address,network\n0x%040x,eth\n"):format(1))
    file:close()
    local base = "XDG_CONFIG_HOME=/nonexistent %s %%s bin/riskscreen.in screen --sandbox -q --file %s/input.csv"
    local line = base:format(os.getenv "RISKSCREEN_LUA" or "lua5.4", directory)
    local ending = [[-e 'require("riskscreen.system").sync = function() os.exit(9) end']]
    assert.equal(9, select(2, run(line:format(ending))))
    local output, status = run(line:format "" .. " --resume")
    local rows = runs.rows(directory .. "/input.results.csv")
    remove()
    assert.equal(0, status, output)
    assert.equal(2, #rows)
    assert.matches("^line,address,network,", rows[1])
  end)

  it("ends with the status of an interrupt also when the state was being opened", function()
    local directory, remove = cli.directory()
    local file = assert(io.open(directory .. "/input.csv", "w"))
    file:write(("address,network\n0x%040x,eth\n"):format(1))
    file:close()
    local interrupt = [[-e 'require("riskscreen.store").sqlite = function() return nil, "store: interrupted!" end']]
    local line = "XDG_CONFIG_HOME=/nonexistent %s %s bin/riskscreen.in screen --sandbox -q --file %s/input.csv"
    local output, status = run(line:format(os.getenv "RISKSCREEN_LUA" or "lua5.4", interrupt, directory))
    remove()
    assert.equal(130, status, output)
  end)

  it("stops when the service is down, and makes the failed calls again when it is resumed", function()
    local directory, remove = cli.directory()
    local path = directory .. "/input.csv"
    local file = assert(io.open(path, "w"))
    file:write "address,network\n"
    for number = 1, 40 do
      file:write(("0x%040x,eth\n"):format(number))
    end
    file:close()
    local line = (
      "XDG_CONFIG_HOME=/nonexistent RISKSCREEN_ACCESS_KEY=sandbox-key RISKSCREEN_BASE_URL=%s %s screen --file "
      .. "%s --set retry=false --stop-after-failures 5"
    ):format("http://127.0.0.1:1", cli.command, path)
    local output, status = run(line)
    assert.equal(3, status)
    assert.matches("stopped after 0 rows; the same command with --resume goes on", output, 1, true)
    assert.equal(1, #runs.rows(directory .. "/input.results.csv"))
    output, status = run(line .. " --resume")
    assert.equal(3, status)
    assert.matches("stopped after 0 rows", output, 1, true)
    remove()
  end)

  it("says with --dry-run what a run would do, and makes no call", function()
    local sandbox = cli.sandbox()
    local directory, remove = cli.directory()
    local path = directory .. "/input.csv"
    local file = assert(io.open(path, "w"))
    file:write("address,network\n", ("0x%040x"):format(1), ",eth\n0x12,eth\n", ("0x%040x"):format(2), ",eth\n")
    file:close()
    local line = "%s %s screen --file %s --dry-run --rate 4 --cost 3 --jsonl"
    local output, status = run(line:format(sandbox.environment, cli.command, path))
    assert.equal(5, status)
    assert.matches("line 3: '0x12' is not an address of the network eth", output, 1, true)
    assert.matches('"rows":3,"addresses":2,"invalid":1,"calls":2,"credits":6,"seconds":0.5', output, 1, true)
    assert.same({}, sandbox.targets())
    sandbox.close()
    remove()
  end)

  it("reads stdin and writes stdout, in order", function()
    local sandbox = cli.sandbox()
    local line = "for n in 3 1 2; do printf '0x%%040x\\n' $n; done | %s %s screen --file - -n eth --csv"
    local output, status = run(line:format(sandbox.environment, cli.command))
    sandbox.close()
    assert.equal(1, status, output)
    local numbers = {}
    for number in output:gmatch "\n?%d+,0x0*(%x),eth," do
      numbers[#numbers + 1] = number
    end
    assert.same({ "3", "1", "2" }, numbers)
  end)

  describe("beside another run", function()
    local directory, remove, sandbox, line

    setup(function()
      directory, remove = cli.directory()
      sandbox = cli.sandbox()
      local file = assert(io.open(directory .. "/input.csv", "w"))
      file:write "address,network\n"
      for number = 1, 50 do
        file:write(("0x%040x,eth\n"):format(number))
      end
      file:close()
      line = ("%s %s screen --file %s/input.csv"):format(sandbox.environment, cli.command, directory)
    end)

    teardown(function()
      sandbox.close()
      remove()
    end)

    it("refuses, and leaves the first run alone", function()
      -- The first run takes one row in a second, and it has the state's lock before its first answer.
      local script = (
        "%s --rate 1 -q & first=$!; until [ -s %s/input.results.csv ]; do sleep 0.05; done; %s --resume; "
        .. "echo status $?; kill -0 $first && echo alive; kill $first"
      ):format(line, directory, line)
      local output = run(script)
      assert.matches("another run is using", output, 1, true)
      assert.matches("status 4\nalive", output, 1, true)
    end)

    it("refuses to write over results, and says what to do", function()
      local output, status = run(line)
      assert.equal(4, status)
      assert.matches("--resume goes on with its run, --force starts again", output, 1, true)
    end)

    it("goes on with the same arguments alone", function()
      local output, status = run(line .. " --resume --address-check format")
      assert.equal(4, status)
      assert.matches("address_check was 'none' and is 'format'", output, 1, true)
    end)

    it("ends, and then has nothing left to do", function()
      assert.equal(2, select(2, run(line .. " --resume")))
      local before = #sandbox.targets()
      local output, status = run(line .. " --resume")
      assert.equal(2, status)
      assert.matches("the run is complete", output, 1, true)
      assert.equal(before, #sandbox.targets())
    end)
  end)
end)
