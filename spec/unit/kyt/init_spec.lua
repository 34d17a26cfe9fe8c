local json = require "riskscreen.json"
local recorder = require "spec.support.recorder"
local riskscreen = require "riskscreen"

local KEY = "key-of-the-kyt-specs"
local ADDRESS = "0x52908400098527886e0f7030069857d2e4169ee7"
local parameters = { network = "eth", hash = "0xabc", outputAddress = ADDRESS, direction = "in", customId = "mine" }
local quick = { first = 0.001, growth = 1, jitter = 0, ceiling = 0.001, deadline = 5 }
local result_endpoint = { kyt_result = { method = "GET", path = "/results" } }

local function success(data)
  return recorder.reply(200, { success = true, code = 1, data = data })
end

local submitted = success { requestId = "r1" }
local waiting = success { requestId = "r1", status = 1001 }
local done = success { requestId = "r1", status = 1003, maxScore = "12.5" }

local function new_client(options, ...)
  local transport, requests = recorder.new(...)
  local all = { transport = transport, access_key = KEY, polling = quick }
  for name, value in pairs(options or {}) do
    all[name] = value
  end
  return riskscreen.new(all), requests
end

local function new_inbox(options)
  options = options or { accept_unauthenticated = true }
  return riskscreen.webhook.inbox(options)
end

local function deliver(inbox, id, data)
  local body = json.encode {
    webhookId = id,
    eventType = "getTxHashCustomRiskScore",
    timestamp = "2026-01-01 00:00:00",
    data = data,
  }
  return (inbox:deliver("POST", {}, body))
end

-- Reports misuse at the line of the caller, two below this call.
local function raises_at(line, message, call)
  local ok, failure = pcall(call)
  assert.is_false(ok)
  assert.matches("init_spec.lua:" .. line .. ": ", failure, 1, true)
  assert.matches(message, failure, 1, true)
end

local function here()
  return debug.getinfo(2, "l").currentline
end

describe("the result of a transaction", function()
  it("goes to nobody where transactions of two accounts have its requestId", function()
    local inbox = new_inbox()
    local transactions = {}
    for index, account in ipairs { "a", false } do -- one of them names none
      local client = new_client({ inbox = inbox, account = account or nil, identity = "recorder" }, submitted)
      transactions[index] = client.kyt:submit { network = "eth", hash = "0xabc" .. index }
    end
    deliver(inbox, "w1", { requestId = "r1", status = 1003, maxScore = "0" })
    for _, transaction in ipairs(transactions) do
      assert.equal("timeout", select(2, transaction:await { timeout = 0.01 }).kind)
    end
  end)

  it("comes from no inbox that a client of another account has already", function()
    local inbox = new_inbox()
    for _, account in ipairs { "a", "a" } do
      new_client { inbox = inbox, account = account, identity = "recorder" }
    end
    assert.has_error(function()
      new_client { inbox = inbox, account = "b", identity = "recorder" }
    end, "inbox has the events of the account 'a', and this client's account is 'b'")
  end)

  it("comes from no inbox of another account", function()
    for _, store in ipairs { false, riskscreen.store.memory() } do
      local inbox = new_inbox { accept_unauthenticated = true, store = store or nil, account = "a" }
      local message = "inbox has the events of the account 'a', and this client's account is 'b'"
      assert.has_error(function()
        new_client { inbox = inbox, account = "b", identity = "recorder" }
      end, message)
      new_client { inbox = inbox, account = "a", identity = "recorder" }
      new_client { inbox = inbox }
    end
  end)

  it("keeps a null strategy for the policy, and no other null member", function()
    local policy = riskscreen.score_policy { rules = { { score_below = "30", action = "allow" } } }
    local data = { requestId = "r1", status = 1003, maxScore = "1", customId = json.null }
    data.dirData = { ["in"] = { ["1"] = json.null }, out = {} }
    local client = new_client({ endpoints = result_endpoint }, submitted, success(data))
    local result, response = client.kyt:screen { network = "eth", hash = "0xabc" }
    assert.is_nil(result.customId)
    assert.equal("unknown", policy:decide(result, response).action)
  end)
end)

describe("a result that comes with the answer to the submission", function()
  local risks = { { riskLevel = "high", riskType = "scam", riskSource = "Community" } }

  local function answer(extra)
    local data = { hash = "0xABC", network = "ethereum", time = 1700000000000, status = 1003, risks = risks }
    for name, value in pairs(extra or {}) do
      data[name] = value
    end
    return success(data)
  end

  it("ends the wait at once, without a source of later results", function()
    local client, requests = new_client(nil, answer())
    local transaction = client.kyt:submit { network = "eth", hash = "0xabc" }
    assert.is_nil(transaction.requestId)
    for _ = 1, 2 do
      local result, response = transaction:await { timeout = 0 }
      assert.same({ 1003, risks }, { result.status, result.risks })
      assert.same({ "submission", 200 }, { response.source, response.status })
    end
    local ticket, err = transaction:ticket()
    assert.is_nil(ticket)
    assert.equal("unsupported", err.kind)
    assert.equal(1, #requests)
  end)

  it("is returned by screen", function()
    for _, options in ipairs { { endpoints = result_endpoint }, { immediate_results = true } } do
      local client, requests = new_client(options, answer())
      local result, response = client.kyt:screen { network = "eth", hash = "0xabc" }
      assert.same({ risks, "submission", 1 }, { result.risks, response.source, #requests })
    end
  end)

  it("has a final status, or none", function()
    local function submit(status)
      local client = new_client({ immediate_results = true }, answer { status = status })
      return client.kyt:submit { network = "eth", hash = "0xabc" }
    end
    for _, status in ipairs { 1003, "", json.null } do
      assert.is_table((submit(status)))
    end
    for status, kind in pairs { [1001] = "protocol", [200] = "api", [2001] = "api", FAIL = "api", [false] = "api" } do
      local transaction, err = submit(status)
      assert.is_nil(transaction)
      assert.same({ kind, true }, { err.kind, err.uncertain }, tostring(status))
      assert.same(risks, err.last.risks)
    end
  end)

  it("is decided by a policy for addresses and by one for transactions", function()
    local score_policy = riskscreen.score_policy { rules = { { score_below = "30", action = "allow" } } }
    local by_risks_alone =
      riskscreen.score_policy { rules = { { any = true, action = "allow" } }, absent_score = "none" }
    local policies = { riskscreen.policy(), by_risks_alone }
    local cases = {
      { answer(), "block" },
      { answer { risks = json.empty_array() }, "allow" },
      { answer { risks = { { riskLevel = "odd", riskType = "scam" } } }, "unknown" },
    }
    for _, case in ipairs(cases) do
      local client = new_client({ immediate_results = true }, case[1])
      for _, policy in ipairs(policies) do
        assert.equal(case[2], policy:decide(client.kyt:screen { network = "eth", hash = "0xabc" }).action)
      end
    end
    local client = new_client({ immediate_results = true }, answer { status = 2000, risks = json.empty_array() })
    assert.equal("unknown", score_policy:decide(client.kyt:screen { network = "eth", hash = "0xabc" }).action)
    for _, policy in ipairs(policies) do
      assert.equal("unknown", policy:decide(nil, riskscreen.sandbox and client.kyt:await("r1")).action)
    end
  end)

  it("about another transaction is an error", function()
    for _, extra in ipairs { { hash = "0xabd" }, { network = "tron" }, { customId = "theirs" } } do
      local client = new_client({ immediate_results = true }, answer(extra))
      local result, err = client.kyt:screen { network = "eth", hash = "0xabc", customId = "mine" }
      assert.is_nil(result)
      assert.same({ "protocol", true, true }, { err.kind, err.sent, err.uncertain })
    end
  end)

  it("makes a poll needless when it comes with a requestId", function()
    local client, requests = new_client({ endpoints = result_endpoint }, answer { requestId = "r1" })
    assert.same(risks, client.kyt:screen({ network = "eth", hash = "0xabc" }).risks)
    assert.equal(1, #requests)
  end)
end)

describe("a fresh submission", function()
  it("does not take an outcome that was kept for its requestId", function()
    local inbox = new_inbox()
    local earlier = success { requestId = "r1", status = 1003, maxScore = "99" }
    local client, requests =
      new_client({ inbox = inbox, endpoints = result_endpoint }, submitted, earlier, submitted, done)
    local first = client.kyt:submit(parameters)
    assert.equal("99", first:await().maxScore)
    deliver(inbox, "w1", { requestId = "r1", customId = "mine", status = 1003, maxScore = "98" })
    local second = client.kyt:submit(parameters)
    assert.equal("12.5", second:await().maxScore)
    assert.same({ "99", 4 }, { first:await().maxScore, #requests })
  end)
end)

describe("a resumed transaction", function()
  it("does not take a result about another hash", function()
    local client = new_client({ endpoints = result_endpoint }, submitted)
    local ticket = client.kyt:submit(parameters):ticket()
    for hash, expected in pairs { ["0xabd"] = "protocol", ["0xABC"] = 1003 } do
      local other = success { requestId = "r1", status = 1003, maxScore = "1", hash = hash }
      local process = new_client({ endpoints = result_endpoint }, other)
      local result, err = process.kyt:resume(ticket):await()
      assert.equal(expected, result and result.status or err.kind)
    end
    local resumed, err = client.kyt:resume '{"version":1,"requestId":"r1","hash":7}'
    assert.is_nil(resumed)
    assert.equal("invalid_argument", err.kind)
  end)
end)

describe("a custom score", function()
  local endpoints = {
    kyt_custom_score = { method = "POST", path = "/score" },
    kyt_custom_score_result = { method = "GET", path = "/score-results" },
    kyt_result = { method = "GET", path = "/results" },
  }

  it("is submitted once and polled at its own endpoint", function()
    local client, requests = new_client({ endpoints = endpoints }, submitted, waiting, done)
    local result = client.kyt:screen_custom_score { network = "eth", hash = "0xabc", strategy = 7 }
    assert.equal("12.5", result.maxScore)
    assert.same({ "/score", "/score-results?requestId=r1" }, { requests[1].target, requests[3].target })
    assert.equal(7, json.decode(requests[1].body).strategy)
    assert.is_false(requests[1].replay)
  end)

  it("may be polled where the results of transactions are", function()
    local some = { kyt_custom_score = endpoints.kyt_custom_score, kyt_result = endpoints.kyt_result }
    local client, requests = new_client({ endpoints = some }, submitted, done)
    assert.equal("12.5", client.kyt:screen_custom_score({ hash = "0xabc" }).maxScore)
    assert.equal("/results?requestId=r1", requests[2].target)
  end)

  it("is resumed as one, by ticket and by requestId", function()
    local client, requests = new_client({ endpoints = endpoints }, submitted, done)
    local ticket = client.kyt:submit_custom_score({ hash = "0xabc" }):ticket()
    assert.equal("12.5", client.kyt:resume(ticket):await().maxScore)
    local other, polls = new_client({ endpoints = endpoints }, done)
    assert.equal("12.5", other.kyt:await("r1", { kind = "custom_score" }).maxScore)
    assert.same(
      { "/score-results?requestId=r1", "/score-results?requestId=r1" },
      { requests[2].target, polls[1].target }
    )
  end)

  it("needs its path", function()
    local client, requests = new_client({ endpoints = result_endpoint }, submitted)
    local transaction, err = client.kyt:submit_custom_score { hash = "0xabc" }
    assert.is_nil(transaction)
    assert.same({ "unsupported", 0 }, { err.kind, #requests })
    assert.matches("endpoints.kyt_custom_score ", err.message, 1, true)
  end)
end)

describe("client.kyt:submit", function()
  it("sends the transaction once and returns it with its identifiers", function()
    local client, requests = new_client(nil, submitted)
    local transaction = client.kyt:submit(parameters)
    assert.same({ "r1", "mine" }, { transaction.requestId, transaction.customId })
    assert.equal(1, #requests)
    assert.same(parameters, json.decode(requests[1].body))
    assert.is_false(requests[1].replay)
  end)

  it("sends the customId under the configured name", function()
    local client, requests = new_client({ transaction_parameters = { custom_id = "clientRef" } }, submitted)
    assert.equal("mine", client.kyt:submit(parameters).customId)
    assert.equal("mine", json.decode(requests[1].body).clientRef)
    assert.is_nil(json.decode(requests[1].body).customId)
  end)

  it("returns an error for wrong parameters and sends nothing", function()
    local client, requests = new_client(nil, submitted)
    local transaction, err = client.kyt:submit { network = "etherum", hash = "0x1" }
    assert.is_nil(transaction)
    assert.same({ "invalid_argument", "network", nil, 0 }, { err.kind, err.field, err.uncertain, #requests })
  end)

  local fates = {
    { "was cut off", recorder.failure("network", "cut", true), true },
    { "got no answer in time", recorder.failure("timeout", "late", true), true },
    { "got an answer that is no HTTP", recorder.failure("protocol", "garbage", true), true },
    { "was answered 500", recorder.reply(500), true },
    { "was answered 504 by a proxy", recorder.page(504, "<html>"), true },
    { "was answered 408", recorder.reply(408), true },
    { "was answered 202", recorder.reply(202), true },
    { "was answered by a page", recorder.page(200, "<html>"), true },
    { "was answered without a requestId", success {}, true },
    { "was answered with an empty requestId", success { requestId = "" }, true },
    { "was answered with half an envelope", recorder.reply(200, { data = { requestId = "r1" } }), true },
    { "was answered 400", recorder.reply(400), nil },
    { "was answered 401", recorder.reply(401), nil },
    { "was answered 403", recorder.page(403, "<html>"), nil },
    { "was answered 404", recorder.reply(404), nil },
    { "was answered 429", recorder.reply(429), nil },
    { "was refused", recorder.reply(200, { success = false, code = 5, msg = "no" }), nil },
  }
  for _, fate in ipairs(fates) do
    it(("that %s is %s, and not repeated"):format(fate[1], fate[3] and "uncertain" or "certain"), function()
      local client, requests = new_client(nil, fate[2], submitted)
      local transaction, err = client.kyt:submit(parameters)
      assert.is_nil(transaction)
      assert.equal(fate[3], err.uncertain)
      assert.equal(1, #requests)
    end)
  end

  it("sends a request again that was never sent", function()
    local client, requests = new_client(nil, recorder.failure("network", "refused", false), submitted)
    assert.equal("r1", client.kyt:submit(parameters).requestId)
    assert.equal(2, #requests)
  end)

  it("is certain when no attempt was sent", function()
    local client = new_client({ retry = { base_delay = 0 } }, recorder.failure("network", "refused", false))
    local transaction, err = client.kyt:submit(parameters)
    assert.is_nil(transaction)
    assert.is_nil(err.uncertain)
    assert.same({ false, 3 }, { err.sent, err.attempts })
  end)

  it("shows the access key nowhere in the transaction, nor in the inbox", function()
    local inbox = new_inbox()
    local client = new_client({ endpoints = result_endpoint, inbox = inbox }, submitted)
    local seen = {}
    local function search(value)
      assert.is_true(type(value) ~= "string" or not value:find(KEY, 1, true))
      if type(value) == "table" and not seen[value] then
        seen[value] = true
        for key, member in pairs(value) do
          search(key)
          search(member)
        end
      end
    end
    local transaction = client.kyt:submit(parameters)
    search(transaction)
    search(inbox)
  end)

  it("raises misuse at the caller's line", function()
    local client = new_client(nil, submitted)
    raises_at(here() + 1, "parameters must be a table", function()
      client.kyt:submit "0xabc"
    end)
    raises_at(here() + 1, "with a colon", function()
      client.kyt.submit(parameters)
    end)
    raises_at(here() + 1, "unknown option 'timeou'", function()
      client.kyt:submit(parameters, { timeou = 1 })
    end)
  end)

  it("leaves the raw answer to client:call", function()
    local client = new_client(nil, submitted)
    assert.same({ requestId = "r1" }, (client:call("screenTransaction", parameters)))
  end)
end)

describe("a polled result", function()
  it("is returned when its status is final", function()
    local client, requests = new_client({ endpoints = result_endpoint }, submitted, waiting, waiting, done)
    local result, response = client.kyt:submit(parameters):await()
    assert.same({ "12.5", 1003 }, { result.maxScore, result.status })
    assert.same({ "poll", 3, 200, 4 }, { response.source, response.attempts, response.status, #requests })
    assert.matches("^/results%?requestId=r1$", requests[4].target)
  end)

  it("may be polled at a path with the requestId", function()
    local endpoints = { kyt_result = { method = "GET", path = "/results/{requestId}" } }
    local client, requests = new_client({ endpoints = endpoints }, submitted, done)
    assert.equal(1003, client.kyt:submit(parameters):await().status)
    assert.equal("/results/r1", requests[2].target)
  end)

  it("is final with any of the configured statuses", function()
    local client = new_client({ endpoints = result_endpoint, final_statuses = { 1001 } }, submitted, waiting, done)
    assert.equal(1001, client.kyt:submit(parameters):await().status)
  end)

  it("is polled by one of its waiters and returned to all", function()
    local client, requests = new_client({ endpoints = result_endpoint }, submitted, waiting, waiting, done)
    local transaction = client.kyt:submit(parameters)
    local function wait()
      return transaction:await()
    end
    local values = riskscreen.gather { wait, wait, wait }
    assert.is_true(values[1] ~= nil and values[1] == values[2] and values[2] == values[3])
    assert.equal(4, #requests)
  end)

  it("is polled by another waiter when the polling one gives up", function()
    local hanging = false
    local client = new_client({ endpoints = result_endpoint }, submitted, function()
      hanging = true
      riskscreen.sleep(3600)
    end, done)
    local transaction = client.kyt:submit(parameters)
    local first, second = riskscreen.run(function()
      local impatient = riskscreen.spawn(transaction.await, transaction, { timeout = 0.05 })
      while not hanging do
        riskscreen.sleep(0.001)
      end
      local patient = riskscreen.spawn(transaction.await, transaction, { timeout = 5 })
      return impatient:await(), patient:await()
    end)
    assert.is_nil(first)
    assert.equal(1003, second.status)
  end)

  it("is no longer polled when the waiting task is cancelled", function()
    local client = new_client({ endpoints = result_endpoint }, submitted, function()
      riskscreen.sleep(3600)
    end)
    local transaction = client.kyt:submit(parameters)
    local _, err = riskscreen.run(function()
      local waiter = riskscreen.spawn(transaction.await, transaction)
      riskscreen.sleep(0.01)
      waiter:cancel()
      return waiter:await()
    end)
    assert.equal("cancelled", err.kind)
  end)

  it("is not polled after the client was closed", function()
    local client = new_client({ endpoints = result_endpoint }, submitted, done)
    local transaction = client.kyt:submit(parameters)
    client:close()
    local result, err = transaction:await()
    assert.is_nil(result)
    assert.equal("cancelled", err.kind)
  end)
end)

describe("the call option extra", function()
  it("is for the submission and not for its polls", function()
    local client, requests = new_client({ endpoints = result_endpoint }, submitted, done)
    client.kyt:screen(parameters, { extra = { body = { depth = 3 }, query = { v = 2 } } })
    assert.equal(3, json.decode(requests[1].body).depth)
    assert.matches("?v=2", requests[1].target, 1, true)
    assert.equal("/results?requestId=r1", requests[2].target)
  end)
end)

describe("a result polled by POST", function()
  it("is asked for once in a poll that fails, unless the endpoint is idempotent", function()
    for _, idempotent in ipairs { false, true } do
      local post = { method = "POST", path = "/results", idempotent = idempotent or nil }
      local options = { endpoints = { kyt_result = post }, retry = { base_delay = 0 }, polling = { first = 60 } }
      local client, requests = new_client(options, recorder.reply(500))
      client.kyt:await("r1", { timeout = 0.05 })
      assert.equal(idempotent and 3 or 1, #requests)
    end
  end)
end)

describe("a result by webhook", function()
  it("ends the wait", function()
    local inbox = new_inbox()
    local client = new_client({ inbox = inbox }, submitted)
    local transaction = client.kyt:submit(parameters)
    local values = riskscreen.gather {
      function()
        return transaction:await()
      end,
      function()
        return deliver(inbox, "w1", { requestId = "r1", customId = "mine", status = 1003, maxScore = "3" })
      end,
    }
    assert.same({ "3", 200 }, { values[1].maxScore, values[2] })
  end)

  it("is kept when it comes before the answer to the submission", function()
    local inbox = new_inbox()
    local client = new_client({ inbox = inbox }, function()
      deliver(inbox, "w1", { requestId = "r1", status = 1003, maxScore = "3" })
      return submitted
    end)
    local result, response = client.kyt:screen(parameters)
    assert.same({ "3", "webhook" }, { result.maxScore, response.source })
  end)

  it("is kept for a transaction that is not awaited yet", function()
    local inbox = new_inbox()
    local client = new_client({ inbox = inbox }, submitted)
    local transaction = client.kyt:submit(parameters)
    deliver(inbox, "w1", { requestId = "r1", status = 1003, maxScore = "3" })
    assert.equal("3", transaction:await({ timeout = 0 }).maxScore)
    assert.equal("3", client.kyt:await("r1", { timeout = 0 }).maxScore)
  end)

  it("ends the wait, and the poll under way", function()
    local inbox = new_inbox()
    local client = new_client({ inbox = inbox, endpoints = result_endpoint }, submitted, function()
      deliver(inbox, "w1", { requestId = "r1", status = 1003, maxScore = "3" })
      riskscreen.sleep(3600)
    end)
    local result, response = riskscreen.run(function()
      return client.kyt:screen(parameters)
    end)
    assert.same({ "3", "webhook" }, { result.maxScore, response.source })
  end)

  it("changes nothing after a polled result", function()
    local inbox = new_inbox()
    local client = new_client({ inbox = inbox, endpoints = result_endpoint }, submitted, done)
    local transaction = client.kyt:submit(parameters)
    assert.equal("12.5", transaction:await().maxScore)
    deliver(inbox, "w1", { requestId = "r1", status = 1003, maxScore = "0" })
    assert.equal("12.5", transaction:await().maxScore)
  end)

  it("is the first of two different ones", function()
    local inbox = new_inbox()
    local client = new_client({ inbox = inbox }, submitted)
    local transaction = client.kyt:submit(parameters)
    deliver(inbox, "w1", { requestId = "r1", status = 1003, maxScore = "90" })
    deliver(inbox, "w2", { requestId = "r1", status = 1003, maxScore = "0" })
    assert.equal("90", transaction:await({ timeout = 0 }).maxScore)
  end)

  it("may come before one that is not final", function()
    local inbox = new_inbox()
    local client = new_client({ inbox = inbox }, submitted)
    local transaction = client.kyt:submit(parameters)
    deliver(inbox, "w2", { requestId = "r1", status = 1003, maxScore = "90" })
    deliver(inbox, "w1", { requestId = "r1", status = 1001 })
    assert.equal("90", transaction:await({ timeout = 0 }).maxScore)
  end)

  it("is fetched when the inbox has `fetch`", function()
    local client, requests
    local inbox = new_inbox {
      fetch = function(request_id)
        return client.kyt:await(request_id, { timeout = 1 })
      end,
    }
    local options = { inbox = inbox, endpoints = result_endpoint, polling = { first = 60 } }
    client, requests = new_client(options, submitted, done)
    local transaction = client.kyt:submit(parameters)
    assert.equal(200, deliver(inbox, "w1", { requestId = "r1", status = 1003, maxScore = "0" }))
    assert.same({ "12.5", 2 }, { transaction:await({ timeout = 0 }).maxScore, #requests })
  end)

  it("resolves an uncertain submission by its customId", function()
    local inbox = new_inbox()
    local client, requests = new_client({ inbox = inbox }, recorder.failure("network", "cut", true))
    local transaction, err = client.kyt:submit(parameters)
    assert.is_nil(transaction)
    assert.is_true(err.uncertain)
    local resumed = client.kyt:resume(err.ticket)
    deliver(inbox, "w1", { requestId = "r9", customId = "mine", status = 1003, maxScore = "3" })
    assert.same({ "3", 1 }, { resumed:await({ timeout = 0 }).maxScore, #requests })
  end)
end)

describe("without polling and without an inbox", function()
  it("await fails at once and names the options to set", function()
    local client = new_client(nil, submitted)
    local result, err = client.kyt:submit(parameters):await()
    assert.is_nil(result)
    assert.equal("unsupported", err.kind)
    assert.matches("set endpoints.kyt_result = { method = …, path = … }", err.message, 1, true)
    assert.matches("inbox = riskscreen.webhook.inbox", err.message, 1, true)
    assert.equal("unsupported", select(2, client.kyt:await "r1").kind)
  end)

  it("screen sends nothing", function()
    local client, requests = new_client(nil, submitted)
    local result, err = client.kyt:screen(parameters)
    assert.is_nil(result)
    assert.same({ "unsupported", false, 0 }, { err.kind, err.sent, #requests })
  end)

  it("polling cannot find a transaction by its customId", function()
    local client = new_client({ endpoints = result_endpoint }, submitted)
    local transaction = client.kyt:resume '{"version":1,"customId":"mine"}'
    local _, err = transaction:await()
    assert.equal("unsupported", err.kind)
  end)
end)

describe("client.kyt:screen", function()
  it("submits once and returns the result", function()
    local client, requests = new_client({ endpoints = result_endpoint }, submitted, waiting, done)
    assert.equal("12.5", client.kyt:screen(parameters).maxScore)
    assert.equal(3, #requests)
  end)

  it("ends within its timeout, the submission included", function()
    local client, requests = new_client({ endpoints = result_endpoint }, submitted, waiting)
    local result, err = client.kyt:screen(parameters, { timeout = 0.05 })
    assert.is_nil(result)
    assert.same({ "timeout", "r1" }, { err.kind, err.request_id })
    assert.is_true(requests[1].timeout <= 0.05)
  end)

  it("ends within the client's timeout, however long results may be awaited", function()
    local time = require("riskscreen.runtime.virtual").new()
    local options =
      { endpoints = result_endpoint, runtime = time, timeout = 10, polling = { first = 3, deadline = 600 } }
    local client = new_client(options, submitted, waiting)
    local err = time.tasks.run(function()
      return select(2, client.kyt:screen(parameters))
    end)
    assert.same({ "timeout", "r1", 10 }, { err.kind, err.request_id, time.now() })
    time.tasks.run(function()
      client.kyt:screen(parameters, { timeout = 100 })
    end)
    assert.equal(110, time.now())
  end)

  it("applies its options to the submission and to every poll", function()
    local traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    local client, requests = new_client({ endpoints = result_endpoint }, submitted, waiting, done)
    local headers = { ["X-Case"] = "7" }
    client.kyt:screen(parameters, { timeout = 4, attempt_timeout = 2, traceparent = traceparent, headers = headers })
    assert.equal(3, #requests)
    for _, request in ipairs(requests) do
      assert.same({ traceparent, "7" }, { request.headers.traceparent, request.headers["X-Case"] })
      assert.is_true(request.timeout <= 2)
    end
  end)

  it("applies its retry to the submission and to every poll", function()
    local refused = recorder.failure("network", "refused", false)
    local client, requests = new_client({ endpoints = result_endpoint }, refused, refused, submitted, refused, done)
    local retry = { attempts = 3, base_delay = 0 }
    assert.equal("12.5", client.kyt:screen(parameters, { retry = retry }).maxScore)
    local _, err = new_client({ endpoints = result_endpoint }, refused).kyt:screen(parameters, { retry = false })
    assert.same({ 5, 1 }, { #requests, err.attempts })
  end)

  it("applies its priority", function()
    local time = require("riskscreen.runtime.virtual").new()
    local order = {}
    local client = new_client({
      endpoints = result_endpoint,
      runtime = time,
      timeout = 60,
      rate_limit = { rate = 1, burst = 1 },
    }, function(request)
      order[#order + 1] = json.decode(request.body).hash
      return recorder.reply(400)
    end)
    time.tasks.run(function()
      for _, hash in ipairs { "first", "low", "normal", "high" } do
        time.tasks.spawn(function()
          local options = hash ~= "first" and { priority = hash } or nil
          client.kyt:screen({ network = "eth", hash = hash, outputAddress = ADDRESS, direction = "in" }, options)
        end)
      end
    end)
    assert.same({ "first", "high", "normal", "low" }, order)
  end)

  it("returns the error of the submission", function()
    local client = new_client({ endpoints = result_endpoint }, recorder.failure("timeout", "late", true))
    local _, err = client.kyt:screen(parameters)
    assert.same({ "timeout", true }, { err.kind, err.uncertain })
  end)

  it("never allows anything but a final result", function()
    local policy = riskscreen.score_policy { rules = { { score_below = "50", action = "allow" } } }
    local function decide(reply, timeout)
      local client = new_client({ endpoints = result_endpoint }, submitted, reply)
      return policy:decide(client.kyt:screen(parameters, { timeout = timeout or 0.02 })).action
    end
    assert.equal("allow", decide(done, 10))
    local zero = { requestId = "r1", status = 1003, maxScore = "0" }
    for name, value in pairs { requestId = "r2", status = 1004, maxScore = "?" } do
      local wrong = { requestId = zero.requestId, status = zero.status, maxScore = zero.maxScore }
      wrong[name] = value
      assert.equal("unknown", decide(success(wrong)))
      wrong[name] = nil
      assert.equal("unknown", decide(success(wrong)))
    end
    assert.equal("unknown", decide(recorder.failure("network", "cut", true)))
    assert.equal("unknown", decide(success(nil)))
  end)
end)

describe("a ticket", function()
  it("resumes a transaction in another process", function()
    local client = new_client({ endpoints = result_endpoint }, submitted)
    local ticket = client.kyt:submit(parameters):ticket()
    local other, requests = new_client({ endpoints = result_endpoint }, done)
    local transaction = other.kyt:resume(ticket)
    assert.same({ "r1", "mine" }, { transaction.requestId, transaction.customId })
    assert.equal("12.5", transaction:await().maxScore)
    assert.equal(1, #requests)
  end)

  for _, ticket in ipairs {
    "",
    "x",
    "{}",
    "[]",
    '{"version":2,"requestId":"r1"}',
    '{"version":1}',
    '{"version":1,"requestId":5}',
    '{"version":1,"requestId":""}',
    '{"version":1,"requestId":"r1","at":"5"}',
    '{"version":1,"requestId":"r1","kind":"other"}',
    '{"version":1,"requestId":"r1","hash":5}',
  } do
    it("is not '" .. ticket .. "'", function()
      local transaction, err = new_client(nil, submitted).kyt:resume(ticket)
      assert.is_nil(transaction)
      assert.same({ "invalid_argument", "ticket" }, { err.kind, err.field })
    end)
  end
end)

describe("client.kyt:await", function()
  it("polls at once for a request of any process", function()
    local client, requests = new_client({ endpoints = result_endpoint, polling = { first = 60 } }, done)
    assert.equal("12.5", client.kyt:await("r1").maxScore)
    assert.equal(1, #requests)
  end)

  it("returns an error for an invalid requestId", function()
    local client = new_client({ endpoints = result_endpoint }, done)
    for _, id in ipairs { "", "a\nb", 5 } do
      local _, err = client.kyt:await(id)
      assert.same({ "invalid_argument", "requestId" }, { err.kind, err.field })
    end
  end)

  it("raises misuse at the caller's line", function()
    local client = new_client({ endpoints = result_endpoint }, submitted)
    local transaction = client.kyt:submit(parameters)
    raises_at(here() + 1, "timeout must be a number", function()
      transaction:await { timeout = "long" }
    end)
    raises_at(here() + 1, "options must be a table such as { timeout = 5 } (got a number)", function()
      transaction:await(5)
    end)
    raises_at(here() + 1, "with a colon", function()
      transaction.await { timeout = 5 }
    end)
    raises_at(here() + 1, "unknown option", function()
      client.kyt:await("r1", { deadline = 5 })
    end)
  end)
end)
