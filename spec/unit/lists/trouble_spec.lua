-- List files that are refused, also when the file of a list in use becomes one.
local build = require("riskscreen.lists.build").build
local list_files = require "spec.support.list_files"
local ofac = require "riskscreen.lists.ofac"
local riskscreen = require "riskscreen"
local run = require("spec.support.cli").run

local address = list_files.address

describe("a list file", function()
  local directory, now, problems

  before_each(function()
    directory = list_files.new()
    now, problems = os.time(), {}
  end)

  after_each(function()
    directory:remove()
  end)

  local function client(lists)
    lists.on_problem = function(message)
      problems[#problems + 1] = message
    end
    return riskscreen.new {
      access_key = "key-of-lists",
      retry = false,
      clock = function()
        return now
      end,
      -- Its clock is monotonic: no date that is set changes it.
      runtime = setmetatable({
        now = function()
          return now
        end,
      }, { __index = require "riskscreen.runtime" }),
      transport = function()
        return nil, { kind = "network", message = "down" }
      end,
      lists = lists,
    }
  end

  local function many(count)
    local lines = { "address" }
    for number = 1, count do
      lines[number + 1] = address(number)
    end
    return table.concat(lines, "\n") .. "\n"
  end

  local broken = {
    ["address\n"] = "has no entry",
    [""] = "has no entry",
    ["what\n"] = "no column 'address'",
    ["Konto;Netz\n" .. address(1) .. ";eth\n"] = "no column 'address'",
    ["address,note\n" .. address(1) .. ",caf\233\n"] = "not UTF-8",
    ["\255\254a\0d\0"] = "UTF-16",
    ["PK\3\4xx"] = "workbook",
    ["address,expires\n" .. address(1) .. ",31.12.2099\n"] = "line 2: expires must be",
    ["address,expires\n" .. address(1) .. ",20991231\n"] = "line 2: expires must be",
    ["address,expires\n" .. address(1) .. ",4070908800000\n"] = "line 2: expires must be",
    ["address\n" .. address(1) .. "\n" .. address(2) .. ",eth\n"] = "line 3",
    ["address,adress\n" .. address(1) .. ",x\n"] = "did you mean",
    ["address,expires_at\n" .. address(1) .. ",2001-01-01\n"] = "is not a field of a list",
    ["address,Expiration Date\n" .. address(1) .. ",2001-01-01\n"] = "is not a field of a list",
    ["address,expire\n" .. address(1) .. ",2001-01-01\n"] = "did you mean 'expires'",
    ["address,valid_until\n" .. address(1) .. ",2001-01-01\n"] = "is not a field of a list",
    ["address,valid to\n" .. address(1) .. ",2001-01-01\n"] = "is not a field of a list",
    ["address,TTL\n" .. address(1) .. ",1\n"] = "is not a field of a list",
    ["address,ends-at\n" .. address(1) .. ",2001-01-01\n"] = "is not a field of a list",
    ["address,end_date\n" .. address(1) .. ",2001-01-01\n"] = "is not a field of a list",
    ["address,validThrough\n" .. address(1) .. ",2001-01-01\n"] = "is not a field of a list",
    ["address,network,foo\n" .. address(1) .. ",eth,1\n"] = "'foo' is not a field of a list",
    ["address,active\n" .. address(1) .. ",no\n"] = "'active' is not a field of a list",
    ['{"address":"' .. address(1) .. '","foo":1}\n'] = "'foo' is not a field of a list",
    ["address,Netz\n" .. address(1) .. ",bsc\n"] = "the column 'Netz' is not read, and it has the network 'bsc'",
    ["address,net\n" .. address(1) .. ",eth\n"] = "did you mean 'network'",
    ["address,Network Name\n" .. address(1) .. ",eth\n"] = "did you mean 'network'",
    ['{"address":"' .. address(1) .. '","chainId":"eth"}\n'] = "did you mean 'network'",
    ['{"address":"' .. address(1) .. '","expire":"2001-01-01"}\n'] = "did you mean 'expires'",
  }

  it("that denies nobody, or cannot be understood, is refused", function()
    for content, problem in pairs(broken) do
      local path = directory:write("deny.csv", content)
      local ok, message = pcall(client, { deny = path })
      assert.is_false(ok, content)
      assert.matches(problem, message, 1, true)
      local list, fault = require("riskscreen.lists").load(path)
      assert.is_nil(list)
      assert.matches(problem, fault, 1, true)
      local report, err = build { output = directory:path "out.rsl", inputs = path }
      assert.is_nil(report, content)
      assert.matches((problem:gsub("has no entry", "no rows")), err.message, 1, true)
    end
    assert.same({ "deny.csv" }, directory:names())
  end)

  it("in use goes on to count where the new file is refused, and the problem is told once", function()
    for content, problem in pairs(broken) do
      problems = {}
      local path = directory:write("deny.csv", many(1))
      local made = client { deny = path, interval = 10 }
      directory:write("deny.csv", content)
      for _ = 1, 3 do
        now = now + 10
        assert.equal("block", made:screen({ address = address(1), network = "eth" }).action)
      end
      assert.equal(1, #problems)
      assert.matches("the old one counts", problems[1], 1, true)
      assert.matches(problem, problems[1], 1, true)
      assert.is_true(made:stats().lists[1].faulty)
    end
  end)

  it("may lose half of its entries at once, and an allow list all of them", function()
    local deny, allow = directory:write("deny.csv", many(10)), directory:write("allow.csv", many(10))
    local made = client { deny = deny, allow = allow, interval = 10 }
    directory:write("deny.csv", many(4))
    directory:write("allow.csv", many(1))
    now = now + 10
    assert.equal("block", made:screen({ address = address(10), network = "eth" }).action)
    assert.matches("has 4 entries, and the list before it has 10", problems[1], 1, true)
    assert.equal(1, made:stats().lists[2].entries)
    directory:write("deny.csv", many(5))
    now = now + 10
    assert.equal("unknown", made:screen({ address = address(10), network = "eth" }).action)
    made = client { deny = deny, max_shrink = 1, interval = 10 }
    directory:write("deny.csv", many(1))
    now = now + 10
    assert.equal("unknown", made:screen({ address = address(5), network = "eth" }).action)
  end)

  it("is compared with the one that a build replaces", function()
    local output = directory:path "out.rsl"
    assert(build { output = output, inputs = directory:write("a.csv", many(10)) })
    local small = directory:write("a.csv", many(4))
    local report, err = build { output = output, inputs = small }
    assert.is_nil(report)
    assert.matches("the list before it has 10", err.message, 1, true)
    assert.equal(10, require("riskscreen.lists").load(output).facts.entries)
    assert.equal(4, assert(build { output = output, inputs = small, max_shrink = 1 }).entries)
    assert.same({ "a.csv", "out.rsl" }, directory:names())
  end)

  it("is compiled if its first bytes say so, whatever its name is", function()
    local output = directory:path "deny.csv"
    assert(build { output = output, inputs = directory:write("a.txt", address(1)) })
    assert.equal("block", client({ deny = output }):screen({ address = address(1), network = "eth" }).action)
    local text = directory:write("deny.rsl", address(2))
    assert.equal("block", client({ deny = text }):screen({ address = address(2), network = "eth" }).action)
  end)

  it("has its networks in a column called chain", function()
    local made = client { deny = directory:write("deny.csv", "Wallet,Chain\n" .. address(1) .. ",ETH\n") }
    assert.equal("block", made:screen({ address = address(1), network = "eth" }).action)
    assert.equal("unknown", made:screen({ address = address(1), network = "bsc" }).action)
  end)

  it("tells how many of its entries have expired", function()
    local path = directory:write("deny.csv", ("address,expires\n%s,2020-01-01\n%s,\n"):format(address(1), address(2)))
    client { deny = path }
    assert.matches("has 1 entry beyond the date of expiry", problems[1], 1, true)
    assert.equal(1, assert(build { output = directory:path "out.rsl", inputs = path }).expired)
  end)

  it("is loaded again also where its time of change was set back", function()
    local path = directory:write("deny.csv", many(1))
    assert(os.execute("touch -d 2026-01-01 " .. path))
    local made = client { deny = path, interval = 10 }
    local file = assert(io.open(path, "wb"))
    file:write((many(1):gsub("1\n$", "2\n")))
    file:close()
    assert(os.execute("touch -d 2026-01-01 " .. path))
    now = now + 10
    assert.equal("block", made:screen({ address = address(2), network = "eth" }).action)
  end)

  it("may be a pipe in a build", function()
    directory:write("a.csv", many(20000))
    local fifo = directory:path "fifo"
    assert(os.execute(("mkfifo %s; cat %s > %s &"):format(fifo, directory:path "a.csv", fifo)))
    local report = assert(build { output = directory:path "out.rsl", inputs = fifo })
    assert.equal(20000, report.entries)
  end)

  it("that is compressed is compiled first: it could fill the memory", function()
    local path = directory:write("a.csv.gz", (require("zlib").deflate(nil, 31)(many(2), "finish")))
    local ok, message = pcall(client, { deny = path })
    assert.is_false(ok)
    assert.matches("compressed", message)
    assert.equal(2, assert(build { output = directory:path "out.rsl", inputs = path }).entries)
  end)

  it("is never written over by a build, and is as readable as the umask says", function()
    local path = directory:write("a.csv", many(1))
    assert(os.execute(("ln -s %s %s"):format(path, directory:path "link.rsl")))
    for _, output in ipairs { path, directory:path "link.rsl" } do
      local report, err = build { output = output, inputs = path }
      assert.is_nil(report)
      assert.matches("is an input", err.message)
    end
    assert.equal(many(1), directory:read "a.csv")
    local line = [[umask 077; %s -e 'require("riskscreen.lists").build { output = "%s", inputs = "%s" }']]
    assert(os.execute(line:format(os.getenv "RISKSCREEN_LUA" or "lua5.4", directory:path "out.rsl", path)))
    local pipe = assert(io.popen("stat -c %a " .. directory:path "out.rsl"))
    assert.equal("400", pipe:read "*l")
    pipe:close()
  end)
end)

describe("OFAC's file", function()
  local function load(...)
    local content, found, skipped = "<sdnList><sdnEntry><uid>1</uid><lastName>X</lastName><idList>", {}, {}
    for _, id in ipairs { ... } do
      content = content .. ("<id><idType>%s</idType><idNumber>%s</idNumber></id>"):format(id[1], id[2])
    end
    content = content .. "</idList></sdnEntry></sdnList>"
    local sink = {
      row = function(row)
        found[#found + 1] = row.address
      end,
      skipped = function(symbol, _, is_unknown)
        skipped[#skipped + 1] = symbol .. (is_unknown and " unknown" or "")
      end,
    }
    local is_read = false
    assert(ofac.load(function()
      local piece = not is_read and content or nil
      is_read = true
      return piece
    end, sink))
    return found, skipped
  end

  local BTC = "1BoatSLRHtKNngkdXEeobR76b53LETtpyT"

  it("has addresses of other networks that are also good on one that the service screens", function()
    local found, skipped = load(
      { "Digital Currency Address - BCH", BTC },
      { "Digital Currency Address - BSV", BTC },
      { "Digital Currency Address - BCH", "bitcoincash:qq" }
    )
    assert.same({ BTC, BTC }, found)
    assert.same({ "BCH" }, skipped)
  end)

  it("has identifiers whose spelling is not known: they are counted, and strict builds fail", function()
    local found, skipped = load(
      { "Digital currency address - XBT", BTC },
      { "Digital Currency Address-ETH", "0x" },
      { "Passport", "1" }
    )
    assert.same({}, found)
    assert.same({ "Digital currency address - XBT unknown", "Digital Currency Address-ETH unknown" }, skipped)
    local directory = list_files.new()
    local path = directory:write(
      "sdn.xml",
      "<sdnList><sdnEntry><idList><id><idType>Digital Currency Address - XBT</idType><idNumber>"
        .. BTC
        .. "</idNumber></id><id><idType>Digital Currency Address: ETH</idType><idNumber>0x1</idNumber></id>"
        .. "</idList></sdnEntry></sdnList>"
    )
    local output = directory:path "out.rsl"
    local report, err = build { output = output, inputs = path, strict = true }
    assert.is_nil(report)
    assert.matches("1 address left out", err.message, 1, true)
    report = assert(build { output = output, inputs = path })
    assert.same({ 1, 1, 1 }, { report.entries, report.unknown, report.skipped[1].count })
    for _, more in ipairs { "--json", "--strict" } do
      local status, _, message = run { "list", "build", path, "-o", output, more }
      assert.equal(5, status)
      assert.matches("1 address of Digital Currency Address: ETH: the spelling", message, 1, true)
    end
    directory:remove()
  end)

  it("has further kinds of identifiers that are counted where they have an address", function()
    for _, kind in ipairs { "Digital Asset Address - XBT", "Wallet", "BTC Address", "Blockchain address", "Token" } do
      local found, skipped = load({ kind, BTC }, { kind, "no address" }, { "Email Address", "someone@example.com" })
      assert.same({ {}, { kind .. " unknown" } }, { found, skipped })
    end
  end)
end)
