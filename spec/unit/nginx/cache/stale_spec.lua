-- The cache while the service fails: how long failures are kept, and which expired decisions are served.
local errors = require "riskscreen.errors"
local worlds = require "spec.support.cache_world"

local ADDRESS, NETWORK = "0x52908400098527886e0f7030069857d2e4169ee7", "eth"
local TTL = { allow = 100, review = 100, block = 100, unknown = 2 }

local world

before_each(function()
  world = worlds.new()
end)

local function answer_with(action)
  world.answer = function(address, network)
    return world.decision(action, address, network)
  end
end

-- The service fails, after some seconds.
local function fail(seconds, kind, action, status)
  world.answer = function(address, network, patience)
    world:sleep(math.min(seconds or 0, patience))
    local err = errors.new(kind or "network", "cannot be asked", { status = status })
    local decision = world.decision(action or "unknown", address, network, err.message)
    decision.error, decision.reasons[1].error = err, err
    return decision
  end
end

local function new_worker(settings)
  local all = { ttl = TTL }
  for name, value in pairs(settings or {}) do
    all[name] = value
  end
  return world:worker(all)
end

local function decide(cache, timeout)
  return world:call(cache.get, cache, ADDRESS, NETWORK, timeout)
end

local function seen(...)
  local decision, source = decide(...)
  return decision.action .. " " .. source
end

-- The same before the background fetch has run.
local function seen_at_once(cache)
  local decision, source = cache:get(ADDRESS, NETWORK)
  return decision.action .. " " .. source, decision
end

describe("a failure", function()
  it("is kept for a moment, in all workers, then the service is asked again", function()
    fail()
    local first, second = new_worker(), new_worker()
    assert.equal("unknown upstream", seen(first))
    world.time = world.time + 1.9
    assert.matches("^unknown", seen(first))
    assert.equal("unknown dict", seen(second))
    assert.equal("network", (decide(second)).error.kind)
    assert.equal(1, #world.asked)
    world.time = world.time + 0.1
    answer_with "allow"
    assert.equal("allow upstream", seen(second))
    assert.equal("allow dict", seen(first))
  end)

  it("is kept from the time when it is known, and not from the request on", function()
    fail(4, "server")
    local first, second = new_worker(), new_worker()
    assert.equal("unknown upstream", seen(first, 5))
    world.time = world.time + 1.9
    assert.matches("^unknown", seen(first, 5))
    assert.matches("^unknown", seen(second, 5))
    assert.equal(1, #world.asked)
    world.time = world.time + 0.1
    seen(first, 5)
    assert.equal(2, #world.asked)
  end)

  it("is kept with the action that the policy gives it", function()
    fail(0, "network", "review")
    local cache = new_worker()
    assert.equal("review upstream", seen(cache))
    world.time = world.time + 2
    answer_with "allow"
    assert.equal("allow upstream", seen(cache))
  end)

  it("for lack of time is not kept, because another caller may have more time", function()
    local first, second = new_worker(), new_worker()
    for _, kind in ipairs { "timeout", "cancelled", "rate_limited" } do
      fail(1, kind)
      assert.equal("unknown upstream", seen(first, 1))
    end
    answer_with "block"
    assert.equal("block upstream", seen(second, 3))
    assert.equal("block dict", seen(first, 1))
  end)

  it("is kept if the service itself has refused the request for its rate", function()
    fail(0, "rate_limited", "unknown", 429)
    local first, second = new_worker(), new_worker()
    assert.equal("unknown upstream", seen(first))
    assert.equal("unknown dict", seen(second))
  end)

  it("that says nothing about the service is not kept", function()
    for kind, source in pairs { invalid_argument = "invalid", unsupported = "upstream" } do
      fail(0, kind)
      local cache = new_worker()
      world.asked = {}
      assert.equal("unknown " .. source, seen(cache))
      for key in pairs(world.dict.entries) do
        assert.is_nil(key:match "entry", key)
      end
      assert.equal("unknown " .. source, seen(cache))
      assert.equal(2, #world.asked)
    end
  end)

  it("is not kept if its ttl is 0", function()
    fail()
    local cache = new_worker { ttl = { unknown = 0 } }
    assert.equal("unknown upstream", seen(cache))
    answer_with "allow"
    assert.equal("allow upstream", seen(cache))
  end)
end)

describe("an expired block", function()
  it("is served at once, marked as stale, while it is fetched in the background", function()
    answer_with "block"
    local cache = new_worker { stale = { block = 50 } }
    assert.is_false((decide(cache)).stale)
    world.time = world.time + 100
    answer_with "allow"
    local what, decision = seen_at_once(cache)
    assert.equal("block stale", what)
    assert.is_true(decision.stale)
    assert.is_true(decision.cached)
    assert.equal(1, #world.asked)
    world:run()
    assert.equal(2, #world.asked)
    assert.equal("allow lru", seen(cache))
  end)

  it("is not marked in the decision that a caller got before", function()
    answer_with "block"
    local cache = new_worker { stale = { block = 50 } }
    decide(cache)
    local before = decide(cache)
    world.time = world.time + 100
    decide(cache)
    assert.is_false(before.stale)
  end)

  it("is fetched once, however many callers it is served to", function()
    answer_with "block"
    local first, second = new_worker { stale = { block = 50 } }, new_worker { stale = { block = 50 } }
    decide(first)
    world.time = world.time + 100
    world.answer = function(address, network)
      world:sleep(1)
      return world.decision("block", address, network)
    end
    for _ = 1, 5 do
      assert.equal("block stale", (seen_at_once(first)))
      assert.equal("block stale", (seen_at_once(second)))
    end
    world:run()
    assert.equal(2, #world.asked)
    world.time = world.time + 3
    assert.matches("^block [ld]", seen(first))
    assert.matches("^block [ld]", seen(second))
    assert.equal(2, #world.asked)
  end)

  it("is served while the service fails, for as long as it may be, in all workers", function()
    answer_with "block"
    local first, second = new_worker { stale = { block = 50 } }, new_worker { stale = { block = 50 } }
    decide(first)
    fail()
    for _ = 1, 10 do
      world.time = world.time + (world.time < 1100 and 100 or 5)
      assert.equal("block stale", seen(first))
      assert.equal("block stale", seen(second))
    end
    world.time = world.time + 5
    assert.equal("unknown", (decide(first)).action)
    assert.equal("unknown", (decide(second)).action)
  end)

  it("does not make every caller ask a service that fails", function()
    answer_with "block"
    local cache = new_worker { stale = { block = 50 } }
    decide(cache)
    world.time = world.time + 100
    fail()
    for _ = 1, 20 do
      assert.equal("block stale", seen(cache))
      world.time = world.time + 0.1
    end
    assert.is_true(#world.asked <= 3)
  end)

  it("is dropped if its time as stale is 0", function()
    answer_with "block"
    local cache = new_worker { stale = { block = 0 } }
    decide(cache)
    world.time = world.time + 100
    fail()
    assert.equal("unknown upstream", seen(cache))
  end)

  it("is served if there is no timer to fetch it in", function()
    answer_with "block"
    local tries = 0
    local cache = new_worker {
      stale = { block = 50 },
      spawn = function()
        tries = tries + 1
        return nil, "too many"
      end,
    }
    decide(cache)
    for turn = 1, 3 do
      world.time = world.time + (turn == 1 and 100 or 3)
      assert.equal("block stale", seen(cache))
      assert.equal(turn, tries)
    end
  end)

  it("needs no second timer while it is fetched", function()
    answer_with "block"
    local timers = 0
    local cache = new_worker {
      lru = 0,
      stale = { block = 50 },
      spawn = function(work)
        timers = timers + 1
        world:thread(work)
      end,
    }
    decide(cache)
    world.time = world.time + 100
    world.answer = function(address, network)
      world:sleep(1)
      return world.decision("block", address, network)
    end
    world:run {
      function()
        for _ = 1, 5 do
          assert.equal("block stale", (seen_at_once(cache)))
          world:sleep(0.1)
        end
      end,
    }
    assert.same({ 1, 2 }, { timers, #world.asked })
  end)

  it("is fetched again a moment after nginx has dropped the timer", function()
    answer_with "block"
    local cache
    cache = new_worker {
      stale = { block = 50 },
      spawn = function()
        return true
      end,
    }
    decide(cache)
    answer_with "allow"
    world.time = world.time + 100
    assert.equal("block stale", seen(cache))
    cache.spawn = function(work)
      world:thread(work)
      return true
    end
    world.time = world.time + 1.9
    assert.equal("block stale", seen(cache))
    assert.equal(1, #world.asked)
    world.time = world.time + 0.1
    assert.equal("block stale", seen(cache))
    assert.equal("allow lru", seen(cache))
  end)

  it("outlives the failure that a worker without that block has kept", function()
    answer_with "block"
    local first, second = new_worker { stale = { block = 50 } }, new_worker { stale = { block = 50 } }
    decide(first)
    world.time = world.time + 100
    world.dict:evict "entry"
    fail()
    assert.equal("unknown upstream", seen(second))
    assert.equal("block stale", seen(first))
    assert.equal(2, #world.asked)
  end)

  it("is fetched again after fetch has raised an error", function()
    answer_with "block"
    local cache = new_worker { stale = { block = 50 } }
    decide(cache)
    world.time = world.time + 100
    world.answer = function()
      error("a bug", 0)
    end
    seen_at_once(cache)
    assert.has_error(function()
      world:run()
    end, "a bug")
    world.time = world.time + 3
    answer_with "allow"
    assert.equal("block stale", (seen_at_once(cache)))
    world:run()
    assert.equal("allow lru", seen(cache))
  end)
end)

describe("an expired verdict milder than a block", function()
  for _, action in ipairs { "allow", "review" } do
    it("is dropped: " .. action, function()
      answer_with(action)
      local cache = new_worker()
      decide(cache)
      world.time = world.time + 100
      fail()
      assert.equal("unknown upstream", seen(cache))
    end)

    it("is served if it may be, marked as stale, when the service has failed: " .. action, function()
      answer_with(action)
      local cache = new_worker { stale = { [action] = 50 } }
      decide(cache)
      world.time = world.time + 100
      fail()
      local decision, source = decide(cache)
      assert.same({ action, "stale", true }, { decision.action, source, decision.stale })
      assert.equal(2, #world.asked)
      world.time = world.time + 50
      assert.equal("unknown upstream", seen(cache))
    end)

    it("is replaced by the service's answer: " .. action, function()
      answer_with(action)
      local cache = new_worker { stale = { [action] = 50 } }
      decide(cache)
      world.time = world.time + 100
      answer_with "block"
      assert.equal("block upstream", seen(cache))
      world.time = world.time + 1
      assert.equal("block lru", seen(cache))
    end)
  end

  it("is not served if the policy gives the failure a worse action", function()
    answer_with "allow"
    local cache = new_worker { stale = { allow = 50 } }
    decide(cache)
    world.time = world.time + 100
    fail(0, "network", "block")
    assert.equal("block", (decide(cache)).action)
    world.time = world.time + 1
    assert.equal("block", (decide(cache)).action)
  end)

  it("is served for each failure to ask the service, and not for an answer that is not understood", function()
    local outages = { network = true, timeout = true, rate_limited = true, server = true, circuit_open = true }
    outages.cancelled = true
    for _, entry in ipairs(errors.kinds) do
      world = worlds.new()
      answer_with "allow"
      local first, second = new_worker { stale = { allow = 50 } }, new_worker { stale = { allow = 50 } }
      decide(first)
      decide(second)
      world.time = world.time + 100
      fail(0, entry.kind)
      local expected = outages[entry.kind] and "allow" or "unknown"
      assert.equal(expected, (decide(first)).action, entry.kind)
      assert.equal(expected, (decide(second)).action, entry.kind)
    end
  end)

  it("is not served when a value of the answer, or the answer of another lookup, is not understood", function()
    answer_with "allow"
    local first, second = new_worker { stale = { allow = 50 } }, new_worker { stale = { allow = 50 } }
    decide(first)
    decide(second)
    world.time = world.time + 100
    answer_with "unknown"
    assert.equal("unknown", (decide(first)).action)
    assert.equal("unknown", (decide(second)).action)
    world.time = world.time + 10
    fail()
    local timeout = world.answer
    world.answer = function(...)
      local decision = timeout(...)
      decision.errors = { risk = decision.error, entity = errors.new("protocol", "malformed") }
      return decision
    end
    assert.equal("unknown", (decide(first)).action)
  end)

  it("is not served by another worker when one of several lookups was not understood", function()
    answer_with "allow"
    local settings = { stale = { allow = 50 } }
    local first, second = new_worker(settings), new_worker(settings)
    decide(first)
    decide(second)
    world.time = world.time + 100
    fail()
    local timeout = world.answer
    world.answer = function(...)
      local decision = timeout(...)
      local network = errors.new("network", "cannot be asked")
      decision.error, decision.reasons[1].error = network, network
      decision.errors = { risk = network, entity = errors.new("protocol", "malformed") }
      return decision
    end
    assert.equal("unknown", (decide(first)).action)
    local decision = decide(second)
    assert.same({ "unknown", 2 }, { decision.action, #world.asked })
    assert.same({ "network", "protocol" }, { decision.errors.risk.kind, decision.errors.entity.kind })
  end)

  it("is served at the caller's deadline, and not to a later caller without asking", function()
    answer_with "allow"
    local cache = new_worker { stale = { allow = 50 } }
    decide(cache)
    world.time = world.time + 100
    fail(0.1, "timeout")
    assert.equal("allow stale", seen(cache, 0.1))
    answer_with "block"
    assert.equal("block upstream", seen(cache, 3))
  end)

  it("is served by a worker that has not asked, when another worker has asked in vain", function()
    answer_with "allow"
    local settings = { stale = { allow = 50 } }
    local first, second = new_worker(settings), new_worker(settings)
    decide(first)
    world.time = world.time + 100
    fail()
    assert.equal("allow stale", seen(first))
    assert.equal("allow stale", seen(second))
    assert.equal(2, #world.asked)
  end)

  it("is not served before the service has failed", function()
    answer_with "allow"
    local cache = new_worker { stale = { allow = 50 } }
    decide(cache)
    world.time = world.time + 100
    world.answer = function(address, network)
      world:sleep(3)
      return world.decision("block", address, network)
    end
    assert.equal("block upstream", seen(cache, 5))
  end)
end)
