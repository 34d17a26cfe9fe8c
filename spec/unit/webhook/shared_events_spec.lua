-- Inboxes of several programs that share a store in Redis.
local program = require "spec.support.program"
local redis_server = require "spec.support.redis"
local riskscreen = require "riskscreen"

local describe_if = redis_server.is_installed() and describe or pending

describe_if("programs that share an inbox in Redis", function()
  local server

  before_each(function()
    server = redis_server.start()
  end)

  after_each(redis_server.stop_all)

  local function run(...)
    local started, lines = program.start("inbox_program", { server.url, ... }), {}
    for line in started:lines() do
      lines[#lines + 1] = line
    end
    started:close()
    return lines
  end

  it("give an event that one receives to the one that awaits it", function()
    local waiting = program.start("inbox_program", { server.url, "await", "r1" })
    assert.equal("waits", waiting:read())
    assert.same({ "handled w1", "200" }, run("deliver", "w1", "r1"))
    assert.equal("42 webhook", waiting:read())
    waiting:close()
  end)

  it("give an event that came early to the one that awaits it later", function()
    run("deliver", "w1", "r1")
    run("deliver", "w2", "r2")
    assert.same({ "waits", "42 webhook" }, run("await", "r1"))
  end)

  it("give an event to one that does not wait at all", function()
    local store = assert(riskscreen.store.redis(server.url))
    local client = riskscreen.new {
      transport = function()
        error "nothing is to be sent"
      end,
      access_key = "key-of-the-shared-events",
      inbox = riskscreen.webhook.inbox { accept_unauthenticated = true, store = store, account = "specs" },
    }
    assert.equal("timeout", select(2, client.kyt:await("r1", { timeout = 0 })).kind)
    run("deliver", "w1", "r1")
    assert.equal("42", assert(client.kyt:await("r1", { timeout = 0 })).maxScore)
    store:close()
  end)

  it("handle an event once", function()
    assert.same({ "handled w1", "200" }, run("deliver", "w1", "r1"))
    assert.same({ "200" }, run("deliver", "w1", "r1"))
  end)

  it("forget a handled event after its time", function()
    local store = assert(riskscreen.store.redis(server.url))
    local handled = 0
    local inbox = riskscreen.webhook.inbox {
      accept_unauthenticated = true,
      store = store,
      account = "specs",
      remember = { ttl = 0.05 },
      handlers = {
        ["*"] = function()
          handled = handled + 1
        end,
      },
    }
    local body = '{"webhookId":"w1","eventType":"x","timestamp":"2026-01-01 00:00:00","data":{}}'
    local function deliver()
      return (inbox:deliver("POST", {}, body))
    end
    assert.equal(200, deliver())
    repeat
      assert.equal(200, deliver())
      riskscreen.sleep(0.01)
    until handled == 2
    store:close()
  end)

  it("answer 503 while Redis is away, so that the event comes again", function()
    local store = assert(riskscreen.store.redis(server.url))
    local failures = 0
    local inbox = riskscreen.webhook.inbox {
      accept_unauthenticated = true,
      store = store,
      account = "specs",
      on_failure = function()
        failures = failures + 1
      end,
    }
    server:kill()
    local body = '{"webhookId":"w1","eventType":"x","timestamp":"2026-01-01 00:00:00","data":{"requestId":"r1"}}'
    assert.equal(503, (inbox:deliver("POST", {}, body)))
    assert.equal(1, failures)
    server:start()
    repeat
      riskscreen.sleep(0.02)
      local status = inbox:deliver("POST", {}, body)
    until status == 200
    store:close()
  end)
end)
