-- An inbox whose events are in a store: a program that starts again knows them.
local json = require "riskscreen.json"
local riskscreen = require "riskscreen"
local temporary = require "spec.support.temporary"

local TYPE = "getTxHashCustomRiskScore"

describe("an inbox with a store", function()
  local path, store, handled

  local function start(handler)
    if store then
      store:close()
    end
    store = assert(riskscreen.store.sqlite(path))
    handled = {}
    return riskscreen.webhook.inbox {
      accept_unauthenticated = true,
      store = store,
      account = "specs",
      on_failure = function() end,
      handlers = {
        [TYPE] = handler or function(event)
          handled[#handled + 1] = event.webhookId
        end,
      },
    }
  end

  local function deliver(inbox, id, data)
    local body = json.encode {
      webhookId = id,
      eventType = TYPE,
      timestamp = "2026-01-01 00:00:00",
      data = data or { requestId = "r-" .. id, maxScore = "1", status = 1003 },
    }
    return (inbox:deliver("POST", {}, body))
  end

  before_each(function()
    path = temporary.path "inbox.db"
  end)

  after_each(function()
    store:close()
    store = nil
    temporary.clean()
  end)

  it("handles an event once, also over a restart", function()
    local inbox = start()
    assert.equal(200, deliver(inbox, "w1"))
    assert.equal(200, deliver(inbox, "w1"))
    assert.same({ "w1" }, handled)
    inbox = start()
    assert.equal(200, deliver(inbox, "w1"))
    assert.same({}, handled)
    assert.equal(200, deliver(inbox, "w2"))
    assert.same({ "w2" }, handled)
  end)

  it("is apart from the inbox of another account with the same store", function()
    local inbox = start()
    deliver(inbox, "w1", { requestId = "r1", maxScore = "42", status = 1003 })
    local other = riskscreen.webhook.inbox { accept_unauthenticated = true, store = store, account = "other" }
    local status, _, body = other:deliver(
      "POST",
      {},
      json.encode {
        webhookId = "w1",
        eventType = TYPE,
        timestamp = "2026-01-01 00:00:00",
        data = { requestId = "r2", maxScore = "1", status = 1003 },
      }
    )
    assert.same({ 200, { received = true } }, { status, json.decode(body) })
    local client = riskscreen.new { transport = print, access_key = "key-of-the-durable-specs", inbox = other }
    assert.equal("timeout", select(2, client.kyt:await("r1", { timeout = 0 })).kind)
    assert.equal("1", client.kyt:await("r2", { timeout = 0 }).maxScore)
  end)

  it("takes an event again whose handler failed", function()
    local inbox = start(function()
      error "the database is down"
    end)
    assert.equal(500, deliver(inbox, "w1"))
    inbox = start()
    assert.equal(200, deliver(inbox, "w1"))
    assert.same({ "w1" }, handled)
  end)

  it("gives an event that came early to a transaction that is awaited after a restart", function()
    deliver(start(), "w1", { requestId = "r1", maxScore = "42", status = 1003 })
    local inbox = start()
    local client = riskscreen.new {
      transport = function()
        error "nothing is to be sent"
      end,
      access_key = "key-of-the-durable-specs",
      inbox = inbox,
    }
    local result, other = client.kyt:await("r1", { timeout = 1 })
    assert.equal("42", result.maxScore)
    assert.equal("webhook", other.source)
  end)

  it("answers 503 when the store fails, so that the event comes again", function()
    local inbox = start()
    store.backend.apply = function()
      return nil, riskscreen.errors.new("storage", "the disk is full", { reason = "full" })
    end
    assert.equal(503, deliver(inbox, "w1"))
    assert.same({}, handled)
  end)

  it("takes an event again that is forgotten while it is looked up", function()
    local now = 0
    store = riskscreen.store.memory {
      clock = function()
        now = now + 1 -- each look at the clock may be the one at which the entry has expired
        return now
      end,
    }
    for ttl = 1, 10 do
      local inbox = riskscreen.webhook.inbox {
        accept_unauthenticated = true,
        store = store,
        account = "specs",
        remember = { ttl = ttl },
      }
      for _ = 1, 20 do
        assert.equal(200, deliver(inbox, "w" .. ttl, {}))
      end
    end
  end)
end)

describe("an inbox with a store of many machines", function()
  it("ends a wait with the failure of a look", function()
    local inbox_store, looks = riskscreen.store.memory(), 0
    function inbox_store.is_shared()
      return true
    end
    local inbox = riskscreen.webhook.inbox { accept_unauthenticated = true, store = inbox_store, account = "specs" }
    local place = getmetatable(inbox.waiters).__index
    local look = place.look
    finally(function()
      place.look = look
    end)
    function place.look()
      looks = looks + 1
      error("the store is closed", 0)
    end
    local client = riskscreen.new { transport = print, access_key = "key-of-the-durable-specs", inbox = inbox }
    for _, wait in ipairs {
      function(...)
        return client.kyt:await(...)
      end,
      function(...)
        return riskscreen.run(client.kyt.await, client.kyt, ...)
      end,
    } do
      local began, before = os.time(), looks
      local ok, failure = pcall(wait, "r1", { timeout = 5 })
      assert.is_false(ok)
      assert.matches("the store is closed", failure)
      assert.is_true(os.time() - began < 4)
      assert.equal(1, looks - before)
    end
  end)
end)
