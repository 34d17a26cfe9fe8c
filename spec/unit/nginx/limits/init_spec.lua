-- The circuit and the bucket that workers share: several of them over one dict, in every order of their steps.
local limiters = require "riskscreen.call.limiter"
local random = require "spec.support.random"
local shared_breakers = require "riskscreen.nginx.limits.breaker"
local shared_buckets = require "riskscreen.nginx.limits.bucket"
local shared_dict = require "spec.support.shared_dict"
local virtual_time = require "spec.support.virtual_time"

local now, dict

local function clock()
  return now
end

local function begin()
  now = 1000
  dict = shared_dict.new(clock)
end

before_each(begin)

local BREAKER = { failures = 3, share = 0.5, minimum = 10, window = 10, cooldown = 5, probes = 1 }

local function new_breaker(more)
  local settings = {}
  for name, value in pairs(BREAKER) do
    settings[name] = value
  end
  for name, value in pairs(more or {}) do
    settings[name] = value
  end
  return shared_breakers.new(settings, clock, dict, "name")
end

local function fail(breaker, times)
  for _ = 1, times do
    breaker:report(assert(breaker:admit(1)), true)
  end
end

local function succeed(breaker, times)
  for _ = 1, times do
    breaker:report(assert(breaker:admit(1)), false)
  end
end

-- Runs functions side by side as workers run: another one goes on after any step at the dict, in an order drawn at
-- random; with `deadly`, one of them ends at such a step for ever.
local function side_by_side(seed, bodies, deadly)
  local draw = random.new(seed).integer
  local stepping = setmetatable({}, {
    __index = function(_, name)
      return function(_, ...)
        coroutine.yield()
        return dict[name](dict, ...)
      end
    end,
  })
  local threads = {}
  for index, body in ipairs(bodies) do
    threads[index] = coroutine.create(body)
  end
  local dies_after = deadly and draw(60) or math.huge
  local steps = 0
  while threads[1] do
    local index = draw(#threads)
    steps = steps + 1
    assert(coroutine.resume(threads[index], stepping))
    if coroutine.status(threads[index]) == "dead" or steps == dies_after then
      table.remove(threads, index)
    end
  end
end

local ORDERS = 300

-- What has `dict` used through another.
local function through(thing, other)
  thing.dict = other
  return thing
end

describe("a circuit that workers share", function()
  it("opens for all by failures that each has seen one of", function()
    local workers = { new_breaker(), new_breaker(), new_breaker() }
    for _, worker in ipairs(workers) do
      fail(worker, 1)
    end
    for _, worker in ipairs(workers) do
      assert.is_nil((worker:admit(1)))
      assert.equal("open", worker:standing().state)
      assert.equal(1, worker:standing().opened)
    end
  end)

  it("is opened only by failures with no success in between, whichever worker has seen it", function()
    local first, second = new_breaker { share = 1 }, new_breaker { share = 1 }
    for _ = 1, 3 do
      fail(first, 2)
      succeed(second, 1)
      succeed(second, 1)
    end
    assert.is_nil(first:refuses())
    fail(second, 3)
    assert.is_number(first:refuses())
  end)

  it("is opened by the share of failures among the requests of all", function()
    local first, second = new_breaker { failures = 100 }, new_breaker { failures = 100 }
    succeed(second, 6)
    now = now + 0.5
    succeed(second, 1)
    fail(first, 6)
    assert.is_nil(second:refuses())
    fail(second, 1)
    assert.is_number(first:refuses())
  end)

  it("counts the failures and successes of a window, and not earlier ones", function()
    local first, second = new_breaker { failures = 100 }, new_breaker { failures = 100 }
    fail(first, 9)
    now = now + 11
    succeed(second, 1)
    succeed(first, 1)
    fail(second, 1)
    succeed(first, 7)
    assert.is_nil(first:refuses())
    fail(second, 7)
    assert.is_nil(first:refuses())
    fail(first, 1)
    assert.is_number(second:refuses())
  end)

  it("forgets what was under way when it opened", function()
    local first, second = new_breaker(), new_breaker()
    local before = { assert(first:admit(1)), assert(first:admit(1)), assert(second:admit(1)) }
    fail(second, 3)
    now = now + 5
    local probe = assert(second:admit(1))
    first:report(before[1], false)
    first:report(before[2], true)
    second:report(before[3], true)
    assert.is_number(first:refuses())
    second:report(probe, false)
    first:report(before[2], true)
    assert.same({ "closed", 1 }, { first:standing().state, second:standing().opened })
    assert.is_nil(second:refuses())
  end)

  it("is closed for all by the probe of one", function()
    local first, second = new_breaker(), new_breaker()
    fail(first, 3)
    now = now + 5
    local probe = assert(second:admit(1))
    assert.is_nil((first:admit(1)))
    second:report(probe, false)
    assert.is_table((first:admit(1)))
    assert.equal("closed", first:standing().state)
  end)

  it("is there for workers that come later, as after a reload", function()
    fail(new_breaker(), 3)
    assert.equal(5, new_breaker():refuses())
  end)

  it("lets another probe through when the worker of one has crashed", function()
    fail(new_breaker(), 3)
    now = now + 5
    assert(new_breaker():admit(2))
    assert.equal(2, new_breaker():refuses())
    now = now + 2
    assert.is_table((new_breaker():admit(2)))
  end)

  it("closes when the dict has lost it, and works again", function()
    local breaker = new_breaker()
    fail(breaker, 3)
    dict:evict "."
    assert.is_nil(breaker:refuses())
    fail(breaker, 3)
    assert.is_near(5, breaker:refuses(), 1e-9)
  end)

  it("is each worker's own while the dict has no room", function()
    dict.full = true
    local first, second = new_breaker(), new_breaker()
    fail(first, 3)
    assert.equal("open", first:standing().state)
    assert.is_nil(second:refuses())
    now = now + 5
    local probe = assert(first:admit(1))
    first:forget(probe)
    first:report(assert(first:admit(1)), false)
    assert.equal("closed", first:standing().state)
  end)

  it("does not wait for room in the dict to try the service again", function()
    local breaker = new_breaker()
    fail(breaker, 3)
    now = now + 5
    dict.full = true
    breaker:report(assert(breaker:admit(1)), false)
    assert.is_nil(breaker:refuses())
  end)

  it("survives whatever else is in its place", function()
    fail(new_breaker(), 3)
    for key in pairs(dict.entries) do
      dict:set(key, "not ours")
    end
    local breaker = new_breaker()
    assert.is_table((breaker:admit(1)))
    fail(breaker, 3)
    assert.equal("open", breaker:standing().state)
  end)

  it("is another's under another name", function()
    fail(new_breaker(), 3)
    assert.is_nil(shared_breakers.new(BREAKER, clock, dict, "another"):refuses())
  end)

  it("opens once, whatever the order of the workers' steps", function()
    for seed = 1, ORDERS do
      begin()
      local bodies = {}
      for index = 1, 4 do
        bodies[index] = function(stepping)
          local breaker = through(new_breaker(), stepping)
          for _ = 1, 2 do
            local permit = breaker:admit(1)
            if permit then
              breaker:report(permit, true)
            end
          end
        end
      end
      side_by_side(seed, bodies)
      local standing = new_breaker():standing()
      assert.same({ "open", 1 }, { standing.state, standing.opened })
    end
  end)

  it("has as many probes under way as it shall, whatever the order", function()
    for seed = 1, ORDERS do
      begin()
      fail(new_breaker(), 3)
      now = now + 5
      local permits, bodies = {}, {}
      for index = 1, 4 do
        bodies[index] = function(stepping)
          local breaker = through(new_breaker { probes = 2 }, stepping)
          local permit = breaker:admit(1)
          table.insert(permits, permit)
        end
      end
      side_by_side(seed, bodies)
      assert.equal(2, #permits)
    end
  end)

  it("is as its probes say that end together, whatever the order", function()
    for seed = 1, ORDERS do
      for _, failed in ipairs { 0, 1, 2 } do
        begin()
        fail(new_breaker(), 3)
        now = now + 5
        local bodies = {}
        for index = 1, 2 do
          local breaker = new_breaker { probes = 2 }
          local permit = assert(breaker:admit(1))
          bodies[index] = function(stepping)
            through(breaker, stepping):report(permit, index <= failed)
          end
        end
        side_by_side(seed, bodies)
        local standing = new_breaker({ probes = 2 }):standing()
        local expected = failed > 0 and { "open", 2 } or { "closed", 1 }
        assert.same(expected, { standing.state, standing.opened })
      end
    end
  end)

  it("does not stay open for good when a worker dies at any step", function()
    for seed = 1, ORDERS do
      begin()
      local bodies = {}
      for index = 1, 3 do
        bodies[index] = function(stepping)
          local breaker = through(new_breaker { failures = 1 }, stepping)
          for turn = 1, 4 do
            local permit = breaker:admit(1)
            if permit then
              breaker:report(permit, turn < 3)
            end
            now = now + 2
          end
        end
      end
      side_by_side(seed, bodies, true)
      local breaker = new_breaker()
      for _ = 1, 3 do
        now = now + 5
        local permit = breaker:admit(1)
        if permit then
          breaker:report(permit, false)
        end
      end
      assert.equal("closed", breaker:standing().state)
    end
  end)
end)

describe("a bucket that workers share", function()
  local function new_bucket(rate, burst)
    return shared_buckets.new({ rate = rate, burst = burst }, clock, dict, "name")
  end

  local function take_all(buckets)
    local taken = 0
    for _, bucket in ipairs(buckets) do
      while bucket:take() do
        taken = taken + 1
      end
    end
    return taken
  end

  it("has one burst for all, and one rate", function()
    local workers = { new_bucket(10, 5), new_bucket(10, 5), new_bucket(10, 5) }
    assert.equal(5, take_all(workers))
    now = now + 0.3
    assert.equal(3, take_all(workers))
    now = now + 3600
    assert.equal(5, take_all(workers))
  end)

  it("is as slow for all as one has learnt that it must be", function()
    local first, second = new_bucket(10, 5), new_bucket(10, 5)
    first:refused(2)
    assert.is_near(2, second:standing().paused, 1e-9)
    assert.is_near(5, second:standing().rate, 1e-9)
    assert.is_false(second:take())
    now = now + 2
    assert.is_false(second:take())
    assert.is_near(0.2, second:wait(), 0.01)
  end)

  it("learns one lesson from refusals of requests that several workers had under way", function()
    local first, second = new_bucket(10, 5), new_bucket(10, 5)
    first:refused(2)
    second:refused(3)
    assert.is_near(5, first:standing().rate, 1e-9)
    assert.is_near(3, first:standing().paused, 1e-9)
  end)

  it("is as it was for workers that come later, as after a reload", function()
    local bucket = new_bucket(10, 5)
    take_all { bucket }
    assert.is_false(new_bucket(10, 5):take())
    bucket:refused(4)
    assert.is_near(4, new_bucket(10, 5):standing().paused, 1e-9)
  end)

  it("saves no more than a smaller burst after a reload with other settings", function()
    new_bucket(10, 50):take()
    assert.equal(3, take_all { new_bucket(10, 3) })
  end)

  it("is full when the dict has lost it, and never empty for good", function()
    local bucket = new_bucket(10, 5)
    take_all { bucket }
    dict:evict "."
    assert.equal(5, take_all { bucket })
    dict:set("riskscreen:bucket:name:spent", now + 1e9)
    assert.equal(0, take_all { bucket })
    now = now + 0.1
    assert.equal(1, take_all { bucket })
  end)

  it("is each worker's own while the dict has no room", function()
    dict.full = true
    local first, second = new_bucket(10, 5), new_bucket(10, 5)
    assert.equal(10, take_all { first, second })
    first:refused(2)
    assert.is_near(2, first:standing().paused, 1e-9)
    assert.is_near(2.2, first:wait(), 0.01)
  end)

  it("survives whatever else is in its place", function()
    local bucket = new_bucket(10, 5)
    bucket:refused(2)
    for key in pairs(dict.entries) do
      dict:set(key, "not ours")
    end
    assert.equal(5, take_all { new_bucket(10, 5) })
  end)

  it("gives back what a line has reserved and nobody used", function()
    local first, second = new_bucket(1, 1), new_bucket(1, 1)
    assert.equal(1, take_all { first })
    assert.is_near(1, first:claim(), 1e-9)
    assert.is_near(2, second:wait(), 1e-9)
    first:leave()
    assert.is_near(1, second:wait(), 1e-9)
  end)

  it("never gives more than there is, whatever the order of the workers' steps", function()
    for seed = 1, ORDERS do
      begin()
      local taken, bodies = 0, {}
      for index = 1, 4 do
        bodies[index] = function(stepping)
          local bucket = through(new_bucket(10, 3), stepping)
          for _ = 1, 3 do
            if bucket:take() then
              taken = taken + 1
            end
          end
        end
      end
      -- Long unused: every worker sees that there is more than a burst.
      new_bucket(10, 3):take()
      now = now + 1000
      side_by_side(seed, bodies)
      assert.is_true(taken <= 3)
      assert.equal(3, taken + take_all { new_bucket(10, 3) })
      now = now + 0.2
      assert.equal(2, take_all { new_bucket(10, 3) })
      now = now + 1000
      assert.equal(3, take_all { new_bucket(10, 3) })
    end
  end)

  it("gives no more than a burst when a worker dies at any step after a long time", function()
    for seed = 1, ORDERS do
      begin()
      new_bucket(10, 3):take()
      now = now + 1000
      local taken, bodies = 0, {}
      for index = 1, 3 do
        bodies[index] = function(stepping)
          local bucket = through(new_bucket(10, 3), stepping)
          for _ = 1, 3 do
            if bucket:claim() <= 0 then
              taken = taken + 1
            end
          end
          bucket:leave()
        end
      end
      side_by_side(seed, bodies, true)
      assert.is_true(taken <= 3, taken)
      now = now + 120
      assert.equal(3, take_all { new_bucket(10, 3) })
    end
  end)

  it("is not empty for good when a worker dies at any step", function()
    for seed = 1, ORDERS do
      begin()
      local bodies = {}
      for index = 1, 3 do
        bodies[index] = function(stepping)
          local bucket = through(new_bucket(10, 3), stepping)
          bucket:take()
          bucket:claim()
          bucket:refused(1)
          bucket:claim()
          bucket:leave()
          bucket:refund()
        end
      end
      side_by_side(seed, bodies, true)
      now = now + 120
      assert.equal(3, take_all { new_bucket(10, 3) })
    end
  end)
end)

describe("the lines of several workers", function()
  local time, order

  before_each(function()
    time = virtual_time.new()
    dict = shared_dict.new(time.now)
    order = {}
  end)

  local function new_worker()
    local settings = { rate = 1, burst = 1 }
    return limiters.new(settings, time, shared_buckets.new(settings, time.now, dict, "name"))
  end

  local function waiting(worker, name, priority, deadline)
    return time.tasks.spawn(function()
      if worker:acquire(priority or "normal", deadline or 1000) then
        order[#order + 1] = name
      end
    end)
  end

  it("get their tokens in turn, however long one of them is", function()
    local first, second = new_worker(), new_worker()
    assert.is_true(first:try())
    time.tasks.run(function()
      for index = 1, 4 do
        waiting(first, "a" .. index)
      end
      waiting(second, "b1")
      waiting(second, "b2")
    end)
    assert.same({ "a1", "b1", "a2", "b2", "a3", "a4" }, order)
    assert.is_near(6, time.now(), 1e-6)
  end)

  it("let those of higher priority pass, each line its own", function()
    local first, second = new_worker(), new_worker()
    assert.is_true(first:try())
    time.tasks.run(function()
      waiting(first, "a low", "low")
      waiting(second, "b normal")
      time.sleep(0.5)
      waiting(first, "a high", "high")
      waiting(first, "a normal")
    end)
    assert.same({ "a high", "b normal", "a normal", "a low" }, order)
  end)

  it("leave no gap where a line gives up", function()
    local first, second = new_worker(), new_worker()
    assert.is_true(first:try())
    time.tasks.run(function()
      local given_up = waiting(first, "a")
      time.sleep(0.5)
      given_up:cancel()
      time.sleep(0)
      waiting(second, "b")
    end)
    assert.same({ "b" }, order)
    assert.is_near(1, time.now(), 1e-6)
  end)

  it("all wait where the service has refused one of them", function()
    local first, second = new_worker(), new_worker()
    assert.is_true(first:try())
    time.tasks.run(function()
      waiting(first, "a")
      waiting(second, "b")
      time.sleep(0.5)
      second:refused(10)
    end)
    assert.equal(2, #order)
    assert.is_true(time.now() > 10.5 + 1)
  end)
end)
