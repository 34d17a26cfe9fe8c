local cli = require "spec.support.cli"
local inputs = require "riskscreen.cli.input"
local status = require "riskscreen.cli.status"
local zlib = require "zlib"

local FIRST, SECOND = "0x0000000000000000000000000000000000000001", "0x0000000000000000000000000000000000000002"

describe("a file of addresses", function()
  local directory, remove

  before_each(function()
    directory, remove = cli.directory()
  end)

  after_each(function()
    remove()
  end)

  local function open(text, wanted)
    local path = directory .. "/input"
    local file = assert(io.open(path, "wb"))
    file:write(text)
    file:close()
    return inputs.open(path, wanted or {}, nil)
  end

  local function read(text, wanted)
    local input, rows = open(text, wanted), {}
    for row in input.next do
      rows[#rows + 1] = row
    end
    input.close()
    return rows
  end

  local function refusal(text, wanted)
    local ok, failure = pcall(read, text, wanted)
    assert.is_false(ok)
    assert.is_true(status.is_failure(failure), tostring(failure))
    assert.equal(status.usage, failure.status)
    return failure.message
  end

  it("has its columns by the names in the header, in any order", function()
    local rows = read(("id,Network,note, ADDRESS \r\n7,ETH,x, %s \r\n"):format(FIRST), { keep = { "id", "note" } })
    assert.same({ { line = 2, address = FIRST, network = "eth", kept = { "7", "x" } } }, rows)
  end)

  it("may be exported by a spreadsheet: a byte order mark, semicolons, quotes", function()
    local rows = read(('\239\187\191"address";"network"\r\n"%s";"eth"\r\n'):format(FIRST))
    assert.same({ address = FIRST, network = "eth", line = 2, kept = {} }, rows[1])
  end)

  it("may be a plain list of addresses", function()
    local rows = read(FIRST .. "\n" .. SECOND .. "\n")
    assert.same({ FIRST, SECOND }, { rows[1].address, rows[2].address })
    assert.same({ 1, 2 }, { rows[1].line, rows[2].line })
    assert.equal("btc", read(FIRST .. ",btc\n")[1].network)
  end)

  it("may be gzip, also of several members, and is told by its bytes", function()
    local function packed(text)
      return (zlib.deflate(nil, 31)(text, "finish"))
    end
    local text = packed("address,network\n" .. FIRST .. ",eth\n") .. packed(SECOND .. ",eth\n")
    local rows = read(text)
    assert.same({ FIRST, SECOND }, { rows[1].address, rows[2].address })
    assert.matches("ends early", refusal(text:sub(1, -6)), 1, true)
    assert.matches("damaged", refusal(text:sub(1, 30) .. ("x"):rep(20) .. text:sub(51)), 1, true)
  end)

  it("reports a broken row with its line, and goes on", function()
    local rows = read(('address,network\n"x"y,eth\n%s,eth\n'):format(FIRST))
    assert.equal(2, rows[1].line)
    assert.matches("text follows a closing quote", rows[1].fault, 1, true)
    assert.equal(FIRST, rows[2].address)
  end)

  it("may be empty", function()
    assert.same({}, read "")
    assert.same({}, read "address,network\n")
  end)

  it("must have the columns that are named", function()
    assert.matches("has no column 'address'; its first line is: id, wallett", refusal "id,wallett\n1,2\n", 1, true)
    assert.matches("did you mean 'wallett'", refusal("id,wallett\n", { address_column = "walet" }), 1, true)
    assert.matches("--keep: the file has no column 'x'", refusal("address\n", { keep = { "x" } }), 1, true)
    assert.equal("q", read("a,b\nq,r\n", { address_column = "A" })[1].address)
  end)
end)
