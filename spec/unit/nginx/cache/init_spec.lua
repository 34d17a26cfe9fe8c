-- The tiers of the cache, how long entries live, and their keys: workers with a dict and a clock of the spec.
local decisions = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local worlds = require "spec.support.cache_world"

local ETH = "0x52908400098527886e0f7030069857d2e4169ee7"
local BTC = "1BoatSLRHtKNngkdXEvobR76b53LETtpyT"

local world

before_each(function()
  world = worlds.new()
end)

local function answer_with(action, message)
  world.answer = function(address, network)
    return world.decision(action, address, network, message)
  end
end

local function decide(cache, address, network, timeout)
  return world:call(cache.get, cache, address or ETH, network or "eth", timeout)
end

-- The action and the source.
local function seen(...)
  local decision, source = decide(...)
  return decision.action .. " " .. source
end

describe("a cached decision", function()
  it("is fetched once, then served from the LRU, and to other workers from the dict", function()
    local first, second = world:worker(), world:worker()
    assert.equal("allow upstream", seen(first))
    assert.equal("allow lru", seen(first))
    assert.equal("allow dict", seen(second))
    assert.equal("allow lru", seen(second))
    assert.equal(1, #world.asked)
  end)

  it("comes from the dict if the worker has no LRU", function()
    local cache = world:worker { lru = 0 }
    assert.equal("allow upstream", seen(cache))
    assert.equal("allow dict", seen(cache))
    assert.equal("allow dict", seen(cache))
  end)

  it("is in each worker's LRU alone if there is no dict", function()
    local first, second = world:worker { dict = false }, world:worker { dict = false }
    assert.equal("allow upstream", seen(first))
    assert.equal("allow lru", seen(first))
    assert.equal("allow upstream", seen(second))
  end)

  it("is the client's own decision for the caller that fetched it, and a cached copy for others", function()
    answer_with("block", "a bad address")
    local cache = world:worker()
    local own = decide(cache)
    assert.is_false(own.cached)
    assert.is_table(own.records)
    local cached = decide(cache)
    assert.same({
      action = "block",
      reasons = { { action = "block", message = "a bad address" } },
      address = ETH,
      network = "eth",
      degraded = false,
      cached = true,
      stale = false,
      elapsed = 0,
    }, cached)
    assert.equal(cached, (decide(cache)))
  end)

  it("is fetched with the one name of its network, because the answer counts for every name", function()
    decide(world:worker(), ETH, "ethereum", 2.5)
    local asked = world.asked[1]
    assert.same({ ETH, "eth" }, { asked.address, asked.network })
    assert.is_near(2.5, asked.seconds, 1e-6)
  end)

  it("has the cache's timeout if the caller gives none", function()
    decide(world:worker { timeout = 7 })
    assert.is_near(7, world.asked[1].seconds, 1e-6)
  end)

  it("is fetched again when both the LRU and the dict have lost it", function()
    local cache = world:worker { lru = 2 }
    for _, address in ipairs { "a", "b", "c" } do
      decide(cache, address, "tron")
    end
    assert.equal("allow lru", seen(cache, "c", "tron"))
    assert.equal("allow dict", seen(cache, "a", "tron"))
    world.dict:evict "."
    assert.equal("allow upstream", seen(cache, "b", "tron"))
  end)

  it("comes into a full LRU at once if the dict has no room", function()
    local cache = world:worker { lru = 2 }
    world.dict.full = true
    for index = 1, 10 do
      decide(cache, "address " .. index, "tron")
      assert.equal("allow lru", seen(cache, "address " .. index, "tron"))
    end
  end)

  it("comes into a full LRU when it is used often", function()
    local cache = world:worker { lru = 2 }
    for _, address in ipairs { "a", "b", "c" } do
      decide(cache, address, "tron")
    end
    for _ = 1, 4 do
      decide(cache, "a", "tron")
    end
    assert.equal("allow lru", seen(cache, "a", "tron"))
  end)

  it("makes room for the next one in the LRU", function()
    local cache = world:worker { lru = 2, dict = false }
    for _, address in ipairs { "a", "b", "c" } do
      decide(cache, address, "tron")
    end
    assert.equal("allow lru", seen(cache, "c", "tron"))
    assert.equal("allow upstream", seen(cache, "a", "tron"))
  end)

  it("lives as long as the ttl of its action, in LRU and dict", function()
    local ttl = { allow = 10, review = 20, block = 30 }
    for action, seconds in pairs(ttl) do
      for _, lru in ipairs { 0, 100 } do
        world = worlds.new()
        answer_with(action)
        local cache = world:worker { ttl = ttl, stale = { block = 0 }, lru = lru }
        local from = lru == 0 and " dict" or " lru"
        decide(cache)
        world.time = world.time + seconds - 0.001
        assert.equal(action .. from, seen(cache))
        world.time = world.time + 0.001
        assert.equal(action .. " upstream", seen(cache))
      end
    end
  end)

  it("has the same age for every worker", function()
    local first, second = world:worker { ttl = { allow = 10 } }, world:worker { ttl = { allow = 10 } }
    decide(first)
    world.time = world.time + 9
    assert.equal("allow dict", seen(second))
    world.time = world.time + 1
    assert.equal("allow upstream", seen(second))
  end)

  it("is as old as the request to the service, not as its answer", function()
    world.answer = function(address, network)
      world:sleep(4)
      return world.decision("allow", address, network)
    end
    local cache = world:worker { ttl = { allow = 10 } }
    decide(cache, ETH, "eth", 5)
    world.time = world.time + 5.9
    assert.equal("allow lru", seen(cache))
    world.time = world.time + 0.2
    assert.equal("allow upstream", seen(cache))
  end)

  it("is not kept if its ttl is 0", function()
    local cache = world:worker { ttl = { allow = 0 } }
    for _ = 1, 3 do
      assert.equal("allow upstream", seen(cache))
    end
  end)

  -- Dates that are set forward or back, by an operator or by NTP.
  it("lives as long, and no longer, whatever date is set", function()
    for _, step in ipairs { 3600, 15, -15, -3600, -1e9 } do
      for _, lru in ipairs { 0, 100 } do
        world = worlds.new()
        local settings = { ttl = { allow = 10 }, lru = lru }
        local cache, other = world:worker(settings), world:worker(settings)
        decide(cache)
        answer_with "block"
        world.time, world.date = world.time + 8, world.date + step
        decide(other)
        world.time = world.time + 2
        assert.equal("block", (decide(cache)).action)
        world.date = world.date - step
        assert.equal("block", (decide(other)).action)
      end
    end
  end)

  it("does not come back after a reload, whatever date is set", function()
    for _, step in ipairs { -3600, -15, 15, 3600 } do
      world = worlds.new()
      decide(world:worker { ttl = { allow = 10 } })
      world.time, world.date = world.time + 11, world.date + step
      answer_with "block"
      assert.equal("block upstream", seen(world:worker { ttl = { allow = 10 } }))
    end
  end)

  it("of a release that wrote dates is not served", function()
    local now = world.date + world.time
    decide(world:worker {
      clock = function()
        return now
      end,
    })
    answer_with "block"
    assert.equal("block upstream", seen(world:worker()))
  end)

  it("is not found under another version", function()
    answer_with "allow"
    decide(world:worker { version = "one" })
    answer_with "block"
    assert.equal("block upstream", seen(world:worker { version = "two" }))
    assert.equal("allow dict", seen(world:worker { version = "one" }))
  end)

  it("raises an error if fetch returns no decision", function()
    local cache = world:worker()
    for _, wrong in ipairs { false, "allow", {}, { action = "yes" } } do
      world.answer = function()
        return wrong
      end
      assert.has_error(function()
        decide(cache)
      end, "fetch must return a decision")
    end
    answer_with "block"
    assert.equal("block upstream", seen(cache))
  end)
end)

describe("an answer that comes after that of a later fetch", function()
  local OTHER = "0x52908400098527886e0f7030069857d2e4169ee8"

  -- The first answer is allow, and comes after ten seconds. The others are block, and come at once.
  before_each(function()
    world.answer = function(address, network)
      local is_first = #world.asked == 1
      world:sleep(is_first and 10 or 0.1)
      return world.decision(is_first and "allow" or "block", address, network)
    end
  end)

  -- The actions that callers got, each after so many seconds.
  local function actions(calls)
    local got, bodies = {}, {}
    for index, call in ipairs(calls) do
      bodies[index] = function()
        world:sleep(call.after)
        got[index] = call.cache:get(ETH, "eth", call.timeout or 3).action
      end
    end
    world:run(bodies)
    return got
  end

  it("does not take its place where the worker was stopped for longer than its lock", function()
    local stopped, second, third = world:worker(), world:worker(), world:worker()
    local got = actions {
      { cache = stopped, after = 0 },
      { cache = second, after = 6 },
      { cache = third, after = 11 },
      { cache = stopped, after = 11 },
    }
    assert.same({ "block", "block", "block", "block" }, got)
    assert.equal(2, #world.asked)
  end)

  it("counts where the address has come onto a list and the later fetch failed", function()
    local is_listed = false
    local lists = { start = function() end }
    function lists.generation()
      return is_listed and 2 or 1
    end
    function lists.find(_, address, network)
      return is_listed and world.decision("block", address, network) or nil
    end
    local answer = world.answer
    world.answer = function(address, network)
      if #world.asked == 1 then
        return answer(address, network)
      end
      return decisions.unknown(errors.new("server", "it failed", { attempts = 1, status = 500 }), address, network)
    end
    local cache = world:worker { lists = lists }
    world:thread(function()
      world:sleep(9.1)
      cache:purge(ETH)
      world:sleep(0.2)
      cache:get(ETH, "eth", 3) -- fails
      is_listed = true
      world:sleep(0.2)
      assert.equal("block", cache:get(ETH, "eth", 3).action)
    end)
    assert.same({ "block" }, actions { { cache = cache, after = 0, timeout = 30 } })
    assert.equal(2, #world.asked)
  end)

  it("does not take its place without a dict", function()
    local stopped = world:worker { dict = false }
    assert.same(
      { "block", "block", "block" },
      actions {
        { cache = stopped, after = 0 },
        { cache = stopped, after = 6 },
        { cache = stopped, after = 11 },
      }
    )
  end)

  it("does not take its place after a purge", function()
    local cache = world:worker { lru = 0 }
    world:thread(function()
      world:sleep(1)
      cache:purge(ETH)
    end)
    local got = actions {
      { cache = cache, after = 0, timeout = 30 },
      { cache = cache, after = 2 },
      { cache = cache, after = 11 },
    }
    assert.same({ "block", "block", "block" }, got)
    assert.equal(2, #world.asked)
  end)

  it("serves the callers that wait for it after a purge of another address", function()
    local cache = world:worker()
    world:thread(function()
      world:sleep(1)
      cache:purge(OTHER)
    end)
    assert.same(
      { "allow", "allow" },
      actions { { cache = cache, after = 0, timeout = 30 }, { cache = cache, after = 2, timeout = 30 } }
    )
    assert.equal(1, #world.asked)
  end)

  it("is not kept where the dict has lost its lock, and then the later answer", function()
    for _, lru in ipairs { 0, 10 } do
      world.asked = {}
      local first, second = world:worker { lru = lru }, world:worker { lru = 0 }
      world:thread(function()
        world:sleep(1)
        world.dict:evict "lock"
        world:sleep(2)
        world.dict:evict "entry"
      end)
      local got = actions {
        { cache = first, after = 0, timeout = 30 },
        { cache = second, after = 2 },
        { cache = first, after = 11 },
        { cache = second, after = 12 },
      }
      assert.same({ "allow", "block", "block", "block" }, got)
      assert.equal(3, #world.asked)
      world.dict:evict "."
    end
  end)
end)

describe("an address", function()
  it("has one key under every name of its network", function()
    local first, second = world:worker { lru = 2 }, world:worker()
    decide(first, BTC, "btc")
    for _, network in ipairs { "eth", "ethereum", "eth", "ethereum" } do
      assert.equal("allow", (decide(first, ETH, network)).action)
      assert.equal("allow", (decide(second, ETH, network)).action)
    end
    assert.equal("allow lru", seen(first, BTC, "btc"))
    assert.equal(2, #world.asked)
  end)

  it("has another key on another network", function()
    local cache = world:worker()
    world.answer = function(address, network)
      return world.decision(network == "bsc" and "allow" or "block", address, network)
    end
    for _ = 1, 2 do
      assert.equal("allow", (decide(cache, ETH, "bsc")).action)
      assert.equal("block", (decide(cache, ETH, "eth")).action)
    end
  end)

  it("with line breaks is not confused with another one", function()
    local cache = world:worker { lru = 0 }
    world.answer = function(address, network)
      return world.decision(address:find "\n" and "allow" or "block", address, network)
    end
    local json = '{"action":"allow","reasons":[{"action":"allow","message":""}]}'
    for _, tail in ipairs { "\n", "\n\n", "\n" .. json, "\n5v" .. ("%016.0f%016.0f"):format(0, 1e12) .. json } do
      assert.equal("allow", (decide(cache, "a" .. tail, "eth")).action)
      assert.equal("block", (decide(cache, "a", "eth")).action)
    end
  end)
end)

describe("the metrics", function()
  local counts

  -- A recorder that counts calls by method and arguments.
  local function recorder()
    counts = {}
    local function count(...)
      local name = table.concat({ ... }, " ")
      counts[name] = (counts[name] or 0) + 1
    end
    return {
      lookup = function(_, tier, hit)
        count(tier, hit and "hit" or "miss")
      end,
      count = function(_, name, kind)
        count(name, kind)
      end,
      took = function(_, name)
        count(name)
      end,
    }
  end

  local function fail(kind, attempts)
    world.answer = function(address, network)
      local err = errors.new(kind, "cannot be asked", { attempts = attempts })
      local decision = world.decision("unknown", address, network)
      decision.error = err
      return decision
    end
  end

  it("count the lookups of each tier, and the requests to the service", function()
    local first, second = world:worker { metrics = recorder() }, world:worker()
    decide(second, "other", "tron")
    for _ = 1, 3 do
      decide(first)
    end
    decide(first, "other", "tron")
    assert.same({ ["lru miss"] = 2, ["lru hit"] = 2, ["dict miss"] = 1, ["dict hit"] = 1, upstream = 1 }, counts)
  end)

  it("count failures by kind, and no time of the service if nothing was sent", function()
    fail("server", 1)
    local cache = world:worker { metrics = recorder() }
    decide(cache)
    fail("circuit_open", 0)
    decide(cache, "other", "tron")
    assert.same({ 1, 1, 1 }, { counts["errors server"], counts["errors circuit_open"], counts.upstream })
  end)

  it("count no error for an invalid address, because callers could raise an alarm with it", function()
    fail("invalid_argument", 0)
    local cache = world:worker { metrics = recorder() }
    assert.equal("unknown invalid", seen(cache))
    assert.same({ ["lru miss"] = 1, ["dict miss"] = 1 }, counts)
  end)
end)
