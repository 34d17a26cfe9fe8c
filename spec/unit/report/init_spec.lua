local json = require "riskscreen.json"
local report = require "riskscreen.report"
local riskscreen = require "riskscreen"

local folder

local function path(name)
  return folder .. "/" .. name
end

local function file_of(name, content)
  local file = assert(io.open(path(name), "wb"))
  file:write(content)
  file:close()
  return path(name)
end

local function read(name)
  local file = assert(io.open(path(name), "rb"))
  local content = file:read "*a"
  file:close()
  return content
end

-- The page of some files, and the data in it.
local function page_of(...)
  local summary, err = report.write { input = { ... }, output = path "report.html", title = "T", time = 1795000000 }
  assert(summary, err)
  local page = read "report.html"
  local data = page:match '<script type="application/json" id="data">(.-)</script>'
  return assert(json.decode(data)), summary, page
end

-- The text of a row's value, which is a number where rows share it.
local function text_of(data, value)
  if value == 0 then
    return nil
  end
  return type(value) == "number" and data.texts[value] or value
end

local columns = { "time", "address", "network", "action", "level", "entity", "category", "reasons", "source", "error" }
columns[11], columns[12] = "case", "analyst"

local function row_of(data, index)
  local row = {}
  for place, name in ipairs(columns) do
    local value = data.rows[index][place]
    row[name] = place > 2 and text_of(data, value) or value
  end
  row.types, row.others = {}, {}
  for place, value in ipairs(data.rows[index][#columns + 1]) do
    row.types[place] = text_of(data, value)
  end
  local others = data.rows[index][#columns + 2]
  for at = 1, others == 0 and 0 or #others, 2 do
    row.others[text_of(data, others[at])] = others[at + 1]
  end
  return row
end

describe("a report", function()
  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
  end)

  after_each(function()
    os.execute("rm -r " .. folder)
  end)

  it("has a row for each decision of the command's CSV", function()
    local data, summary = page_of(
      file_of(
        "results.csv",
        "address,network,action,reasons,risk_levels,risk_types,risk_sources,entity,error,degraded\r\n"
          .. 'a1,eth,block,rule 1; rule 2,"low; high","scam; hack; scam",Provider,Lazarus,,\r\n'
          .. "a2,btc,unknown,no answer,,,,,timeout,true\r\n"
      )
    )
    assert.equal(2, summary.rows)
    assert.same({ allow = 0, review = 0, block = 1, unknown = 1 }, summary.actions)
    local first, second = row_of(data, 1), row_of(data, 2)
    assert.equal("a1", first.address)
    assert.equal("eth", first.network)
    assert.equal("block", first.action)
    assert.equal("high", first.level)
    assert.same({ "scam", "hack" }, first.types)
    assert.equal("Lazarus", first.entity)
    assert.equal("rule 1; rule 2", first.reasons)
    assert.same({ risk_sources = "Provider" }, first.others)
    assert.equal("timeout", second.error)
    assert.same({ degraded = "true" }, second.others)
  end)

  it("reads the records of JSON lines: risks, entity, counterparties", function()
    local opponents = {
      { dir = "in", address = "b", amount = 1.5, symbol = "ETH", transactionNumbers = 2 },
      { dir = "out", address = "c", transactionNumbers = 9, risks = { { riskLevel = "high", riskType = "hack" } } },
    }
    local line = assert(json.encode {
      time = 1795000000123,
      address = "a1",
      network = "eth",
      action = "review",
      reasons = { { message = "one" }, { message = "two" } },
      record = { risks = { { riskLevel = "generally-high", riskType = "scam" } } },
      entity = { entity = { entityName = "Binance", entityCategory = "Exchange" } },
      counterparties = { opponents = opponents },
    })
    local data = page_of(file_of("results.jsonl", line .. "\n"))
    local row = row_of(data, 1)
    assert.equal(1795000000.123, row.time)
    assert.equal("generally-high", row.level)
    assert.equal("Binance", row.entity)
    assert.equal("Exchange", row.category)
    assert.equal("one\ntwo", row.reasons)
    local found = data.rows[1][#columns + 3]
    assert.equal(2, found[1])
    assert.equal("c", found[2][1])
    assert.equal("high", text_of(data, found[2][7]))
    assert.equal(1.5, found[3][3])
    assert.equal("in", text_of(data, found[3][2]))
  end)

  it("has the case and the analyst of a decision, of JSON and of CSV, and its other facts", function()
    local data = page_of(
      file_of(
        "facts.jsonl",
        '{"action":"allow","address":"a1","meta":{"case":"17","analyst":"alice","note":"twice"}}\n'
      ),
      file_of("facts.csv", "address,action,case,analyst,note\na2,allow,18,bob,once\n")
    )
    for index, expected in ipairs { { "17", "alice", "twice" }, { "18", "bob", "once" } } do
      local row = row_of(data, index)
      assert.same(expected, { row.case, row.analyst, row.others.note })
    end
  end)

  it("takes no fact for a part of the decision", function()
    local names = { "level", "type", "error", "entity", "source", "address", "network", "action", "verdict" }
    local meta = { time = "2020-01-01" }
    for _, name in ipairs(names) do
      meta[name] = name == "action" and "allow" or "fact"
    end
    local line = assert(json.encode {
      address = "a1",
      action = "block",
      reasons = { "rule 1" },
      record = { risk = { risks = { { riskLevel = "high", riskType = "hack" } } } },
      meta = meta,
    })
    local row = row_of(page_of(file_of("facts.jsonl", line .. "\n")), 1)
    assert.same({ "a1", "block", "high", { "hack" } }, { row.address, row.action, row.level, row.types })
    assert.same({ 0, 0, 0, 0 }, { row.network, row.error, row.entity, row.source })
    for _, name in ipairs { "level", "type", "error", "entity", "source", "network", "verdict" } do
      assert.equal("fact", row.others[name])
    end
  end)

  it("reads times as seconds, milliseconds and dates, with their zones", function()
    local written = { "1795000000", "1795000000123", "2026-11-18T11:06:40Z", "2026-11-18 12:06:40+01:00" }
    for _, text in ipairs { "2026-11-18", "yesterday", "2026-02-30T00:00:00Z" } do
      written[#written + 1] = text
    end
    local data = page_of(file_of("times.csv", "time;action\n" .. table.concat(written, ";allow\n") .. ";allow\n"))
    local times = {}
    for index in ipairs(data.rows) do
      times[index] = row_of(data, index).time or json.null
    end
    assert.same({ 1795000000, 1795000000.123, 1795000000, 1795000000, 1794960000, json.null, json.null }, times)
  end)

  it("reads a journal, and says where decisions were lost", function()
    local journal = assert(riskscreen.journal.file(path "journal.jsonl", {
      record = true,
      clock = function()
        return 1795000000
      end,
    }))
    local client = riskscreen.sandbox.client()
    local hacked = riskscreen.sandbox.scenario("type-hack").address
    for _, address in ipairs { hacked, "no address" } do
      assert(journal:append(client:screen { address = address, network = "eth", include = { "counterparties" } }))
    end
    journal:close()
    local file = io.open(path "journal.jsonl", "ab")
    file:write '{"id":"x","time":"2026-11-18T12:00:00Z","lost":3,"version":"0"}\n'
    file:close()
    local data, summary = page_of(path "journal.jsonl")
    assert.same({ 2, 1 }, { summary.rows, summary.unreadable })
    assert.equal(
      "journal.jsonl, line 3 cannot be read and is not counted: decisions that could not be recorded here: 3.",
      data.notes[1]
    )
    local first, second = row_of(data, 1), row_of(data, 2)
    assert.same(
      { 1795000000, hacked:lower(), "block", "high" },
      { first.time, first.address, first.action, first.level }
    )
    assert.is_true(#data.rows[1][#columns + 3] > 1)
    assert.is_nil(first.others.hash)
    assert.same({ "no address", "unknown" }, { second.address, second.action })
  end)

  it("counts a row without a known verdict as unknown, and says so", function()
    local data, summary = page_of(file_of("r.csv", "address,action\na1,allowed\na2,ALLOW\na3,\n"))
    assert.same({ allow = 0, review = 0, block = 0, unknown = 3 }, summary.actions)
    assert.equal("r.csv, line 2 counts as unknown: it has no verdict, or two.", data.notes[1])
    assert.equal(3, #data.notes)
  end)

  it("counts a row with two verdicts as unknown", function()
    local _, summary =
      page_of(file_of("r.csv", "address,verdict,action\na1,allow,block\na2,block,allow\na3,allow,allow\n"))
    assert.same({ allow = 1, review = 0, block = 0, unknown = 2 }, summary.actions)
    local row = '{"address":"a1","verdict":"block","action":"allow"}\n'
    assert.equal(1, select(2, page_of(file_of("r.jsonl", row))).actions.unknown)
  end)

  it("knows the names of columns that the reader of rows knows, in any case", function()
    local data, summary = page_of(
      file_of("a.csv", "Wallet Address,BlockChain,Verdict\na1,eth,block\n"),
      file_of("b.csv", "ADDR,Network,Action,RiskLevel\na2,btc,allow,low\n"),
      file_of("c.jsonl", '{"Crypto_Address":"a3","Chain":"bsc","ACTION":"review"}\n'),
      file_of("d.csv", "address,Verdict,action\na4,block,allow\n"),
      file_of("e.jsonl", '{"address":"a5","action":"allow","Action":"block"}\n'),
      file_of("f.csv", "address,action,verdict\na6,allow,denied\n")
    )
    assert.same({ allow = 1, review = 1, block = 1, unknown = 3 }, summary.actions)
    for index, expected in ipairs { { "a1", "eth" }, { "a2", "btc" }, { "a3", "bsc" } } do
      local row = row_of(data, index)
      assert.same(expected, { row.address, row.network })
      assert.same({}, row.others)
    end
    assert.equal("low", row_of(data, 2).level)
  end)

  it("takes the address and the network from the columns that it is told", function()
    for name, content in pairs {
      ["r.csv"] = "acct,Net,address,verdict\na1,eth,street,allow\n",
      ["r.jsonl"] = '{"acct":"a1","NET":"eth","address":"street","verdict":"allow"}\n',
    } do
      local settings = { input = file_of(name, content), output = path "r.html" }
      settings.address_column, settings.network_column = "Acct", "net"
      assert(report.write(settings))
      local data = json.decode(read("r.html"):match '<script type="application/json" id="data">(.-)</script>')
      local row = row_of(data, 1)
      assert.same({ "a1", "eth", "street" }, { row.address, row.network, row.others.address })
    end
    local settings = { input = file_of("r.csv", "acct,action\na,allow\n"), output = path "r.html" }
    settings.address_column = "account"
    local _, err = report.write(settings)
    assert.matches("the file has no column 'account'", err.message, 1, true)
  end)

  it("reads rows with a column without a name, with meta that is a list, and with names that differ in case", function()
    local data = page_of(
      file_of("a.csv", "address,action,\na1,allow,\n"),
      file_of("b.csv", ",address,action\n1,a2,allow\n"),
      file_of("c.jsonl", '{"address":"a3","action":"allow","meta":[1]}\n'),
      file_of("d.csv", "address,action,note,Note,street,network\na4,allow,x,y,z,eth\n")
    )
    for index = 1, 4 do
      assert.equal("a" .. index, row_of(data, index).address)
    end
    assert.same({ note = "x", Note = "y", street = "z" }, row_of(data, 4).others)
    local row = row_of(page_of(file_of("f.jsonl", '{"addr":"x","address":"a1","action":"allow"}\n')), 1)
    assert.same({ "a1", "x" }, { row.address, row.others.addr })
    local _, err = report.write { input = file_of("e.csv", "action,x,x\nallow,1,2\n"), output = path "e.html" }
    assert.matches("two columns are called 'x'", err.message, 1, true)
    local settings =
      { input = file_of("g.csv", "address,chain,network,action\na1,bsc,eth,allow\n"), output = path "g.html" }
    _, err = report.write(settings)
    assert.matches("line 1: two columns name the network, .*: %-%-network%-column NAME", err.message)
    settings.network_column = "network"
    assert.equal(1, assert(report.write(settings)).rows)
    local own = "line,address,network,action,reasons,wallet,chain\n1,a1,eth,allow,x,w,bsc\n"
    local first = row_of(page_of(file_of("h.csv", own)), 1)
    assert.same({ "a1", "eth", "w" }, { first.address, first.network, first.others.wallet })
  end)

  it("names the lines that it cannot read, and keeps the others", function()
    local data, summary = page_of(file_of("r.jsonl", '{"action":"allow"}\n{"action":\n[1]\n{"action":"block"}'))
    assert.equal(2, summary.rows)
    assert.equal(2, summary.unreadable)
    assert.matches("^r.jsonl, line 2 cannot be read and is not counted: ", data.notes[1])
    assert.equal("r.jsonl, line 3 cannot be read and is not counted: it is not an object.", data.notes[2])
  end)

  it("refuses CSV that two programs could read in two ways, with the line, and leaves the earlier page", function()
    file_of("report.html", "the earlier page")
    for content, problem in pairs {
      ['address,action\n"a"b,allow\n'] = "r.csv, line 2: text follows a closing quote",
      ["address,action\na1\na2,allow\n"] = "r.csv, line 2: it has 1 field, and the first line has 2",
      ["address,action\na\255b,allow\n"] = "r.csv, line 2: it has bytes that are not UTF-8",
      ["address,action\n"] = "r.csv: it has no rows",
    } do
      local summary, err = report.write { input = file_of("r.csv", content), output = path "report.html" }
      assert.is_nil(summary)
      assert.matches(problem, err.message, 1, true)
      assert.equal("the earlier page", read "report.html")
    end
  end)

  it("is never written over its input, also by a link", function()
    local input = file_of("r.csv", "action\nallow\n")
    assert(os.execute(("ln %s %s"):format(input, path "link.html")))
    local summary, err = report.write { input = input, output = path "link.html" }
    assert.is_nil(summary)
    assert.matches("over its input", err.message)
    assert.equal("action\nallow\n", read "r.csv")
  end)

  it("counts further faults without naming them", function()
    local data = page_of(file_of("r.jsonl", "{\n" .. ("{}\n"):rep(30)))
    assert.equal(21, #data.notes)
    assert.equal("Further lines with a fault: 11.", data.notes[21])
  end)

  it("puts several files together", function()
    local data, summary = page_of(file_of("a.csv", "action\nallow\n"), file_of("b.jsonl", '{"action":"block"}\n'))
    assert.equal(2, summary.rows)
    assert.same({ { "a.csv", 1 }, { "b.jsonl", 1 } }, data.sources)
  end)

  it("writes no character of a field that could end the data, a line or an attribute", function()
    local hostile = "</script><script>alert(1)</script><!--\226\128\168\226\128\169&\"'\\\1\127\226\128\174"
    local columns_of_row = { "action", "address", "network", "reasons", "entity", "risk_types", hostile }
    local cells = { "allow", hostile, hostile, hostile, hostile, hostile, hostile .. "\0" }
    for _, list in ipairs { columns_of_row, cells } do
      for index, text in ipairs(list) do
        list[index] = '"' .. text:gsub('"', '""') .. '"'
      end
    end
    local rows = table.concat(columns_of_row, ",") .. "\n" .. table.concat(cells, ",") .. "\n"
    local data, _, page = page_of(file_of("r.csv", rows))
    local row = row_of(data, 1)
    assert.equal(hostile, row.address)
    assert.equal(hostile, row.entity)
    assert.equal(hostile .. "\0", row.others[hostile])
    local _, scripts = page:gsub("<script", "")
    local _, ends = page:gsub("</script", "")
    assert.equal(2, scripts)
    assert.equal(2, ends)
    local embedded = page:match '<script type="application/json" id="data">(.-)</script>'
    assert.is_nil(embedded:find "[<>&]")
    assert.is_nil(embedded:find("\226\128\168", 1, true))
    assert.is_nil(embedded:find "[%z\1-\9\11-\31\127\255]")
  end)

  it("reads Latin-1 where it is told so, and cuts long texts between characters", function()
    local input = file_of("r.csv", "address,action\na\233b,allow\n" .. ("\233"):rep(3000) .. ",allow\n")
    assert(report.write { input = input, output = path "report.html", encoding = "latin1" })
    local data = json.decode(read("report.html"):match '<script type="application/json" id="data">(.-)</script>')
    assert.equal("aéb", row_of(data, 1).address)
    assert.equal(("é"):rep(1000) .. "…", row_of(data, 2).address)
  end)

  it("escapes the title", function()
    report.write { input = file_of("r.csv", "action\nallow\n"), output = path "t.html", title = "</title><b>" }
    assert.matches("<title>&lt;/title&gt;&lt;b&gt;</title>", read "t.html", 1, true)
  end)

  it("says which part of it is not installed", function()
    local files = require "riskscreen.util.files"
    local read_file = files.read
    finally(function()
      files.read = read_file
    end)
    function files.read(name)
      return read_file(name:find "style%.css$" and name .. ".gone" or name)
    end
    local summary, err = report.write { input = file_of("a.csv", "address,action\na,allow\n"), output = path "x.html" }
    assert.is_nil(summary)
    assert.matches("a part of the page is not installed: .*page/style.css.gone: No such file or directory", err.message)
    assert.is_nil(io.open(path "x.html"))
  end)

  it("allows its own script and style alone, and loads nothing", function()
    local digest = require "riskscreen.address.digest"
    local _, _, page = page_of(file_of("r.csv", "action\nallow\n"))
    local policy = page:match 'Content%-Security%-Policy" content="([^"]*)"'
    assert.matches("^default%-src 'none'; script%-src 'sha256%-[%w+/=]+'; style%-src 'sha256%-[%w+/=]+';", policy)
    assert.equal(32, #digest.sha256(page:match "<style>(.-)</style>"))
    assert.is_nil(page:find "https?://[^w]")
    assert.is_nil(page:find "%ssrc=")
  end)

  it("refuses a header without verdicts", function()
    local summary, err = report.write { input = file_of("r.csv", "address,network\na,eth\n"), output = path "r.html" }
    assert.is_nil(summary)
    assert.equal("r.csv, line 1: the file has no column 'action', and its first line is: address,network", err.message)
  end)

  it("leaves an earlier page alone when it fails", function()
    file_of("r.html", "the earlier page")
    local summary, err = report.write { input = path "missing.csv", output = path "r.html" }
    assert.is_nil(summary)
    assert.matches("missing.csv", err.message)
    assert.equal("the earlier page", read "r.html")
    assert.is_nil(io.open(path "r.html.riskscreen-part"))
  end)

  it("reports a page that cannot be written", function()
    local input = file_of("r.csv", "action\n" .. ("allow\n"):rep(1000))
    local summary, err = report.write { input = input, output = path "missing/r.html" }
    assert.is_nil(summary)
    assert.matches("^the report cannot be written: ", err.message)
    local full = io.open("/dev/full", "wb")
    summary, err = report.write { input = input, output = full }
    assert.is_nil(summary)
    assert.matches("^the report cannot be written: ", err.message)
    full:close()
  end)

  it("raises misuse at the caller's line", function()
    local ok, message = pcall(report.write, { input = "a.csv", output = 7 })
    assert.is_false(ok)
    assert.matches("input and output must be paths or open files", message)
    ok, message = pcall(report.write, { input = { "a.csv", nil, "c.csv" }, output = "b" })
    assert.is_false(ok)
    assert.matches("report: input must be a list without a gap", message)
    ok, message = pcall(report.write, { input = "a.csv", output = "b", titel = "" })
    assert.is_false(ok)
    assert.matches("did you mean 'title'", message)
  end)
end)
