-- Files that versions 0.1.0 and 0.9.0 wrote are read, and files of a later format are refused. docs/stability.md
-- promises both.
-- spec/support/old_files/write.lua has written them.
local cache_world = require "spec.support.cache_world"
local cli = require "spec.support.cli"
local commands = require "spec.support.page_commands"
local digest = require "riskscreen.address.digest"
local json = require "riskscreen.json"
local pages = require "spec.support.pages"
local recorder = require "spec.support.recorder"
local redis_server = require "spec.support.redis"
local riskscreen = require "riskscreen"
local temporary = require "spec.support.temporary"

local OLD, RECENT = "spec/support/old_files/0.1.0", "spec/support/old_files/0.9.0"
local JOURNAL_KEY = "a key of old files"

describe("a file of version 0.1.0", function()
  local directory, remove

  before_each(function()
    directory, remove = cli.directory()
    commands.run(("cp %s/* %s"):format(OLD, directory))
  end)

  after_each(function()
    remove()
  end)

  local function write(name, text)
    local file = assert(io.open(directory .. "/" .. name, "wb"))
    file:write(text)
    file:close()
  end

  -- Gives a database the number of a later format.
  local function make_newer(name)
    local connection = assert(require("dbd.sqlite3").New(directory .. "/" .. name))
    connection:autocommit(true)
    local statement = assert(connection:prepare "PRAGMA user_version = 2")
    assert(statement:execute())
    statement:close()
    connection:close()
  end

  describe("that is a journal", function()
    it("is verified and read", function()
      local path = directory .. "/journal.jsonl"
      local report = riskscreen.journal.verify(path, { key = JOURNAL_KEY })
      assert.same({ true, 3 }, { report.ok, report.lines })
      local actions = {}
      for entry in riskscreen.journal.entries(path) do
        assert.equal("0.1.0", entry.version)
        actions[#actions + 1] = entry.action
      end
      assert.same({ "block", "allow", "review" }, actions)
    end)

    it("is decided again with another policy", function()
      local strict = riskscreen.policy { rules = { { action = "block", any = true } } }
      local after = {}
      for row in riskscreen.journal.replay(directory .. "/journal.jsonl", strict) do
        after[#after + 1] = row.after
      end
      assert.same({ "block", "block", "block" }, after)
    end)

    it("is continued in the same chain", function()
      local path = directory .. "/journal.jsonl"
      local journal = assert(riskscreen.journal.file(path, { key = JOURNAL_KEY }))
      riskscreen.sandbox.client({ journal = journal }):screen { address = "0x1", network = "eth" }
      journal:close()
      local report = riskscreen.journal.verify(path, { key = JOURNAL_KEY })
      assert.same({ true, 4 }, { report.ok, report.lines })
    end)
  end)

  it("that is a journal of a later version is verified, with members that are not known", function()
    local line = '{"id":"1","time":"2030-01-01T00:00:00Z","input":"0x1","action":"block","reasons":[],"source":"none",'
      .. '"later":{"a":1},"version":"9.0.0","part":1,"seq":1,"prev":"'
      .. ("0"):rep(64)
      .. '"'
    local hash = digest.sha256(line):gsub(".", function(byte)
      return ("%02x"):format(byte:byte())
    end)
    write("later.jsonl", line .. ',"hash":"' .. hash .. '"}\n')
    assert.is_true(riskscreen.journal.verify(directory .. "/later.jsonl").ok)
    local entry = riskscreen.journal.entries(directory .. "/later.jsonl")()
    assert.same({ "9.0.0", "block" }, { entry.version, entry.action })
  end)

  describe("that is a compiled list", function()
    local function decision_with(path)
      local client = riskscreen.sandbox.client { lists = { deny = { path } } }
      return client:screen { address = "0x12ae66cdc592e10b60f9097a7b0d3c59fce29876", network = "eth" }
    end

    it("blocks its addresses", function()
      local decision = decision_with(directory .. "/deny.rsl")
      assert.equal("block", decision.action)
      assert.is_truthy(decision.reasons[1].message:find("stolen in May", 1, true))
    end)

    it("is refused if its format is a later one", function()
      local text = pages.read(directory .. "/deny.rsl")
      os.remove(directory .. "/deny.rsl")
      write("deny.rsl", text:sub(1, 8) .. "\2\0\0\0" .. text:sub(13))
      local ok, problem = pcall(decision_with, directory .. "/deny.rsl")
      assert.is_false(ok)
      assert.is_truthy(tostring(problem):find("has version 2, and this library reads version 1", 1, true), problem)
    end)
  end)

  describe("that is a store", function()
    it("has its entries", function()
      local store = assert(riskscreen.store.sqlite(directory .. "/store.db"))
      assert.equal("allow", store:space("deposits"):get "deposit-17")
      store:close()
    end)

    it("keeps its transactions from being submitted again", function()
      local store = assert(riskscreen.store.sqlite(directory .. "/store.db"))
      local client = riskscreen.sandbox.client { store = store }
      local kept = {}
      for _, transaction in client.kyt:kept() do
        kept[#kept + 1] = transaction.customId
      end
      assert.same({ "payout-4" }, kept)
      local payout = { network = "eth", hash = "0x5f16", direction = "sent", customId = "payout-4" }
      local _, response = assert(client.kyt:submit(payout))
      assert.is_true(response.kept)
      store:close()
    end)

    it("has the verdicts of a watch, so that nothing is reported as new", function()
      local store = assert(riskscreen.store.sqlite(directory .. "/store.db"))
      local bad, clean = riskscreen.sandbox.scenario "type-sanction", riskscreen.sandbox.scenario "clean-eth"
      local watch = riskscreen.watch(riskscreen.sandbox.client {}, {
        source = { bad.address, clean.address },
        network = "eth",
        store = store,
        on_change = function() end,
      })
      local summary = watch:once()
      assert.same({ 2, 0 }, { summary.screened, summary.changed })
      store:close()
    end)

    it("is refused if its format is a later one, and stays as it is", function()
      make_newer "store.db"
      local before = pages.read(directory .. "/store.db")
      local store, err = riskscreen.store.sqlite(directory .. "/store.db")
      assert.is_nil(store)
      assert.equal("newer", err.reason)
      assert.is_truthy(err.message:find("upgrade riskscreen", 1, true))
      assert.equal(before, pages.read(directory .. "/store.db"))
    end)
  end)

  it("that is a ticket resumes its transaction", function()
    local ticket = pages.read(directory .. "/ticket.txt")
    local transaction = assert(riskscreen.sandbox.client({}).kyt:resume(ticket))
    assert.same({ "payout-4", "sandbox-request-000001" }, { transaction.customId, transaction.requestId })
    local newer, err = riskscreen.sandbox.client({}).kyt:resume((ticket:gsub('"version":1', '"version":2')))
    assert.is_nil(newer)
    assert.equal("invalid_argument", err.kind)
  end)

  describe("that is the state of an interrupted run", function()
    local function resume()
      return cli.run { "screen", "--file", directory .. "/input.csv", "--resume" }
    end

    it("is resumed: every row is in the output once, and the first ones are unchanged", function()
      local before = pages.read(directory .. "/input.results.csv")
      local status, _, err = resume()
      assert.is_true(status <= 3, err)
      local after = pages.read(directory .. "/input.results.csv")
      assert.equal(before, after:sub(1, #before))
      local lines = {}
      for line in after:gmatch "\n(%d+)," do
        lines[#lines + 1] = tonumber(line)
      end
      assert.equal(40, #lines)
      for line in after:gmatch "[^\r\n]+" do
        assert.equal(11, select(2, line:gsub(",", "")), line)
      end
      for index, line in ipairs(lines) do
        assert.equal(index + 1, line)
      end
    end)

    it("is refused if its format is a later one, and no output is changed", function()
      make_newer "input.results.csv.state"
      local before = pages.read(directory .. "/input.results.csv")
      local status, _, err = resume()
      assert.equal(4, status)
      assert.is_truthy(err:find("upgrade riskscreen", 1, true), err)
      assert.equal(before, pages.read(directory .. "/input.results.csv"))
    end)
  end)

  describe("that has the entries of a gate's cache", function()
    it("asks the service, because its entries have another format", function()
      local old = assert(json.decode(pages.read(directory .. "/dict.json")))
      local world = cache_world.new()
      world.time = old.time + 1
      for key, entry in pairs(old.entries) do
        world.dict.entries[key] = { value = entry.value, flags = entry.flags }
      end
      local decision, source = world:worker():get(("0x%040x"):format(1), "eth")
      assert.same({ "allow", "upstream" }, { decision.action, source })
      assert.equal(1, #world.asked)
    end)
  end)
end)

-- Files of 0.9.0 name no service and no account.
describe("what version 0.9.0 has kept", function()
  local directory, remove

  before_each(function()
    directory, remove = cli.directory()
    commands.run(("cp %s/* %s"):format(RECENT, directory))
  end)

  after_each(function()
    remove()
  end)

  it("in a watch is found: its verdicts are those before, and the cycle begins again", function()
    local names, source, changes = { "type-sanction", "type-hack" }, {}, {}
    for index, network in ipairs { "ethereum", "eth" } do
      source[index] = { address = riskscreen.sandbox.scenario(names[index]).address, network = network }
    end
    local store = assert(riskscreen.store.sqlite(directory .. "/watch.db"))
    local function watch(more)
      return riskscreen.watch(riskscreen.sandbox.client(more), {
        source = source,
        store = store,
        on_change = function(change)
          changes[#changes + 1] = change
        end,
      })
    end
    local summary = assert(watch():once())
    assert.same({ 2, 0, true }, { summary.screened, summary.changed, summary.finished })
    assert.same({}, changes)
    assert.equal(2, store:space("watch:default:verdicts"):count())
    local _, err = watch({ account = "other" }):once()
    assert.matches("another service or account", err.message, 1, true)
    store:close()
  end)

  it("in the state of a run is found, and the run goes on", function()
    local before = pages.read(directory .. "/input.results.csv")
    local status, _, err = cli.run { "screen", "--file", directory .. "/input.csv", "--resume" }
    assert.is_true(status <= 3, err)
    local after = pages.read(directory .. "/input.results.csv")
    assert.equal(before, after:sub(1, #before))
    assert.equal(41, select(2, after:gsub("\n", "")))
  end)

  it("in a journal is read, verified and continued by lines that name their identity", function()
    local path = directory .. "/journal.jsonl"
    local journal = assert(riskscreen.journal.file(path, { key = JOURNAL_KEY }))
    riskscreen.sandbox.client({ journal = journal }):screen { address = "0x1", network = "eth" }
    journal:close()
    local report = riskscreen.journal.verify(path, { key = JOURNAL_KEY })
    assert.same({ true, 4 }, { report.ok, report.lines })
    local identities = {}
    for entry in riskscreen.journal.entries(path) do
      identities[entry.seq] = entry.identity or "none"
    end
    assert.same({ "none", "none", "none" }, { identities[1], identities[2], identities[3] })
    assert.matches("^%x+$", identities[4])
    assert.equal(32, #identities[4])
  end)

  local it_if = redis_server.is_installed() and it or pending

  it_if("in a queue is worked off, and its outcomes are asked for again", function()
    local server = redis_server.start()
    finally(redis_server.stop_all)
    local redis = riskscreen.redis.new { url = server.url }
    for _, command in ipairs(assert(json.decode(pages.read(directory .. "/queue.json")))) do
      assert(redis:call((table.unpack or unpack)(command))) -- luacheck: ignore 113 143
    end
    local queue = riskscreen.queue.new { redis = redis, claim_after = 1 }
    local client, service = riskscreen.sandbox.client {}
    assert(queue:add("new.csv", {
      { address = riskscreen.sandbox.scenario("clean-eth").address, network = "eth" },
      { address = riskscreen.sandbox.scenario("type-hack").address, network = "eth" },
    }))
    assert.equal(5, queue:worker({ client = client }):run { drain = true })
    local actions = {}
    for _, result in ipairs(assert(queue:results())) do
      assert.is_nil(actions[result.id])
      actions[result.id] = result.action
    end
    assert.same({
      ["old.csv/1"] = "allow",
      ["old.csv/2"] = "block",
      ["old.csv/3"] = "block",
      ["old.csv/4"] = "block",
      ["new.csv/1"] = "allow",
      ["new.csv/2"] = "block",
    }, actions)
    assert.is_true(#service:requests() >= 4)
    assert.same({ 0, 0, 0 }, { queue:status().waiting, queue:status().following, queue:status().dead })
    redis:close()
  end)
end)

describe("a store of version 0.9.0", function()
  local store

  before_each(function()
    local path = temporary.path "transactions.db"
    commands.run(("cp spec/support/old_files/0.9.0/transactions.db %s"):format(path))
    store = assert(riskscreen.store.sqlite(path))
  end)

  after_each(function()
    store:close()
    temporary.clean()
  end)

  local function start(base_url, unix_socket)
    local transport, requests =
      recorder.new(recorder.reply(200, { success = true, code = 1, data = { requestId = "new" } }))
    local client = riskscreen.new {
      base_url = base_url or "https://service.example",
      unix_socket = unix_socket,
      access_key = "key-of-the-old-files",
      account = "specs",
      identity = "recorder",
      transport = transport,
      endpoints = { kyt_custom_score = { method = "POST", path = "/score" } },
      store = store,
    }
    return client, requests
  end

  local first = { network = "eth", hash = "0x1", direction = "in", customId = "first" }
  local second = { network = "eth", hash = "0x2", direction = "in" }

  it("keeps its transactions from being submitted again", function()
    local client, requests = start()
    for id, parameters in pairs { r1 = first, r2 = second } do
      local transaction, other = assert(client.kyt:submit(parameters))
      assert.same({ id, true }, { transaction.requestId, other.kept })
    end
    local third = { network = "eth", hash = "0x3", direction = "in", customId = "third" }
    assert.equal("7", client.kyt:submit(third):await().maxScore)
    assert.equal("8", client.kyt:submit_custom_score({ hash = "0x6" }):await().maxScore)
    for hash, kind in pairs { ["0x4"] = "api", ["0x5"] = "timeout" } do
      local transaction, err = client.kyt:submit { network = "eth", hash = hash, direction = "in" }
      assert.is_nil(transaction)
      assert.equal(kind, err.kind)
    end
    assert.equal(0, #requests)
  end)

  it("is told apart by its host alone, so that a client of a path or a socket refuses its transactions", function()
    local client, requests
    for _, place in ipairs { { "https://service.example/live" }, { "https://service.example", "/run/service.sock" } } do
      client, requests = start(place[1], place[2])
      for _, parameters in ipairs { first, second } do
        local transaction, err = client.kyt:submit(parameters)
        assert.is_nil(transaction)
        assert.matches("client.kyt:kept()", err.message, 1, true)
      end
      assert.equal(0, #requests)
    end
    assert(client.kyt:forget(first))
    assert.equal("new", client.kyt:submit(first).requestId)
  end)

  it("lists its transactions to clients of its host, until they are forgotten", function()
    local function count(client)
      local kept = 0
      for _, transaction in client.kyt:kept() do
        kept = kept + (transaction and 1 or 0)
      end
      return kept
    end
    assert.equal(0, count(start "https://another.example"))
    local client = start()
    assert.equal(4, count(client))
    for _, transaction in client.kyt:kept() do
      local _ = transaction and transaction:forget()
    end
    assert.equal(0, count(client))
  end)

  it("has the events of its inbox, handled and early", function()
    local handled = 0
    local inbox = riskscreen.webhook.inbox {
      accept_unauthenticated = true,
      store = store,
      account = "specs",
      handlers = {
        ["*"] = function()
          handled = handled + 1
        end,
      },
    }
    local body = '{"webhookId":"w1","eventType":"x","timestamp":"2026-01-01 00:00:00","data":{}}'
    assert.equal(200, (inbox:deliver("POST", {}, body)))
    assert.equal(0, handled)
    local client =
      riskscreen.new { base_url = "https://service.example", access_key = "key-of-the-old-files", inbox = inbox }
    assert.equal("42", client.kyt:await("r9", { timeout = 1 }).maxScore)
    assert.equal(0, store:space("webhook:early"):count()) -- they are not taken over again at the next start
  end)
end)
