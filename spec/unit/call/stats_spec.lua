local statistics = require "riskscreen.call.stats"

local stats

before_each(function()
  stats = statistics.new()
end)

local function call(operation, outcome, seconds, kind)
  local it_self = {}
  stats:begin(it_self, stats:of(operation))
  stats:finish(it_self, stats:of(operation), outcome, seconds, kind)
end

describe("the counters", function()
  it("begin at 0", function()
    local snapshot = stats:snapshot()
    for _, counter in ipairs(statistics.counters) do
      assert.equal(0, snapshot[counter.name], counter.name)
    end
    assert.same({}, snapshot.errors)
    assert.same({}, snapshot.operations)
    assert.equal(0, snapshot.in_flight)
  end)

  it("count calls by their result, in total and by operation", function()
    call("a", "succeeded", 0.1)
    call("a", "failed", 0.2, "timeout")
    call("b", "cancelled")
    stats:begin({ "still under way" }, stats:of "b")
    local snapshot = stats:snapshot()
    assert.same({ 4, 1, 1, 1 }, { snapshot.calls, snapshot.succeeded, snapshot.failed, snapshot.cancelled })
    assert.same({ timeout = 1 }, snapshot.errors)
    local a, b = snapshot.operations.a, snapshot.operations.b
    assert.same({ 2, 1, 1, 0 }, { a.calls, a.succeeded, a.failed, a.cancelled })
    assert.same({ 2, 0, 0, 1 }, { b.calls, b.succeeded, b.failed, b.cancelled })
    assert.equal(2, snapshot.latency.calls.count)
  end)

  it("count the calls under way", function()
    local one, other = {}, {}
    stats:begin(one, stats:of "a")
    stats:begin(other, stats:of "a")
    assert.equal(2, stats:snapshot().in_flight)
    stats:finish(one, stats:of "a", "succeeded", 1)
    assert.equal(1, stats:snapshot().in_flight)
    stats:finish(other, stats:of "a", "cancelled")
    assert.equal(0, stats:snapshot().in_flight)
  end)

  it("count the end of a call once", function()
    local one = {}
    stats:begin(one, stats:of "a")
    stats:finish(one, stats:of "a", "cancelled")
    stats:finish(one, stats:of "a", "failed", 1, "network")
    local snapshot = stats:snapshot()
    assert.same({ 1, 1, 0, 0 }, { snapshot.calls, snapshot.cancelled, snapshot.failed, snapshot.in_flight })
  end)

  it("count a call that succeeds with one request in all of them", function()
    local one = {}
    stats:begin(one, stats:of "a")
    stats:count "requests"
    stats:succeed_directly(one, stats:of "a", 300, 0.2)
    local snapshot = stats:snapshot()
    assert.same({ 1, 1, 0, 0 }, { snapshot.calls, snapshot.succeeded, snapshot.failed, snapshot.in_flight })
    assert.same({ 1, 300, { [200] = 1 } }, { snapshot.requests, snapshot.bytes_received, snapshot.statuses })
    assert.same({ 0.2, 0.2 }, { snapshot.latency.calls.sum, snapshot.latency.requests.sum })
    assert.same({ 1, 1 }, { snapshot.operations.a.succeeded, snapshot.operations.a.latency.count })
    assert.is_nil(snapshot.operations.a.direct)
  end)

  it("count answers by their status", function()
    stats:answered(200, 100, 0.1)
    stats:answered(200, nil, 0.1)
    stats:answered(503, 20, 0.2)
    local snapshot = stats:snapshot()
    assert.same({ [200] = 2, [503] = 1 }, snapshot.statuses)
    assert.equal(120, snapshot.bytes_received)
    assert.equal(3, snapshot.latency.requests.count)
  end)
end)

describe("a snapshot", function()
  it("is a copy", function()
    call("a", "succeeded", 0.1)
    local snapshot = stats:snapshot()
    call("a", "failed", 0.1, "network")
    assert.equal(1, snapshot.calls)
    assert.equal(1, snapshot.operations.a.calls)
    assert.same({}, snapshot.errors)
    snapshot.operations.a.latency.buckets[1].count = 99
    assert.equal(0, stats:snapshot().operations.a.latency.buckets[1].count)
  end)
end)

describe("a latency histogram", function()
  local function latency()
    return stats:snapshot().latency.calls
  end

  it("counts in each bucket the durations up to its bound", function()
    for _, seconds in ipairs { 0.001, 0.0011, 0.5, 0.5, 9, 100 } do
      call("a", "succeeded", seconds)
    end
    local counts = {}
    for _, bucket in ipairs(latency().buckets) do
      counts[bucket.le] = bucket.count
    end
    assert.same({ 1, 2, 2, 4, 4, 5, 5 }, {
      counts[0.001],
      counts[0.0025],
      counts[0.25],
      counts[0.5],
      counts[5],
      counts[10],
      counts[60],
    })
    assert.equal(6, latency().count)
  end)

  it("counts a duration at a bound below it, and a longer one above", function()
    for index, bound in ipairs(statistics.bounds) do
      assert.equal(index, statistics.bucket_of(bound))
      assert.equal(index + 1, statistics.bucket_of(bound * 1.001))
    end
    assert.same({ 1, #statistics.bounds + 1 }, { statistics.bucket_of(0), statistics.bucket_of(1e9) })
    -- A clock was set back.
    assert.equal(1, statistics.bucket_of(-1))
  end)

  it("finds the bucket of any duration", function()
    for step = 0, 20000 do
      local seconds, index = 1e-5 * 1.001 ^ step, 1
      while index <= #statistics.bounds and seconds > statistics.bounds[index] do
        index = index + 1
      end
      assert(statistics.bucket_of(seconds) == index, seconds)
    end
  end)

  it("has the minimum, the maximum and the sum", function()
    for _, seconds in ipairs { 0.25, 0.5, 4 } do
      call("a", "succeeded", seconds)
    end
    assert.same({ 0.25, 4, 4.75 }, { latency().min, latency().max, latency().sum })
  end)

  it("estimates percentiles within their bucket", function()
    for index = 1, 100 do
      call("a", "succeeded", index / 100)
    end
    assert.near(0.5, latency().p50, 0.01)
    assert.near(0.95, latency().p95, 0.03)
    assert.near(0.99, latency().p99, 0.03)
  end)

  it("of equal durations has this duration as every percentile", function()
    for _ = 1, 10 do
      call("a", "succeeded", 0.3)
    end
    assert.same({ 0.3, 0.3, 0.3 }, { latency().p50, latency().p95, latency().p99 })
  end)

  it("of durations beyond the last bound stays within the observations", function()
    for _ = 1, 10 do
      call("a", "succeeded", 100)
    end
    assert.equal(100, latency().p99)
  end)

  it("without observations has no percentiles", function()
    assert.is_nil(latency().p95)
    assert.is_nil(latency().min)
  end)
end)
