-- A day of a compliance team, with the command alone. A file is screened with interruptions, and has its page and its
-- record. A list counts while the network is down.
local cli = require "spec.support.cli"
local commands = require "spec.support.page_commands"

local ROWS = 3000
local LISTED = 20000

local function address(number)
  return ("0x%040x"):format(number)
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function count(path, pattern)
  local found = 0
  for line in io.lines(path) do
    found = found + (line:find(pattern) and 1 or 0)
  end
  return found
end

describe("a compliance team", function()
  local directory, remove, sandbox
  local root = commands.run("pwd"):match "^[^\n]+"

  -- Runs the command in the directory; `before` is a command that runs it.
  local function riskscreen(arguments, before)
    local command = cli.command:gsub(" ", " " .. root .. "/", 1)
    return commands.run(
      ("cd %s && %s %s %s %s"):format(directory, sandbox.environment, before or "", command, arguments)
    )
  end

  -- Runs the command, and ends it when its record has grown by some decisions; its exit status.
  local function ended(arguments, signal)
    local command = cli.command:gsub(" ", " " .. root .. "/", 1)
    local script = [[
      cd %s
      size() { stat -c %%s decisions.jsonl 2>/dev/null || echo 0; }
      first=$(size)
      %s %s %s &
      until [ $(size) -gt $((first + 50000)) ]; do sleep 0.02; done
      kill -%s $!
      wait $!]]
    return select(2, commands.run(script:format(directory, sandbox.environment, command, arguments, signal)))
  end

  setup(function()
    directory, remove = cli.directory()
    sandbox = cli.sandbox()
    local rows = { "customer;address;network\r\n" }
    for number = 1, ROWS do
      rows[#rows + 1] = ("c%d;%s;eth\r\n"):format(number, address(number))
    end
    write(directory .. "/customers.csv", table.concat(rows))
  end)

  teardown(function()
    sandbox.close()
    remove()
  end)

  it("screens a file that is interrupted twice, and has every row once", function()
    local screen = "screen -q --file customers.csv --journal decisions.jsonl --journal-record"
    -- At this rate the rows take ten seconds: each signal comes before the end, also on a busy machine.
    assert.equal(137, ended(screen .. " --rate 300", "KILL"))
    assert.equal(130, ended(screen .. " --rate 300 --resume", "INT"))
    local output, status = riskscreen(screen .. " --resume")
    assert.equal(2, status, output)
    local line = 1
    for row in io.lines(directory .. "/customers.results.csv") do
      local expected = line == 1 and "line,address,network," or ("%d,%s,eth,"):format(line, address(line - 1))
      assert.equal(expected, row:sub(1, #expected))
      line = line + 1
    end
    assert.equal(ROWS + 2, line)
  end)

  it("makes a page that counts the rows as the file has them", function()
    local output, status = riskscreen "report customers.results.csv -o page.html --json"
    assert.equal(0, status, output)
    local blocked = count(directory .. "/customers.results.csv", "^%d+,[^,]*,eth,block,")
    assert.is_true(blocked > 0)
    assert.matches(('"rows": *%d'):format(ROWS), output)
    assert.matches(('"block": *%d'):format(blocked), output)
  end)

  it("verifies the record, and finds a line that somebody changed", function()
    local output, status = riskscreen "journal verify decisions.jsonl"
    assert.equal(0, status, output)
    assert.matches("the chain holds", output, 1, true)
    local lines, changed = {}, nil
    for line in io.lines(directory .. "/decisions.jsonl") do
      lines[#lines + 1] = line
      if not changed and line:find('"action":"block"', 1, true) then
        changed = #lines
        lines[changed] = line:gsub('"action":"block"', '"action":"allow"')
      end
    end
    write(directory .. "/forged.jsonl", table.concat(lines, "\n") .. "\n")
    output, status = riskscreen "journal verify forged.jsonl --jsonl"
    assert.equal(2, status)
    assert.matches(('"line":%d,'):format(changed), output, 1, true)
    assert.matches('"reason":"changed"', output, 1, true)
  end)

  it("sees which decisions a stricter policy would change", function()
    write(directory .. "/strict.lua", 'return { rules = { { no_risk = true, action = "review" } } }')
    local output, status = riskscreen "journal replay decisions.jsonl --policy strict.lua --csv"
    assert.equal(1, status)
    assert.matches(address(1) .. ",eth,", output, 1, true)
    write(directory .. "/same.lua", "return {}")
    output, status = riskscreen "journal replay decisions.jsonl --policy same.lua --csv"
    assert.equal(0, status, output)
  end)

  it("blocks a listed address while the network is down, and lets no other pass", function()
    local listed = {}
    for number = 1, LISTED do
      listed[number] = address(number * 7) .. "\n"
    end
    write(directory .. "/ours.txt", table.concat(listed))
    local output, status = riskscreen "list build ours.txt --output deny.rsl"
    assert.equal(0, status, output)
    local offline = "--base-url http://127.0.0.1:1 --set retry=false --set lists.deny=deny.rsl -n eth --csv "
    output, status = riskscreen(offline .. "screen " .. address(LISTED * 7))
    assert.equal(2, status, output)
    output, status = riskscreen(offline .. "screen " .. address(LISTED * 7 + 1))
    assert.equal(6, status, output)
  end)
end)
