-- Which answers and events become the result of a submission, however it is awaited; and what a store knows of it.
local calls = require "riskscreen.call"
local decisions = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local recorder = require "spec.support.recorder"
local riskscreen = require "riskscreen"
local spellings = require "spec.support.spellings"
local submissions = require "riskscreen.kyt.submission"
local tables = require "riskscreen.util.tables"
local temporary = require "spec.support.temporary"

local ADDRESS = "0x52908400098527886e0f7030069857d2e4169ee7"
local parameters = { network = "eth", hash = "0xabc", outputAddress = ADDRESS, direction = "in", customId = "mine" }
local quick = { first = 0.001, growth = 1, jitter = 0, ceiling = 0.001, deadline = 5 }
local endpoints = {
  kyt_result = { method = "GET", path = "/results" },
  kyt_custom_score = { method = "POST", path = "/score" },
  kyt_custom_score_result = { method = "GET", path = "/score-results" },
}

local function success(data)
  return recorder.reply(200, { success = true, code = 1, data = data })
end

local submitted = success { requestId = "r1" }
local waiting = success { requestId = "r1", status = 1001 }

local function done(more)
  local data = { requestId = "r1", status = 1003, maxScore = "12.5" }
  for name, value in pairs(more or {}) do
    data[name] = value
  end
  return success(data)
end

local function new_client(options, ...)
  local transport, requests = recorder.new(...)
  local all = {
    transport = transport,
    identity = "recorder",
    account = "specs",
    access_key = "key-of-the-submission-specs",
    polling = quick,
    endpoints = endpoints,
    retry = false,
  }
  for name, value in pairs(options or {}) do
    all[name] = value ~= "none" and value or nil
  end
  return riskscreen.new(all), requests
end

local function new_inbox(options)
  local all = { accept_unauthenticated = true }
  for name, value in pairs(options or {}) do
    all[name] = value
  end
  return riskscreen.webhook.inbox(all)
end

local function deliver(inbox, id, data, event_type)
  local body = json.encode {
    webhookId = id,
    eventType = event_type or "getTxHashCustomRiskScore",
    timestamp = "2026-01-01 00:00:00",
    data = data,
  }
  return (inbox:deliver("POST", {}, body))
end

local function collect()
  collectgarbage()
  collectgarbage()
end

describe("a result of another transaction", function()
  local others = { { hash = "0xabd" }, { network = "tron" }, { customId = "theirs" } }

  it("is not that of a requestId which the client has submitted, however long ago", function()
    for _, other in ipairs(others) do
      local is_done = false
      local client = new_client(nil, submitted, function()
        return is_done and done(other) or waiting
      end)
      local _, err = client.kyt:screen(parameters, { timeout = 0.01 })
      collect()
      is_done = true
      local result, problem = client.kyt:await(err.request_id, { timeout = 1 })
      assert.is_nil(result)
      assert.equal("protocol", problem.kind)
    end
  end)

  it("is not that of the ticket in the error of a wait", function()
    local client = new_client(nil, submitted, waiting)
    local _, err = client.kyt:screen(parameters, { timeout = 0.01 })
    local another = new_client(nil, done { hash = "0xabd" })
    local _, problem = another.kyt:resume(err.ticket):await { timeout = 1 }
    assert.equal("protocol", problem.kind)
  end)

  it("can be awaited further by the error of a wait, however the wait has ended", function()
    for _, answer in ipairs { recorder.reply(400, {}), done { hash = "0xabd" }, done { status = 2001 }, waiting } do
      local client = new_client(nil, submitted, answer)
      local result, err = client.kyt:screen(parameters, { timeout = 0.01 })
      assert.same({ nil, "r1" }, { result, err.request_id })
      local another = new_client(nil, done())
      assert.equal("12.5", another.kyt:resume(err.ticket):await({ timeout = 1 }).maxScore)
    end
  end)

  it("is shown by the error of an answer that names no requestId, whatever its status", function()
    for _, status in ipairs { 1001, 2001 } do
      local client = new_client({ immediate_results = true }, success { status = status, maxScore = "12.5" })
      local _, err = client.kyt:submit(parameters)
      assert.same({ true, status }, { err.uncertain, err.last.status })
    end
  end)

  it("is not that of a ticket, although the client awaits another one with its requestId", function()
    local ticket = new_client(nil, submitted).kyt:submit(parameters):ticket()
    local client = new_client(nil, done { hash = "0xabd" })
    local other = assert(client.kyt:resume(json.encode { version = 1, requestId = "r1", hash = "0xabd" }))
    assert.equal("12.5", other:await({ timeout = 1 }).maxScore)
    local result, err = client.kyt:resume(ticket):await { timeout = 1 }
    assert.is_nil(result)
    assert.equal("protocol", err.kind)
  end)

  it("is not that of a custom score with the same requestId, nor the other way round", function()
    local function answer(request)
      local score = request.target:find("score", 1, true)
      return request.method == "POST" and submitted or done { maxScore = score and "7" or "8" }
    end
    local client = new_client(nil, answer)
    local transaction = client.kyt:submit(parameters)
    local score = client.kyt:submit_custom_score { hash = "0xabc" }
    assert.same({ "8", "7" }, { transaction:await().maxScore, score:await().maxScore })
    local tickets = { transaction:ticket(), score:ticket() }
    assert.same({ "8", "7", "8", "7" }, {
      client.kyt:await("r1").maxScore,
      client.kyt:await("r1", { kind = "custom_score" }).maxScore,
      client.kyt:resume(tickets[1]):await().maxScore,
      client.kyt:resume(tickets[2]):await().maxScore,
    })
  end)
end)

describe("events with one webhookId", function()
  it("reach their transactions, where the operator's store takes each for a new one", function()
    local function new()
      return "new"
    end
    local inbox = new_inbox { store = { claim = new, complete = new, release = new } }
    local function submit(request_id)
      local client = new_client({ inbox = inbox, endpoints = "none" }, success { requestId = request_id })
      return assert(client.kyt:submit { network = "eth", hash = "0x" .. request_id:sub(2) })
    end
    local one, two = submit "r1", submit "r2"
    local function event(request_id, status)
      assert.equal(200, deliver(inbox, "w1", { requestId = request_id, status = status, maxScore = request_id:sub(2) }))
    end
    event("r1", 1003)
    event("r2", 1003)
    assert.equal("1", one:await({ timeout = 0 }).maxScore)
    assert.equal("2", two:await({ timeout = 0 }).maxScore)
    local three = submit "r3"
    event("r3", 1001)
    assert.equal(1001, select(2, three:await { timeout = 0 }).last.status)
    event("r3", 1003)
    assert.equal("3", three:await({ timeout = 0 }).maxScore)
  end)
end)

describe("an event from before a submission", function()
  it("is not taken by the transaction, nor when its ticket is resumed, nor by its requestId", function()
    local inbox = new_inbox()
    deliver(inbox, "w1", { requestId = "r1", customId = "mine", status = 1003, maxScore = "99" })
    local client = new_client({ inbox = inbox, endpoints = "none" }, submitted)
    local transaction = client.kyt:submit(parameters)
    local ticket = transaction:ticket()
    assert.equal("timeout", select(2, transaction:await { timeout = 0 }).kind)
    transaction = nil -- luacheck: ignore 311
    collect()
    assert.equal("timeout", select(2, client.kyt:await("r1", { timeout = 0 })).kind)
    assert.equal("timeout", select(2, client.kyt:resume(ticket):await { timeout = 0 }).kind)
    assert.equal(
      "timeout",
      select(2, new_client({ inbox = inbox }, waiting).kyt:resume(ticket):await { timeout = 0 }).kind
    )
    deliver(inbox, "w2", { requestId = "r1", customId = "mine", status = 1003, maxScore = "5" })
    assert.equal("5", client.kyt:resume(ticket):await({ timeout = 0 }).maxScore)
  end)

  it("is told from a later one although a clock is ahead, or set back over a restart", function()
    local now = os.time()
    local event = { requestId = "r1", customId = "mine", status = 1003, maxScore = "5" }
    local function ahead()
      return now + 5
    end
    local ticket = new_client({ clock = ahead }, submitted).kyt:submit(parameters):ticket()
    local its_inbox = new_inbox()
    deliver(its_inbox, "w1", event)
    deliver(its_inbox, "w2", { requestId = "r2", status = 1003, maxScore = "5" })
    local receiver = new_client({ inbox = its_inbox, endpoints = "none" }, waiting)
    assert.equal("5", receiver.kyt:resume(ticket):await({ timeout = 0 }).maxScore)
    local store = riskscreen.store.memory {
      clock = function()
        return now
      end,
    }
    local function start()
      local inbox = new_inbox { store = store, account = "specs" }
      return inbox, new_client({ inbox = inbox, store = store, endpoints = "none" }, submitted)
    end
    local _, client = start()
    assert(client.kyt:submit(parameters))
    now = now - 60
    local inbox
    inbox, client = start()
    deliver(inbox, "w1", event)
    now = now + 600
    assert.equal("5", client.kyt:submit(parameters):await({ timeout = 0 }).maxScore)
  end)

  it("is not taken after a restart", function()
    local store = riskscreen.store.memory()
    local function start()
      local inbox = new_inbox { store = store, account = "specs" }
      return inbox, new_client({ inbox = inbox, store = store, endpoints = "none" }, submitted)
    end
    local inbox, client = start()
    deliver(inbox, "w1", { requestId = "r1", status = 1003, maxScore = "99" })
    assert(client.kyt:submit(parameters))
    inbox, client = start()
    assert.equal("timeout", select(2, client.kyt:submit(parameters):await { timeout = 0 }).kind)
    deliver(inbox, "w2", { requestId = "r1", status = 1003, maxScore = "5" })
    inbox, client = start() -- luacheck: ignore 311
    assert.equal("5", client.kyt:submit(parameters):await({ timeout = 0 }).maxScore)
  end)
end)

describe("a ticket", function()
  it("is refused by a client of another service or account", function()
    local ticket = new_client(nil, submitted).kyt:submit(parameters):ticket()
    local others = { { account = "other" }, { identity = "other" }, { base_url = "https://x.example/live" } }
    for _, options in ipairs(others) do
      local client, requests = new_client(options, done())
      local transaction, err = client.kyt:resume(ticket)
      assert.is_nil(transaction)
      assert.same({ "invalid_argument", "ticket", 0 }, { err.kind, err.field, #requests })
    end
    assert(new_client({ access_key = "another-key-of-it" }, done()).kyt:resume(ticket))
  end)

  it("of 0.9.0 is taken", function()
    assert(new_client(nil, done()).kyt:resume '{"version":1,"requestId":"r1","hash":"0xabc","network":"eth"}')
    local old = submissions.decode('{"version":1,"requestId":"r1","kind":"custom_score"}', "any")
    assert.same({ kind = "custom_score", requestId = "r1" }, old)
  end)
end)

describe("identifiers that could not be kept", function()
  it("are refused before anything is sent", function()
    local wrong = { customId = { "\255", ("x"):rep(1025), "a\nb" }, hash = { "0xabc\255" } }
    for field, values in pairs(wrong) do
      for _, value in ipairs(values) do
        local client, requests = new_client(nil, submitted)
        local given = { network = "eth", hash = "0xabc", direction = "in" }
        given[field] = value
        local transaction, err = client.kyt:submit(given)
        assert.is_nil(transaction)
        assert.same({ "invalid_argument", field, 0 }, { err.kind, err.field, #requests })
      end
    end
    local client, requests = new_client(nil, submitted)
    local _, err = client.kyt:submit_custom_score { customId = 7 }
    assert.same({ "customId", 0 }, { err.field, #requests })
    assert.equal("r1", client.kyt:submit_custom_score({ hash = { "0x1", "0x2" } }).requestId)
  end)
end)

describe("a submission that a store keeps", function()
  local store

  before_each(function()
    store = riskscreen.store.memory()
  end)

  after_each(temporary.clean)

  local function start(options, ...)
    local all = { store = store }
    for name, value in pairs(options) do
      all[name] = value
    end
    return new_client(all, ...)
  end

  it("needs a client with a name for its account, and for a transport of one's own", function()
    for name, options in pairs { account = { account = "none" }, identity = { identity = "none" } } do
      local line = debug.getinfo(1, "l").currentline + 2
      local ok, message = pcall(function()
        riskscreen.new {
          transport = print,
          access_key = "key-of-the-submission-specs",
          store = store,
          account = options.account ~= "none" and "a" or nil,
          identity = options.identity ~= "none" and "a" or nil,
        }
      end)
      assert.is_false(ok)
      assert.matches("submission_spec.lua:" .. line .. ": store needs a client with `" .. name, message, 1, true)
    end
  end)

  it("is not found by a client of another service, path or account", function()
    local host = "https://service.example"
    local ways = {
      { base_url = host .. "/live" },
      { base_url = host .. "/test" },
      { base_url = host .. "/live", account = "other" },
      { base_url = host .. "/live", identity = "other" },
    }
    for count, options in ipairs(ways) do
      local client, requests = start(options, submitted)
      assert.is_nil(select(2, client.kyt:submit(parameters)).kept)
      assert.equal(1, #requests)
      assert.is_true(select(2, client.kyt:submit(parameters)).kept)
      assert.equal(count, store:space("kyt"):count())
      local kept = 0
      for _ in client.kyt:kept() do
        kept = kept + 1
      end
      assert.equal(1, kept)
    end
  end)

  it("is not found by one of another kind with the same customId and parameters", function()
    local client, requests = start({}, submitted, success { requestId = "r2" })
    assert.equal("r1", client.kyt:submit_custom_score(parameters).requestId)
    assert.equal("r2", assert(client.kyt:submit(parameters)).requestId)
    assert.equal(2, #requests)
    assert.equal("r1", client.kyt:submit_custom_score(parameters).requestId)
  end)

  it("is found after the key was replaced", function()
    start({}, submitted).kyt:submit(parameters)
    local client, requests = start({ access_key = "the-next-key-of-it" }, submitted)
    assert.is_true(select(2, client.kyt:submit(parameters)).kept)
    assert.equal(0, #requests)
  end)

  it("is neither sent again nor answered from after an option has changed", function()
    start({}, submitted).kyt:submit(parameters)
    local changed = {
      { { extend = { risk_type = { "new" } } } },
      { { transaction_parameters = { custom_id = "clientRef" } } },
      { {}, { extra = { body = { depth = 3 } } } },
    }
    for _, case in ipairs(changed) do
      local client, requests = start(case[1], submitted)
      local transaction, err = client.kyt:submit(parameters, case[2])
      assert.is_nil(transaction)
      assert.same({ "invalid_argument", false, 0 }, { err.kind, err.sent, #requests })
      assert.matches("client.kyt:kept()", err.message, 1, true)
      assert.equal("r1", select(2, client.kyt:kept()()).requestId)
    end
  end)

  it("is the same in every spelling of its parameters", function()
    local plain = { network = "eth", hash = "0xabc", outputAddress = ADDRESS, direction = "in" }
    start({}, submitted).kyt:submit(plain)
    local checksummed = "0x52908400098527886E0F7030069857D2E4169EE7"
    for _, change in ipairs {
      { network = "ethereum" },
      { hash = "0xABC" },
      { hash = "0XabC" },
      { hash = "abc" },
      { outputAddress = checksummed },
    } do
      local other = tables.merge(plain, change)
      local client, requests = start({}, submitted)
      local transaction = assert(client.kyt:submit(other))
      assert.same({ "r1", 0 }, { transaction.requestId, #requests })
    end
  end)

  it("is the same in every spelling of any address of a custom score", function()
    local client, requests =
      start({ endpoints = { kyt_custom_score = { method = "POST", path = "/custom" } } }, submitted)
    for _, name in ipairs { "address", "toAddress", "token_address" } do
      for _, spelling in ipairs { ADDRESS, "0x52908400098527886E0F7030069857D2E4169EE7" } do
        assert(client.kyt:submit_custom_score { network = "eth", [name] = spelling })
      end
    end
    assert.equal(3, #requests)
  end)

  it("is the same in every spelling of its addresses, also on an added network", function()
    local function spelled(receiver, token)
      return { network = "added", hash = "0xabc", outputAddress = receiver, tokenContractAddress = token }
    end
    local function is_sent_once(list, added)
      local client, requests = start({ extend = { network = added } }, submitted)
      for _, receiver in ipairs(list) do
        for _, token in ipairs(list) do
          assert(client.kyt:submit(spelled(receiver, token)))
        end
      end
      assert.equal(1, #requests, list[1])
      assert(client.kyt:forget(spelled(list[1], list[1])))
    end
    for network, list in pairs(spellings) do
      is_sent_once(list, { added = network })
    end
    is_sent_once(spellings.tron, { "added" }) -- the form of its addresses is not known
  end)

  it("is not answered from when its address has come onto a deny list", function()
    start({}, submitted).kyt:submit(parameters)
    local path = temporary.path "deny.csv"
    local file = assert(io.open(path, "w"))
    file:write("address,network\n", ADDRESS, ",eth\n")
    file:close()
    local client, requests = start({ lists = { deny = { path } } }, submitted)
    local transaction, err = client.kyt:submit(parameters)
    assert.is_nil(transaction)
    assert.same({ "list", 0 }, { err.kind, #requests })
  end)

  it("is not submitted while a deny list cannot be searched", function()
    local path = temporary.path "deny.csv"
    temporary.write(path, "address\n0x" .. ("1"):rep(40) .. "\n")
    local client, requests = start({ lists = { deny = { path } } }, submitted)
    calls.state_of(client).lists.decide = function()
      return decisions.unknown(errors.new("list", "the deny list cannot be searched"))
    end
    local transaction, err = client.kyt:submit(parameters)
    assert.same({ nil, "list", 0 }, { transaction, err.kind, #requests })
  end)

  it("is denied when its address has come onto a deny list while the result was awaited", function()
    local path = temporary.path "deny.csv"
    temporary.write(path, "address,network\n0x12ae66cdc592e10b60f9097a7b0d3c59fce29876,eth\n")
    local lists = { deny = { path }, interval = 0.1 }
    local client = riskscreen.sandbox.client { kyt_delay = 0.15, polling = { first = 0.02 }, lists = lists }
    local given = { network = "eth", hash = "0x5f16", outputAddress = ADDRESS }
    local result, err
    riskscreen.run(function()
      local task = riskscreen.spawn(function()
        result, err = client.kyt:screen(given)
      end)
      riskscreen.sleep(0.01)
      temporary.write(
        path .. ".new",
        "address,network\n0x12ae66cdc592e10b60f9097a7b0d3c59fce29876,eth\n" .. ADDRESS .. ",eth\n"
      )
      assert(os.rename(path .. ".new", path))
      task:await()
    end)
    assert.is_nil(result)
    assert.same({ "list", true }, { err.kind, err.sent })
    assert.equal(
      "block",
      riskscreen.score_policy({ rules = { { any = true, action = "allow" } } }):decide(result, err).action
    )
    assert.equal(1003, err.last.status)
  end)

  it("is not sent for another spelling of a denied address on an added network", function()
    local path = temporary.path "deny.csv"
    local file = assert(io.open(path, "w"))
    file:write "address\nMVDCJxZd4A5VUm81QmeC1qf6U7LASsr7LT\n"
    file:close()
    local added = { newltc = "ltc" }
    local client, requests = start({ lists = { deny = { path } }, extend = { network = added } }, submitted)
    local old_spelling = "3P14159f73E4gFr7JterCCQh9QjiTjiZrG"
    local _, err = client.kyt:submit { network = "newltc", hash = "0x5f16", outputAddress = old_spelling }
    assert.same({ "list", 0 }, { err.kind, #requests })
  end)

  it("is not sent for a denied address where a custom score names no network, or another text", function()
    local path = temporary.path "deny.csv"
    local legacy = "3P14159f73E4gFr7JterCCQh9QjiTjiZrG"
    temporary.write(path, "address,network\n" .. ADDRESS .. ",eth\nMVDCJxZd4A5VUm81QmeC1qf6U7LASsr7LT,ltc\n")
    local custom = { kyt_custom_score = { method = "POST", path = "/custom" } }
    local client, requests = start({ lists = { deny = path }, endpoints = custom }, submitted)
    for _, given in ipairs {
      { outputAddress = ADDRESS },
      { outputAddress = ADDRESS:upper():gsub("^0X", "0x"), network = "ETH" },
      { outputAddress = legacy, network = 2 },
    } do
      local _, err = client.kyt:submit_custom_score(given, { address_check = false })
      assert.same({ "list", 0 }, { err.kind, #requests })
    end
    assert(client.kyt:submit_custom_score { outputAddress = "0x12ae66cdc592e10b60f9097a7b0d3c59fce29876" })
  end)

  it("keeps no result whose status is not final", function()
    local options = { immediate_results = true }
    local client = start(options, success { status = 2001, risks = json.empty_array() })
    assert.is_true(select(2, client.kyt:submit(parameters)).uncertain)
    local again, requests = start(options, submitted)
    assert.is_true(select(2, again.kyt:submit(parameters)).uncertain)
    assert.equal(0, #requests)
    -- 0.9.0 has kept such a result as finished.
    local key, value = store:space("kyt"):each()()
    local entry = json.decode(value)
    entry.state, entry.result = "finished", { status = 2001, risks = json.empty_array() }
    store:space("kyt"):put(key, json.encode(entry))
    local transaction, err = again.kyt:submit(parameters)
    assert.is_nil(transaction)
    assert.equal("api", err.kind)
  end)

  it("keeps a null strategy of its result", function()
    local policy = riskscreen.score_policy { rules = { { score_below = "30", action = "allow" } } }
    local answer = done { dirData = { ["in"] = { ["1"] = json.null }, out = {} } }
    local live = start({}, answer).kyt:submit(parameters):await()
    local kept = start({}).kyt:submit(parameters):await()
    assert.same({ "unknown", "unknown" }, { policy:decide(live).action, policy:decide(kept).action })
    assert.same(live, kept)
  end)

  it("leaves a damaged entry to be reported, with its reason", function()
    start({}, submitted).kyt:submit(parameters)
    local key = store:space("kyt"):each()()
    store:space("kyt"):put(key, '{"state":"submitted"')
    local client, requests = start({}, submitted)
    local transaction, err = client.kyt:submit(parameters)
    assert.is_nil(transaction)
    assert.same({ "storage", "damaged", 0 }, { err.kind, err.reason, #requests })
  end)
end)
