-- The `riskscreen` command as a process: runs over files that end at any moment, real sandboxes, terminals.
local cli = require "spec.support.cli"
local commands = require "spec.support.page_commands"
local lfs = require "lfs"
local pages = require "spec.support.pages"
local runs = require "spec.support.interrupted_runs"

local run = commands.run

describe("screen --file", function()
  it("has every row once, in order, however often it is ended", function()
    local options = { rows = 5000, ends = 5, concurrency = 16, seed = 20 }
    local outcome, remove = runs.run(options)
    local faults = runs.faults(outcome, options)
    remove()
    assert.same({}, faults)
  end)

  it("gives the same results as a run that was not ended", function()
    local options = { rows = 1500, ends = 3, concurrency = 8, seed = 7 }
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

  it("fails a soak in which no run was ended, or one alone", function()
    local options = { rows = 50, ends = 0, concurrency = 8, seed = 7 }
    local outcome, remove = runs.run(options)
    assert.same({}, runs.faults(outcome, options))
    for ended = 0, 1 do
      outcome.ended, options.ends = ended, 2
      assert.same({ ("the run was ended %d times, not 2"):format(ended) }, runs.faults(outcome, options))
    end
    remove()
  end)

  it("has its header also when it was ended before the header was on the disk", function()
    local directory, remove = cli.directory()
    local file = assert(io.open(directory .. "/input.csv", "w"))
    file:write(("address,network\n0x%040x,eth\n"):format(1))
    file:close()
    local base = "XDG_CONFIG_HOME=/nonexistent %s %%s bin/riskscreen.in screen --sandbox -q --file %s/input.csv"
    local line = base:format(os.getenv "RISKSCREEN_LUA" or "lua5.4", directory)
    local ending = [[-e 'local exit = os.exit; require("riskscreen.system").sync = function() exit(9) end']]
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

  it("does not go on with another input or account, and does with other lists", function()
    local directory, remove = cli.directory()
    local path = directory .. "/input.csv"
    local function write(name, content)
      local file = assert(io.open(directory .. "/" .. name, "wb"))
      file:write(content)
      file:close()
    end
    local rows, note = { "note,address,network\n" }, ("n"):rep(200)
    for number = 1, 300 do
      rows[#rows + 1] = ("%s,0x%040x,eth\n"):format(note, number)
    end
    local before = table.concat(rows) -- more than is read at once
    write("input.csv", before)
    local base = "XDG_CONFIG_HOME=/nonexistent %s screen --sandbox -q --file %s"
    local line = base:format(cli.command, path)
    local _, first = run(line)
    -- Another address in the last row, far behind the beginning.
    write("input.csv", (before:gsub("%x%x,eth\n$", "ff,eth\n")))
    local changed, changed_status = run(line .. " --resume")
    local retried, retried_status = run(line .. " --retry-failed")
    write("input.csv", before)
    write("deny.txt", ("0x%040x\n"):format(7))
    local listed, listed_status = run(line .. " --resume --set lists.deny=" .. directory .. "/deny.txt")
    local other, other_status = run(line .. " --resume --set account=other")
    local read_so, read_so_status = run(line .. " --resume --encoding latin1")
    local _, same = run(line .. " --resume")
    local kept, deny = line .. (" -o %s/kept.csv"):format(directory), " --deny " .. directory .. "/deny.txt"
    local journal = " --journal " .. directory .. "/journal.jsonl"
    local _, with_both = run(kept .. deny .. journal)
    local unlisted, unlisted_status = run(kept .. journal .. " --resume")
    local unrecorded, unrecorded_status = run(kept .. deny .. " --resume")
    remove()
    assert.same({ 2, 4, 4 }, { with_both, unlisted_status, unrecorded_status })
    assert.matches("this is another run: lists was 'deny .*' and is 'none'", unlisted)
    assert.matches("this is another run: journal was '.*' and is 'none'", unrecorded)
    assert.equal(2, first) -- the sandbox blocks some of them
    assert.same({ 4, 4, 2, 4, 4 }, { changed_status, retried_status, listed_status, other_status, read_so_status })
    assert.matches("this is another run: columns was", read_so, 1, true)
    assert.matches("this is another run: content was", changed, 1, true)
    assert.matches("this is another run: content was", retried, 1, true)
    assert.matches("the run is complete", listed, 1, true)
    assert.matches("this is another run: the account, or another setting", other, 1, true)
    assert.equal(2, same)
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
    assert.equal(6, status)
    assert.matches("stopped after 0 rows; the same command with --resume goes on", output, 1, true)
    assert.equal(1, #runs.rows(directory .. "/input.results.csv"))
    output, status = run(line .. " --resume")
    assert.equal(6, status)
    assert.matches("stopped after 0 rows", output, 1, true)
    remove()
  end)

  describe("with rows that failed", function()
    local ROWS = 400
    local SLOW = "--rate 150 --set rate_limit.burst=1 " -- so that the run is not over when it is ended
    local directory, remove, sandbox, path

    -- Runs the command, and ends it or the sandbox by `ending` when the sandbox has had so many requests more.
    local function screen(options, requests, ending)
      local line = ("%s %s screen --file %s/input.csv %s"):format(sandbox.environment, cli.command, directory, options)
      if not requests then
        return run(line)
      end
      local script = "env %s & run=$!; until [ $(wc -l < %s) -ge %d ]; do sleep 0.01; done; %s; wait $run"
      return run(script:format(line, sandbox.log, #sandbox.targets() + requests, ending))
    end

    before_each(function()
      directory, remove = cli.directory()
      path = directory .. "/input.results.csv"
      sandbox = cli.sandbox()
      local file = assert(io.open(directory .. "/input.csv", "w"))
      file:write "customer,address,network\n"
      for number = 1, ROWS do
        file:write(('"c, %d",0x%040x,%s\n'):format(number, number, number % 50 == 0 and "nowhere" or "eth"))
      end
      file:close()
    end)

    after_each(function()
      sandbox.close()
      remove()
    end)

    it("says how many rows have an answer when it is ended", function()
      local output, status = screen(SLOW, 40, "kill -INT $run")
      assert.equal(130, status)
      local rows = tonumber(output:match "stopped after (%d+) rows; the same command with %-%-resume goes on")
      assert.is_true(rows >= 35, output)
    end)

    it("makes no further call when it is ended", function()
      local output, status = screen("--concurrency 64 --rate 40 --set rate_limit.burst=1 ", 20, "kill -INT $run")
      assert.equal(130, status, output)
      local rows = tonumber(output:match "stopped after (%d+) rows")
      -- Of 64 rows under way all are finished, and none of the 192 that were read ahead.
      assert.is_true(rows <= 20 + 64 + 20, rows .. " rows")
      assert.equal(2, select(2, screen "--resume"))
      assert.equal(ROWS + 1, #runs.rows(path))
    end)

    it("asks again for those alone, and has each answer in its place, however often it is ended", function()
      local common = "--keep customer --concurrency 2 --set retry=false "
      local output, status = screen(common .. SLOW, 150, sandbox.stop)
      assert.equal(2, status, output)
      assert.matches("failed: the same command with --retry-failed asks again", output, 1, true)
      local before, failed = pages.read(path), 0
      for row in before:gmatch "[^\n]+" do
        failed = failed + (row:find ",network,," and 1 or row:find ",circuit_open,," and 1 or 0)
      end
      assert.is_true(failed > 100 and failed < ROWS - 100, failed .. " failed")
      output, status = screen(common .. "--retry-failed --stop-after-failures 5")
      assert.equal(6, status, output)
      assert.matches("the same command with --resume goes on", output, 1, true)
      sandbox.start()
      local asked = #sandbox.targets()
      output, status = screen(common .. SLOW .. "--retry-failed", 30, "kill -KILL $run")
      assert.equal(137, status, output)
      output, status = screen(common .. SLOW .. "--resume", 30, "kill -INT $run")
      assert.equal(130, status, output)
      assert.equal(before, pages.read(path)) -- until the new results are complete
      output, status = screen(common .. "--retry-failed")
      assert.equal(2, status, output)
      assert.matches("400 rows: .*; 8 invalid\n$", output)
      assert.is_nil(output:find("line ", 1, true)) -- the first run has named the invalid rows
      -- Made again is what was under way at an end: no more than the source is read ahead, 8 times the concurrency.
      local requests = #sandbox.targets() - asked
      assert.is_true(requests >= failed and requests <= failed + 2 * 20, requests .. " requests for " .. failed)
      local rows = runs.rows(path)
      screen(common .. "--force")
      assert.same(runs.rows(path), rows)
    end)

    it("copies the other rows of a long file", function()
      local faulty = require("riskscreen.sandbox").scenario("fault-503").address
      local file = assert(io.open(directory .. "/input.csv", "w"))
      file:write "address,network\n"
      for number = 1, 5000 do
        file:write(number % 2400 == 1 and faulty or ("0x%040x"):format(number), ",eth\n")
      end
      file:close()
      local line = ("%s screen --file %s/input.csv --set retry=false --sandbox "):format(cli.command, directory)
      assert.matches("5,000 rows: .*; 3 failed: ", (run(line)))
      local rows = runs.rows(path)
      assert.matches("5,000 rows: .*; 3 failed: ", (run(line .. "--retry-failed")))
      assert.same(rows, runs.rows(path))
    end)

    it("is not begun twice, and not by other results", function()
      local output, status = screen("--set retry=false " .. SLOW, 100, sandbox.stop)
      assert.equal(2, status, output)
      sandbox.start()
      local results = pages.read(path)
      local function write(content)
        local file = assert(io.open(path, "wb"))
        file:write(content)
        file:close()
      end
      for _, content in ipairs { results .. "one more\n", (results:gsub("allow", "block", 1)) } do
        write(content)
        output, status = screen "--retry-failed"
        assert.equal(4, status)
        assert.matches("input.results.csv was changed or removed since its run", output, 1, true)
      end
      os.remove(path)
      output, status = screen "--retry-failed"
      assert.equal(4, status)
      assert.matches("input.results.csv was changed or removed since its run", output, 1, true)
      write(results)
      output, status = screen "--retry-failed"
      assert.equal(2, status, output)
      local asked = #sandbox.targets()
      output, status = screen "--retry-failed"
      assert.equal(2, status)
      assert.matches("the run is complete: .*: 400 rows: ", output)
      assert.equal(asked, #sandbox.targets())
    end)

    it("puts the results in their place after a crash at the very end", function()
      screen("--jsonl --set retry=false " .. SLOW, 100, sandbox.stop)
      sandbox.start()
      path = directory .. "/input.results.jsonl"
      local before = pages.read(path)
      local crashing = "-e 'local exit = os.exit; os.rename = function() exit(9) end' bin/riskscreen.in"
      local line = ("%s %s screen --file %s/input.csv --jsonl "):format(sandbox.environment, cli.command, directory)
      local _, status = run(line:gsub("bin/riskscreen.in", (crashing:gsub("%%", "%%%%"))) .. "--retry-failed")
      assert.equal(9, status)
      assert.equal(before, pages.read(path))
      local asked = #sandbox.targets()
      local output
      output, status = run(line .. "--resume")
      assert.equal(2, status)
      assert.matches("the run is complete: .*: 400 rows: .*; 8 invalid\n$", output)
      assert.equal(asked, #sandbox.targets())
      assert.is_nil(pages.read(path):find('"network","', 1, true))
      assert.equal(400, #runs.rows(path))
    end)

    it("needs a complete run", function()
      local output, status = screen("-q " .. SLOW, 20, "kill -KILL $run")
      assert.equal(137, status, output)
      output, status = screen "--retry-failed"
      assert.equal(4, status)
      assert.matches("--retry-failed: the run is not complete; --resume goes on with it", output, 1, true)
      output, status = screen "--retry-failed -o -"
      assert.equal(4, status)
      assert.matches("--retry-failed needs a file of results", output, 1, true)
    end)
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
    output = run(("%s %s screen --file %s --dry-run --rate 4"):format(sandbox.environment, cli.command, path))
    assert.matches("riskscreen: credits need --cost, the price of a call\n", output, 1, true)
    output = run(("%s %s screen --file %s --dry-run"):format(sandbox.environment, cli.command, path))
    assert.matches("credits need --cost, the price of a call\nriskscreen: seconds need --rate\n", output, 1, true)
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

  it("reads a pipe with a name once, and has each of its rows", function()
    local directory, remove = cli.directory()
    local file = assert(io.open(directory .. "/in.csv", "w"))
    file:write("address,network," .. ("x"):rep(47) .. "\n") -- lines of 64 bytes, so that pieces end with them
    for number = 1, 1000 do
      file:write(("0x%040x,eth,customer%08d\n"):format(number, number))
    end
    file:close()
    local function count(ending)
      local shown = ending:gsub("riskscreen", (cli.command:gsub("%%", "%%%%"))):gsub("@", directory .. "/")
      local output = run(("XDG_CONFIG_HOME=/nonexistent timeout 60 bash -c '%s'"):format(shown))
      local _, rows = output:gsub("%f[%d]%d+,0x%x+,eth,", "")
      return rows, output
    end
    for _, ending in ipairs {
      "riskscreen screen --sandbox --file <(cat @in.csv) -o @r.csv; cat @r.csv",
      "riskscreen screen --sandbox --file <(cat @in.csv) --csv",
      "cat @in.csv | riskscreen screen --sandbox --file /dev/stdin -o @r2.csv; cat @r2.csv",
      "mkfifo @p; (cat @in.csv >@p &); riskscreen screen --sandbox --file @p -o @r3.csv; cat @r3.csv",
      "(cat @in.csv >@p &); riskscreen screen --sandbox --file @p --csv",
    } do
      local rows, output = count(ending)
      assert.equal(1000, rows, ending .. output:sub(1, 500))
    end
    assert.equal(9, (count "(head -n 10 @in.csv >@p &); riskscreen screen --sandbox --file @p -o @r4.csv; cat @r4.csv"))
    local _, output = count "riskscreen screen --sandbox --resume --file <(echo address,network,x; echo 0x12) -o @r.csv"
    assert.matches("has 1 field, and the first line has 3", output, 1, true)
    remove()
  end)

  it("stops where its file is changed, and goes on where the file is as it was", function()
    local sandbox, directory, remove = cli.sandbox(), cli.directory()
    finally(function()
      sandbox.close()
      remove()
    end)
    local function write(name, from, to, step)
      local file = assert(io.open(directory .. "/" .. name, "w"))
      file:write "address,network\n"
      for number = from, to, step do
        file:write(("0x%040x,eth\n"):format(number))
      end
      file:close()
    end
    write("up", 1, 4000, 1)
    write("down", 4000, 1, -1)
    local line = ("env %s %s screen --file %s/in.csv -o %s/r.csv"):format(
      sandbox.environment,
      cli.command,
      directory,
      directory
    )
    local changed = "cd %s && cp up in.csv && cd - >/dev/null && { %s --rate 1500 & "
      .. "until [ $(wc -l <%s/r.csv) -gt 100 ]; do sleep 0.05; done; cp %s/down %s/in.csv; wait $!; }"
    local output, status =
      run(("sh -c '%s' 2>&1"):format(changed:format(directory, line, directory, directory, directory)))
    assert.equal(4, status, output)
    assert.matches("in.csv: it was changed while it was read", output, 1, true)
    output, status = run(line .. " --resume")
    assert.equal(4, status, output)
    assert.matches("this is another run", output, 1, true)
    os.execute(("cp %s/up %s/in.csv"):format(directory, directory))
    output, status = run(line .. " --resume")
    assert.equal(2, status, output)
    local rows = runs.rows(directory .. "/r.csv")
    assert.equal(4001, #rows)
    for number = 1, 4000 do
      assert.equal(1, (rows[number + 1]:find(("%d,0x%040x,"):format(number + 1, number), 1, true)))
    end
  end)

  it("goes on with a pipe only where it has the rows that it had", function()
    local sandbox, directory, remove = cli.sandbox(), cli.directory()
    finally(function()
      sandbox.close()
      remove()
    end)
    -- The digest of a pipe's first 64 KiB is compared before; the change is behind them.
    local function write(name, changed, count)
      local file = assert(io.open(directory .. "/" .. name, "w"))
      for number = 1, count do
        file:write(("0x%040x\n"):format(number == changed and 90000 or number))
      end
      file:close()
    end
    write("all", nil, 4000)
    write("changed", 1700, 4000)
    write("short", nil, 1600)
    local line = "%s %s screen --file - -n eth -o %s/r.csv"
    line = line:format(sandbox.environment, cli.command, directory)
    local killed = "cat %s/all | env %s --rate 1500 & "
      .. "until [ $(wc -l <%s/r.csv) -gt 1900 ]; do sleep 0.05; done; kill -9 $!"
    run(("sh -c '%s' 2>&1"):format(killed:format(directory, line, directory)))
    assert.is_true(#runs.rows(directory .. "/r.csv") < 4001)
    for _, name in ipairs { "changed", "short" } do
      local output, status = run(("cat %s/%s | %s --resume"):format(directory, name, line))
      assert.equal(4, status, output)
      assert.matches("the input is not that of the run", output, 1, true)
    end
    local output, status = run(("cat %s/all | %s --resume"):format(directory, line))
    assert.equal(2, status, output)
    assert.equal(4001, #runs.rows(directory .. "/r.csv"))
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
        .. "echo status $?; kill -0 $first && echo alive; kill $first; wait $first; true"
      ):format(line, directory, line)
      local output = run(script)
      assert.matches("another run is using", output, 1, true)
      assert.matches("status 4\nalive", output, 1, true)
    end)

    it("names no other run where the state cannot be locked for another reason", function()
      assert(lfs.mkdir(directory .. "/no.csv.state-run.lock"))
      local output, status = run(("%s -o %s/no.csv"):format(line, directory))
      assert.equal(3, status, output)
      assert.matches("no.csv.state cannot be opened: ", output, 1, true)
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
