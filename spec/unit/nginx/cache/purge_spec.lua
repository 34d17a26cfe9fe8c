-- Purges: while fetches are under way, over several workers, with a dict that is full or loses entries.
local addresses = require "riskscreen.address"
local decisions = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local random = require "spec.support.random"
local worlds = require "spec.support.cache_world"

local ADDRESS, NETWORK = "0x52908400098527886e0f7030069857d2e4169ee7", "eth"
local ORDERS = 150
local LOST = { "epoch", "mark", "entry", "verdict", "lock" } -- keys that a full dict drops have these words

local world, version

-- The service's answer changes with `version`, and its message tells the version.
local function answer_of_version(address, network)
  local mine = version
  world:sleep(0.5)
  return world.decision("allow", address, network, "version " .. mine)
end

local function begin(options)
  world, version = worlds.new(options), 1
  world.answer = answer_of_version
end

before_each(function()
  begin()
end)

local function decide(cache, address, network)
  return world:call(cache.get, cache, address or ADDRESS, network or NETWORK)
end

local function seen_version(decision)
  return tonumber(decision.reasons[1].message:match "version (%d+)")
end

local function purge(cache, ...)
  local results = { world:call(cache.purge, cache, ...) }
  -- nginx's clock goes on between two events.
  world.time = world.time + 0.001
  return results[1], results[2]
end

describe("a purge", function()
  it("reaches every spelling of the address", function()
    local cache = world:worker()
    for index, case in ipairs {
      { "3MSvaVbVFFLML86rt5eqgA9SvW23upaXdY", "MTf4tP1TCNBn8dNkyxeBVoPrFCcVzxJvvh", "ltc" },
      { "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "btc" },
      { "io1mflp9m6hcgm2qcghchsdqj3z3eccrnekx9p0ms", "0xda7e12ef57c236a06117c5e0d04a228e7181cf36", "iotex" },
    } do
      local spelling, canonical, network = case[1], case[2], case[3]
      for _, purged in ipairs { spelling, canonical } do
        decide(cache, canonical, network)
        version = index + (purged == spelling and 100 or 200)
        assert.is_true(purge(cache, purged))
        assert.equal(version, seen_version(decide(cache, canonical, network)))
      end
    end
  end)

  it("reaches what a gate asks about that checks no checksum", function()
    local cache = world:worker()
    for index, case in ipairs {
      { "BC1QW508D6QQJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", "btc" },
      { "io1mflp9m6hqgm2qcghchsdqj3z3eccrnekx9p0ms", "iotex" },
    } do
      local spelling, network = case[1], case[2]
      local canonical = assert(addresses.validate(spelling, network, "format"))
      assert.not_equal(spelling, canonical)
      assert.is_nil((addresses.validate(spelling, network)))
      for _, its_network in ipairs { network, false } do
        decide(cache, canonical, network)
        version = version + index
        assert.is_true(purge(cache, spelling, its_network or nil))
        assert.equal(version, seen_version(decide(cache, canonical, network)))
      end
    end
  end)

  it("reaches every worker", function()
    local first, second = world:worker(), world:worker()
    for _, cache in ipairs { first, second, first, second } do
      decide(cache)
    end
    version = 2
    assert.is_true(purge(first, ADDRESS))
    assert.equal(2, seen_version(decide(second)))
    assert.equal(2, seen_version(decide(first)))
    assert.equal(2, #world.asked)
  end)

  it("ends the expired decision that stands in for a failure, also during the fetch", function()
    for _, settings in ipairs { { lru = 10 }, { dict = false, lru = 10 } } do
      begin()
      settings.ttl, settings.stale = { allow = 1 }, { allow = 600 }
      local cache = world:worker(settings)
      assert.equal("allow", decide(cache).action)
      world.time = world.time + 5
      world.answer = function()
        world:sleep(0.5)
        return decisions.unknown(errors.new("network", "it fails", { attempts = 1 }))
      end
      local kept = decide(cache)
      assert.same({ "allow", true }, { kept.action, kept.stale })
      world.time = world.time + 5
      local action, source
      world:run {
        function()
          local decision, its_source = cache:get(ADDRESS, NETWORK)
          action, source = decision.action, its_source
        end,
        function()
          world:sleep(0.2)
          cache:purge(ADDRESS)
        end,
      }
      assert.same({ "unknown", "upstream" }, { action, source })
      assert.equal("unknown", decide(cache).action)
    end
  end)

  it("takes any spelling of the address, and one network or all", function()
    local cache = world:worker()
    local spelling = "0X" .. ADDRESS:sub(3):upper()
    local function fill()
      decide(cache)
      decide(cache, nil, "bsc")
      world.asked = {}
    end
    fill()
    assert.is_true(purge(cache, spelling, "ethereum"))
    decide(cache)
    assert.equal(1, #world.asked)
    fill()
    assert.is_true(purge(cache, spelling))
    decide(cache)
    decide(cache, nil, "bsc")
    assert.equal(2, #world.asked)
  end)

  it("forgets the address in other versions, too, for as long as their entries live", function()
    local ttl = { allow = 2000 }
    local one = world:worker { version = "one", ttl = ttl }
    local two = world:worker { version = "two", ttl = ttl }
    decide(one)
    world.time = world.time + 1
    version = 2
    purge(two, ADDRESS)
    world.time = world.time + 1500
    assert.equal(2, seen_version(decide(one)))
    assert.equal("dict", select(2, decide(world:worker { version = "one", ttl = ttl })))
  end)

  it("leaves other addresses in the LRU and the dict", function()
    local cache = world:worker()
    decide(cache, "other", "tron")
    purge(cache, ADDRESS)
    assert.equal("lru", select(2, decide(cache, "other", "tron")))
    assert.equal("dict", select(2, decide(world:worker(), "other", "tron")))
  end)

  it("forgets failures and expired decisions, too", function()
    local cache = world:worker { ttl = { block = 10 }, stale = { block = 1000 } }
    world.answer = function(address, network)
      return world.decision("block", address, network)
    end
    decide(cache)
    world.time = world.time + 10
    world.answer = function(address, network)
      return world.decision("unknown", address, network)
    end
    assert.equal("block", (decide(cache)).action)
    purge(cache, ADDRESS)
    assert.equal("unknown", (decide(cache)).action)
    purge(cache, ADDRESS)
    decide(cache)
    assert.equal(4, #world.asked)
  end)

  it("is not undone by a fetch that was under way", function()
    for _, dict in ipairs { "dict", false } do
      begin()
      local cache = world:worker { dict = dict == "dict" and world.dict or false }
      local during
      world:run {
        function()
          during = cache:get(ADDRESS, NETWORK)
        end,
        function()
          world:sleep(0.2)
          version = 2
          assert.is_true(cache:purge(ADDRESS))
        end,
      }
      assert.equal(1, seen_version(during))
      assert.equal(2, seen_version(decide(cache)))
    end
  end)

  it("makes the entry of a fetch that was under way invisible to other workers", function()
    local first, second = world:worker(), world:worker()
    world:run {
      function()
        first:get(ADDRESS, NETWORK)
      end,
      function()
        world:sleep(0.2)
        first:purge(ADDRESS)
      end,
    }
    version = 2
    world.time = world.time + 0.001
    assert.equal(2, seen_version(decide(second)))
  end)

  it("is not undone by a fetch that was under way where a full dict drops what it knows of purges", function()
    for _, lost in ipairs { "mark", "epoch", "mark|epoch", "lock", "entry" } do
      begin()
      local first, second = world:worker(), world:worker()
      decide(first, "another address", "tron")
      world:run {
        function()
          first:get(ADDRESS, NETWORK)
        end,
        function()
          world:sleep(0.2)
          assert.is_true(second:purge(ADDRESS))
        end,
        function()
          world:sleep(0.3)
          for name in lost:gmatch "%a+" do
            world.dict:evict(name)
          end
        end,
      }
      version, world.time = 2, world.time + 0.001
      for _, cache in ipairs { first, second, world:worker() } do
        assert.equal(2, seen_version(decide(cache)), lost)
      end
    end
  end)

  it("is what a lost mark comes to, in every worker that looks into the dict for a while", function()
    local settings = { lru = 0 }
    local first, second = world:worker(settings), world:worker(settings)
    decide(first)
    decide(second)
    world.dict:evict "mark"
    version = 2
    for _, cache in ipairs { first, second } do
      for _ = 1, 8 * 256 do
        decide(cache, "another address", "tron")
      end
    end
    world.asked = {}
    for _, cache in ipairs { first, second, world:worker(settings) } do
      assert.equal(2, seen_version(decide(cache)))
    end
    assert.equal(1, #world.asked)
  end)

  it("holds whatever date is set meanwhile", function()
    for _, step in ipairs { -1e6, -1000, 1000, 1e6 } do
      begin()
      local first, second = world:worker(), world:worker()
      world:run {
        function()
          first:get(ADDRESS, NETWORK)
        end,
        function()
          world:sleep(0.2)
          assert.is_true(second:purge(ADDRESS))
          world.date = world.date + step
        end,
      }
      version, world.time = 2, world.time + 1
      for _, cache in ipairs { first, second, world:worker() } do
        assert.equal(2, seen_version(decide(cache)))
      end
    end
  end)

  it("makes later callers fetch anew instead of waiting for the earlier fetch", function()
    local cache = world:worker()
    local later
    world:run {
      function()
        cache:get(ADDRESS, NETWORK)
      end,
      function()
        world:sleep(0.2)
        version = 2
        cache:purge(ADDRESS)
        later = cache:get(ADDRESS, NETWORK)
      end,
    }
    assert.equal(2, seen_version(later))
    assert.equal(2, seen_version(decide(cache)))
  end)

  it("makes callers in other workers fetch anew instead of waiting for a fetch that hangs", function()
    local first, second = world:worker(), world:worker()
    local took
    world.answer = function(address, network)
      local mine = version
      world:sleep(mine == 1 and 4.9 or 0.1)
      return world.decision("allow", address, network, "version " .. mine)
    end
    world:run {
      function()
        first:get(ADDRESS, NETWORK)
      end,
      function()
        world:sleep(0.2)
        version = 2
        second:purge(ADDRESS)
        local began = world.time
        assert.equal(2, seen_version((second:get(ADDRESS, NETWORK))))
        took = world.time - began
      end,
    }
    assert.is_true(took < 0.2, took)
    for _, cache in ipairs { first, second } do
      assert.equal(2, seen_version(decide(cache)))
    end
    assert.equal(2, #world.asked)
  end)

  it("holds in any order of the workers' steps, also for two purges at once", function()
    for seed = random.SEED, random.SEED + ORDERS - 1 do
      begin { seed = seed }
      local draw = random.new(seed).integer
      world.answer = function(address, network)
        local mine = version
        world:sleep(draw(5) / 1000)
        return world.decision("allow", address, network, "version " .. mine)
      end
      local caches = { world:worker(), world:worker(), world:worker() }
      local purged, bodies = 1, {}
      for index = 1, 6 do
        bodies[index] = function()
          for _ = 1, 20 do
            world:sleep(draw(4) / 1000)
            local at_least = purged
            local got = seen_version((caches[index % 3 + 1]:get(ADDRESS, NETWORK)))
            if not got or got < at_least then
              error(("seed %d: version %s after the purge for %d"):format(seed, got, at_least), 0)
            end
          end
        end
      end
      for index = 7, 8 do
        bodies[index] = function()
          for _ = 1, 10 do
            world:sleep(draw(6) / 1000)
            version = version + 1
            local mine = version
            assert(caches[draw(3)]:purge(ADDRESS))
            world:sleep(0.001)
            purged = math.max(purged, mine)
          end
        end
      end
      world:run(bodies)
    end
  end)

  it("holds in a dict so small that it drops what it knows of purges, also for many purges at once", function()
    for seed = random.SEED, random.SEED + ORDERS - 1 do
      begin { seed = seed }
      local draw = random.new(seed).integer
      world.answer = function(address, network)
        local mine = version
        world:sleep(draw(20) / 1000)
        return world.decision("allow", address, network, "version " .. mine)
      end
      local caches = { world:worker { lru = 0 }, world:worker(), world:worker { lru = 0 } }
      local purged, bodies = 1, {}
      for index = 1, 6 do
        bodies[index] = function()
          for _ = 1, 30 do
            world:sleep(draw(4) / 1000)
            local at_least = purged
            local got = seen_version((caches[index % 3 + 1]:get(ADDRESS, NETWORK)))
            if not got or got < at_least then
              error(("seed %d: version %s after the purge for %d"):format(seed, got, at_least), 0)
            end
          end
        end
      end
      for index = 7, 17 do
        bodies[index] = function()
          for _ = 1, 8 do
            world:sleep(0.008)
            version = version + 1
            local mine = version
            assert(caches[draw(3)]:purge(ADDRESS))
            world:sleep(0.001)
            purged = math.max(purged, mine)
          end
        end
      end
      bodies[18] = function()
        for _ = 1, 60 do
          world:sleep(draw(3) / 1000)
          world.dict:evict(LOST[draw(#LOST)])
        end
      end
      world:run(bodies)
    end
  end)

  it("reaches a worker that is just looking up the epoch, the marks or the entry", function()
    for look = 1, 4 do
      for _, lru in ipairs { 0, 10 } do
        begin()
        local first, second = world:worker { lru = lru }, world:worker { lru = lru }
        decide(first)
        purge(first, "another address", "tron")
        world.time = world.time + 1
        version = 2
        local get, looks = world.dict.get, 0
        world.dict.get = function(dict, key)
          local value, flags = get(dict, key)
          looks = looks + 1
          if looks == look then
            world.dict.get = get
            assert.is_true(first:purge(ADDRESS))
          end
          return value, flags
        end
        decide(second)
        assert.is_true(looks >= look)
        world.dict.get = get
        world.time = world.time + 0.001
        assert.equal(2, seen_version(decide(second)), look)
      end
    end
  end)

  it("returns an error if it cannot reach the other workers", function()
    local caches = { world:worker { dict = false }, world:worker { dict = false } }
    decide(caches[1])
    local ok, err = purge(caches[1], ADDRESS)
    assert.is_nil(ok)
    assert.equal("unsupported", err.kind)
    assert.matches("no shared dict", err.message)
    version = 2
    assert.equal(2, seen_version(decide(caches[1])))
  end)

  it("needs no dict if there is one worker", function()
    local cache = world:worker { dict = false }
    decide(cache)
    version = 2
    assert.is_true(purge(cache, ADDRESS))
    assert.equal(2, seen_version(decide(cache)))
  end)

  it("returns an error if the dict has no room, and empties its own LRU", function()
    local cache = world:worker()
    decide(cache)
    world.dict.full = true
    local ok, err = purge(cache, ADDRESS)
    assert.is_nil(ok)
    assert.matches("no memory", err.message)
    version = 2
    assert.equal(2, seen_version(decide(cache)))
  end)

  it("returns an error if the dict has room again before its end", function()
    local caches = { world:worker(), world:worker() }
    decide(caches[2])
    local add = world.dict.add
    world.dict.add = function()
      world.dict.add = add
      return nil, "no memory"
    end
    local ok, err = purge(caches[1], ADDRESS)
    assert.is_nil(ok)
    assert.matches("no memory", err.message)
    assert.is_true(purge(caches[1], ADDRESS))
    version = 2
    assert.equal(2, seen_version(decide(caches[2])))
  end)

  it("works after the dict has lost the epoch", function()
    local first, second = world:worker(), world:worker()
    decide(first)
    decide(second)
    purge(first, ADDRESS)
    decide(second)
    world.dict:evict "."
    version = 2
    world.time = world.time + 0.001
    purge(first, ADDRESS)
    assert.equal(2, seen_version(decide(second)))
  end)
end)

describe("forgetting all addresses", function()
  it("reaches every worker, at any step of it", function()
    for _, step in ipairs { "delete", "add" } do
      begin()
      local first, second = world:worker(), world:worker()
      decide(first)
      world.time, version = world.time + 1, 2
      local method = world.dict[step]
      world.dict[step] = function(dict, ...)
        world.dict[step] = method
        decide(second)
        return method(dict, ...)
      end
      assert.is_true(first:forget_all())
      world.time = world.time + 0.001
      assert.equal(2, seen_version(decide(second)))
    end
  end)

  it("returns an error if the dict has no room, and empties its own LRU", function()
    local cache = world:worker()
    decide(cache)
    world.dict:evict "."
    world.dict.full = true
    local ok, err = cache:forget_all()
    assert.is_nil(ok)
    assert.matches("no memory", err.message)
    version = 2
    assert.equal(2, seen_version(decide(cache)))
  end)
end)

describe("a faulty dict", function()
  local function decides_right(settings)
    world.answer = function(address, network)
      return world.decision(address:find "bad" and "block" or "allow", address, network)
    end
    local caches = { world:worker(settings), world:worker(settings) }
    for turn = 1, 3 do
      for _, cache in ipairs(caches) do
        for index = 1, 20 do
          local address = (index % 3 == 0 and "bad" or "good") .. index
          assert.equal(index % 3 == 0 and "block" or "allow", (decide(cache, address, "tron")).action, turn)
        end
      end
    end
  end

  it("fails no decision if it has no room at all", function()
    world.dict.full = true
    decides_right()
    decides_right { lru = 0 }
  end)

  it("fails no decision if it has room for few entries", function()
    world.dict.room = 5
    decides_right { lru = 0 }
  end)

  it("fails no decision if it loses its entries", function()
    local set = world.dict.set
    world.dict.set = function(dict, ...)
      dict:evict "."
      return set(dict, ...)
    end
    decides_right { lru = 0 }
  end)

  it("fails no decision if other programs have written to all keys", function()
    for _, foreign in ipairs { "not ours", 5, true } do
      begin()
      decides_right { lru = 0 }
      for key in pairs(world.dict.entries) do
        world.dict:set(key, foreign)
      end
      decides_right { lru = 0 }
    end
  end)
end)
