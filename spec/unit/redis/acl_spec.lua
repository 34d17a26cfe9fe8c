-- The rights of docs/redis.md, each in a real redis-server: they are enough, and none is superfluous.
local redis_server = require "spec.support.redis"
local riskscreen = require "riskscreen"

local describe_if = redis_server.is_installed() and describe or pending

describe_if("a user of Redis with the documented rights", function()
  local server, redis

  -- Connects as a user with the rights that the page gives for this use.
  local function connect(use)
    local rights = redis_server.documented_rights(use)
    server = redis_server.start { "user limited on >secret ~{riskscreen}:* " .. rights }
    redis = riskscreen.redis.new { url = server.url, username = "limited", password = "secret" }
    return rights
  end

  after_each(function()
    redis:close()
    redis_server.stop_all()
  end)

  local function check(rights)
    assert.same({}, redis_server.unused_rights(server, rights))
    assert.equal("*0", server:command "ACL LOG")
    local _, err = redis:call("GET", "other")
    assert.equal("auth", err.reason)
    _, err = redis:call "FLUSHALL"
    assert.equal("auth", err.reason)
  end

  it("has a shared rate limit", function()
    local rights = connect "a rate limit"
    local client = riskscreen.sandbox.client { rate_limit = { rate = 1000, daily = 10, shared = { redis = redis } } }
    assert.is_nil(client:screen({ address = "0x" .. ("1"):rep(40), network = "eth" }).error)
    local limiter = require("riskscreen.call.limiter.shared_bucket").new(
      { rate = 1000, shared = { redis = redis } },
      os.time,
      os.time,
      "name"
    )
    limiter:refused(1)
    assert.is_false(limiter:status().away)
    client:close()
    check(rights)
  end)

  it("has a store", function()
    local rights = connect "a store"
    local store = assert(riskscreen.store.redis { redis = redis })
    local space = store:space "things"
    local release = assert(store:lock "run")
    assert.is_true(space:put("a", "1", 0.01))
    assert.is_true(space:put("b", "1"))
    while space:get "a" do
      riskscreen.sleep(0.01)
    end
    assert.equal(1, space:count())
    assert.equal("b", space:each()())
    assert.is_number(store:time())
    assert.is_true(space:delete "b")
    release()
    store:close()
    check(rights)
  end)

  it("has a queue", function()
    local rights = connect "a queue"
    local queue = riskscreen.queue.new { redis = redis, claim_after = 1 }
    local address = "0x" .. ("1"):rep(40)
    local client, service = riskscreen.sandbox.client { retry = false }
    service:fault { kind = "invalid-json", count = 1 }
    assert(queue:add("file", { { address = address, network = "eth" }, { address = address, network = "eth" } }))
    riskscreen.run(function()
      service:fault { kind = "delay", delay = 0.5, count = 2 }
      local worker = queue:worker { client = client }
      assert(worker:run { drain = true })
    end)
    assert.equal(2, #queue:dead())
    assert.equal(2, queue:requeue())
    assert.equal(2, queue:worker({ client = client }):run { drain = true })
    local results = assert(queue:results(nil, 0.1))
    assert.equal(2, #results)
    assert.equal(1, queue:forget { results[1] })
    assert.equal(1, queue:forget(results[2].position))
    assert.equal(2, assert(queue:status()).done)
    client:close()
    check(rights)
  end)
end)
