-- `riskscreen journal`, `--journal` and `--meta`, as a user types them.
local cjson = require "cjson"
local journals = require "riskscreen.journal"
local riskscreen = require "riskscreen"
local run = require("spec.support.cli").run
local temporary = require "spec.support.temporary"

local HACK = riskscreen.sandbox.scenario("type-hack").address
local CLEAN = riskscreen.sandbox.scenario("clean-eth").address
local NOW = 1795000000 -- 2026-11-18T11:06:40Z

describe("the journal of the command", function()
  local path

  before_each(function()
    path = temporary.path "decisions.jsonl"
  end)

  after_each(temporary.clean)

  local function screen(...)
    return run { "screen", "--sandbox", "-n", "eth", "--journal", path, ... }
  end

  local function entries()
    local list = {}
    for entry in journals.entries(path) do
      list[#list + 1] = entry
    end
    return list
  end

  -- The lines of `journal show`, decoded, its status and its messages.
  local function show(...)
    local status, out, err = run { "journal", "show", path, "--jsonl", ... }
    local list = {}
    for line in out:gmatch "[^\n]+" do
      list[#list + 1] = cjson.decode(line)
    end
    return list, status, err
  end

  -- A journal with a decision at each time.
  local function write_at(...)
    local times = { ... }
    local journal = assert(journals.file(path, {
      clock = function()
        return times[1]
      end,
    }))
    while times[1] do
      assert(journal:append(riskscreen.policy():decide { risk = { whitelist = false, risks = {} } }))
      table.remove(times, 1)
    end
    assert(journal:close())
  end

  local function seqs(list)
    local found = {}
    for index, entry in ipairs(list) do
      found[index] = entry.seq
    end
    return found
  end

  it("says that it has no decision to show", function()
    screen(CLEAN)
    local list, status, err = show("--action", "block")
    assert.same({ {}, 0 }, { list, status })
    assert.matches("0 decisions", err, 1, true)
    assert.matches("0 decisions", select(3, show("--action", "block", "--tail", "3")), 1, true)
    assert.is_nil(select(3, show()):find "decision")
  end)

  it("shows the decisions about an address by any spelling of it", function()
    local mixed, tron = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
    local old, new = "3EktnHQD7RiAE6uzMj2ZifT9YgRrkSgzQX", "MLy36ApB4YZb2cBtTc1uYJhYsP2JkYokaf" -- of one script
    screen(mixed, mixed:lower(), "0x" .. mixed:sub(3):upper(), "no address")
    run { "screen", "--sandbox", "-n", "tron", "--journal", path, tron, "415cbdd86a2fa8dc4bddd8a8f69dba48572eec07fb" }
    run { "screen", "--sandbox", "-n", "ltc", "--journal", path, old }
    local counts = { [mixed] = 3, [mixed:lower()] = 3, [tron] = 2, [old] = 1, [new] = 1, ["no address"] = 1 }
    for text, count in pairs(counts) do
      assert.equal(count, #show("--address", text), text)
    end
  end)

  it("shows the decisions between two dates", function()
    write_at(NOW, NOW + 1, NOW + 86400, NOW + 172800)
    for since, expected in pairs {
      ["2026-11-18"] = { 1, 2, 3, 4 },
      ["2026-11-18T11:06:41Z"] = { 2, 3, 4 },
      ["2026-11-18 11:06:40.5"] = { 2, 3, 4 },
      ["2026-11-18T13:06:41+02:00"] = { 2, 3, 4 },
      ["2026-11-19"] = { 3, 4 },
    } do
      assert.same(expected, seqs(show("--since", since)), since)
    end
    assert.same({ 1, 2 }, seqs(show("--until", "2026-11-19")))
    assert.same({ 2, 3 }, seqs(show("--since", "2026-11-18T11:06:41Z", "--until", "2026-11-20")))
  end)

  it("shows the decisions of the last time, of today and of yesterday", function()
    local now = os.time()
    local today = now - now % 86400
    write_at(today - 90000, today - 80000, now - 7200, now)
    assert.same({ 4 }, seqs(show("--since", "1h")))
    assert.same({ 1, 2, 3, 4 }, seqs(show("--since", "999999999999d")))
    assert.same({ 3, 4 }, seqs(show("--since", "3h", "--tail", "2")))
    assert.same({ 1 }, seqs(show("--until", "yesterday")))
    assert.equal(2, show("--since", "yesterday")[1].seq)
    assert.equal(1, show("--until", "today")[1].seq)
  end)

  it("refuses a time that it does not understand", function()
    write_at(NOW)
    local none = { "2026-02-30", "2026-13-01", "2026-11-18T25:00:00Z", "90", "tomorrow", "1 h", "", "x2026" }
    for _, time in ipairs(none) do
      for _, flag in ipairs { "--since", "--until" } do
        local list, status, err = show(flag, time)
        assert.same({ {}, 4 }, { list, status }, time)
        assert.matches(flag .. " must be a date such as 2026-01-31", err, 1, true)
      end
    end
  end)

  it("refuses a text that is no address, unless a decision has it as its input", function()
    assert.equal(3, (screen(CLEAN, "no address")))
    local list, status, err = show("--address", "nonsense")
    assert.same({ {}, 4 }, { list, status })
    assert.matches("--address: 'nonsense' is no address, and no decision has it as its input", err, 1, true)
    for text, count in pairs { ["no address"] = 1, [HACK] = 0 } do
      list, status = show("--address", text)
      assert.same({ count, 0 }, { #list, status })
    end
  end)

  it("shows and replays what is left where the last lines are missing, and says so", function()
    assert.equal(0, (screen("-q", "--journal-record", CLEAN)))
    local first = temporary.read(path)
    assert.equal(2, (screen("-q", "--journal-record", HACK)))
    for content, count in pairs { [first] = 1, [""] = 0 } do
      temporary.write(path, content)
      local list, status, err = show()
      assert.same({ count, 3 }, { #list, status })
      assert.matches(("the journal ends at line %d of the chain, but line 2 was written"):format(count), err, 1, true)
      assert.equal(3, (run { "journal", "replay", path }))
    end
  end)

  it("says that it shows not all of the faults", function()
    screen("-q", CLEAN)
    temporary.write(path, ("junk\n"):rep(300))
    local status, _, err = run { "journal", "verify", path, "--csv" }
    assert.equal(2, status)
    assert.matches("300 lines in 1 file: more than 100 faults", err, 1, true)
  end)

  it("refuses a pipe, of which it would read the rest alone", function()
    local pipe = temporary.path "pipe"
    assert(os.execute("mkfifo " .. pipe))
    for _, verb in ipairs { "verify", "show", "replay" } do
      local status, _, err = run { "journal", verb, pipe }
      assert.equal(3, status)
      assert.matches("cannot be read: Is a pipe", err, 1, true)
    end
  end)

  it("shows the last decisions", function()
    write_at(NOW, NOW + 1, NOW + 2, NOW + 3, NOW + 4)
    assert.same({ 5 }, seqs(show("--tail", "1")))
    assert.same({ 3, 4, 5 }, seqs(show("--tail", "3")))
    assert.same({ 1, 2, 3, 4, 5 }, seqs(show("--tail", "9")))
    assert.same({ 2, 3 }, seqs(show("--tail", "2", "--until", "2026-11-18T11:06:43Z")))
    assert.equal(4, select(2, show("--tail", "2", "--limit", "3")))
  end)

  it("names a rotated file that is missing, and shows and replays the rest", function()
    for _ = 1, 3 do
      assert.equal(0, (screen("-q", "--journal-record", CLEAN)))
      assert(assert(journals.file(path)):rotate())
    end
    assert.equal(0, (screen("-q", "--journal-record", CLEAN)))
    os.remove(path .. ".2")
    local list, status, err = show()
    assert.same({ 1, 3, 4 }, seqs(list))
    assert.equal(3, status)
    assert.matches(path .. ".2: the file cannot be read", err, 1, true)
    assert.matches(path .. ".3, line 1: line 2 of the chain is missing before this one", err, 1, true)
    local out
    status, out, err = run { "journal", "replay", path, "--all", "--csv" }
    assert.equal(3, status)
    assert.matches("1,.*\n3,.*\n4,", out)
    assert.matches("decisions.jsonl.2: the file cannot be read", err, 1, true)
    status, out = run { "journal", "verify", path, "--csv" }
    assert.equal(2, status)
    assert.matches("decisions.jsonl.2,0,,missing,", out, 1, true)
  end)

  it("is reported with its rotated files, also without PATH.head", function()
    for _ = 1, 3 do
      assert(assert(journals.file(path)):rotate())
      assert.equal(0, (screen("-q", CLEAN)))
    end
    for _ = 1, 2 do
      local status, out, err = run { "report", path, "-o", temporary.path "page.html", "--json" }
      assert.equal(0, status, err)
      assert.equal(3, cjson.decode(out).rows)
      os.remove(path .. ".head")
    end
  end)

  it("says with which line a chain begins whose older files were moved away", function()
    screen("-q", CLEAN)
    assert(assert(journals.file(path)):rotate())
    screen("-q", CLEAN)
    os.remove(path .. ".1")
    local status, _, err = run { "journal", "verify", path }
    assert.equal(0, status)
    assert.matches("1 line in 1 file: the chain holds from line 2 on", err, 1, true)
  end)

  it("is written with a key", function()
    local key = temporary.path "key"
    temporary.write(key, "sixteen bytes or more\n")
    assert.equal(0, (screen("-q", CLEAN, "--journal-key-file", key)))
    assert.equal(2, (run { "journal", "verify", path }))
    assert.equal(0, (run { "journal", "verify", path, "--journal-key-file", key }))
    local status, _, err = screen("-q", CLEAN)
    assert.equal(4, status)
    assert.matches("written with another key", err, 1, true)
    temporary.write(key, "short\n")
    status, _, err = screen("-q", CLEAN, "--journal-key-file", key)
    assert.equal(4, status)
    assert.matches("journal.file: key must have at least 16 bytes", err, 1, true)
    assert.is_nil(err:find("short", 1, true))
  end)

  it("ends with a status of its own where a decision could not be recorded, and decides all the same", function()
    assert.equal(0, (screen("-q", CLEAN)))
    local system = require "riskscreen.system"
    local lock = system.lock
    finally(function()
      system.lock = lock
    end)
    for _, results in ipairs { "one", "file" } do
      local count = 0
      function system.lock(file)
        count = count + 1
        if count == 2 then -- the first is of opening
          error "the disk is gone"
        end
        return lock(file)
      end
      local status, out, err
      if results == "one" then
        status, out, err = screen("--csv", HACK, CLEAN)
      else
        temporary.write(temporary.path "rows.csv", "address\n" .. HACK .. "\n" .. CLEAN .. "\n")
        status, out, err = screen("--file", temporary.path "rows.csv", "-o", "-")
      end
      assert.equal(7, status, err)
      assert.matches(HACK .. ",eth,block", out, 1, true)
      assert.matches(CLEAN .. ",eth,allow", out, 1, true)
      assert.matches("a decision was not recorded: ", err, 1, true)
      assert.matches("decisions that were not recorded: 1", err, 1, true)
      system.lock = lock
    end
    local lost = 0
    for _, entry in ipairs(entries()) do
      lost = lost + (entry.lost or 0)
    end
    assert.equal(2, lost)
    assert.is_true(journals.verify(path).ok)
  end)

  it("leaves every file alone that is none of its own", function()
    local rows, output = temporary.path "rows.csv", temporary.path "results.csv"
    local function try(journal, ...)
      local status, _, err = run { "screen", "--sandbox", "-n", "eth", "--journal", journal, ... }
      assert.is_true(status == 2 or status == 4, status)
      return err
    end
    local function link(kind, target)
      local name = temporary.path(kind .. ".link")
      os.remove(name)
      assert(os.execute(("ln %s '%s' '%s'"):format(kind == "soft" and "-s" or "", target, name)))
      return name
    end
    for _, content in ipairs { "address\n" .. CLEAN, "address\n" .. CLEAN .. "\n", '{"address":"' .. CLEAN .. '"}' } do
      temporary.write(rows, content)
      try(rows, HACK)
      for _, journal in ipairs { rows, link("soft", rows), link("hard", rows) } do
        assert.matches("the journal .+ is also .+rows.csv", try(journal, "--file", rows, "-o", output))
      end
      assert.equal(content, temporary.read(rows))
      assert.is_nil(io.open(rows .. ".head"))
    end
    -- A journal that is read, or would be written over.
    assert.equal(0, (screen("-q", CLEAN)))
    local before = temporary.read(path)
    assert.matches("is also", try(path, "--file", path, "-o", output))
    temporary.write(rows, "address\n" .. CLEAN .. "\n")
    for _, journal in ipairs { path, link("soft", path), link("hard", path) } do
      assert.matches("is also", try(journal, "--file", rows, "--force", "-o", path))
    end
    assert.matches("is also", try(path, "--file", rows, "--force", "-o", path .. ".head"))
    os.rename(path, output .. ".state")
    os.rename(path .. ".head", output .. ".state.head")
    assert.matches("is also", try(output .. ".state", "--file", rows, "--force", "-o", output))
    assert.equal(before, temporary.read(output .. ".state"))
  end)

  it("has every row of a run over a file, also those that are refused before a call", function()
    local rows = { HACK .. ",eth", HACK .. ",", "nonsense,eth", CLEAN .. ",nowhere", CLEAN .. ",eth" }
    temporary.write(temporary.path "rows.csv", "address,network\n" .. table.concat(rows, "\n") .. "\n")
    local output = temporary.path "results.csv"
    run { "screen", "--sandbox", "--journal", path, "--file", temporary.path "rows.csv", "-o", output }
    local shown = {}
    for index, entry in ipairs(entries()) do
      shown[index] = ("%s %s %s"):format(entry.input, entry.action, entry.source)
    end
    table.sort(shown)
    local expected = {
      HACK .. " block sandbox",
      HACK .. " unknown none",
      "nonsense unknown none",
      CLEAN .. " unknown none",
      CLEAN .. " allow sandbox",
    }
    table.sort(expected)
    assert.same(expected, shown)
    assert.matches("it names no network; -n NETWORK gives one", temporary.read(output), 1, true)
  end)
end)

describe("facts about a run", function()
  after_each(temporary.clean)

  it("are in the results and the journal, and find decisions in it", function()
    local path = temporary.path "decisions.jsonl"
    local function screen(...)
      local status, out = run { "screen", "--sandbox", "-n", "eth", "--journal", path, ... }
      assert.equal(0, status)
      return out
    end
    local function find(...)
      return (select(2, run { "journal", "show", path, "--jsonl", ... }))
    end
    local note = 'asked, "twice"'
    local meta = { case = "17", analyst = "alice", note = note }
    local out = screen(CLEAN, "--json", "--meta", "case=17", "--meta", "analyst=alice", "--meta", "note=" .. note)
    assert.same(meta, cjson.decode(out)[1].meta)
    out = screen(CLEAN, "--csv", "--meta", "case=18")
    assert.matches(",source,case\r\n.*,sandbox,18\r\n", out)
    assert.same(meta, cjson.decode(find("--meta", "case=17", "--meta", "analyst=alice")).meta)
    assert.equal("", find("--meta", "case=17", "--meta", "analyst=bob"))
    assert.is_true(journals.verify(path).ok)
  end)

  it("are found in the journal by a text with characters that are not shown", function()
    local path, note = temporary.path "decisions.jsonl", "می\226\128\140خواهم \226\128\174 x"
    assert.equal(
      0,
      (run { "screen", "--sandbox", "-q", "-n", "eth", CLEAN, "--journal", path, "--meta", "note=" .. note })
    )
    local status, out = run { "journal", "show", path, "--meta", "note=" .. note, "--jsonl" }
    assert.equal(0, status)
    assert.equal(note, cjson.decode(out).meta.note)
  end)

  it("are in each row of the results of a file, and those of a resumed run are the same", function()
    local rows, results = temporary.path "rows.csv", temporary.path "rows.results.csv"
    temporary.write(rows, "address\n" .. CLEAN .. "\n" .. HACK .. "\n")
    local function screen(...)
      return run { "screen", "--sandbox", "-n", "eth", "--file", rows, "--meta", "case=17", ... }
    end
    assert.equal(2, (screen()))
    local content = temporary.read(results)
    assert.matches(",source,case,time\r\n", content, 1, true)
    assert.equal(2, select(2, content:gsub(",sandbox,17,", "")))
    local status, _, err = screen("--resume", "--meta", "analyst=bob")
    assert.equal(4, status)
    assert.matches("this is another run: ", err, 1, true)
    status, _, err = screen "--resume"
    assert.equal(2, status, err)
  end)

  it("are in the decision about a transaction, which is recorded and can be made again", function()
    local path, policy = temporary.path "decisions.jsonl", temporary.path "policy.lua"
    temporary.write(
      policy,
      [[
      return require("riskscreen").score_policy { rules = {
        { score_at_least = "80", action = "block" }, { score_below = "80", action = "allow" } } }]]
    )
    local hash = "0x" .. ("5f"):rep(32)
    local function kyt(verb, subject, ...)
      local line = { "kyt", verb, subject, "--sandbox", "-n", "eth", "--journal", path, "--meta", "case=17", ... }
      return run(line, { env = { RISKSCREEN_POLLING_FIRST = "0.01" } })
    end
    local facts = { "--output-address", HACK, "--direction", "received", "--policy", policy, "--journal-record" }
    local status, out, err = kyt("screen", hash, "--csv", (table.unpack or unpack)(facts)) -- luacheck: ignore 143 113
    assert.equal(2, status, err)
    assert.matches(",source,case\r\n.*,17\r\n", out)
    assert.equal(6, (kyt("wait", "nowhere", "--json")))
    local found = {}
    for entry in journals.entries(path) do
      found[entry.seq] = { entry.input, entry.network, entry.action, entry.source, entry.meta.case }
    end
    local waited = { "nowhere", nil, "unknown", "sandbox", "17" }
    assert.same({ { hash, "eth", "block", "sandbox", "17" }, waited }, found)
    out = select(2, run { "journal", "replay", path, "--csv", "--policy", policy })
    assert.is_nil(out:find(hash, 1, true)) -- nothing changes
    temporary.write(
      policy,
      'return require("riskscreen").score_policy { rules = { { any = true, action = "review" } } }'
    )
    out = select(2, run { "journal", "replay", path, "--csv", "--policy", policy })
    assert.matches(hash .. ",eth,block,review,", out, 1, true)
    assert.matches("the results have a column 'maxScore'", (select(3, kyt("screen", hash, "--meta", "maxScore=1"))))
  end)

  it("are refused where they are none, or have the name of a column", function()
    for given, message in pairs {
      ["case"] = "--meta must be such as case=17, each name once (got 'case')",
      ["case="] = "meta must have texts of 1 to 1000 bytes",
      ["=17"] = "meta must have names of letters",
      ["a b=17"] = "meta must have names of letters",
      ["action=block"] = "--meta: the results have a column 'action' of their own",
      ["verdict=fine"] = "the results have a column 'verdict' of their own",
      ["Verdict=fine"] = "the results have a column 'verdict' of their own",
      ["time=now"] = "the results have a column 'time' of their own",
      ["case=" .. ("x"):rep(1001)] = "meta must have texts of 1 to 1000 bytes",
    } do
      local status, _, err = run { "screen", "--sandbox", "-n", "eth", CLEAN, "--meta", given }
      assert.equal(4, status, given .. err)
      assert.matches(message, err, 1, true)
    end
    assert.equal(4, (run { "screen", "--sandbox", "-n", "eth", CLEAN, "--meta", "case=1", "--meta", "case=2" }))
  end)

  it("are given to the library by name", function()
    local path = temporary.path "decisions.jsonl"
    local client = riskscreen.sandbox.client { journal = assert(journals.file(path)) }
    client:screen { address = CLEAN, network = "eth", meta = { case = "17" } }
    local run_of_all = client:screen_all { source = { CLEAN, CLEAN }, network = "eth", meta = { case = "18" } }
    assert.same({ "allow", "allow" }, { run_of_all().action, run_of_all().action })
    local cases = {}
    for entry in journals.entries(path) do
      cases[#cases + 1] = entry.meta.case
    end
    assert.same({ "17", "18", "18" }, cases)
    for _, meta in ipairs { { case = 17 }, { [""] = "x" }, { "x" }, { case = "" } } do
      assert.has_error(function()
        client:screen { address = CLEAN, network = "eth", meta = meta }
      end)
    end
  end)
end)
