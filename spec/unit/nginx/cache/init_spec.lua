-- What a gate remembers, where, for how long, and under which names: workers with a dict and a clock of the spec's own.
local worlds = require "spec.support.cache_world"

local ETH = "0x52908400098527886E0F7030069857D2E4169EE7"
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
  return world:call(cache.decide, cache, address or ETH, network or "eth", timeout)
end

-- The action and the source.
local function seen(...)
  local decision, source = decide(...)
  return decision.action .. " " .. source
end

describe("a verdict", function()
  it("is asked for once, then remembered by the worker, and by the dict for the others", function()
    local first, second = world:worker(), world:worker()
    assert.equal("allow upstream", seen(first))
    assert.equal("allow lru", seen(first))
    assert.equal("allow dict", seen(second))
    assert.equal("allow lru", seen(second))
    assert.equal(1, #world.asked)
  end)

  it("comes from the dict where the worker remembers nothing by itself", function()
    local cache = world:worker { lru = 0 }
    assert.same({}, world.lrus)
    assert.equal("allow upstream", seen(cache))
    assert.equal("allow dict", seen(cache))
    assert.equal("allow dict", seen(cache))
  end)

  it("is remembered by each worker alone where there is no dict", function()
    local first, second = world:worker { dict = false }, world:worker { dict = false }
    assert.equal("allow upstream", seen(first))
    assert.equal("allow lru", seen(first))
    assert.equal("allow upstream", seen(second))
  end)

  it("is the client's own for who asked, and says that it is remembered for the others", function()
    answer_with("block", "a bad address")
    local cache = world:worker()
    local own = decide(cache)
    assert.is_false(own.cached)
    assert.is_table(own.records)
    local remembered = decide(cache)
    assert.same({
      action = "block",
      reasons = { { action = "block", message = "a bad address" } },
      address = ETH:lower(),
      network = "eth",
      degraded = false,
      cached = true,
      stale = false,
      elapsed = 0,
    }, remembered)
    assert.equal(remembered, (decide(cache)))
  end)

  it("is about the address that the service was asked about, as it was given", function()
    decide(world:worker(), ETH, "ethereum", 2.5)
    local asked = world.asked[1]
    assert.same({ ETH, "ethereum" }, { asked.address, asked.network })
    assert.is_near(2.5, asked.seconds, 1e-6)
  end)

  it("has as long as the cache says where nobody says how long", function()
    decide(world:worker { timeout = 7 })
    assert.is_near(7, world.asked[1].seconds, 1e-6)
  end)

  it("is asked for again by a worker that has had to forget it, unless the dict knows", function()
    local cache = world:worker { lru = 2 }
    for _, address in ipairs { "a", "b", "c" } do
      decide(cache, address, "tron")
    end
    assert.equal("allow dict", seen(cache, "c", "tron"))
    assert.equal("allow lru", seen(cache, "c", "tron"))
    assert.equal("allow dict", seen(cache, "a", "tron"))
    world.dict:evict "."
    assert.equal("allow upstream", seen(cache, "a", "tron"))
  end)

  it("is not forgotten by a worker for the sake of addresses that are seen but once", function()
    local cache = world:worker { lru = 2 }
    for index, address in ipairs { "a", "b", "c", "d", "e", "f" } do
      assert.equal("allow upstream", seen(cache, address, "tron"), index)
    end
    assert.equal("allow lru", seen(cache, "a", "tron"))
    assert.equal("allow lru", seen(cache, "b", "tron"))
  end)

  it("is forgotten for the next one's sake where there is no dict", function()
    local cache = world:worker { lru = 2, dict = false }
    for _, address in ipairs { "a", "b", "c" } do
      decide(cache, address, "tron")
    end
    assert.equal("allow lru", seen(cache, "c", "tron"))
    assert.equal("allow upstream", seen(cache, "a", "tron"))
  end)

  it("lives as long as its action says, in both", function()
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

  it("is as old for the worker that reads it in the dict as it is", function()
    local first, second = world:worker { ttl = { allow = 10 } }, world:worker { ttl = { allow = 10 } }
    decide(first)
    world.time = world.time + 9
    assert.equal("allow dict", seen(second))
    world.time = world.time + 1
    assert.equal("allow upstream", seen(second))
  end)

  it("is as old as the question, not as the answer", function()
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

  it("is not remembered where its time is none", function()
    local cache = world:worker { ttl = { allow = 0 } }
    for _ = 1, 3 do
      assert.equal("allow upstream", seen(cache))
    end
  end)

  it("is forgotten when the clock was set back, rather than kept for longer", function()
    local cache = world:worker { ttl = { allow = 10 } }
    decide(cache)
    world.time = world.time - 3600
    assert.equal("allow upstream", seen(cache))
    world.time = world.time + 10
    assert.equal("allow upstream", seen(cache))
  end)

  it("is another's under another version", function()
    answer_with "allow"
    decide(world:worker { version = "one" })
    answer_with "block"
    assert.equal("block upstream", seen(world:worker { version = "two" }))
    assert.equal("allow dict", seen(world:worker { version = "one" }))
  end)

  it("is a decision, or the look-up is at fault", function()
    local cache = world:worker()
    for _, wrong in ipairs { false, "allow", {}, { action = "yes" } } do
      world.answer = function()
        return wrong
      end
      assert.has_error(function()
        decide(cache)
      end, "look_up must return a decision")
    end
    answer_with "block"
    assert.equal("block upstream", seen(cache))
  end)
end)

describe("an address", function()
  it("is one in every case and under every name of its network", function()
    local first, second = world:worker(), world:worker()
    decide(first)
    local digits = ETH:sub(3)
    for _, spelling in ipairs { ETH:lower(), "0X" .. digits, "0X" .. digits:lower(), "0x" .. digits:upper() } do
      for _, network in ipairs { "eth", "ethereum" } do
        assert.equal("allow", (decide(first, spelling, network)).action)
        assert.equal("allow", (decide(second, spelling, network)).action)
      end
    end
    assert.equal(1, #world.asked)
  end)

  it("takes one place in a worker's memory, however it is spelled", function()
    local cache = world:worker { lru = 2 }
    decide(cache, BTC, "btc")
    for index = 1, 40 do
      local spelling = ETH:sub(1, index):upper() .. ETH:sub(index + 1):lower()
      decide(cache, spelling, index % 2 == 0 and "eth" or "ethereum")
    end
    assert.equal(2, world.lrus[1].count())
    assert.equal("allow lru", seen(cache, BTC, "btc"))
    assert.equal(2, #world.asked)
  end)

  it("that is not hexadecimal keeps its case", function()
    local cache = world:worker()
    world.answer = function(address, network)
      return world.decision(address == BTC and "allow" or "block", address, network)
    end
    for _ = 1, 2 do
      assert.equal("allow", (decide(cache, BTC, "btc")).action)
      assert.equal("block", (decide(cache, BTC:lower(), "btc")).action)
    end
    assert.equal(2, #world.asked)
  end)

  it("that only begins as hexadecimal does keeps its case, too", function()
    local cache = world:worker()
    world.answer = function(address, network)
      return world.decision(address == "0xGood" and "allow" or "block", address, network)
    end
    for _ = 1, 3 do
      assert.equal("allow", (decide(cache, "0xGood", "eth")).action)
      assert.equal("block", (decide(cache, "0xgood", "eth")).action)
      assert.equal("block", (decide(cache, "0XGood", "eth")).action)
    end
    assert.equal(3, #world.asked)
  end)

  it("is another on another network", function()
    local cache = world:worker()
    world.answer = function(address, network)
      return world.decision(network == "bsc" and "allow" or "block", address, network)
    end
    for _ = 1, 2 do
      assert.equal("allow", (decide(cache, ETH, "bsc")).action)
      assert.equal("block", (decide(cache, ETH, "eth")).action)
    end
  end)

  it("of which no service could know is asked about each time and never remembered", function()
    local cache = world:worker()
    world.answer = function(address, network)
      return world.decision("unknown", address, network)
    end
    local too_long = ("a"):rep(1025)
    for _, wrong in ipairs { { "", "eth" }, { too_long, "eth" }, { ETH, "nowhere" }, { 5, "eth" }, { ETH, {} } } do
      local before = #world.asked
      for _ = 1, 2 do
        assert.equal("unknown upstream", seen(cache, wrong[1], wrong[2]))
      end
      assert.equal(before + 2, #world.asked)
    end
    assert.same({}, world.dict.entries)
  end)

  it("with line breaks in it is not mistaken for another", function()
    local cache = world:worker { lru = 0 }
    world.answer = function(address, network)
      return world.decision(address:find "\n" and "allow" or "block", address, network)
    end
    for _, tail in ipairs { "\n", "\n\n", '\n{"a":"allow","r":[{"a":"allow","m":""}]}', "\n1\n\neth:a\n" } do
      assert.equal("allow", (decide(cache, "a" .. tail, "eth")).action)
      assert.equal("block", (decide(cache, "a", "eth")).action)
    end
  end)
end)
