local ttl_queue = require "riskscreen.util.ttl_queue"

describe("a ttl_queue", function()
  local time

  local function now()
    return time
  end

  before_each(function()
    time = 0
  end)

  -- How many entries it holds in memory, also those that it no longer returns.
  local function held(queue)
    local count = 0
    for _, generation in ipairs(queue.generations) do
      for _ in pairs(generation.entries) do
        count = count + 1
      end
    end
    return count
  end

  it("returns a value for its time, and the latest one of a key", function()
    local queue = ttl_queue.new(10, 100, now)
    queue:put("a", 1)
    time = 50
    queue:put("a", 2)
    queue:put("b", 3)
    time = 149
    assert.same({ 2, 3 }, { queue:get "a", (queue:get "b") })
    time = 150
    assert.is_nil(queue:get "a")
  end)

  it("ends each value at its own time, whatever came with it", function()
    local queue = ttl_queue.new(10, 100, now)
    queue:put("early", 1)
    time = 20
    queue:put("late", 2)
    time = 100
    assert.is_nil(queue:get "early")
    assert.equal(2, queue:get "late")
  end)

  it("drops each value beyond its limit, whatever came with it", function()
    local queue = ttl_queue.new(10, 100, now)
    for index = 1, 11 do
      queue:put("k" .. index, index)
    end
    assert.is_nil(queue:get "k1")
    assert.equal(2, queue:get "k2")
  end)

  it("drops the oldest beyond its limit", function()
    local queue = ttl_queue.new(3, 100, now)
    for index = 1, 5 do
      queue:put("k" .. index, index)
    end
    assert.same({ nil, nil, 3, 4, 5 }, {
      queue:get "k1",
      queue:get "k2",
      queue:get "k3",
      queue:get "k4",
      queue:get "k5",
    })
  end)

  it("holds no more in memory than a quarter above its time and its limit", function()
    local slow, quick = ttl_queue.new(100000, 100, now), ttl_queue.new(100, 1e9, now)
    for index = 1, 1000 do
      time = index
      slow:put("k" .. index, index)
      quick:put("k" .. index, index)
      assert.is_true(held(slow) <= 127, held(slow))
      assert.is_true(held(quick) <= 125, held(quick))
    end
  end)
end)
