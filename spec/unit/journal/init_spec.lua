-- Recording decisions: what a line says, where lines go, and what happens when they cannot be written.
local digest = require "riskscreen.address.digest"
local journals = require "riskscreen.journal"
local json = require "riskscreen.json"
local program = require "spec.support.program"
local riskscreen = require "riskscreen"
local secrecy_key = riskscreen.sandbox.default_key
local temporary = require "spec.support.temporary"
local transport = require "riskscreen.sandbox.transport"

local NOW = 1767225600 -- 2026-01-01T00:00:00Z

local function clock()
  return NOW
end

local function hex(bytes)
  return (bytes:gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end

local function lines_of(path)
  local lines = {}
  for line in io.lines(path) do
    lines[#lines + 1] = line
  end
  return lines
end

local function scenario(name)
  local found = riskscreen.sandbox.scenario(name)
  return { address = found.address, network = found.network }
end

describe("a journal", function()
  local path

  before_each(function()
    path = temporary.path "decisions.jsonl"
  end)

  after_each(temporary.clean)

  local function open(options)
    options = options or {}
    options.clock = options.clock or clock
    return assert(journals.file(path, options))
  end

  local function record_some(journal, count)
    local client = riskscreen.sandbox.client { journal = journal }
    for _ = 1, count do
      client:screen(scenario "clean-eth")
    end
    client:close()
  end

  it("has a line for each decision of a client", function()
    local journal = open()
    local client = riskscreen.sandbox.client { journal = journal, retry = false }
    local request = scenario "type-sanction"
    request.id = "withdrawal 17"
    local decision = client:screen(request)
    assert.equal("withdrawal 17", decision.id)
    local failed = scenario "fault-503"
    failed.id = 18
    assert.equal(18, client:screen(failed).id)
    client:screen { address = "no address", network = "eth" }
    local entries = {}
    for entry in journals.entries(path) do
      entries[#entries + 1] = entry
    end
    assert.equal(3, #entries)
    local entry = entries[1]
    assert.equal("2026-01-01T00:00:00Z", entry.time)
    assert.equal(request.address, entry.input)
    assert.equal(request.address:lower(), entry.address)
    assert.equal("eth", entry.network)
    assert.equal("block", entry.action)
    assert.same({ decision.reasons[1].message }, entry.reasons)
    assert.equal("sandbox", entry.source)
    assert.equal("withdrawal 17", entry.request_id)
    assert.equal(riskscreen._VERSION, entry.version)
    assert.matches("^%x+$", entry.policy)
    assert.equal(64, #entry.answer)
    assert.is_nil(entry.record)
    assert.equal("unknown", entries[2].action)
    assert.equal(18, entries[2].request_id)
    assert.is_nil(entries[2].answer)
    assert.equal("no address", entries[3].input)
    assert.is_nil(entries[3].address)
    assert.not_equal(entries[1].id, entries[2].id)
    assert.equal(entries[1].policy, entries[2].policy)
  end)

  it("has the id of each item of a run, of repeated addresses too", function()
    local client, clean = riskscreen.sandbox.client { journal = open() }, scenario "clean-eth"
    local items = {}
    for number = 1, 3 do
      items[number] = { address = clean.address, network = clean.network, id = number }
    end
    for decision in client:screen_all { source = items } do
      assert.equal(decision.index, decision.id)
    end
    local seen = {}
    for entry in journals.entries(path) do
      seen[entry.request_id] = entry.source
    end
    assert.same({ "sandbox", "sandbox", "sandbox" }, seen)
  end)

  -- The sources of a run with a repeated address, sorted.
  local function sources_of_run(client)
    local clean, low = scenario "clean-eth", scenario "low-eth"
    for _ in client:screen_all { source = { clean, low, clean, clean } } do
    end
    local names, sources = { [clean.address:lower()] = "clean", [low.address:lower()] = "low" }, {}
    for entry in journals.entries(path) do
      sources[#sources + 1] = entry.source .. " " .. names[entry.address]
    end
    table.sort(sources)
    return sources
  end

  it("has a line for each item of a run, and says which were not asked for again", function()
    local client = riskscreen.new {
      transport = transport.new(riskscreen.sandbox.new(), riskscreen.sleep),
      access_key = secrecy_key,
      journal = open(),
    }
    assert.same({ "cache clean", "cache clean", "service clean", "service low" }, sources_of_run(client))
  end)

  it("names the sandbox for a decision that the caller has made of its answers", function()
    local journal = open()
    local client, service = riskscreen.sandbox.client { kyt_delay = 0, polling = { first = 0.001 }, retry = false }
    local policy = riskscreen.score_policy {
      rules = { { score_at_least = "80", action = "block" }, { score_below = "80", action = "allow" } },
    }
    local payout = { network = "eth", hash = "0x5f16", direction = "out" }
    journal:append(policy:decide(client.kyt:screen(payout)))
    journal:append(policy:decide(client.kyt:submit(payout):await()))
    journal:append(riskscreen.policy():decide(client.kya:risk(scenario "clean-eth")))
    service:fault { kind = "status", status = 503, count = 2 }
    journal:append(policy:decide(client.kyt:screen(payout)))
    journal:append(riskscreen.policy():decide(client.kya:risk(scenario "clean-eth")))
    journal:append(policy:decide(client.kyt:submit(payout):await { timeout = 0 }))
    local at_once = riskscreen.sandbox.client { kyt_results = "at_once" }
    journal:append(riskscreen.policy():decide(at_once.kyt:screen(payout)))
    local inbox = riskscreen.webhook.inbox { accept_unauthenticated = true }
    local pushed = riskscreen.sandbox.client { kyt_delay = 0, inbox = inbox, endpoints = { kyt_result = false } }
    journal:append(policy:decide(pushed.kyt:screen(payout)))
    local count = 0
    for entry in journals.entries(path) do
      count = count + 1
      assert.equal("sandbox", entry.source, count)
    end
    assert.equal(8, count)
  end)

  it("names the service for a decision that the caller has made of its answers", function()
    local journal = open()
    local client = riskscreen.new {
      transport = transport.new(riskscreen.sandbox.new(), riskscreen.sleep),
      access_key = secrecy_key,
    }
    journal:append(riskscreen.policy():decide(client.kya:risk(scenario "clean-eth")))
    assert.equal("service", journals.entries(path)().source)
  end)

  it("names the sandbox for each item of a run that it answered", function()
    local client = riskscreen.sandbox.client { journal = open() }
    assert.same({ "sandbox clean", "sandbox clean", "sandbox clean", "sandbox low" }, sources_of_run(client))
  end)

  it("says which decisions a local list has made", function()
    local clean = scenario "clean-eth"
    temporary.write(temporary.path "ours.txt", clean.address .. "\n")
    local client = riskscreen.sandbox.client {
      journal = open { record = true },
      lists = { deny = { temporary.path "ours.txt" } },
    }
    assert.equal("block", client:screen(clean).action)
    assert.equal("list", journals.entries(path)().source)
    local row = journals.replay(path, riskscreen.policy())()
    assert.equal("a list decided, not the policy", row.problem)
    assert.is_false(row.changed)
  end)

  it("names policies by their rules", function()
    local same = function()
      return riskscreen.policy { rules = { { action = "review", any = true } } }
    end
    local journal = open()
    local client = riskscreen.sandbox.client { journal = journal }
    for _, policy in ipairs { same(), same(), riskscreen.policy() } do
      local request = scenario "clean-eth"
      request.policy = policy
      client:screen(request)
    end
    local policies = {}
    for entry in journals.entries(path) do
      policies[#policies + 1] = entry.policy
    end
    assert.equal(policies[1], policies[2])
    assert.not_equal(policies[1], policies[3])
  end)

  it("chains its lines by SHA-256, as documented", function()
    record_some(open(), 3)
    local previous = ("0"):rep(64)
    for number, line in ipairs(lines_of(path)) do
      local content, hash = line:match '^(.*),"hash":"(%x+)"}$'
      assert.equal(hex(digest.sha256(content)), hash)
      local entry = json.decode(line)
      assert.equal(previous, entry.prev)
      assert.equal(number, entry.seq)
      previous = hash
    end
  end)

  it("chains them by HMAC-SHA256 with a key", function()
    -- RFC 4231, test cases 2 and 6.
    local hasher = require("riskscreen.journal.line").hasher
    assert.equal(
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
      hasher "Jefe" "what do ya want for nothing?"
    )
    assert.equal(
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
      hasher(("\170"):rep(131)) "Test Using Larger Than Block-Size Key - Hash Key First"
    )
    record_some(open { key = "sixteen bytes or more" }, 2)
    assert.is_true(journals.verify(path, { key = "sixteen bytes or more" }).ok)
    assert.is_false(journals.verify(path).ok)
    assert.is_false(journals.verify(path, { key = "sixteen other bytes" }).ok)
    assert.is_nil(temporary.read(path):find("sixteen bytes", 1, true))
  end)

  it("does not go on with another key", function()
    record_some(open { key = "sixteen bytes or more" }, 2)
    local journal, err = journals.file(path)
    assert.is_nil(journal)
    assert.equal("damaged", err.reason)
    assert.matches("another key", err.message)
  end)

  it("keeps the whole answer where it should", function()
    local client = riskscreen.sandbox.client { journal = open { record = true } }
    local decision = client:screen(scenario "type-sanction")
    local entry = journals.entries(path)()
    assert.same(decision.record.risks, entry.record.risk.risks)
  end)

  it("never holds the access key", function()
    local client = riskscreen.sandbox.client { journal = open { record = true }, retry = false }
    client:screen { address = secrecy_key, network = "eth", id = "key " .. secrecy_key }
    client:screen(scenario "fault-503")
    client:screen_all({ source = { secrecy_key, secrecy_key }, network = "eth" })()
    for _, name in ipairs(temporary.names()) do
      assert.is_nil(temporary.read(temporary.path(name)):find(secrecy_key, 1, true))
    end
  end)

  it("keeps each line a line, whatever an input holds", function()
    local client = riskscreen.sandbox.client { journal = open { record = true } }
    local inputs = { 'a\n","part":9,"seq":9', "\0\255\r\n", ("x"):rep(5000), 5, { "a table" }, false, 0 / 0 }
    for _, input in ipairs(inputs) do
      client:screen { address = input, network = "eth" }
    end
    assert.equal(#inputs, #lines_of(path))
    assert.is_true(journals.verify(path).ok)
  end)

  it("goes on where an earlier program ended", function()
    record_some(open(), 2)
    record_some(open(), 2)
    local report = journals.verify(path)
    assert.is_true(report.ok)
    assert.equal(4, report.lines)
  end)

  it("removes a torn line when it is opened", function()
    record_some(open(), 3)
    local whole = temporary.read(path)
    for cut = 1, #whole - #whole:match "^.*\n(.+\n)$" do
      if cut % 97 == 0 then
        temporary.write(path, whole .. whole:sub(1, cut):gsub("\n", ""))
        local journal = open()
        assert.equal(1, journal:stats().repaired)
        assert.equal(whole, temporary.read(path))
      end
    end
    temporary.write(path, whole .. ("x"):rep(200000))
    record_some(open(), 1)
    assert.is_true(journals.verify(path).ok)
    assert.equal(4, journals.verify(path).lines)
  end)

  it("goes on after a last line whose line end is missing, also the first of its file", function()
    for count = 1, 3 do
      record_some(open(), 1)
      local whole = temporary.read(path)
      temporary.write(path, whole:sub(1, -2))
      assert.equal(0, open():stats().repaired)
      assert.equal(whole, temporary.read(path))
      assert.same({ true, count }, { journals.verify(path).ok, journals.verify(path).lines })
    end
  end)

  it("removes a line that is torn behind members like those of its end", function()
    record_some(open(), 2)
    local whole = temporary.read(path)
    local ending = whole:match ',"part":%d+,"seq":%d+,"prev":"%x+","hash":"%x+"}'
    temporary.write(path, whole .. '{"record":{"risk":{"a":1' .. ending)
    record_some(open(), 1)
    assert.same({ true, 3 }, { journals.verify(path).ok, journals.verify(path).lines })
  end)

  it("removes nothing of a line that the head names", function()
    for count = 1, 2 do
      local journal = open()
      record_some(journal, 1)
      assert(journal:close())
      local whole = temporary.read(path)
      temporary.write(path, whole:sub(1, -10))
      local refused, err = journals.file(path)
      assert.is_nil(refused)
      assert.equal("damaged", err.reason)
      assert.equal(whole:sub(1, -10), temporary.read(path), count)
      temporary.write(path, whole)
    end
  end)

  it("refuses a file whose last line is no line of a journal", function()
    temporary.write(path, "some other log\n")
    local journal, err = journals.file(path)
    assert.is_nil(journal)
    assert.equal("damaged", err.reason)
    assert.equal("some other log\n", temporary.read(path))
  end)

  it("leaves every file alone that is no journal", function()
    local contents = { '{"version":3,"id":"3198bc9c","crypto":{}}', "0xdead", "a,b\n1,2", "a,b\n1,2\n" }
    for _, content in ipairs { "{}\n{", "\n", " " } do
      contents[#contents + 1] = content
    end
    contents[#contents + 1] = ("x"):rep(200000)
    contents[#contents + 1] = ("x"):rep(100000) .. "\n" .. ("y"):rep(100000)
    contents[#contents + 1] = '{"id":"0123456789abcdef01234567","time":"2026-01-01T00:00:00Z","secret":1}'
    for _, content in ipairs(contents) do
      temporary.write(path, content)
      for _, buffer in ipairs { false, 10 } do
        local journal, err = journals.file(path, { buffer = buffer or nil, on_failure = function() end })
        if journal then
          record_some(journal, 1)
          journal, err = journal:flush()
        end
        assert.is_nil(journal)
        assert.equal("damaged", err.reason)
        assert.equal(content, temporary.read(path))
        assert.same({ "decisions.jsonl" }, temporary.names())
      end
    end
  end)

  it("leaves a file alone that has the name of the head file, and is none", function()
    for _, content in ipairs { "notes\n", '{"some":"settings"}', ("x"):rep(5000) } do
      temporary.write(path .. ".head", content)
      local journal, err = journals.file(path)
      assert.is_nil(journal)
      assert.equal("damaged", err.reason)
      assert.matches("head is not the head of a journal", err.message)
      assert.equal(content, temporary.read(path .. ".head"))
    end
  end)

  it("removes a torn line that is the first of its file", function()
    record_some(open(), 1)
    local whole = temporary.read(path)
    os.remove(path)
    os.remove(path .. ".head")
    open() -- killed in its first line
    temporary.write(path, whole:sub(1, 50))
    record_some(open(), 2)
    assert(open():rotate())
    temporary.write(path, whole:sub(1, 50))
    record_some(open(), 1)
    local report = journals.verify(path)
    assert.same({ true, 3 }, { report.ok, report.lines })
  end)

  it("refuses to go on after a file that was cut or lost", function()
    local journal = open()
    record_some(journal, 4)
    assert(journal:close())
    local whole = temporary.read(path)
    temporary.write(path, whole:match "^(.-\n.-\n)")
    local _, err = journals.file(path)
    assert.equal("damaged", err.reason)
    assert.matches("ends at line 2, but line 4 was written", err.message)
    os.remove(path)
    _, err = journals.file(path)
    assert.equal("damaged", err.reason)
    assert.matches("missing or empty, but line 4 was written", err.message)
  end)

  it("refuses to begin a second chain beside older files", function()
    record_some(open(), 2)
    assert(open():rotate())
    os.remove(path .. ".head")
    local journal, err = journals.file(path)
    assert.is_nil(journal)
    assert.equal("damaged", err.reason)
    assert.matches("the head file is missing", err.message)
  end)

  it("does not go on from a head that its file cannot have", function()
    for _, seq in ipairs { "0.5", "1e300", "-1" } do
      temporary.write(path .. ".head", ('{"part":1.5,"seq":%s,"hash":"%s"}\n'):format(seq, ("0"):rep(64)))
      os.remove(path)
      record_some(open(), 2)
      local report = journals.verify(path)
      assert.same({ 1, 2, true }, { report.first, report.head.seq, report.ok })
    end
  end)

  it("makes files into which nobody else can write, also where a daemon has no umask", function()
    local writer = program.start("journal_writer", { path, "40", "4000" }, { before = "umask 0" })
    writer:close()
    for _, name in ipairs { path, path .. ".head" } do
      assert.equal(tonumber("640", 8), select(2, require("riskscreen.system").stat(name)), name)
    end
  end)

  it("keeps the chain when it rotates", function()
    local journal = open { max_size = 1500 }
    record_some(journal, 20)
    assert(journal:close())
    local report = journals.verify(path)
    assert.is_true(report.ok)
    assert.equal(20, report.lines)
    assert.is_true(#report.files > 3)
    assert.equal(path .. ".1", report.files[1])
    assert.equal(path, report.files[#report.files])
    for _, file in ipairs(report.files) do
      assert.is_true(#temporary.read(file) <= 1500)
    end
  end)

  it("rotates on demand, also several times and across programs", function()
    record_some(open(), 2)
    assert(open():rotate())
    assert(open():rotate()) -- nothing to rotate
    record_some(open(), 2)
    assert(open():rotate())
    local report = journals.verify(path)
    assert.is_true(report.ok)
    assert.same({ path .. ".1", path .. ".2" }, report.files)
    -- The files of the past may be moved away.
    os.remove(path .. ".1")
    os.remove(path .. ".2")
    record_some(open(), 1)
    report = journals.verify(path)
    assert.is_true(report.ok)
    assert.equal(5, report.first)
  end)

  it("says why it cannot rotate", function()
    local journal = open()
    record_some(journal, 1)
    temporary.write(path .. ".1", "something else")
    local ok, err = journal:rotate()
    assert.is_nil(ok)
    assert.matches("exists; move it away", err.message)
  end)

  it("goes on after a program that ended in the middle of a rotation", function()
    local journal = open()
    record_some(journal, 2)
    assert(journal:close())
    os.rename(path, path .. ".1")
    record_some(open(), 2)
    local report = journals.verify(path)
    assert.is_true(report.ok)
    assert.equal(4, report.lines)
  end)

  it("goes on after another program has renamed its file, and loses no line", function()
    for _, makes_file in ipairs { false, true } do
      for _, is_closed in ipairs { false, true } do
        for _, name in ipairs(temporary.names()) do
          os.remove(temporary.path(name))
        end
        local journal = open()
        record_some(journal, 3) -- the head does not know all of them
        os.rename(path, path .. ".1")
        local _ = makes_file and temporary.write(path, "")
        if is_closed then
          assert(journal:close())
          assert(open():close())
          assert.same({ 2, 3 }, { open():head().part, open():head().seq })
        end
        record_some(journal, 1)
        os.rename(path, path .. ".2")
        record_some(open(), 2)
        local report = journals.verify(path)
        assert.same({ true, 6, 3 }, { report.ok, report.lines, #report.files })
        assert.same({ 3, 6 }, { report.head.part, report.head.seq })
      end
    end
  end)

  it("goes on after a renamed file that was moved away since", function()
    local journal = open()
    record_some(journal, 2)
    os.rename(path, path .. ".1")
    assert(journal:close())
    os.remove(path .. ".1")
    record_some(open(), 1)
    assert.same({ 3, true }, { journals.verify(path).first, journals.verify(path).ok })
  end)

  it("begins no second chain where its file has gone, also right after its first lines", function()
    local journal = open { on_failure = function() end }
    record_some(journal, 2)
    os.rename(path, path .. ".old")
    record_some(journal, 1)
    assert.equal(1, journal:stats().lost)
    local _, err = journals.file(path)
    assert.matches("missing or empty, but line 1 was written", err.message)
    os.remove(path .. ".head") -- as the message says
    record_some(open(), 1)
    assert.is_true(journals.verify(path).ok)
  end)

  it("refuses a renamed file that is not the one that was written, and leaves it alone", function()
    local function refusal(content, options)
      temporary.write(path .. ".1", content)
      os.remove(path)
      local journal, err = journals.file(path, options)
      assert.is_nil(journal)
      assert.equal("damaged", err.reason)
      assert.equal(content, temporary.read(path .. ".1"))
      return err.message
    end
    local journal = open()
    record_some(journal, 3)
    assert(journal:close())
    local whole = temporary.read(path)
    assert.matches("jsonl%.1: the last line is not one of a journal", refusal "some other log\n")
    assert.matches("jsonl%.1: the file ends at line 2, but line 3 was written", refusal(whole:match "^(.-\n.-\n)"))
    assert.matches("jsonl%.1: .*written with another key", refusal(whole, { key = ("k"):rep(16) }))
    assert.matches("jsonl%.1: this is not part 1", refusal((whole:gsub('"part":1', '"part":2'))))
    assert.matches("missing or empty, but line 3 was written", refusal "")
  end)

  -- Programs that write 40 lines each, to one journal by these names.
  local function write_at_once(names)
    local writers = {}
    for index, name in ipairs(names) do
      writers[index] = program.start("journal_writer", { name, "40", "4000" })
    end
    for _, writer in ipairs(writers) do
      for line in writer:lines() do
        assert.matches("^made ", line)
      end
      writer:close()
    end
  end

  it("takes the lines of several programs at the same time", function()
    write_at_once { path, path, path }
    local report = journals.verify(path)
    assert.is_true(report.ok)
    assert.equal(120, report.lines)
    assert.is_true(#report.files > 1)
  end)

  it("takes the lines of programs that name it by links", function()
    local directory = assert(path:match "^.*/")
    local first, second = directory .. "first.jsonl", directory .. "second.jsonl"
    os.execute(("ln -s %s %s; ln -s first.jsonl %s"):format(path, first, second))
    write_at_once { path, first, second }
    for _, name in ipairs { path, first, second } do
      local report = assert(journals.verify(name))
      assert.same({ true, 120 }, { report.ok, report.lines })
    end
    assert.is_nil(io.open(first .. ".head"))
    assert.is_nil(io.open(first .. ".1"))
  end)

  it("waits for another writer only so long", function()
    local journal = open { lock_timeout = 0.01, on_failure = function() end }
    local system = require "riskscreen.system"
    local lock = assert(io.open(path .. ".head", "a+b"))
    assert(system.lock(lock))
    local id, err = journal:append(riskscreen.policy():decide { risk = { risks = {} } })
    assert.is_nil(id)
    assert.equal("busy", err.reason)
    lock:close()
    assert.is_string(journal:append(riskscreen.policy():decide { risk = { risks = {} } }))
  end)

  it("never changes a verdict when it cannot be written, and says so", function()
    local failures = {}
    local store = riskscreen.store.memory()
    rawset(store, "batch", function()
      error "the log server is down"
    end)
    local journal = journals.store(store, {
      on_failure = function(err)
        failures[#failures + 1] = err
        error "even the hook fails"
      end,
    })
    local client = riskscreen.sandbox.client { journal = journal }
    assert.equal("block", client:screen(scenario("type-sanction")).action)
    assert.equal(1, #failures)
    assert.equal("storage", failures[1].kind)
    assert.matches("the log server is down", failures[1].message)
    assert.equal(1, journal:stats().lost)
  end)

  it("loses no earlier line when the system refuses to let the file grow", function()
    local writer = program.start("journal_writer", { path, "1000" }, { before = "trap '' XFSZ; ulimit -f 40" })
    local made, failed = 0, nil
    for line in writer:lines() do
      made = tonumber(line:match "^made (%d+)") or made
      failed = failed or line:match "^failed (%S+)"
    end
    writer:close()
    assert.equal("io", failed)
    assert.is_true(made > 20)
    local report = journals.verify(path)
    assert.is_true(report.ok)
    assert.equal(made, report.lines)
    record_some(open(), 1)
    assert.equal(made + 1, journals.verify(path).lines)
  end)

  it("tells that a disk is full", function()
    local target = io.open "/dev/full"
    if not target then
      return pending "there is no /dev/full"
    end
    target:close()
    local journal = assert(journals.file(path, { on_failure = function() end }))
    os.execute(("ln -sf /dev/full '%s'"):format(path))
    local _, err = journal:append(riskscreen.policy():decide { risk = { risks = {} } })
    assert.equal("storage", err.kind)
    assert.equal("full", err.reason)
    assert.matches("No space left", err.message)
  end)

  -- A head file that can be locked, and not written.
  local function fill_head()
    os.remove(path .. ".head")
    assert(os.execute(("ln -s /dev/full '%s.head'"):format(path)))
  end

  local function seqs_and_losses()
    local shown = {}
    for entry in journals.entries(path) do
      shown[#shown + 1] = entry.lost and "lost" or entry.seq
    end
    return shown
  end

  it("writes a line once, and counts it as written, where the disk has no room for the head", function()
    for _, buffer in ipairs { false, 10 } do
      os.execute(("rm -f '%s' '%s.head'"):format(path, path))
      record_some(open(), 1)
      fill_head()
      local journal = open { sync = 0, buffer = buffer or nil }
      for _ = 1, 2 do
        record_some(journal, 1)
        assert(journal:flush())
      end
      assert.same({ lost = 0, waiting = 0, written = 2, repaired = 0 }, journal:stats())
      assert.is_nil(journal:close())
      os.remove(path .. ".head")
      record_some(journal, 1)
      assert(journal:close())
      assert.same({ 1, 2, 3, 4 }, seqs_and_losses())
      assert.is_true(journals.verify(path).ok)
    end
  end)

  it("counts a line as lost, and removes it, where it cannot be synchronised", function()
    local system = require "riskscreen.system"
    local sync = system.sync
    finally(function()
      system.sync = sync
    end)
    local journal = open { sync = 0, on_failure = function() end }
    record_some(journal, 1)
    function system.sync() end
    record_some(journal, 1)
    assert.equal(1, journal:stats().lost)
    system.sync = sync
    record_some(journal, 1)
    assert(journal:close())
    assert.same({ 1, "lost", 3 }, seqs_and_losses())
  end)

  it("writes the lines of a flush that waits when another flush comes first, and writes them once", function()
    if _VERSION == "Lua 5.1" and not rawget(_G, "jit") then
      return pending "PUC Lua 5.1 cannot yield across pcall"
    end
    local journal = open { buffer = 10, sleep = coroutine.yield }
    record_some(journal, 3)
    local lock = assert(io.open(path .. ".head", "a+b"))
    assert(require("riskscreen.system").lock(lock))
    local waiting = coroutine.wrap(function()
      return journal:flush()
    end)
    waiting()
    lock:close()
    assert(journal:flush())
    assert.same({ 1, 2, 3 }, seqs_and_losses())
    record_some(journal, 1)
    assert.is_true(waiting())
    assert.same({ 1, 2, 3, 4 }, seqs_and_losses())
    assert.equal(0, journal:stats().waiting)
  end)

  it("keeps lines in a buffer until they are flushed", function()
    local lost = {}
    local journal = open {
      buffer = 3,
      on_failure = function(err)
        lost[#lost + 1] = err.reason
      end,
    }
    record_some(journal, 5)
    assert.same({}, temporary.names())
    assert.same({ "full", "full" }, lost)
    assert.same({ lost = 2, waiting = 3, written = 0, repaired = 0 }, journal:stats())
    assert(journal:flush())
    record_some(journal, 1)
    assert(journal:close())
    assert.is_true(journals.verify(path).ok)
    local shown = {}
    for entry in journals.entries(path) do
      shown[#shown + 1] = entry.lost or entry.action
    end
    assert.same({ 2, "allow", "allow", "allow", "allow" }, shown)
  end)

  it("writes a long buffer at once", function()
    local journal = open { buffer = 10000 }
    for _ = 1, 10000 do
      journal:append { action = "allow", reasons = {}, address = "0x1", network = "eth" }
    end
    assert(journal:close())
    assert.equal(10000, journals.verify(path).lines)
  end)

  it("keeps the lines of a flush that failed", function()
    local journal = open { buffer = 10, lock_timeout = 0, on_failure = function() end }
    record_some(journal, 2)
    local lock = assert(io.open(path .. ".head", "a+b"))
    assert(require("riskscreen.system").lock(lock))
    assert.is_nil(journal:flush())
    lock:close()
    record_some(journal, 1)
    assert(journal:flush())
    assert.equal(3, #lines_of(path))
  end)

  it("says in its next line how many decisions could not be written before it", function()
    local journal = open { lock_timeout = 0, on_failure = function() end }
    record_some(journal, 1)
    local lock = assert(io.open(path .. ".head", "a+b"))
    assert(require("riskscreen.system").lock(lock))
    record_some(journal, 2)
    lock:close()
    assert.equal(2, journal:stats().lost)
    record_some(journal, 1)
    local shown = {}
    for entry in journals.entries(path) do
      shown[#shown + 1] = entry.lost or entry.action
    end
    assert.same({ "allow", 2, "allow" }, shown)
    assert.is_true(journals.verify(path).ok)
  end)

  it("counts all of them where the line that says so could not be written either", function()
    local store = riskscreen.store.memory()
    local journal = assert(journals.store(store, { on_failure = function() end }))
    local batch = store.batch
    store.batch = function()
      return nil, riskscreen.errors.new("storage", "the disk is gone")
    end
    record_some(journal, 3)
    store.batch = batch
    assert(journal:close())
    local entry = journals.entries(store)()
    assert.equal(3, entry.lost)
  end)

  it("says so when it is closed, where no further decision comes", function()
    for _, buffer in ipairs { false, 1 } do
      local journal = open { lock_timeout = 0, on_failure = function() end, buffer = buffer or nil }
      local lock = assert(io.open(path .. ".head", "a+b"))
      assert(require("riskscreen.system").lock(lock))
      record_some(journal, 2)
      assert.is_nil(journal:close())
      lock:close()
      assert(journal:close())
      local lost
      for entry in journals.entries(path) do
        lost = entry.lost or lost
      end
      assert.equal(buffer and 1 or 2, lost)
    end
  end)

  -- A decision from an answer of the service.
  local function append_answer(journal, answer)
    local decision = riskscreen.policy():decide { risk = answer }
    decision.address, decision.network = ("0x%040x"):format(1), "eth"
    assert(journal:append(decision))
  end

  it("goes on after any answer of the service, and reads its lines again", function()
    local answers = {
      json.decode '{"risks":[],"part":5}',
      json.decode '{"part":1}',
      json.decode '{"risks":[],"part":1,"seq":2,"prev":"0","hash":"1"}',
      json.decode('{"risks":[],"x":' .. ("["):rep(200) .. ("]"):rep(200) .. "}"),
      json.decode '{"risks":[],"x":{},"y":[],"":1e308}',
      { risks = {}, x = ("y"):rep(33 * 1024 * 1024) },
    }
    for _, answer in ipairs(answers) do
      append_answer(assert(journals.file(path, { record = true })), answer)
    end
    local report = journals.verify(path)
    assert.same({}, report.faults)
    assert.equal(#answers, report.lines)
    for row in journals.replay(path, riskscreen.policy()) do
      assert.equal(row.before, row.after or row.before)
    end
  end)

  it("finds the chain of a line whose last member is called part", function()
    local line = require "riskscreen.journal.line"
    for _, body in ipairs { '{"record":{"part":5}', '{"record":{"part":5,"seq":7,"prev":"ab","hash":"cd"}' } do
      local sealed = line.seal({ body }, { part = 3, seq = 8, hash = line.FIRST }, line.hasher())[1]
      local chain = line.chain(sealed)
      assert.same({ 3, 9, line.FIRST }, { chain.part, chain.seq, chain.prev })
      assert.equal(chain.hash, line.hasher()(chain.content))
    end
  end)

  it("finds the entries about an address in a file", function()
    local journal = open()
    record_some(journal, 1)
    local client = riskscreen.sandbox.client { journal = journal }
    client:screen(scenario "low-eth")
    client:screen(scenario "clean-eth")
    local each = journals.entries(path, scenario("low-eth").address:lower())
    assert.equal(2, each().seq)
    assert.is_nil(each())
  end)

  it("loses no line in a store that waits, however many tasks record at once", function()
    local store = riskscreen.store.memory()
    local batch, space = store.batch, store:space "journal"
    store.batch = function(...)
      riskscreen.sleep(0)
      return batch(...)
    end
    store.space = function()
      return {
        get = function(_, key)
          riskscreen.sleep(0)
          return space:get(key)
        end,
      }
    end
    local journal = journals.store(store, { on_failure = function() end })
    riskscreen.run(function()
      for _ = 1, 300 do
        riskscreen.spawn(record_some, journal, 1)
      end
    end)
    store.batch, store.space = nil, nil
    assert.equal(0, journal:stats().lost)
    local report = journals.verify(store)
    assert.same({ true, 300 }, { report.ok, report.lines })
  end)

  it("goes on in a store when a task that records is stopped", function()
    local store = riskscreen.store.memory()
    local batch = store.batch
    local journal = journals.store(store, { on_failure = function() end })
    store.batch = function()
      riskscreen.sleep(60)
    end
    riskscreen.run(function()
      local task = riskscreen.spawn(record_some, journal, 1)
      riskscreen.sleep(0.001)
      task:cancel()
      task:await()
      store.batch = batch
      record_some(journal, 1)
    end)
    assert.equal(2, journals.verify(store).lines) -- the first one says that a line was lost
  end)

  it("keeps its lines in a store, and finds those about an address", function()
    local store = riskscreen.store.memory()
    local one, two = journals.store(store), journals.store(store)
    record_some(one, 2)
    record_some(two, 2)
    local client = riskscreen.sandbox.client { journal = one }
    client:screen(scenario "low-eth")
    local report = journals.verify(store)
    assert.is_true(report.ok)
    assert.equal(5, report.lines)
    local found = {}
    for entry in journals.entries(store, scenario("low-eth").address:lower()) do
      found[#found + 1] = entry.seq
    end
    assert.same({ 5 }, found)
    store:space("journal"):delete "line:000000000000003"
    report = journals.verify(store)
    assert.equal("missing", report.faults[1].reason)
    assert.equal(3, report.faults[1].seq)
  end)

  it("raises misuse at the caller's line", function()
    for _, misuse in ipairs {
      function()
        journals.file(path, { key = "short" })
      end,
      function()
        journals.file(path, { sink = 1 })
      end,
      function()
        journals.file()
      end,
      function()
        journals.verify(5)
      end,
      function()
        journals.replay(path, {})
      end,
      function()
        riskscreen.sandbox.client { journal = {} }
      end,
    } do
      local ok, message = pcall(misuse)
      assert.is_false(ok)
      assert.matches("^[^:]*init_spec.lua:%d+: ", message)
    end
  end)
end)
