local cjson = require "cjson"
local cli = require "spec.support.cli"
local command_line = require "spec.support.command_line"
local run = cli.run
local sandbox = require "riskscreen.sandbox"
local tables = require "riskscreen.util.tables"
local temporary = require "spec.support.temporary"

local function address(name)
  return sandbox.scenario(name).address
end

local function lines_of(out)
  local list = {}
  for line in out:gmatch "[^\n]+" do
    list[#list + 1] = cjson.decode(line)
  end
  return list
end

describe("riskscreen watch", function()
  local path

  before_each(function()
    path = temporary.path "customers.csv"
    temporary.write(path, "customer,address\nC-1," .. address "type-hack" .. "\nC-2," .. address "clean-eth" .. "\n")
  end)

  after_each(temporary.clean)

  it("prints the first verdict that is not allow, and at the next run nothing", function()
    local arguments = { "watch", "--sandbox", "--file", path, "-n", "eth", "--once", "--rate", "1000" }
    local status, out, err = run(arguments)
    assert.equal(0, status, err)
    local changes = lines_of(out)
    assert.equal(1, #changes)
    assert.equal("block", changes[1].action)
    assert.equal("C-1", changes[1].fields.customer)
    assert.matches("2 screened, 1 changed, 0 without an answer, 0 waiting", err, 1, true)
    status, out = run(arguments)
    assert.equal(0, status)
    assert.equal("", out)
  end)

  it("keeps the facts of --meta in the journal", function()
    local journal = temporary.path "journal.jsonl"
    local arguments = { "watch", "--sandbox", "--file", path, "-n", "eth", "--once", "--rate", "1000" }
    local status, _, err = run(tables.concat(arguments, { "--journal", journal, "--meta", "case=17" }))
    assert.equal(0, status, err)
    for entry in require("riskscreen.journal").entries(journal) do
      assert.same({ case = "17" }, entry.meta)
    end
  end)

  it("refuses another file in the place of its own, whose verdicts would be forgotten", function()
    local function watch(file, ...)
      local state = temporary.path "state.db"
      local arguments = { "watch", "--sandbox", "-n", "eth", "--once", "--file", file, "--state", state }
      return run(tables.concat(arguments, { ... }))
    end
    assert.equal(0, (watch(path)))
    local other, next_month = temporary.path "other.csv", temporary.path "customers-2.csv"
    temporary.write(other, "address\n" .. address "type-scam" .. "\n")
    temporary.write(next_month, "address\n" .. address "type-scam" .. "\n" .. address "type-hack" .. "\n")
    local status, out, err
    for round = 1, 2 do
      status, out, err = watch(other)
      assert.same({ 3, "" }, { status, out })
      assert.matches("has none of its addresses: give it another name", err, 1, true)
      if round == 1 then
        assert.equal(3, (watch(path, "--daily-cap", "3"))) -- its cycle is not at its end
      end
    end
    status, out = watch(path)
    assert.same({ 0, "" }, { status, out })
    status, out = watch(next_month)
    assert.same({ 0, 1 }, { status, #lines_of(out) })
    -- Both files are there: neither makes the watch forget the other's verdicts.
    for _, file in ipairs { path, next_month, next_month, path } do
      status, out = watch(file)
      assert.same({ 0, "" }, { status, out })
    end
    os.remove(next_month)
    temporary.write(path, "address\n" .. address "type-hack" .. "\n")
    assert.equal(0, (watch(path)))
    temporary.write(path, "address\n" .. address "type-hack" .. "\n" .. address "type-scam" .. "\n")
    status, out = watch(path)
    assert.same({ 0, 1 }, { status, #lines_of(out) })
  end)

  it("ends at Ctrl-C and SIGTERM when its screening has ended", function()
    for _, signal in ipairs { "INT", "TERM" } do
      local line = "XDG_CONFIG_HOME=/none timeout -s %s 2 env %s watch --sandbox -n eth --file %s"
      local out, status = command_line.run(line:format(signal, cli.command, path))
      assert.equal(124, status) -- that of `timeout`
      assert.matches("stopping: calls under way are finished", out, 1, true)
      assert.matches("customers.csv.watch.db", table.concat(temporary.names(), " "), 1, true)
    end
  end)

  it("throws no change away", function()
    local status, _, err = run { "watch", "--sandbox", "--file", path, "-n", "eth", "--once", "-q" }
    assert.equal(4, status)
    assert.matches("--webhook or --command", err, 1, true)
    assert.same({ "customers.csv" }, temporary.names())
  end)

  it("gives each change to a command, and keeps it where the command fails", function()
    local got = temporary.path "got"
    local function watch(command)
      return run {
        "watch",
        "--sandbox",
        "--file",
        path,
        "-n",
        "eth",
        "--once",
        "--rate",
        "1000",
        "--command",
        command,
      }
    end
    local status, _, err = watch "exit 3"
    assert.equal(3, status)
    assert.matches("a change was not delivered and is kept: the command failed", err, 1, true)
    status = watch("cat > " .. got)
    assert.equal(0, status)
    assert.equal("block", cjson.decode(temporary.read(got)).action)
  end)

  it("refuses a wrong time and a webhook without a secret", function()
    local status, _, err = run { "watch", "--sandbox", "--file", path, "--every", "6x" }
    assert.equal(4, status)
    assert.matches("--every must be a time such as 90s, 30m, 6h or 1d", err, 1, true)
    status, _, err =
      run { "watch", "--sandbox", "--file", path, "-n", "eth", "--once", "--webhook", "https://example.com/" }
    assert.equal(4, status)
    assert.matches("--webhook needs RISKSCREEN_WATCH_SECRET", err, 1, true)
    status, _, err =
      run { "watch", "--sandbox", "--file", path, "-n", "eth", "--once", "--webhook", "https://example.com/" }
    assert.equal(4, status, err)
  end)

  it("sends a test to a command, without a file and a state", function()
    local got = temporary.path "got"
    local status, out, err = run { "watch", "--sandbox", "--test", "--command", "cat > " .. got }
    assert.equal(0, status, err)
    local change = cjson.decode(temporary.read(got))
    assert.same({ true, "unknown" }, { change.test, change.action })
    assert.equal(change.id, lines_of(out)[1].id)
    assert.matches("the test was taken", err, 1, true)
    status, out, err = run { "watch", "--sandbox", "--test", "--command", "exit 3", "--file", path }
    assert.equal("", out)
    assert.equal(3, status)
    assert.matches("the test was not taken: the command failed (exit 3)", err, 1, true)
    assert.same({ "customers.csv", "got" }, temporary.names())
    assert.equal(4, (run { "watch", "--sandbox", "--test" }))
  end)

  it("leaves no state behind where the file cannot be read, or an argument is wrong", function()
    local broken = temporary.path "broken.csv"
    temporary.write(broken, 'address\n"' .. address "clean-eth" .. "\n")
    local others = temporary.path "others.csv"
    temporary.write(others, "address\n" .. address "clean-eth" .. "\nnone\n")
    for _, arguments in ipairs {
      { "--file", temporary.path "nowhere.csv" },
      { "--file", broken },
      { "--file", others, "--max-invalid", "0" },
      { "--file", others, "--max-invalid", "0", "--set", "address_check=false" },
      { "--file", temporary.directory() },
      { "--file", path, "--webhook", "nonsense" },
      { "--file", path, "--name", "a b" },
    } do
      local line = { "watch", "--sandbox", "-n", "eth", "--once" }
      for _, argument in ipairs(arguments) do
        line[#line + 1] = argument
      end
      local status, _, err = run(line, { env = { RISKSCREEN_WATCH_SECRET = ("s"):rep(16) } })
      assert.equal(4, status, err)
      assert.same({ "broken.csv", "customers.csv", "others.csv" }, temporary.names())
    end
  end)

  it("needs the network of the rows, as every verb that reads rows does", function()
    local plain = temporary.path "plain.csv"
    temporary.write(plain, "address\n" .. address "clean-eth" .. "\n")
    for _, line in ipairs {
      { "watch", "--sandbox", "--once", "--file", plain },
      { "screen", "--sandbox", "--file", plain },
      { "blacklist", "import", "--sandbox", plain },
    } do
      local status, out, err = run(line)
      assert.equal(4, status, line[1])
      assert.equal("", out)
      assert.matches("the file has no column 'network': give -n NETWORK", err, 1, true)
    end
    assert.same({ "customers.csv", "plain.csv" }, temporary.names())
  end)

  it("refuses to watch the sandbox that nobody asked for", function()
    local status, out, err = run { "watch", "--file", path, "-n", "eth", "--once" }
    assert.equal(4, status)
    assert.equal("", out)
    assert.matches("no service is configured: set base_url and an access key, or give --sandbox", err, 1, true)
  end)

  it("needs a file", function()
    local status, _, err = run { "watch", "--once" }
    assert.equal(4, status)
    assert.matches("--file", err, 1, true)
  end)
end)
