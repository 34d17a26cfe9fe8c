-- Runs of `screen --file` that are ended by a signal, and those over pipes.
local cli = require "spec.support.cli"
local command_line = require "spec.support.command_line"
local lists = require "spec.support.list_files"
local runs = require "spec.support.interrupted_runs"
local sandbox = require "riskscreen.sandbox"
local temporary = require "spec.support.temporary"

local address, path, read, write = lists.address, temporary.path, temporary.read, temporary.write

-- Runs a line of the shell. "@name" is a file of the test, and "riskscreen" the command.
local function shell(line)
  local command = "XDG_CONFIG_HOME=/none " .. cli.command
  line = line:gsub("riskscreen", (command:gsub("%%", "%%%%"))):gsub("@", temporary.directory() .. "/")
  return command_line.run(("sh -c '%s'"):format(line))
end

describe("screen ADDRESS", function()
  after_each(temporary.clean)

  it("ends after Ctrl-C when the calls under way have ended, and shows and records each of them", function()
    local list = {}
    for number = 1, 400 do
      list[number] = address(number)
    end
    local line = "timeout -s INT 3 env riskscreen screen --sandbox -n eth --set rate_limit.rate=60 --jsonl "
      .. "--concurrency 2 --journal @journal.jsonl "
      .. table.concat(list, " ")
    local out, status = shell(line)
    assert.equal(124, status) -- that of `timeout`
    local _, shown = out:gsub('"action":', "")
    local _, recorded = read(path "journal.jsonl"):gsub("\n", "")
    assert.is_true(shown > 10 and shown < 400, out)
    assert.equal(shown, recorded)
  end)
end)

describe("screen --file", function()
  after_each(temporary.clean)

  it("ends after Ctrl-C and SIGTERM when the calls under way have ended, and records each of them", function()
    local options = { rows = 600, ends = 4, concurrency = 16, seed = 3, signals = { "INT", "TERM" } }
    options.flags = "--journal @journal.jsonl"
    local outcome, remove = runs.run(options)
    local faults, lines = runs.faults(outcome, options), 0
    for _ in io.lines(outcome.directory .. "/journal.jsonl") do
      lines = lines + 1
    end
    remove()
    assert.same({}, faults)
    assert.same({ 600, 0, 600 }, { outcome.requests, outcome.repeats, lines })
    for number = 1, options.ends do
      assert.is_true(outcome.statuses[number] > 128) -- 143 if it was ended before it began
    end
  end)

  it("ends at a signal also while it waits for a pipe, and goes on with the same rows", function()
    local rows = { "address,network\n" }
    for number = 1, 1800 do -- more than is read at once
      rows[number + 1] = address(number) .. ",eth\n"
    end
    write(path "rows", table.concat(rows))
    local line = "(cat @rows; sleep %d) | %s riskscreen screen --sandbox --file - -o @out.csv %s"
    assert.equal(124, (select(2, shell(line:format(6, "timeout -s INT 3 env", ""))))) -- that of `timeout`
    local out, status = shell(line:format(0, "", "--resume"))
    assert.equal(2, status, out)
    assert.matches("1,800 rows: allow", out, 1, true)
  end)

  it("writes the results of a slow pipe as its rows come", function()
    local rows = "(echo address; for n in 1 2 3 4; do printf 0x%040x\\\\n $n; sleep 1; done; touch @end)"
    local read_line = "while read -r row; do test -e @end || echo early; done"
    local out = shell(rows .. " | riskscreen screen --sandbox -n eth --file - -o - | " .. read_line)
    local _, early = out:gsub("early", "")
    assert.is_true(early >= 3, out)
  end)

  it("goes on with a pipe whose rows come faster than before", function()
    local rows = "(echo address; %s for n in 1 2 3; do printf 0x%%040x\\\\n $n; done)"
    local screen = " | riskscreen screen -q --sandbox -n eth --file - -o @out.csv "
    local _, status = shell(rows:format "sleep 0.5;" .. screen)
    assert.equal(1, status)
    local out
    out, status = shell(rows:format "" .. screen .. "--resume")
    assert.equal(1, status, out)
    assert.matches("the run is complete", out, 1, true)
  end)

  it("refuses another pipe than that of its run also when the run is complete", function()
    local rows = { "address,network\n" }
    for number = 1, 1800 do -- more than is read at once
      rows[number + 1] = address(number) .. ",eth\n"
    end
    local line = "cat @%s | riskscreen screen -q --sandbox --file - -o @out.csv %s"
    write(path "rows", table.concat(rows))
    assert.equal(2, (select(2, shell(line:format("rows", "")))))
    local before = read(path "out.csv")
    write(path "longer", table.concat(rows) .. address(1801) .. ",eth\n")
    write(path "shorter", table.concat(rows, "", 1, 1800))
    rows[1800] = rows[1801]
    write(path "other", table.concat(rows))
    for _, name in ipairs { "longer", "shorter", "other" } do
      local out, status = shell(line:format(name, "--resume"))
      assert.equal(4, status, name)
      assert.matches("the input is not that of the run", out, 1, true)
    end
    local out, status = shell(line:format("rows", "--resume"))
    assert.equal(2, status, out)
    assert.matches("the run is complete", out, 1, true)
    assert.equal(before, read(path "out.csv"))
  end)

  it("goes on with a pipe of JSON whose kept values are objects and lists", function()
    local row = '{"address":"%s","network":"eth","tags":{"b":[%d,2],"a":null},"list":[]}\n'
    local failing = row:format(sandbox.scenario("fault-500").address, 1)
    write(path "rows", failing .. row:format(address(2), 2))
    write(path "other", failing .. row:format(address(2), 3))
    local line = "cat @%s | riskscreen screen -q --sandbox --file - -o @out.csv --keep tags,list %s"
    assert.equal(6, (select(2, shell(line:format("rows", "")))))
    local out, status = shell(line:format("rows", "--retry-failed"))
    assert.equal(6, status, out)
    out, status = shell(line:format("other", "--retry-failed"))
    assert.equal(4, status, out)
  end)
end)
