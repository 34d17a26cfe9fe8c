local crc32c = require "spec.support.crc32c"
local json = require "riskscreen.json"
local list_files = require "spec.support.list_files"
local run = require("spec.support.cli").run

local HEADER = 256 -- bytes of a compiled list

local address = list_files.address

describe("riskscreen list", function()
  local directory, input, output

  before_each(function()
    directory = list_files.new()
    input, output = directory:path "ours.csv", directory:path "deny.rsl"
    directory:write("ours.csv", ("address,network,note\n%s,eth,why\n%s,,\n"):format(address(1), address(2)))
  end)

  after_each(function()
    directory:remove()
  end)

  it("builds a list, and shows what it holds", function()
    local status, out = run { "list", "build", input, "--output", output, "--title", "ours", "--json" }
    assert.equal(0, status)
    assert.same({ 2, 2, 0 }, { json.decode(out).entries, json.decode(out).rows, json.decode(out).invalid })
    status, out = run { "list", "info", output, input, "--jsonl" }
    assert.equal(0, status)
    local compiled = json.decode(out:match "^[^\n]+")
    assert.same({ 2, 0, "ours" }, { compiled.entries, compiled.days, compiled.title })
  end)

  it("shows an allow list without entries, and refuses to look for an address in a list that is none", function()
    directory:write("ours.csv", "address\n")
    assert.equal(0, (run { "list", "build", input, "-o", output, "--allow-empty" }))
    for _, path in ipairs { input, output } do
      local status, out = run { "list", "info", path, "--json" }
      assert.equal(0, status)
      assert.equal(0, json.decode(out)[1].entries)
      assert.equal(3, (run { "list", "check", path, address(1) }))
    end
  end)

  it("tells entries of the past with their number", function()
    directory:write("ours.csv", ("address,expires\n%s,2020-01-01\n%s,\n"):format(address(1), address(2)))
    local _, _, err = run { "list", "check", input }
    assert.matches("1 entry already expired", err, 1, true)
  end)

  it("says whether addresses are on it", function()
    run { "list", "build", input, "-o", output }
    assert.equal(0, (run { "list", "check", output }))
    local status, out = run { "list", "check", output, address(1), address(3), "--jsonl" }
    assert.equal(2, status)
    local first, second = out:match "([^\n]+)\n([^\n]+)"
    assert.same({ true, "eth", "why" }, {
      json.decode(first).listed,
      json.decode(first).network,
      json.decode(first).note,
    })
    assert.is_false(json.decode(second).listed)
    assert.equal(0, (run { "list", "check", output, address(1), "-n", "bsc" }))
    local failed, _, err = run { "list", "check", output, "abc" }
    assert.equal(4, failed)
    assert.matches("abc: it is an address of no network; -n NETWORK explains why", err, 1, true)
  end)

  it("says whether the good ones of several addresses are on it, and tells the bad ones", function()
    run { "list", "build", input, "-o", output }
    local status, out, err = run { "list", "check", output, "abc", address(1), address(3), "def", "--csv" }
    assert.equal(2, status)
    assert.same({ address(1), address(3) }, { out:match "\n(0x%w+),eth,true,.*\n(0x%w+),,false" })
    assert.is_nil(out:find("abc", 1, true))
    for _, bad in ipairs { "abc", "def" } do
      assert.matches(bad .. ": it is an address of no network", err, 1, true)
    end
    status, out, err = run { "list", "check", output, address(3), "abc", "--csv" }
    assert.equal(4, status)
    assert.matches(address(3) .. ",,false", out, 1, true)
    assert.matches("abc: it is an address of no network", err, 1, true)
  end)

  it("shows no number of invalid rows where a compiled list has none", function()
    directory:write("ours.csv", ("address,expires\nabc,\n%s,2020-01-01\n"):format(address(1)))
    assert.equal(5, (run { "list", "build", input, "-o", output }))
    local _, out = run { "list", "info", output, input, "--jsonl" }
    local compiled, written = out:match "([^\n]+)\n([^\n]+)"
    assert.same({ 1 }, { json.decode(compiled).entries, json.decode(compiled).invalid, json.decode(compiled).expired })
    assert.same(
      { 1, 1, 1 },
      { json.decode(written).entries, json.decode(written).invalid, json.decode(written).expired }
    )
  end)

  it("names rows that are no entries, and has a status of its own for them", function()
    directory:write("ours.csv", ("address\nabc\n%s\n"):format(address(1)))
    local status, _, err = run { "list", "build", input, "--output", output }
    assert.equal(5, status)
    assert.matches("ours.csv:2: 'abc' is not an address of any network", err, 1, true)
    assert.equal(0, (run { "list", "check", output }))
    os.remove(output)
    status, _, err = run { "list", "build", input, "--output", output, "--strict" }
    assert.equal(5, status)
    assert.matches("1 row without an entry", err, 1, true)
    assert.same({ "ours.csv" }, directory:names())
  end)

  it("never has that status where the old list stays for another reason", function()
    directory:write("ours.csv", ("address\n%s\n%s\n%s\n"):format(address(1), address(2), address(3)))
    assert.equal(0, (run { "list", "build", input, "--output", output }))
    directory:write("ours.csv", ("address\nabc\n%s\n"):format(address(1)))
    local status, _, err = run { "list", "build", input, "--output", output }
    assert.equal(4, status)
    assert.matches("is not written", err, 1, true)
    status, _, err = run { "list", "build", input, "--output", "/proc/deny.rsl" }
    assert.equal(3, status)
    assert.matches("is not written", err, 1, true)
  end)

  it("shows no date for a time that no calendar has", function()
    run { "list", "build", input, "-o", output }
    local built = directory:read "deny.rsl"
    for _, time in ipairs { ("\255"):rep(8), ("\0"):rep(7) .. "@" } do
      local content = built:sub(1, 40) .. time .. built:sub(49)
      directory:write("deny.rsl", content:sub(1, 12) .. crc32c(content:sub(17, HEADER)) .. content:sub(17))
      local status, out = run { "list", "info", output, "--jsonl" }
      assert.equal(0, status)
      assert.same({ 2 }, { json.decode(out).entries, json.decode(out).built })
    end
  end)

  it("refuses a damaged list", function()
    run { "list", "build", input, "--output", output }
    directory:write("deny.rsl", directory:read("deny.rsl"):sub(1, -2))
    for _, verb in ipairs { "info", "check" } do
      local status, _, err = run { "list", verb, output }
      assert.equal(3, status)
      assert.matches("the list is damaged", err, 1, true)
    end
  end)

  it("blocks in `screen` where the configuration names it", function()
    run { "list", "build", input, "--output", output }
    local status, out = run { "screen", address(2), "-n", "eth", "--set", "lists.deny=" .. output }
    assert.equal(2, status)
    assert.matches("the deny list", out, 1, true)
  end)
end)
