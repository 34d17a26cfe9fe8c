local cli = require "spec.support.cli"
local json = require "riskscreen.json"
local riskscreen = require "riskscreen"
local temporary = require "spec.support.temporary"

local POLICY = [[return { rules = {
  { level = { "low", "whitelist" }, action = "allow" },
  { no_risk = true, action = "allow" },
  { error = "timeout", action = "allow" },
} }]]

local function file(content)
  local path = os.tmpname()
  temporary.write(path, content)
  finally(function()
    os.remove(path)
  end)
  return path
end

-- Decides about an address of the sandbox, with a journal.
local function screen(journal, name)
  local scenario = riskscreen.sandbox.scenario(name)
  riskscreen.sandbox.client({ journal = journal }):screen { address = scenario.address, network = scenario.network }
end

describe("riskscreen policy prove", function()
  it("has the status 0 where all claims hold", function()
    local status, out = cli.run { "policy", "prove", file(POLICY), "never allow where level = high", "--jsonl" }
    assert.equal(0, status)
    assert.is_true(json.decode(out).holds)
  end)

  it("prints a counterexample that policy test decides in the same way", function()
    local status, out = cli.run { "policy", "prove", file(POLICY), "never allow where a lookup failed", "--jsonl" }
    local found = json.decode(out)
    assert.equal(2, status)
    assert.same({ kind = "timeout", message = "the lookup failed" }, found.record.errors.risk)
    local function test(action)
      local line = json.encode { record = found.record, action = action }
      return (cli.run { "policy", "test", file(POLICY), file(line) })
    end
    assert.equal(0, test "allow")
    assert.equal(2, test "unknown")
  end)

  it("proves the claims that every policy should satisfy, or those of a file", function()
    assert.equal(0, (cli.run { "policy", "prove", file "return {}" }))
    assert.equal(2, (cli.run { "policy", "prove", file(POLICY) }))
    local claims = file "# ours\n\nnever allow where level = high\n"
    assert.equal(0, (cli.run { "policy", "prove", file(POLICY), "--claims", claims }))
    assert.equal(3, (cli.run { "policy", "prove", file "return {}", "--claims", file "# none" }))
  end)

  it("does not take what is not decided for a proof", function()
    local policy = file [[return { not_offered = "skip", rules = {
      { counterparty = { level = "high", share = 0.25 }, action = "block" },
      { counterparty = { level = "high", share = 0.5 }, action = "allow" },
    } }]]
    local status, out = cli.run { "policy", "prove", policy, "never allow" }
    assert.equal(3, status)
    assert.matches("not decided", out)
  end)

  it("refuses a claim that says nothing", function()
    local status, _, err = cli.run { "policy", "prove", file(POLICY), "never allow where type = sanctions" }
    assert.equal(4, status)
    assert.matches("did you mean 'sanction'", err)
    assert.equal(4, (cli.run { "policy", "prove", file(POLICY), "never allow where type = csam and" }))
  end)

  it("proves claims about a score policy, whose counterexamples are cases", function()
    local function scores(rules)
      return file(('return require("riskscreen").score_policy { rules = { %s } }'):format(rules))
    end
    local timeout = scores '{ error = "timeout", action = "allow" }'
    assert.equal(0, (cli.run { "policy", "prove", scores '{ score_below = "30", action = "allow" }' }))
    for policy, claim in pairs {
      [timeout] = "never allow where error = timeout",
      [scores '{ score_at_least = "70", action = "review" }'] = "block where score_at_least = 70",
    } do
      local status, out = cli.run { "policy", "prove", policy, claim, "--jsonl" }
      local found = json.decode(out)
      assert.equal(2, status, claim)
      local line = json.encode { record = found.record, action = found.action }
      assert.equal(0, (cli.run { "policy", "test", policy, file(line) }))
    end
    local status, _, err = cli.run { "policy", "diff", timeout, file(POLICY) }
    assert.equal(4, status)
    assert.matches("cannot be compared", err)
  end)
end)

describe("riskscreen policy diff", function()
  local LOOSER = POLICY:gsub('"timeout"', '{ "timeout", "network" }')

  it("has the status 0 without a difference, and 2 with one that policy test can run", function()
    assert.equal(0, (cli.run { "policy", "diff", file(POLICY), file(POLICY) }))
    local status, out = cli.run { "policy", "diff", file(POLICY), file(LOOSER), "--jsonl" }
    local found = json.decode(out)
    assert.equal(2, status)
    assert.same({ "unknown", "allow" }, { found.before, found.after })
    local line = file(json.encode { record = found.record, action = "allow" })
    assert.equal(0, (cli.run { "policy", "test", file(LOOSER), line }))
    assert.equal(2, (cli.run { "policy", "test", file(POLICY), line }))
  end)

  it("counts the decisions of a journal that change", function()
    local failed = '{"record":{"errors":{"risk":{"kind":"network","message":"no"}}},"action":"unknown"}\n'
    local clean = '{"record":{"risk":{"risks":[]}},"action":"allow"}\n'
    local journal = file(failed .. clean .. failed)
    local status, _, err = cli.run { "policy", "diff", file(POLICY), file(LOOSER), "--journal", journal }
    assert.equal(2, status)
    assert.matches("2 decisions from unknown to allow", err)
    assert.matches("3 lines, 0 without a record", err)
    journal = file(clean .. '{"source":"list","action":"block"}')
    assert.equal(0, (cli.run { "policy", "diff", file(POLICY), file(POLICY), "--journal", journal }))
    journal = file(clean .. '{"action":"allow"}')
    assert.equal(3, (cli.run { "policy", "diff", file(POLICY), file(POLICY), "--journal", journal }))
  end)

  it("names a journal that cannot be read", function()
    for path, message in pairs {
      ["/nowhere/journal"] = "/nowhere/journal: No such file or directory",
      ["/tmp"] = "/tmp: the file cannot be read",
    } do
      local status, _, err = cli.run { "policy", "diff", file(POLICY), file(POLICY), "--journal", path }
      assert.equal(3, status)
      assert.equal("riskscreen: " .. message, err:match "[^\n]*cannot[^\n]*" or err:match "[^\n]*No such[^\n]*")
    end
  end)

  it("counts those of a journal's older files, too", function()
    local path = temporary.path "decisions.jsonl"
    local journal = assert(riskscreen.journal.file(path, { record = true }))
    screen(journal, "clean-eth")
    journal:rotate()
    screen(journal, "type-sanction")
    journal:close()
    local stricter = file(POLICY:gsub("no_risk = true", "no_risk = false"))
    local status, _, err = cli.run { "policy", "diff", file(POLICY), stricter, "--journal", path }
    assert.equal(2, status)
    assert.matches("1 decision from allow to unknown", err)
    assert.matches("2 lines, 0 without a record", err)
  end)

  it("ends at an interrupt while it decides, as the other verbs of a journal do", function()
    local interrupted = file [[return {
      decide = function() error "interrupted!" end,
      diff = function() return { changes = {} } end,
    }]]
    local journal = file '{"record":{"risk":{"risks":[]}},"action":"allow"}\n'
    assert.equal(130, (cli.run { "policy", "diff", interrupted, interrupted, "--journal", journal }))
    assert.equal(130, (cli.run { "policy", "test", interrupted, journal }))
    local path = temporary.path "decisions.jsonl"
    journal = assert(riskscreen.journal.file(path, { record = true }))
    screen(journal, "clean-eth")
    journal:close()
    assert.equal(130, (cli.run { "journal", "replay", path, "--policy", interrupted }))
  end)
end)

describe("riskscreen policy test", function()
  it("shows the cases with another action", function()
    local case = '{"record":{"risk":{"risks":[]}},"action":"%s"}\n'
    local cases = file(case:format "allow" .. case:format "block")
    local status, out, err = cli.run { "policy", "test", file(POLICY), cases, "--jsonl" }
    assert.equal(2, status)
    assert.same({ 2, "block", "allow" }, { json.decode(out).line, json.decode(out).expected, json.decode(out).action })
    assert.equal("riskscreen: 2 cases: 1 with another action\n", err)
  end)

  it("has the status 3 without a case to decide", function()
    local listed = '{"record":{},"action":"block","source":"list"}\n'
    for _, content in ipairs { "# none\n", "level,type,action\n", listed } do
      local status, _, err = cli.run { "policy", "test", file(POLICY), file(content) }
      assert.equal(3, status, content)
      assert.is_nil(err:find("--allow-empty", 1, true)) -- the command has no such option
    end
  end)

  it("passes over the lines of a journal that a local list has decided", function()
    local listed = '{"record":{},"action":"block","source":"list"}\n'
    local cases = file(listed .. '{"record":{"risk":{"risks":[]}},"action":"allow","source":"service"}\n')
    local status, _, err = cli.run { "policy", "test", file(POLICY), cases }
    assert.equal(0, status)
    assert.equal("riskscreen: 1 case: 0 with another action\n", err)
  end)

  local CSV = "name,level,type,whitelist,category,error,action\n"
    .. "a,high,hack,,,,block\nb,low,scam,false,,,allow\nc,,,,,timeout,allow\nd,,,,,,allow\n"

  it("reads cases as CSV", function()
    assert.equal(0, (cli.run { "policy", "test", file(POLICY .. " -- "), file(CSV:gsub("block", "unknown")) }))
    local status, out = cli.run { "policy", "test", file(POLICY), file(CSV), "--csv" }
    assert.equal(2, status)
    assert.matches("\r\n2,block,unknown,", out, 1, true)
    assert.equal(3, (cli.run { "policy", "test", file(POLICY), file "levl,action\nhigh,allow\n" }))
    local prove = { "policy", "prove", file(POLICY), "never allow", "never review", "--csv" }
    local _, proofs = cli.run(prove)
    assert.equal(0, (cli.run { "policy", "test", file(POLICY), file(proofs:gsub("never review[^\n]*\n", "")) }))
  end)

  it("reads cases of a score policy as CSV, with a direction, a strategy and a detail", function()
    local rules = [[return require("riskscreen").score_policy {
      rules = {
        { direction = "in", detail = "mixer", action = "block" },
        { strategy = "12", score_at_least = "70", action = "review" },
        { score_below = "50", action = "allow" },
      },
    }]]
    local cases = "max_score,status,direction,strategy,strategy_score,detail,action\n"
      .. "40,1003,in,12,40,mixer,block\n40,1003,out,12,40,mixer,allow\n"
      .. "40,1003,in,12,40,,allow\n80,1003,out,12,75,,unknown\n"
    local status, out, err = cli.run { "policy", "test", file(rules), file(cases), "--csv" }
    assert.same({ 0, "" }, { status, (out:gsub("^[^\n]*\n", "")) }, out)
    assert.equal("riskscreen: 4 cases: 0 with another action\n", err)
    status, out, err =
      cli.run { "policy", "test", file(rules), file "max_score,status,detail,action\n40,1003,mixer,allow\n" }
    assert.same({ 3, "" }, { status, out })
    assert.matches("line 2: a strategy or a detail needs the column direction", err, 1, true)
  end)

  it("refuses an expected action that there is not", function()
    for _, content in ipairs { '{"record":{"risk":{"risks":[]}},"action":"alow"}\n', "level,action\nhigh,alow\n" } do
      local status, _, err = cli.run { "policy", "test", file(POLICY), file(content) }
      assert.equal(3, status)
      local wanted = "action must be one of allow, review, unknown, block (got 'alow'; did you mean 'allow'?)"
      assert.matches(wanted, err, 1, true)
    end
  end)

  it("reports every case as TAP or as JUnit's XML", function()
    local _, tap = cli.run { "policy", "test", file(POLICY), file(CSV), "--report", "tap" }
    assert.matches("^TAP version 13\n1..4\nnot ok 1 %- line 2 is block\n# it is unknown\n# no rule covers", tap)
    assert.matches("\nok 2 - line 3 is allow\n", tap, 1, true)
    local _, xml = cli.run { "policy", "test", file(POLICY), file(CSV), "--report", "junit" }
    assert.matches('tests="4" failures="1"', xml, 1, true)
    assert.matches('<failure message="it is unknown">no rule covers', xml, 1, true)
    assert.equal(4, select(2, xml:gsub("</testcase>", "")))
  end)

  it("has the status 3 where there is no case", function()
    assert.equal(3, (cli.run { "policy", "test", file(POLICY), file "" }))
  end)

  it("has the status 3 where a line is no case", function()
    local lines = {
      "no JSON",
      "[]",
      '{"record":5,"action":"allow"}',
      '{"record":{"risk":{"risks":[]}}}',
      '{"record":{"risk":{"risks":[]},"errors":7},"action":"allow"}',
    }
    for _, line in ipairs(lines) do
      assert.equal(3, (cli.run { "policy", "test", file(POLICY), file(line) }), line)
    end
    assert.equal(3, (cli.run { "policy", "test", file(POLICY), "/nonexistent" }))
  end)
end)

describe("riskscreen policy check", function()
  it("shows each rule that never decides, and why", function()
    local planted = [[return { rules = {
      { name = "never", no_risk = true, level = "high", action = "block" },
      { name = "all", level = { "high", "generally-high", "low", "whitelist" }, action = "review" },
      { name = "hidden", level = "high", type = "hack", action = "block" },
      { no_risk = true, action = "allow" },
      { error = "timeout", action = "review" },
    } }]]
    local status, out = cli.run { "policy", "check", file(planted), "--jsonl" }
    assert.equal(3, status)
    local faults = {}
    for line in out:gmatch "[^\n]+" do
      local finding = json.decode(line)
      faults[finding.about] = finding.fault and finding.finding or nil
    end
    assert.same({
      ["rule 'never'"] = "no evidence meets its conditions",
      ["rule 'hidden'"] = "an earlier rule always decides in its place",
    }, faults)
  end)

  it("says what happens where a lookup is not offered, and where a value is not known", function()
    local policy = [[return { not_offered = "skip", absent_freeze_events = "none", rules = {
      { frozen = true, action = "block" },
      { any = true, action = "allow" },
    } }]]
    local status, out = cli.run { "policy", "check", file(policy), "--csv" }
    assert.equal(0, status)
    assert.matches('rule 1,"?it is skipped on .*polygon', out)
    assert.matches("unknown freeze_events,never allowed", out, 1, true)
    assert.matches("unknown level,never allowed", out, 1, true)
  end)

  it("finds no fault in the default policy", function()
    assert.equal(0, (cli.run { "policy", "check", file "return {}" }))
  end)
end)
