-- Transactions that a store keeps: a program that starts again goes on waiting and submits none twice.
local recorder = require "spec.support.recorder"
local riskscreen = require "riskscreen"
local temporary = require "spec.support.temporary"

local parameters = { network = "eth", hash = "0xabc", direction = "in" }
local quick = { first = 0.001, growth = 1, jitter = 0, ceiling = 0.001, deadline = 5 }
local endpoints = { kyt_result = { method = "GET", path = "/results" } }

local function success(data)
  return recorder.reply(200, { success = true, code = 1, data = data })
end

local submitted = success { requestId = "r1" }
local done = success { requestId = "r1", status = 1003, maxScore = "12.5" }

describe("a client with a store", function()
  local path, store

  -- A program that starts again: a new client, and the store opened anew.
  local function start(...)
    if store then
      store:close()
    end
    store = assert(riskscreen.store.sqlite(path))
    local transport, requests = recorder.new(...)
    local client = riskscreen.new {
      transport = transport,
      access_key = "key-of-the-keep-specs",
      polling = quick,
      endpoints = endpoints,
      store = store,
      identity = "recorder",
      account = "specs",
      retry = false,
    }
    return client, requests
  end

  before_each(function()
    path = temporary.path "transactions.db"
  end)

  after_each(function()
    if store then
      store:close()
    end
    store = nil
    temporary.clean()
  end)

  local function kept_of(client)
    local list = {}
    for _, transaction, err in client.kyt:kept() do
      list[#list + 1] = transaction and transaction.requestId or err.kind
    end
    return list
  end

  it("goes on waiting after it has started again, without a second submission", function()
    local client, requests = start(submitted)
    assert.equal("r1", client.kyt:submit(parameters).requestId)
    assert.equal(1, #requests)
    client, requests = start(done)
    local transaction, other = client.kyt:submit(parameters)
    assert.is_true(other.kept)
    assert.equal(0, #requests)
    assert.equal("12.5", transaction:await().maxScore)
    assert.equal("GET", requests[1].method)
    assert.equal(1, #requests)
  end)

  it("lists what it keeps, until it is forgotten", function()
    local client = start(submitted)
    client.kyt:submit(parameters)
    client = start(done)
    assert.same({ "r1" }, kept_of(client))
    for _, transaction in client.kyt:kept() do
      assert.equal("12.5", transaction:await().maxScore)
      assert(transaction:forget())
    end
    assert.same({}, kept_of(client))
  end)

  it("lists the others beside an entry that is damaged or of another program", function()
    local client = start(submitted)
    client.kyt:submit(parameters)
    client.kyt:submit { network = "eth", hash = "0x5f17", customId = "another" }
    local space = store:space "kyt"
    local own, value = space:each()()
    for key, content in pairs {
      ["deposit-17"] = "allow",
      [("0"):rep(64)] = "{",
      [own .. "1"] = value:sub(1, -2),
      [own .. "2"] = value:gsub('"requestId":"[^"]*"', '"requestId":{}'),
    } do
      assert(space:put(key, content))
    end
    local list = kept_of(start(done))
    table.sort(list)
    assert.same({ "r1", "r1", "storage", "storage", "storage", "storage" }, list)
    for _, transaction, err in start(done).kyt:kept() do
      assert.is_truthy(transaction or err.reason == "damaged" and err.message:find("entry", 1, true))
      if transaction then
        assert(start(done).kyt:resume(transaction:ticket()):forget())
        break
      end
    end
  end)

  it("does not send a transaction whose submission was interrupted", function()
    local client = start(function()
      error("the program ends here", 0)
    end)
    pcall(client.kyt.submit, client.kyt, parameters)
    local requests
    client, requests = start(submitted)
    local transaction, err = client.kyt:submit(parameters)
    assert.is_nil(transaction)
    assert.same({ "timeout", true, true, false }, { err.kind, err.sent, err.uncertain, err.retryable })
    assert.equal(0, #requests)
    assert.same({ "timeout" }, kept_of(client))
    assert(client.kyt:forget(parameters))
    assert.equal("r1", client.kyt:submit(parameters).requestId)
  end)

  it("names a submission whose outcome is not known, so that it can be looked up and forgotten", function()
    for _, custom_id in ipairs { "payout-4", false } do
      local own = { network = "eth", hash = "0xabc", direction = "in", customId = custom_id or nil }
      local client = start(recorder.failure("network", "reset", true))
      client.kyt:submit(own)
      client = start(submitted)
      local _, transaction, err = client.kyt:kept()()
      assert.is_nil(transaction)
      local wanted = { kind = "transaction", network = "eth", hash = "0xabc", customId = custom_id or nil }
      assert.same(wanted, err.submission)
      assert.matches(custom_id or "0xabc", err.message, 1, true)
      assert.same(wanted, select(2, client.kyt:submit(own)).submission)
      assert(client.kyt:forget(custom_id and err.submission or own, { kind = err.submission.kind }))
      assert.same({}, kept_of(client))
    end
  end)

  it("names a submission whose kept result cannot be used", function()
    local client = start(success { requestId = "r1", status = 1003, maxScore = "7" })
    client.kyt:submit(parameters)
    local space = store:space "kyt"
    local key, value = space:each()()
    assert(space:put(key, (value:gsub('"maxScore":"7"', '"maxScore":{}'))))
    local _, transaction, err = start().kyt:kept()()
    assert.is_nil(transaction)
    assert.same({ "protocol", "0xabc" }, { err.kind, err.submission.hash })
  end)

  it("does not send one whose answer was lost", function()
    local client = start(recorder.failure("network", "reset", true))
    local _, err = client.kyt:submit(parameters)
    assert.is_true(err.uncertain)
    local requests
    client, requests = start(submitted)
    _, err = client.kyt:submit(parameters)
    assert.is_true(err.uncertain)
    assert.equal(0, #requests)
  end)

  it("sends one again that the service refused", function()
    local client = start(recorder.reply(400, { success = false, code = 2, msg = "no" }))
    local _, err = client.kyt:submit(parameters)
    assert.is_nil(err.uncertain)
    client = start(submitted)
    assert.equal("r1", client.kyt:submit(parameters).requestId)
  end)

  it("keeps a result that came with the answer to the submission", function()
    local client = start(success { requestId = "r1", status = 1003, maxScore = "7" })
    client.kyt:submit(parameters)
    local requests
    client, requests = start()
    assert.equal("7", client.kyt:submit(parameters):await().maxScore)
    assert.equal(0, #requests)
  end)

  it("forgets a transaction whose result `screen` has returned", function()
    local client = start(submitted, done, submitted, done)
    assert.equal("12.5", client.kyt:screen(parameters).maxScore)
    assert.same({}, kept_of(client))
  end)

  local function answer_of(id)
    return success { requestId = id }
  end

  it("forgets a submission by every handle of it, and no later one", function()
    local ways = {
      function(_, transaction)
        return transaction
      end,
      function(client, transaction)
        return client.kyt:resume(transaction:ticket())
      end,
      function(client)
        return select(2, client.kyt:kept()())
      end,
      function(client)
        return client.kyt:submit(parameters)
      end,
    }
    for number, way in ipairs(ways) do
      local client, requests = start(answer_of "r1", answer_of "r2")
      local handle = way(client, client.kyt:submit(parameters))
      assert.same({ "r1" }, kept_of(client), number)
      assert.is_true(handle:forget())
      assert.same({}, kept_of(client), number)
      assert.equal("r2", client.kyt:submit(parameters).requestId)
      assert.is_true(handle:forget())
      assert.equal("r2", client.kyt:submit(parameters).requestId)
      assert.equal(2, #requests, number)
      client.kyt:forget(parameters)
    end
  end)

  it("says where a submission cannot be forgotten", function()
    local client = start(answer_of "r1")
    local transaction = client.kyt:submit(parameters)
    local resumed = client.kyt:resume(transaction:ticket())
    store.backend.apply = function()
      return nil, riskscreen.errors.new("storage", "the disk is full", { reason = "full" })
    end
    for _, handle in ipairs { transaction, resumed } do
      local forgotten, err = handle:forget()
      assert.is_nil(forgotten)
      assert.equal("full", err.reason)
    end
    assert.same({ "r1" }, kept_of(client))
  end)

  it("does not forget a submission by the ticket of another one", function()
    local client = start(answer_of "r1", answer_of "r2")
    local first = client.kyt:submit(parameters)
    client.kyt:submit { network = "eth", hash = "0xdef", direction = "in" }
    assert.is_true(client.kyt:resume(first:ticket()):forget())
    assert.same({ "r2" }, kept_of(client))
  end)

  it("keeps the submission that was made while the answer to an earlier, forgotten one was awaited", function()
    local calls = 0
    store = assert(riskscreen.store.sqlite(path))
    local client
    client = riskscreen.new {
      access_key = "key-of-the-keep-specs",
      store = store,
      identity = "recorder",
      account = "specs",
      transport = function()
        calls = calls + 1
        local own = "r" .. calls
        if calls == 1 then
          client.kyt:forget(parameters)
          assert.equal("r2", client.kyt:submit(parameters).requestId)
        end
        return answer_of(own)
      end,
    }
    local first = client.kyt:submit(parameters)
    assert.equal("r1", first.requestId)
    first:forget()
    assert.same({ "r2" }, kept_of(client))
  end)

  it("submits a transaction once, however its hash is written", function()
    local client, requests = start(submitted)
    for _, hash in ipairs { "0xabc", "0XABC", "abc", "aBC" } do
      local transaction = assert(client.kyt:submit { network = "eth", hash = hash, direction = "in" })
      assert.equal("r1", transaction.requestId)
    end
    assert.equal(1, #requests)
  end)

  it("refuses another transaction with a customId that is kept", function()
    local client = start(submitted)
    client.kyt:submit { network = "eth", hash = "0xabc", direction = "in", customId = "mine" }
    local transaction, err = client.kyt:submit { network = "eth", hash = "0xdef", direction = "in", customId = "mine" }
    assert.is_nil(transaction)
    assert.same({ "invalid_argument", "customId", false }, { err.kind, err.field, err.sent })
  end)

  -- The store makes, or does not make, the change of a number, and its reply is lost.
  local function lose_reply(number, is_made)
    local backend, count = store.backend, 0
    local apply = backend.apply
    function backend:apply(...)
      count = count + 1
      if count ~= number then
        return apply(self, ...)
      elseif is_made then
        apply(self, ...)
      end
      return nil, riskscreen.errors.new("storage", "the connection is lost", { uncertain = true, sent = true })
    end
  end

  it("submits once when the store's reply about it is lost", function()
    for _, is_made in ipairs { true, false } do
      local client, requests = start(submitted)
      lose_reply(1, is_made)
      assert.equal("r1", assert(client.kyt:submit(parameters)).requestId)
      assert.equal(1, #requests)
      assert.same({ "r1" }, kept_of(client))
      client.kyt:forget(parameters)
    end
  end)

  it("forgets a submission although the store's reply about its outcome was lost", function()
    for _, is_made in ipairs { true, false } do
      local client = start(submitted)
      lose_reply(2, is_made)
      assert(client.kyt:submit(parameters)):forget()
      assert.same({}, kept_of(client))
    end
  end)

  it("has sent nothing, for sure, when nobody knows what the store has", function()
    local client, requests = start(submitted)
    lose_reply(1, true)
    local get, is_first = store.backend.get, {}
    store.backend.get = function(self, space, key, ...)
      if key:find " " and not is_first[key] then
        is_first[key] = true
        return nil, riskscreen.errors.new("storage", "no connection", { uncertain = true, sent = true })
      end
      return get(self, space, key, ...)
    end
    local transaction, err = client.kyt:submit(parameters)
    assert.is_nil(transaction)
    assert.same({ "storage", false, 0 }, { err.kind, err.sent, #requests })
    assert.is_nil(err.uncertain)
  end)

  it("forgets a submission that is not sent because the client is closed", function()
    local client
    client = riskscreen.new {
      transport = function()
        error "nothing is sent"
      end,
      access_key = "key-of-the-keep-specs",
      store = assert(riskscreen.store.sqlite(path)),
      identity = "recorder",
      account = "specs",
      on = {
        request = function()
          client:close()
        end,
      },
    }
    local _, err = client.kyt:submit(parameters)
    assert.same({ "cancelled", false }, { err.kind, err.sent })
    assert.is_nil(err.uncertain)
    assert.same({}, kept_of((start(submitted))))
  end)

  it("refuses values that no JSON has, as a client without a store does", function()
    local client, requests = start(submitted)
    local endless = {}
    endless[1] = endless
    for _, value in ipairs { print, coroutine.create(function() end), endless } do
      local transaction, err = client.kyt:submit(parameters, { extra = { body = { odd = value } } })
      assert.is_nil(transaction)
      assert.same({ "invalid_argument", false }, { err.kind, err.sent })
      err = select(2, client.kyt:forget({ odd = value }, { kind = "custom_score" }))
      assert.equal("invalid_argument", err.kind)
    end
    assert.equal(0, #requests)
    assert.same({}, kept_of(client))
  end)

  it("sends nothing when the store fails", function()
    local client, requests = start(submitted)
    store.backend.apply = function()
      return nil, riskscreen.errors.new("storage", "the disk is full", { reason = "full" })
    end
    local transaction, err = client.kyt:submit(parameters)
    assert.is_nil(transaction)
    assert.equal("full", err.reason)
    assert.equal(0, #requests)
    local forgotten, problem = client.kyt:forget(parameters)
    assert.is_nil(forgotten)
    assert.equal("full", problem.reason)
  end)
end)
