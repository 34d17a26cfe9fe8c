local errors = require "riskscreen.errors"
local hedge = require "riskscreen.call.hedge"
local virtual_time = require "riskscreen.runtime.virtual"

local time, sent, cancelled

before_each(function()
  time, sent, cancelled = virtual_time.new(), {}, {}
end)

local function passing()
  return errors.new("server", "it failed")
end

-- Races requests with these results: { seconds, value, err } for each number.
local function race(plans, late_after, allowed)
  return hedge.race(time.tasks, late_after, function(number)
    sent[number] = time.now()
    local held = {
      abandon = function()
        cancelled[number] = time.now()
      end,
    }
    time.tasks.hold(held)
    time.sleep(plans[number][1])
    time.tasks.release(held)
    return plans[number][2], plans[number][3]
  end, function()
    return allowed ~= false
  end)
end

-- Both ways to call: blocking and in a task.
for where, call in pairs {
  ["outside of a task"] = function(fn)
    return fn()
  end,
  ["in a task"] = function(fn)
    return time.tasks.run(fn)
  end,
} do
  describe("a race " .. where, function()
    local function results(...)
      local given = { ... }
      return { call(function()
        return race(given[1], given[2], given[3])
      end) }
    end

    it("has one request when the answer comes in time", function()
      assert.same({ 1, "first", "response" }, results({ { 0.1, "first", "response" } }, 0.2))
      assert.same({ 0 }, sent)
    end)

    it("has a second request when the answer is late, and the first answer wins", function()
      local plans = { { 10, "first" }, { 0.1, "second" } }
      assert.same({ 2, "second" }, results(plans, 0.2))
      assert.same({ 0, 0.2 }, sent)
      assert.near(0.3, time.now(), 1e-9)
    end)

    it("may be won by the late answer", function()
      assert.same({ 1, "first" }, results({ { 0.3, "first" }, { 10, "second" } }, 0.2))
      assert.near(0.3, time.now(), 1e-9)
    end)

    it("cancels the loser at once", function()
      results({ { 10, "first" }, { 0.1, "second" } }, 0.2)
      time.sleep(0)
      assert.near(0.3, cancelled[1], 1e-9)
      assert.is_nil(cancelled[2])
      assert.equal(0, time.timers())
    end)

    it("has no second request when it is not allowed", function()
      assert.same({ 1, "first" }, results({ { 10, "first" } }, 0.2, false))
      assert.same({ 0 }, sent)
    end)

    it("ends with a failure that comes in time", function()
      local err = passing()
      assert.same({ 1, nil, err }, results({ { 0.1, nil, err } }, 0.2))
      assert.same({ 0 }, sent)
    end)

    it("waits for the other request when one fails", function()
      local plans = { { 0.3, nil, passing() }, { 0.5, "second" } }
      assert.same({ 2, "second" }, results(plans, 0.2))
    end)

    it("ends with a failure that is not retryable", function()
      local final = errors.new("bad_request", "no")
      assert.same({ 1, nil, final }, results({ { 0.3, nil, final }, { 10, "second" } }, 0.2))
    end)

    it("ends with the first failure when both fail", function()
      local first, second = passing(), passing()
      assert.equal(first, results({ { 0.3, nil, first }, { 0.4, nil, second } }, 0.2)[3])
      time, sent, cancelled = virtual_time.new(), {}, {}
      assert.equal(second, results({ { 0.5, nil, first }, { 0.2, nil, second } }, 0.2)[3])
    end)
  end)
end

describe("a race whose task is cancelled", function()
  it("cancels both requests", function()
    time.tasks.run(function()
      local task = time.tasks.spawn(function()
        race({ { 10, "first" }, { 10, "second" } }, 0.2)
      end)
      time.sleep(0.5)
      task:cancel()
      task:await()
    end)
    assert.same({ 0.5, 0.5 }, cancelled)
    assert.equal(0, time.timers())
  end)
end)

describe("an answer is late", function()
  it("after the delay in the settings", function()
    assert.equal(0.25, hedge.new({ delay = 0.25 }):late_after "a")
  end)

  it("at no time before there were enough answers", function()
    local mine = hedge.new { delay = "p95" }
    for _ = 1, 19 do
      mine:observe("a", 0.1)
    end
    assert.is_nil(mine:late_after "a")
  end)

  it("after the 95th percentile of the operation's recent durations", function()
    local mine = hedge.new { delay = "p95" }
    for index = 1, 20 do
      mine:observe("a", index / 10)
      mine:observe("b", index)
    end
    assert.near(1.9, mine:late_after "a", 1e-9)
    assert.near(19, mine:late_after "b", 1e-9)
    assert.is_nil(mine:late_after "c")
  end)

  it("after the percentile of the latest durations only", function()
    local mine = hedge.new { delay = "p95" }
    for _ = 1, 100 do
      mine:observe("a", 5)
    end
    for _ = 1, 80 do
      mine:observe("a", 0.1)
    end
    assert.near(0.1, mine:late_after "a", 1e-9)
  end)
end)
