local errors = require "riskscreen.errors"
local pending = require "riskscreen.kyt.await"

-- A runtime whose time passes only while somebody waits, and what happens at which time.
local function virtual()
  local time, queue, schedule = 0, {}, {}
  local runtime = { asked_at = {} }
  function runtime.now()
    return time
  end
  function runtime.spawn(body)
    local task = {
      cancel = function(self)
        self.cancelled = true
      end,
    }
    queue[#queue + 1] = function()
      if not task.cancelled then
        body()
      end
    end
    return task
  end
  function runtime.at(moment, action)
    schedule[#schedule + 1] = { moment, action }
  end
  local function due(until_when)
    local first
    for index, entry in ipairs(schedule) do
      if entry[1] <= until_when and not (first and schedule[first][1] <= entry[1]) then
        first = index
      end
    end
    return first and table.remove(schedule, first)
  end
  function runtime.signal()
    local notices = 0
    return {
      notify = function()
        notices = notices + 1
      end,
      wait = function(_, timeout)
        local before, limit = notices, time + timeout
        while notices == before and time < limit do
          local body = table.remove(queue, 1)
          local entry = not body and due(limit)
          if body then
            body()
          elseif entry then
            time = entry[1]
            entry[2]()
          else
            time = limit
          end
        end
      end,
    }
  end
  return runtime
end

local settings = { first = 1, growth = 2, jitter = 0, ceiling = 10, deadline = 600 }

local function result(status, extra)
  local made = { requestId = "r1", status = status, maxScore = "1" }
  for name, value in pairs(extra or {}) do
    made[name] = value
  end
  return made
end

-- A pending result whose questions are answered in turn by `answers`, the last again and again.
local function new(answers, more)
  local runtime = virtual()
  local fields = {
    request_id = "r1",
    timeout = 5,
    polling = settings,
    final = { [1003] = true },
    random = function()
      return 0
    end,
    now = runtime.now,
    spawn = runtime.spawn,
    signal = runtime.signal(),
    ask = answers and function()
      local asked = runtime.asked_at
      asked[#asked + 1] = runtime.now()
      local answer = answers[math.min(#asked, #answers)]
      if errors.is(answer) then
        return nil, answer
      end
      return answer, { status = 200, headers = {} }
    end,
  }
  for name, value in pairs(more or {}) do
    fields[name] = value
  end
  return pending.new(fields, more and more.delay or 1), runtime
end

local function waiters()
  return {
    expect = function()
      return {}
    end,
    attend = function() end,
  }
end

local function event(data)
  return { webhookId = "w", eventType = "getTxHashCustomRiskScore", data = data }
end

describe("a pending result", function()
  it("is asked for after the first wait, then after ever longer ones up to the ceiling", function()
    local one, runtime = new { result(1001) }
    one:await(40)
    assert.same({ 1, 3, 7, 15, 25, 35 }, runtime.asked_at)
  end)

  it("is asked for at once where it may be there already", function()
    local one, runtime = new({ result(1003) }, { delay = 0 })
    assert.equal(1003, one:await(10).status)
    assert.same({ 0 }, runtime.asked_at)
  end)

  it("ends the wait with its first final status", function()
    local one = new { result(1001), result(1002), result(1003, { maxScore = "7" }) }
    local value, other = one:await(100)
    assert.same({ "7", "poll", 3, 7 }, { value.maxScore, other.source, other.attempts, other.elapsed })
  end)

  it("is waited for no longer than asked, and the error says how it stood", function()
    local one = new { result(1002) }
    local value, err = one:await(6)
    assert.is_nil(value)
    assert.same({ "timeout", true, "r1", 6, 1002 }, {
      err.kind,
      err.retryable,
      err.request_id,
      err.elapsed,
      err.last.status,
    })
    assert.matches("there is no result of r1 after 6 s, its status is 1002", err.message, 1, true)
  end)

  it("is there for every later wait without another question", function()
    local one, runtime = new { result(1003) }
    local first = one:await(10)
    assert.equal(first, (one:await(0)))
    assert.equal(1, #runtime.asked_at)
  end)

  it("is asked for again after a failure that may pass", function()
    for _, kind in ipairs { "network", "timeout", "server", "rate_limited", "circuit_open" } do
      local one = new { errors.new(kind, "later"), result(1003) }
      assert.equal(1003, one:await(10).status)
    end
  end)

  it("is not asked for before the service wants to be", function()
    local one, runtime = new { errors.new("rate_limited", "slow", { retry_after = 20 }), result(1003) }
    one:await(100)
    assert.same({ 1, 21 }, runtime.asked_at)
  end)

  it("that failed until the time was up says why", function()
    local one = new { errors.new("network", "cut") }
    local _, err = one:await(5)
    assert.same({ "timeout", "network" }, { err.kind, err.cause.kind })
  end)

  it("is given up at once after a failure that stays", function()
    for _, kind in ipairs { "unauthorized", "bad_request", "api", "protocol", "http", "tls" } do
      local one, runtime = new { errors.new(kind, "never") }
      local value, err = one:await(100)
      assert.same({ kind, 1 }, { err.kind, runtime.now() })
      assert.is_nil(value)
    end
  end)

  it("is asked for again by a later wait, whatever became of the one before", function()
    local one = new { errors.new("unauthorized", "the key"), result(1003) }
    assert.is_nil((one:await(10)))
    assert.equal(1003, one:await(10).status)
  end)

  local unusable = {
    { "about another request", result(1003, { requestId = "r2" }) },
    { "about no request", { status = 1003, maxScore = "0" } },
    { "about another customId", result(1003, { customId = "c2" }) },
    { "that is no object", "done" },
    { "that is false", false },
    { "whose score is a number", result(1003, { maxScore = 0 }) },
    { "whose status is a text", result("1003") },
    { "that says nothing", true },
  }
  for _, case in ipairs(unusable) do
    it("is never an answer " .. case[1], function()
      local one = new({ case[2] }, { custom_id = "c1" })
      local value, err = one:await(10)
      assert.is_nil(value)
      assert.equal("protocol", err.kind)
    end)
  end

  it("is not there while its status is missing", function()
    local one = new { { requestId = "r1", maxScore = "0" } }
    local _, err = one:await(3)
    assert.equal("timeout", err.kind)
  end)

  it("is asked for at once when it is hastened, but not before the service wants to be", function()
    local one, runtime = new { result(1001), errors.new("rate_limited", "slow", { retry_after = 20 }), result(1003) }
    one:hasten()
    one:await(1)
    one:hasten()
    one:await(2)
    one:hasten()
    one:await(100)
    assert.same({ 0, 1, 21 }, runtime.asked_at)
  end)

  it("shortens its waits at random by the jitter at most", function()
    local jittered = { first = 10, growth = 1, jitter = 0.5, ceiling = 10, deadline = 600 }
    local function interval(random)
      return pending.interval(jittered, 1, function()
        return random
      end)
    end
    assert.same({ 10, 7.5, 6.25 }, { interval(0), interval(0.5), interval(0.75) })
  end)

  it("waits for the ceiling where the growth is beyond all numbers", function()
    local steep = { first = 86400, growth = 100, jitter = 0, ceiling = 30, deadline = 600 }
    assert.equal(30, pending.interval(steep, 1000, math.random))
  end)
end)

describe("an event for a pending result", function()
  it("ends the wait", function()
    local one, runtime = new(nil, { waiters = waiters() })
    runtime.at(4, function()
      one:offer(event(result(1003, { maxScore = "8" })))
    end)
    local value, other = one:await(100)
    assert.same({ "8", "webhook", 4, "w" }, { value.maxScore, other.source, other.elapsed, other.event.webhookId })
  end)

  it("ends the wait although a question is still unanswered", function()
    local runtime
    local one
    one, runtime = new(nil, {
      waiters = waiters(),
      ask = function()
        one:offer(event(result(1003, { maxScore = "8" })))
        return result(1003, { maxScore = "9" }), { status = 200 }
      end,
    })
    assert.equal("8", one:await(100).maxScore)
    assert.equal("8", one:await(100).maxScore)
    assert.equal(1, runtime.now())
  end)

  it("changes nothing once there is a result", function()
    local one = new { result(1003, { maxScore = "5" }) }
    one:await(10)
    one:offer(event(result(1003, { maxScore = "0" })))
    assert.equal("5", one:await(10).maxScore)
  end)

  it("that is not final does not end the wait", function()
    local one, runtime = new(nil, { waiters = waiters() })
    runtime.at(1, function()
      one:offer(event(result(1999)))
    end)
    local _, err = one:await(10)
    assert.same({ "timeout", 1999 }, { err.kind, err.last.status })
  end)

  it("is waited for although asking failed for good", function()
    local one, runtime = new({ errors.new("unauthorized", "the key") }, { waiters = waiters() })
    runtime.at(50, function()
      one:offer(event(result(1003)))
    end)
    assert.equal("webhook", select(2, one:await(100)).source)
    assert.equal(1, #runtime.asked_at)
  end)

  it("that never comes after asking failed for good leaves the reason", function()
    local one = new({ errors.new("unauthorized", "the key") }, { waiters = waiters() })
    local _, err = one:await(100)
    assert.equal("unauthorized", err.kind)
  end)

  local foreign = {
    { "of another request", result(1003, { requestId = "r2" }) },
    { "of another customId", result(1003, { customId = "c2" }) },
    { "of another request with the same customId", result(1003, { requestId = "r2", customId = "c1" }) },
    { "of nobody", { status = 1003, maxScore = "0" } },
    { "of the empty identifiers", { requestId = "", customId = "", status = 1003 } },
    { "that is malformed", result(1003, { maxScore = 0 }) },
  }
  for _, case in ipairs(foreign) do
    it("does not count " .. case[1], function()
      local one = new(nil, { waiters = waiters(), custom_id = "c1" })
      one:offer(event(case[2]))
      assert.is_nil((one:await(10)))
    end)
  end

  it("counts by customId where it names no request, or the request is not known", function()
    local one = new(nil, { waiters = waiters(), custom_id = "c1" })
    one:offer(event { customId = "c1", status = 1003, maxScore = "4" })
    assert.equal("4", one:await(10).maxScore)
    local unknown = new(nil, { waiters = waiters(), custom_id = "c1", request_id = false })
    unknown:offer(event(result(1003, { customId = "c1" })))
    assert.equal("1", unknown:await(10).maxScore)
  end)
end)
