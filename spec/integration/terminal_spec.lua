-- The `riskscreen` command in a pseudo-terminal, which util-linux's `script` makes.
local cli = require "spec.support.cli"
local commands = require "spec.support.page_commands"

local ADDRESS = "0x16e998a4a64a384aa74dd757e5a6858ab909262e"

-- The output on a terminal of so many columns.
local function in_terminal(columns, arguments, environment)
  local inner = ("stty cols %d; %s %s %s"):format(columns, environment or "env", cli.command, arguments)
  local output =
    commands.run(("XDG_CONFIG_HOME=/nonexistent TERM=xterm script -qec '%s' /dev/null </dev/null"):format(inner))
  return (output:gsub("\r\n", "\n"))
end

local function without_notice(output)
  return (output:gsub("riskscreen: no service is configured[^\n]*\n", ""))
end

describe("in a terminal", function()
  for _, columns in ipairs { 60, 100, 200 } do
    it(("a table fits %d columns, and its header and verdict have colours"):format(columns), function()
      local output = without_notice(in_terminal(columns, "screen " .. ADDRESS .. " -n eth"))
      assert.matches("\27[31mblock\27[0m", output, 1, true)
      assert.matches(ADDRESS, output, 1, true)
      for line in output:gsub("\27%[%d*m", ""):gmatch "[^\n]+" do
        local _, continuations = line:gsub("[\128-\191]", "")
        assert.is_true(#line - continuations <= columns, line)
      end
    end)
  end

  it("there are no colours with NO_COLOR", function()
    local output = in_terminal(100, "screen " .. ADDRESS .. " -n eth", "NO_COLOR=1")
    assert.is_nil(output:find("\27", 1, true))
  end)

  it("JSON has no colours", function()
    assert.is_nil(in_terminal(100, "screen --json " .. ADDRESS .. " -n eth"):find("\27", 1, true))
  end)

  it("a run over a file draws its progress on one line, and removes it", function()
    local directory, remove = cli.directory()
    local file = assert(io.open(directory .. "/a.csv", "w"))
    file:write "address,network\n"
    for number = 1, 1500 do
      file:write(("0x%040x,eth\n"):format(number))
    end
    file:close()
    local output = without_notice(in_terminal(100, ("screen --file %s/a.csv"):format(directory)))
    remove()
    local progress, summary = output:match "^(.*)\r\27%[K([^\r]*)$"
    assert.matches("%d+%% %[#* *%]", progress)
    assert.matches("allow %d+ review %d+ block %d+ unknown 0  [%d,]+/s", progress)
    assert.is_nil(progress:find("\n", 1, true))
    assert.matches("a.results.csv: 1,500 rows: allow [%d,]+, review %d+, block %d+, unknown 0\n$", summary)
  end)
end)

describe("in a terminal, blacklist import", function()
  it("draws its requests on one line, and removes it before the states", function()
    local directory, remove = cli.directory()
    local file = assert(io.open(directory .. "/a.csv", "w"))
    file:write "address\n"
    for number = 1, 1500 do
      file:write(("0x%040x\n"):format(number))
    end
    file:close()
    local output = in_terminal(100, ("blacklist import %s/a.csv -n eth --risk high/scam --sandbox"):format(directory))
    remove()
    local drawn, states = output:match "^(.*)\r\27%[K([^\r]*)$"
    assert.matches("\r1 request for 1,500 rows\27%[K\r2 requests for 1,500 rows\27%[K", drawn)
    assert.matches("\r15 requests for 1,500 rows\27%[K$", drawn)
    assert.equal(1500, select(2, states:gsub("%f[%w]added", "")))
  end)
end)

describe("in a terminal, a warning in a run", function()
  it("stands on a line of its own", function()
    local directory, remove = cli.directory()
    local file = assert(io.open(directory .. "/a.csv", "w"))
    file:write "address\n"
    for number = 1, 1500 do
      file:write(("0x%040x\n"):format(number))
    end
    file:close()
    local list = directory .. "/deny.csv"
    commands.run(("printf 'address\n0x%040x\n' >%s"):format(1, list))
    local flags = ("--deny %s --set lists.interval=0.1 --rate 500"):format(list)
    local line = "screen --file %s/a.csv -n eth --sandbox -o - %s >/dev/null & sleep 1; echo address >%s; wait"
    local output = in_terminal(100, line:format(directory, flags, list))
    remove()
    assert.matches("\r\27%[Kriskscreen: the deny list", output)
  end)
end)

describe("in a pipe", function()
  it("there are no colours, no progress and no cut cells", function()
    local line = ("XDG_CONFIG_HOME=/nonexistent %s screen %s -n eth | cat"):format(cli.command, ADDRESS)
    local output = without_notice((commands.run(line)))
    assert.is_nil(output:find("\27", 1, true))
    assert.is_nil(output:find("…", 1, true))
    assert.matches("rule 'high risk' matches high / hack", output, 1, true)
  end)
end)
