-- Many callers that want the same address at the same time, in one or several workers. Each has its own deadline, and
-- the caller that fetches for all may fail or crash.
local errors = require "riskscreen.errors"
local tables = require "riskscreen.util.tables"
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
      local decision, source = cache:get(ADDRESS, NETWORK, timeout)
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

describe("two hundred callers", function()
  for _, count in ipairs { 1, 4 } do
    it(("cause one fetch, with %d workers"):format(count), function()
      answer_after(1)
      local results = decide_all(workers(count), same_timeouts(200, 5))
      assert.equal(1, #world.asked)
      assert.equal(200, #results)
      for _, result in ipairs(results) do
        assert.equal("block", result.action)
        -- Another worker looks into the dict at intervals.
        assert.is_true(result.after < 1.1)
      end
      assert.equal(0, count_locks())
    end)
  end

  it("get the copy without records, but for the first of them, also if the LRU is full", function()
    local cache = world:worker { lru = 2 }
    for index = 1, 4 do
      world:call(cache.get, cache, "address " .. index, NETWORK)
    end
    answer_after(1)
    local found, bodies = {}, {}
    for index = 1, 200 do
      bodies[index] = function()
        found[index] = cache:get(ADDRESS, NETWORK, 5)
      end
    end
    world:run(bodies)
    local own = 0
    for _, decision in ipairs(found) do
      assert.equal("block", decision.action)
      assert.equal(decision.cached, decision.records == nil)
      own = own + (decision.cached and 0 or 1)
    end
    assert.same({ 1, 200 }, { own, #found })
  end)

  it("share a failure", function()
    world.answer = function()
      world:sleep(1)
      return failure "server"
    end
    for _, result in ipairs(decide_all(workers(4), same_timeouts(200, 5))) do
      assert.equal("unknown", result.action)
    end
    assert.equal(1, #world.asked)
  end)

  it("cause one fetch in each worker if there is no dict", function()
    answer_after(1)
    decide_all(workers(4, { dict = false }), same_timeouts(200, 5))
    assert.equal(4, #world.asked)
  end)

  it("do not wait for a lock if the dict has no room", function()
    world.dict.full = true
    answer_after(1)
    for _, result in ipairs(decide_all(workers(4), same_timeouts(200, 5))) do
      assert.same({ "block", 1 }, { result.action, result.after })
    end
    assert.equal(4, #world.asked)
  end)
end)

describe("a caller that waits", function()
  for _, count in ipairs { 1, 2 } do
    local where = count == 1 and "in the same worker" or "in another"

    it("has its own deadline: " .. where, function()
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

    it("fetches itself after a caller with less time has timed out: " .. where, function()
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

    it("fetches itself after the fetch has raised an error: " .. where, function()
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
          results[index] = caches[index % count + 1]:get(ADDRESS, NETWORK, 5).action
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

    it("does not wait for ever for a caller that has crashed: " .. where, function()
      answer_after(1)
      local caches = workers(count)
      local crashing = world:thread(function()
        caches[1]:get(ADDRESS, NETWORK, 2)
      end)
      local result
      local waiting
      waiting = function()
        world:sleep(0.5)
        world:kill(crashing)
        world.date = world.date - 86400 -- the dict's own expiry follows the date
        result = caches[count]:get(ADDRESS, NETWORK, 10)
      end
      world:run { waiting }
      assert.equal("block", result.action)
      assert.equal(2, #world.asked)
      -- A crashed fetch is believed for its time and a moment.
      assert.is_true(world.time - started < 2 + 0.25 + 1 + 0.1)
    end)
  end

  it("gets the stale decision at its deadline", function()
    answer_after(0)
    local cache = world:worker { ttl = { allow = 100 }, stale = { allow = 50 } }
    world.answer = function(address, network)
      return world.decision("allow", address, network)
    end
    world:call(cache.get, cache, ADDRESS, NETWORK, 5)
    world.time = world.time + 100
    answer_after(3)
    started = world.time
    local results = decide_all({ cache }, { 5, 1 })
    assert.same({ "block", "upstream" }, { results[1].action, results[1].source })
    assert.same({ "allow", "stale", 1 }, { results[2].action, results[2].source, results[2].after })
    assert.equal("block", (world:call(cache.get, cache, ADDRESS, NETWORK, 5)).action)
  end)

  it("does not wait for another address", function()
    answer_after(2)
    local cache, after = world:worker(), nil
    world:run {
      function()
        cache:get(ADDRESS, NETWORK, 5)
      end,
      function()
        world.answer = function(address, network)
          return world.decision("allow", address, network)
        end
        cache:get(ADDRESS, "bsc", 5)
        after = world.time - started
      end,
    }
    assert.equal(0, after)
  end)
end)

describe("a lock", function()
  it("is not taken if there is one worker", function()
    local cache = world:worker()
    world.answer = function(address, network)
      assert.equal(0, count_locks())
      return world.decision("allow", address, network)
    end
    world:call(cache.get, cache, ADDRESS, NETWORK)
    assert.equal(1, #world.asked)
  end)

  it("is not needed for a later answer to stay where a reload leaves the single worker of before", function()
    local single = {
      is_alone = function()
        return true
      end,
      lru = 0,
    }
    local after = world:worker(single)
    single.exiting = single.is_alone
    local before = world:worker(single)
    world.answer = function(address, network)
      local is_first = #world.asked == 1
      world:sleep(is_first and 2 or 0)
      return world.decision(is_first and "allow" or "block", address, network)
    end
    local late
    world:run {
      function()
        late = before:get(ADDRESS, NETWORK, 5)
      end,
      function()
        world:sleep(0.5)
        after:get(ADDRESS, NETWORK, 5)
      end,
    }
    local decision, source = world:call(after.get, after, ADDRESS, NETWORK, 5)
    assert.same({ "block", "block", "dict" }, { late.action, decision.action, source })
  end)

  it("is taken in vain if another worker has fetched just before", function()
    local first, second = world:worker(), world:worker()
    local add = world.dict.add
    world.dict.add = function(dict, ...)
      world.dict.add = add
      assert.equal("allow", first:get(ADDRESS, NETWORK).action)
      return add(dict, ...)
    end
    local decision, source = world:call(second.get, second, ADDRESS, NETWORK)
    assert.same({ "allow", "dict" }, { decision.action, source })
    assert.equal(1, #world.asked)
    assert.equal(0, count_locks())
  end)
end)

-- A list is asked before anything kept is used, also by the callers that have waited.
describe("an address that comes onto a list during a fetch", function()
  for _, who in ipairs { "fetches", "waits for another worker" } do
    it(("is blocked at once in the worker that %s"):format(who), function()
      local listed = false
      local lists = {
        start = function() end,
        find = function()
          return listed and world.decision "block" or nil
        end,
        generation = function()
          return listed and 2 or 1
        end,
      }
      local first, second = world:worker(), world:worker { lists = lists }
      answer_after(1, "allow")
      world:run {
        function()
          (who == "fetches" and second or first):get(ADDRESS, NETWORK, 5)
        end,
        function()
          world:sleep(0.1)
          assert.equal("block", second:get(ADDRESS, NETWORK, 5).action)
        end,
        function()
          world:sleep(0.5)
          listed = true
          assert.equal("block", second:get("another", "tron").action)
        end,
      }
      local decision, source = world:call(second.get, second, ADDRESS, NETWORK)
      assert.same({ "block", "list" }, { decision.action, source })
    end)
  end
end)

-- nginx tells the time in milliseconds, and its clock stands still during a shorter wait. A caller that repeats such a
-- wait would stop the worker for ever.
describe("a deadline less than a millisecond away", function()
  local now, count, cache

  local function wait(seconds)
    count = count + 1
    assert(count < 10000, "waits for ever")
    now = now + (seconds >= 0.001 and math.floor(seconds / 0.001) * 0.001 or 0)
  end

  local function new_cache(settings)
    now, count = 1000, 0
    local function clock()
      return now
    end
    settings.clock, settings.sleep, settings.pcall = clock, wait, pcall
    function settings.holder()
      return "one"
    end
    settings.lru, settings.is_alone = 0, settings.is_alone or function()
      return false
    end
    settings.new_semaphore = function()
      return {
        wait = function(_, seconds)
          wait(seconds)
        end,
        post = function() end,
      }
    end
    return require("riskscreen.nginx.cache").new(tables.merge(worlds.without_nginx, settings))
  end

  local function block()
    return { action = "block", reasons = {} }
  end

  it("ends the wait for another worker's lock", function()
    for step = 1, 50 do
      cache = new_cache {
        fetch = error,
        dict = {
          add = function()
            return nil, "exists"
          end,
          get = function(_, key)
            return key:find "lock" and "9999 two" or nil
          end,
          incr = function()
            return nil, "no memory"
          end,
        },
      }
      now = now + step / 7
      assert.equal("timeout", (cache:get(ADDRESS, NETWORK, 0.01 + step * 0.00037)).error.kind)
    end
  end)

  it("ends the wait for another caller in the worker", function()
    for step = 1, 50 do
      local inner
      cache = new_cache {
        fetch = function()
          inner = cache:get(ADDRESS, NETWORK, 0.01 + step * 0.00037)
          return block()
        end,
      }
      now = now + step / 7
      cache:get(ADDRESS, NETWORK, 10)
      assert.equal("timeout", inner.error.kind)
    end
  end)

  it("makes the next caller replace a fetch that has all but died", function()
    local inner, depth = nil, 0
    cache = new_cache {
      fetch = function()
        depth = depth + 1
        if depth == 1 then
          -- Of the time until it counts as dead, a fraction of a millisecond is left.
          now = now + 0.01 + 0.25 - 0.0004
          inner = cache:get(ADDRESS, NETWORK, 5)
        end
        return block()
      end,
    }
    cache:get(ADDRESS, NETWORK, 0.01)
    assert.equal("block", inner.action)
  end)
end)

describe("a fetch that runs outside of its request", function()
  -- Settings of a worker whose requests may end early. Its timers run with the other threads, or never; without a
  -- value, nginx has none.
  local function outside(runs, version)
    return {
      version = version,
      may_end = function()
        return true
      end,
      spawn = function(work)
        if runs then
          world:thread(work)
        end
        return runs ~= nil or nil
      end,
    }
  end

  it("gives its result to all callers, and its error to the first", function()
    answer_after(1)
    for _, result in ipairs(decide_all(workers(2, outside(true)), same_timeouts(20, 5))) do
      assert.equal("block", result.action)
    end
    assert.equal(1, #world.asked)
    assert.equal(0, count_locks())
    world.answer = function()
      error "the fetch is broken"
    end
    local ok, message = pcall(decide_all, workers(1, outside(true, "1")), { 5 })
    assert.is_false(ok)
    assert.matches("the fetch is broken", message)
  end)

  it("leaves its caller time to hear of a timeout", function()
    answer_after(10)
    local results = decide_all(workers(1, outside(true)), { 2 })
    assert.same({ { action = "unknown", source = "upstream", after = 2 } }, results)
    assert.equal(1, #world.asked)
  end)

  it("runs in its request if there is no timer, or nginx does not start it", function()
    answer_after(1)
    for _, case in ipairs { { outside(nil, "1"), 1 }, { outside(false, "2"), 1.05 } } do
      started = world.time
      local results = decide_all(workers(1, case[1]), same_timeouts(20, 5))
      assert.equal(20, #results)
      for _, result in ipairs(results) do
        assert.equal("block", result.action)
        assert.near(case[2], result.after, 0.001)
      end
    end
    assert.equal(2, #world.asked)
  end)
end)
