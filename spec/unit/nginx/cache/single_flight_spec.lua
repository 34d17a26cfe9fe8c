-- Many who want to know the same at the same time: in one worker and in several, with deadlines of their own, and when
-- whoever asks for all of them ends badly.
local errors = require "riskscreen.errors"
local worlds = require "spec.support.cache_world"

local ADDRESS, NETWORK = "0x52908400098527886e0f7030069857d2e4169ee7", "eth"

local world, started

before_each(function()
  world = worlds.new()
  started = world.time
end)

local function failure(kind)
  local err = errors.new(kind, "cannot be asked")
  local decision = world.decision("unknown", ADDRESS, NETWORK)
  decision.error, decision.reasons[1].error = err, err
  return decision
end

-- The service takes some seconds, or all that it is given if those are fewer.
local function answer_after(seconds, action)
  world.answer = function(address, network, patience)
    if patience < seconds then
      world:sleep(patience)
      return failure "timeout"
    end
    world:sleep(seconds)
    return world.decision(action or "block", address, network)
  end
end

---@param caches table[]
---@param timeouts number[] one decision each, by the workers in turn
---@return { action: string, source: string, after: number }[]
local function decide_all(caches, timeouts)
  local results, bodies = {}, {}
  for index, timeout in ipairs(timeouts) do
    bodies[index] = function()
      local cache = caches[index % #caches + 1]
      local decision, source = cache:decide(ADDRESS, NETWORK, timeout)
      results[index] = { action = decision.action, source = source, after = world.time - started }
    end
  end
  world:run(bodies)
  return results
end

local function workers(count, settings)
  local list = {}
  for index = 1, count do
    list[index] = world:worker(settings)
  end
  return list
end

local function same_timeouts(count, seconds)
  local list = {}
  for index = 1, count do
    list[index] = seconds
  end
  return list
end

local function count_locks()
  local count = 0
  for key in pairs(world.dict.entries) do
    count = count + (key:find("lock", 1, true) and 1 or 0)
  end
  return count
end

describe("two hundred who want to know the same", function()
  for _, count in ipairs { 1, 4 } do
    it(("have it asked for once, with %d workers"):format(count), function()
      answer_after(1)
      local results = decide_all(workers(count), same_timeouts(200, 5))
      assert.equal(1, #world.asked)
      assert.equal(200, #results)
      for _, result in ipairs(results) do
        assert.equal("block", result.action)
        -- Another worker looks again every now and then.
        assert.is_true(result.after < 1.1)
      end
      assert.equal(0, count_locks())
    end)
  end

  it("share a failure as well", function()
    world.answer = function()
      world:sleep(1)
      return failure "server"
    end
    for _, result in ipairs(decide_all(workers(4), same_timeouts(200, 5))) do
      assert.equal("unknown", result.action)
    end
    assert.equal(1, #world.asked)
  end)

  it("have it asked for once by each worker where there is no dict", function()
    answer_after(1)
    decide_all(workers(4, { dict = false }), same_timeouts(200, 5))
    assert.equal(4, #world.asked)
  end)

  it("do not wait for a lock where there is no room for one", function()
    world.dict.full = true
    answer_after(1)
    for _, result in ipairs(decide_all(workers(4), same_timeouts(200, 5))) do
      assert.same({ "block", 1 }, { result.action, result.after })
    end
    assert.equal(4, #world.asked)
  end)
end)

describe("whoever waits", function()
  for _, count in ipairs { 1, 2 } do
    local where = count == 1 and "in the same worker" or "in another"

    it("has a deadline of its own: " .. where, function()
      answer_after(3)
      local results = decide_all(workers(count), { 5, 1, 5, 2 })
      assert.same({ "block", "unknown", "block", "unknown" }, {
        results[1].action,
        results[2].action,
        results[3].action,
        results[4].action,
      })
      assert.is_true(results[2].after <= 1 + 1e-6)
      assert.is_true(results[4].after <= 2 + 1e-6)
      assert.is_true(results[1].after < 3.1 and results[3].after < 3.1)
      assert.equal(1, #world.asked)
    end)

    it("goes on where one with less time could not: " .. where, function()
      answer_after(2)
      local results = decide_all(workers(count), { 1, 5, 5, 5 })
      assert.equal("unknown", results[1].action)
      assert.equal(1, results[1].after)
      for index = 2, 4 do
        assert.equal("block", results[index].action)
        assert.is_true(results[index].after < 3.2)
      end
      assert.equal(2, #world.asked)
      -- The second may take what is left of its own time.
      assert.is_near(4, world.asked[2].seconds, 0.1)
    end)

    it("asks itself when who asked has raised: " .. where, function()
      local raised = false
      world.answer = function(address, network)
        world:sleep(1)
        if not raised then
          raised = true
          error("a bug", 0)
        end
        return world.decision("block", address, network)
      end
      local caches, results = workers(count), {}
      local bodies = {}
      for index = 1, 6 do
        bodies[index] = function()
          results[index] = caches[index % count + 1]:decide(ADDRESS, NETWORK, 5).action
        end
      end
      assert.has_error(function()
        world:run(bodies)
      end, "a bug")
      world:run()
      local blocked = 0
      for index = 1, 6 do
        blocked = blocked + (results[index] == "block" and 1 or 0)
      end
      assert.equal(5, blocked)
      assert.equal(2, #world.asked)
      assert.equal(0, count_locks())
    end)

    it("does not wait for ever for who has crashed: " .. where, function()
      answer_after(1)
      local caches = workers(count)
      local crashing = world:thread(function()
        caches[1]:decide(ADDRESS, NETWORK, 2)
      end)
      local result
      local waiting
      waiting = function()
        -- As long as the other has begun.
        world:sleep(0.5)
        world:kill(crashing)
        result = caches[count]:decide(ADDRESS, NETWORK, 10)
      end
      world:run { waiting }
      assert.equal("block", result.action)
      assert.equal(2, #world.asked)
      -- What the dead one has left is believed for its time and a moment.
      assert.is_true(world.time - started < 2 + 0.25 + 1 + 0.1)
    end)
  end

  it("is told what it may still use, when its time is up", function()
    answer_after(0)
    local cache = world:worker { ttl = { allow = 100 }, stale = { allow = 50 } }
    world.answer = function(address, network)
      return world.decision("allow", address, network)
    end
    world:call(cache.decide, cache, ADDRESS, NETWORK, 5)
    world.time = world.time + 100
    answer_after(3)
    started = world.time
    local results = decide_all({ cache }, { 5, 1 })
    assert.same({ "block", "upstream" }, { results[1].action, results[1].source })
    assert.same({ "allow", "stale", 1 }, { results[2].action, results[2].source, results[2].after })
    -- It is no answer for anybody with more time.
    assert.equal("block", (world:call(cache.decide, cache, ADDRESS, NETWORK, 5)).action)
  end)

  it("for another address waits for nobody", function()
    answer_after(2)
    local cache, after = world:worker(), nil
    world:run {
      function()
        cache:decide(ADDRESS, NETWORK, 5)
      end,
      function()
        world.answer = function(address, network)
          return world.decision("allow", address, network)
        end
        cache:decide(ADDRESS, "bsc", 5)
        after = world.time - started
      end,
    }
    assert.equal(0, after)
  end)
end)

describe("a lock", function()
  it("is taken by nobody where there is one worker", function()
    local cache = world:worker()
    world.answer = function(address, network)
      assert.equal(0, count_locks())
      return world.decision("allow", address, network)
    end
    world:call(cache.decide, cache, ADDRESS, NETWORK)
    assert.equal(1, #world.asked)
  end)

  it("that has become another's is left to it", function()
    local caches = workers(2)
    world.answer = function(address, network)
      for key, entry in pairs(world.dict.entries) do
        if key:find("lock", 1, true) then
          entry.value = "another's"
        end
      end
      return world.decision("allow", address, network)
    end
    world:call(caches[1].decide, caches[1], ADDRESS, NETWORK)
    assert.equal(1, count_locks())
  end)
end)
