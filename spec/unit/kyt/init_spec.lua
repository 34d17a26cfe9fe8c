local json = require "riskscreen.json"
local recorder = require "spec.support.recorder"
local riskscreen = require "riskscreen"

local KEY = "key-of-the-kyt-specs"
local parameters = { network = "eth", hash = "0xabc", outputAddress = "0x1", direction = "in", customId = "mine" }
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

describe("client.kyt:submit", function()
  it("sends the transaction once and gives a task with its identifiers", function()
    local client, requests = new_client(nil, submitted)
    local task = client.kyt:submit(parameters)
    assert.same({ "r1", "mine" }, { task.requestId, task.customId })
    assert.equal(1, #requests)
    assert.same(parameters, json.decode(requests[1].body))
    assert.is_false(requests[1].replay)
  end)

  it("sends the customId under the name that is configured", function()
    local client, requests = new_client({ transaction_parameters = { custom_id = "clientRef" } }, submitted)
    assert.equal("mine", client.kyt:submit(parameters).customId)
    assert.equal("mine", json.decode(requests[1].body).clientRef)
    assert.is_nil(json.decode(requests[1].body).customId)
  end)

  it("gives an error for wrong parameters and sends nothing", function()
    local client, requests = new_client(nil, submitted)
    local task, err = client.kyt:submit { network = "etherum", hash = "0x1" }
    assert.is_nil(task)
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
      local task, err = client.kyt:submit(parameters)
      assert.is_nil(task)
      assert.equal(fate[3], err.uncertain)
      assert.equal(1, #requests)
    end)
  end

  it("that never left is sent again", function()
    local client, requests = new_client(nil, recorder.failure("network", "refused", false), submitted)
    assert.equal("r1", client.kyt:submit(parameters).requestId)
    assert.equal(2, #requests)
  end)

  it("that never left, however often, is certain", function()
    local client = new_client({ retry = { base_delay = 0 } }, recorder.failure("network", "refused", false))
    local task, err = client.kyt:submit(parameters)
    assert.is_nil(task)
    assert.is_nil(err.uncertain)
    assert.same({ false, 3 }, { err.sent, err.attempts })
  end)

  it("shows the access key nowhere in its task", function()
    local client = new_client({ endpoints = result_endpoint }, submitted)
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
    search(client.kyt:submit(parameters))
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

describe("a result that is polled", function()
  it("comes when its status is final", function()
    local client, requests = new_client({ endpoints = result_endpoint }, submitted, waiting, waiting, done)
    local result, response = client.kyt:submit(parameters):await()
    assert.same({ "12.5", 1003 }, { result.maxScore, result.status })
    assert.same({ "poll", 3, 200, 4 }, { response.source, response.attempts, response.status, #requests })
    assert.matches("^/results%?requestId=r1$", requests[4].target)
  end)

  it("comes through a path that names the request", function()
    local endpoints = { kyt_result = { method = "GET", path = "/results/{requestId}" } }
    local client, requests = new_client({ endpoints = endpoints }, submitted, done)
    assert.equal(1003, client.kyt:submit(parameters):await().status)
    assert.equal("/results/r1", requests[2].target)
  end)

  it("comes with whichever statuses are said to be final", function()
    local client = new_client({ endpoints = result_endpoint, final_statuses = { 1001 } }, submitted, waiting, done)
    assert.equal(1001, client.kyt:submit(parameters):await().status)
  end)

  it("comes to everyone who awaits it, asked for by one of them", function()
    local client, requests = new_client({ endpoints = result_endpoint }, submitted, waiting, waiting, done)
    local task = client.kyt:submit(parameters)
    local function wait()
      return task:await()
    end
    local values = riskscreen.gather { wait, wait, wait }
    assert.is_true(values[1] ~= nil and values[1] == values[2] and values[2] == values[3])
    assert.equal(4, #requests)
  end)

  it("is asked for by another when the one who asked gives up", function()
    local hanging = false
    local client = new_client({ endpoints = result_endpoint }, submitted, function()
      hanging = true
      riskscreen.sleep(3600)
    end, done)
    local task = client.kyt:submit(parameters)
    local first, second = riskscreen.run(function()
      local impatient = riskscreen.spawn(task.await, task, 0.05)
      while not hanging do
        riskscreen.sleep(0.001)
      end
      local patient = riskscreen.spawn(task.await, task, 5)
      return impatient:await(), patient:await()
    end)
    assert.is_nil(first)
    assert.equal(1003, second.status)
  end)

  it("cancels the question of a task that is cancelled", function()
    local client = new_client({ endpoints = result_endpoint }, submitted, function()
      riskscreen.sleep(3600)
    end)
    local task = client.kyt:submit(parameters)
    local _, err = riskscreen.run(function()
      local waiter = riskscreen.spawn(task.await, task)
      riskscreen.sleep(0.01)
      waiter:cancel()
      return waiter:await()
    end)
    assert.equal("cancelled", err.kind)
  end)

  it("does not come after the client was closed", function()
    local client = new_client({ endpoints = result_endpoint }, submitted, done)
    local task = client.kyt:submit(parameters)
    client:close()
    local result, err = task:await()
    assert.is_nil(result)
    assert.equal("cancelled", err.kind)
  end)
end)

describe("a result that comes by webhook", function()
  it("ends the wait for it", function()
    local inbox = new_inbox()
    local client = new_client({ inbox = inbox }, submitted)
    local task = client.kyt:submit(parameters)
    local values = riskscreen.gather {
      function()
        return task:await()
      end,
      function()
        return deliver(inbox, "w1", { requestId = "r1", customId = "mine", status = 1003, maxScore = "3" })
      end,
    }
    assert.same({ "3", 200 }, { values[1].maxScore, values[2] })
  end)

  it("is kept when it comes before the submission is answered", function()
    local inbox = new_inbox()
    local client = new_client({ inbox = inbox }, function()
      deliver(inbox, "w1", { requestId = "r1", status = 1003, maxScore = "3" })
      return submitted
    end)
    local result, response = client.kyt:screen(parameters)
    assert.same({ "3", "webhook" }, { result.maxScore, response.source })
  end)

  it("is kept for a task that is not awaited yet", function()
    local inbox = new_inbox()
    local client = new_client({ inbox = inbox }, submitted)
    local task = client.kyt:submit(parameters)
    deliver(inbox, "w1", { requestId = "r1", status = 1003, maxScore = "3" })
    assert.equal("3", task:await(0).maxScore)
    assert.equal("3", client.kyt:await("r1", { timeout = 0 }).maxScore)
  end)

  it("ends the wait while a question hangs, and the question with it", function()
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

  it("changes nothing when polling was first", function()
    local inbox = new_inbox()
    local client = new_client({ inbox = inbox, endpoints = result_endpoint }, submitted, done)
    local task = client.kyt:submit(parameters)
    assert.equal("12.5", task:await().maxScore)
    deliver(inbox, "w1", { requestId = "r1", status = 1003, maxScore = "0" })
    assert.equal("12.5", task:await().maxScore)
  end)

  it("is the first of two that differ", function()
    local inbox = new_inbox()
    local client = new_client({ inbox = inbox }, submitted)
    local task = client.kyt:submit(parameters)
    deliver(inbox, "w1", { requestId = "r1", status = 1003, maxScore = "90" })
    deliver(inbox, "w2", { requestId = "r1", status = 1003, maxScore = "0" })
    assert.equal("90", task:await(0).maxScore)
  end)

  it("may overtake one that is not final", function()
    local inbox = new_inbox()
    local client = new_client({ inbox = inbox }, submitted)
    local task = client.kyt:submit(parameters)
    deliver(inbox, "w2", { requestId = "r1", status = 1003, maxScore = "90" })
    deliver(inbox, "w1", { requestId = "r1", status = 1001 })
    assert.equal("90", task:await(0).maxScore)
  end)

  it("is asked for where the inbox believes nothing", function()
    local client, requests
    local inbox = new_inbox {
      fetch = function(request_id)
        return client.kyt:await(request_id, { timeout = 1 })
      end,
    }
    local options = { inbox = inbox, endpoints = result_endpoint, polling = { first = 60 } }
    client, requests = new_client(options, submitted, done)
    local task = client.kyt:submit(parameters)
    assert.equal(200, deliver(inbox, "w1", { requestId = "r1", status = 1003, maxScore = "0" }))
    assert.same({ "12.5", 2 }, { task:await(0).maxScore, #requests })
  end)

  it("tells of a submission whose fate was not known, by its customId", function()
    local inbox = new_inbox()
    local client, requests = new_client({ inbox = inbox }, recorder.failure("network", "cut", true))
    local task, err = client.kyt:submit(parameters)
    assert.is_nil(task)
    assert.is_true(err.uncertain)
    local resumed = client.kyt:resume(err.ticket)
    deliver(inbox, "w1", { requestId = "r9", customId = "mine", status = 1003, maxScore = "3" })
    assert.same({ "3", 1 }, { resumed:await(0).maxScore, #requests })
  end)
end)

describe("without polling and without an inbox", function()
  it("awaiting fails at once and says what to set", function()
    local client = new_client(nil, submitted)
    local result, err = client.kyt:submit(parameters):await()
    assert.is_nil(result)
    assert.equal("unsupported", err.kind)
    assert.matches("set endpoints.kyt_result = { method = …, path = … }", err.message, 1, true)
    assert.matches("inbox = riskscreen.webhook.inbox", err.message, 1, true)
    assert.equal("unsupported", select(2, client.kyt:await "r1").kind)
  end)

  it("screening sends nothing", function()
    local client, requests = new_client(nil, submitted)
    local result, err = client.kyt:screen(parameters)
    assert.is_nil(result)
    assert.same({ "unsupported", false, 0 }, { err.kind, err.sent, #requests })
  end)

  it("polling alone cannot find a transaction by its customId", function()
    local client = new_client({ endpoints = result_endpoint }, submitted)
    local task = client.kyt:resume '{"version":1,"customId":"mine"}'
    local _, err = task:await()
    assert.equal("unsupported", err.kind)
  end)
end)

describe("client.kyt:screen", function()
  it("submits once and gives the result", function()
    local client, requests = new_client({ endpoints = result_endpoint }, submitted, waiting, done)
    assert.equal("12.5", client.kyt:screen(parameters).maxScore)
    assert.equal(3, #requests)
  end)

  it("waits as long as it is told, the submission included", function()
    local client, requests = new_client({ endpoints = result_endpoint }, submitted, waiting)
    local result, err = client.kyt:screen(parameters, { timeout = 0.05 })
    assert.is_nil(result)
    assert.same({ "timeout", "r1" }, { err.kind, err.request_id })
    assert.is_true(requests[1].timeout <= 0.05)
  end)

  it("gives the error of the submission", function()
    local client = new_client({ endpoints = result_endpoint }, recorder.failure("timeout", "late", true))
    local _, err = client.kyt:screen(parameters)
    assert.same({ "timeout", true }, { err.kind, err.uncertain })
  end)

  it("never lets anything but a final result be allowed", function()
    local policy = riskscreen.score_policy { rules = { { score_below = "50", action = "allow" } } }
    local function decide(...)
      local client = new_client({ endpoints = result_endpoint }, submitted, ...)
      return policy:decide(client.kyt:screen(parameters, { timeout = 0.02 })).action
    end
    assert.equal("allow", decide(done))
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
  it("takes a transaction up in another process", function()
    local client = new_client({ endpoints = result_endpoint }, submitted)
    local ticket = client.kyt:submit(parameters):ticket()
    local other, requests = new_client({ endpoints = result_endpoint }, done)
    local task = other.kyt:resume(ticket)
    assert.same({ "r1", "mine" }, { task.requestId, task.customId })
    assert.equal("12.5", task:await().maxScore)
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
  } do
    it("is not '" .. ticket .. "'", function()
      local task, err = new_client(nil, submitted).kyt:resume(ticket)
      assert.is_nil(task)
      assert.same({ "invalid_argument", "ticket" }, { err.kind, err.field })
    end)
  end
end)

describe("client.kyt:await", function()
  it("asks at once for a request that was submitted anywhere", function()
    local client, requests = new_client({ endpoints = result_endpoint, polling = { first = 60 } }, done)
    assert.equal("12.5", client.kyt:await("r1").maxScore)
    assert.equal(1, #requests)
  end)

  it("gives an error for what is no requestId", function()
    local client = new_client({ endpoints = result_endpoint }, done)
    for _, id in ipairs { "", "a\nb", 5 } do
      local _, err = client.kyt:await(id)
      assert.same({ "invalid_argument", "requestId" }, { err.kind, err.field })
    end
  end)

  it("raises misuse at the caller's line", function()
    local client = new_client({ endpoints = result_endpoint }, submitted)
    local task = client.kyt:submit(parameters)
    raises_at(here() + 1, "timeout must be a number", function()
      task:await "long"
    end)
    raises_at(here() + 1, "unknown option", function()
      client.kyt:await("r1", { deadline = 5 })
    end)
  end)
end)
