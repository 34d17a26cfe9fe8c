-- The circuit and the rate limit that workers share: several workers over one dict.
local breakers = require "riskscreen.call.breaker"
local buckets = require "riskscreen.call.limiter.bucket"
local shared_dict = require "spec.support.shared_dict"
local tables = require "riskscreen.util.tables"

local now, dict

local function clock()
  return now
end

before_each(function()
  now = 1000
  dict = shared_dict.new(clock)
end)

describe("a circuit that workers share", function()
  local function new_breaker(more, name)
    local settings = { failures = 3, share = 0.5, minimum = 10, window = 10, cooldown = 5, probes = 1 }
    return breakers.new(tables.merge(settings, more), clock, dict, name or "name")
  end

  local function finish(breaker, times, failed)
    for _ = 1, times do
      breaker:report(assert(breaker:admit(1)), failed)
    end
  end

  local function fail(breaker, times)
    finish(breaker, times, true)
  end

  local function succeed(breaker, times)
    finish(breaker, times, false)
  end

  it("opens for all when it opens for one", function()
    local first, second = new_breaker(), new_breaker()
    fail(first, 3)
    assert.is_nil((second:admit(1)))
    assert.same({ state = "open", opened = 1, retry_after = 5 }, second:status())
  end)

  it("opens by failures in a row of which each worker has seen one", function()
    local workers = { new_breaker(), new_breaker(), new_breaker() }
    for _, worker in ipairs(workers) do
      fail(worker, 1)
    end
    now = now + 0.001 -- a worker looks once for each value of the clock
    for _, worker in ipairs(workers) do
      assert.is_nil((worker:admit(1)))
    end
  end)

  it("stays closed when a worker has seen a success between the failures", function()
    local first, second = new_breaker { share = 1 }, new_breaker { share = 1 }
    for _ = 1, 3 do
      fail(first, 2)
      now = now + 0.001
      succeed(second, 1)
    end
    assert.is_nil(first:refuses())
    fail(second, 3)
    assert.is_number(first:refuses())
  end)

  it("opens for all when one worker's share of failures is reached", function()
    local first, second = new_breaker { failures = 100 }, new_breaker { failures = 100 }
    succeed(first, 5)
    fail(first, 5)
    assert.is_number(second:refuses())
  end)

  it("ignores requests that were under way when it opened", function()
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
    assert.same({ "closed", 1 }, { first:status().state, second:status().opened })
    assert.is_nil(second:refuses())
  end)

  it("lets one worker send a probe, which closes it for all", function()
    local first, second = new_breaker(), new_breaker()
    fail(first, 3)
    now = now + 5
    local probe = assert(second:admit(1))
    assert.is_nil((first:admit(1)))
    second:report(probe, false)
    assert.is_table((first:admit(1)))
    assert.equal("closed", first:status().state)
  end)

  it("stays open for all when the probe of one fails", function()
    local first, second = new_breaker(), new_breaker()
    fail(first, 3)
    now = now + 5
    fail(second, 1)
    assert.same({ state = "open", opened = 2, retry_after = 5 }, first:status())
  end)

  it("closes when enough probes have succeeded, whichever workers have sent them", function()
    local first, second = new_breaker { probes = 2 }, new_breaker { probes = 2 }
    fail(first, 3)
    now = now + 5
    succeed(first, 1)
    assert.equal("half_open", second:status().state)
    succeed(second, 1)
    assert.equal("closed", first:status().state)
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

  it("ignores a probe that another worker has replaced", function()
    local first, second = new_breaker(), new_breaker()
    fail(first, 3)
    now = now + 5
    local late = assert(first:admit(2))
    now = now + 2
    assert(second:admit(2))
    first:report(late, false)
    assert.is_nil((first:admit(2)))
  end)

  it("closes when the dict has lost it, and works again", function()
    local breaker = new_breaker()
    fail(breaker, 3)
    dict:evict "."
    assert.is_nil(breaker:refuses())
    fail(breaker, 3)
    assert.near(5, breaker:refuses(), 1e-9)
  end)

  it("is each worker's own when the dict has no room", function()
    dict.full = true
    local first, second = new_breaker(), new_breaker()
    fail(first, 3)
    assert.equal("open", first:status().state)
    assert.is_nil(second:refuses())
    now = now + 5
    first:forget(assert(first:admit(1)))
    succeed(first, 1)
    assert.equal("closed", first:status().state)
  end)

  it("survives foreign values in its place", function()
    fail(new_breaker(), 3)
    for key in pairs(dict.entries) do
      dict:set(key, "foreign")
    end
    local breaker = new_breaker()
    fail(breaker, 3)
    assert.equal("open", breaker:status().state)
  end)

  it("is another one under another name", function()
    fail(new_breaker(), 3)
    assert.is_nil(new_breaker(nil, "another"):refuses())
  end)
end)

describe("a bucket that workers share", function()
  local function new_bucket(rate, burst)
    return buckets.new({ rate = rate, burst = burst }, clock, dict, "name")
  end

  local function take_all(workers)
    local taken = 0
    for _, bucket in ipairs(workers) do
      while bucket:claim(1) <= 0 do
        taken = taken + 1
      end
    end
    return taken
  end

  it("has one burst for all", function()
    assert.equal(5, take_all { new_bucket(10, 5), new_bucket(10, 5), new_bucket(10, 5) })
  end)

  it("keeps the sum over all workers within the rate", function()
    for _, case in ipairs { { 10, 5 }, { 2.5, 2.5 }, { 0.1, 1 }, { 40, 1 } } do
      dict:evict "."
      local rate, burst = case[1], case[2]
      local workers, taken, step = {}, 0, 0.1 / rate
      for index = 1, 4 do
        workers[index] = new_bucket(rate, burst)
      end
      local started = now
      for _ = 1, 2000 do
        taken = taken + take_all(workers)
        now = now + step
      end
      local earned = rate * (now - started)
      assert.is_true(taken <= earned + 2 * burst, ("%d of %g at %g a second"):format(taken, earned, rate))
      assert.is_true(taken >= 0.9 * earned, ("%d of %g at %g a second"):format(taken, earned, rate))
    end
  end)

  it("says after which time there is a token", function()
    local first, second = new_bucket(10, 5), new_bucket(10, 5)
    take_all { first }
    local wait = second:wait(1)
    assert.is_true(wait > 0 and wait <= 0.5)
    assert.equal(wait, second:claim(1))
    now = now + wait + 1e-6
    assert.equal(0, second:claim(1))
  end)

  it("gives back a token that was not used", function()
    local first, second = new_bucket(10, 5), new_bucket(10, 5)
    take_all { first }
    first:refund(1)
    assert.equal(1, take_all { second })
  end)

  it("pauses and slows down all workers when one was refused", function()
    local first, second = new_bucket(10, 5), new_bucket(10, 5)
    first:refused(2)
    assert.near(2, second:status().paused, 1e-9)
    assert.near(5, second:status().rate, 1e-9)
    assert.is_true(second:claim(1) >= 2)
    now = now + 2
    assert.near(0.2, second:wait(1), 0.01)
  end)

  it("learns one lesson from refusals of requests that several workers had under way", function()
    local first, second = new_bucket(10, 5), new_bucket(10, 5)
    first:refused(2)
    second:refused(3)
    assert.near(5, first:status().rate, 1e-9)
    assert.near(3, first:status().paused, 1e-9)
  end)

  it("is as it was for workers that come later, as after a reload", function()
    local bucket = new_bucket(10, 5)
    take_all { bucket }
    assert.is_true(new_bucket(10, 5):claim(1) > 0)
    bucket:refused(4)
    assert.near(4, new_bucket(10, 5):status().paused, 1e-9)
  end)

  it("is each worker's own when the dict has no room", function()
    dict.full = true
    local first, second = new_bucket(10, 5), new_bucket(10, 5)
    assert.equal(10, take_all { first, second })
    first:refused(2)
    assert.near(2.2, first:wait(1), 0.01)
  end)

  it("survives foreign values in its place", function()
    local bucket = new_bucket(10, 5)
    take_all { bucket }
    bucket:refused(2)
    for key in pairs(dict.entries) do
      dict:set(key, "foreign")
    end
    assert.equal(5, take_all { new_bucket(10, 5) })
  end)
end)
