local errors = require "riskscreen.errors"
local awaiting = require "riskscreen.kyt.await"
local virtual_time = require "riskscreen.runtime.virtual"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

-- A runtime whose time passes only while somebody waits. `at(moment, action)` schedules actions.
local function virtual()
  local time, queue, schedule = 0, {}, {}
  local runtime = { polled_at = {}, tasks = { pcall = pcall } }
  function runtime.now()
    return time
  end
  function runtime.tasks.spawn(body, ...)
    local task = {
      cancel = function(self)
        self.cancelled = true
      end,
    }
    local arguments = { ... }
    queue[#queue + 1] = function()
      if not task.cancelled then
        body(unpack(arguments))
      end
    end
    return task
  end
  -- No task is stopped.
  function runtime.tasks.hold() end
  function runtime.tasks.release() end
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
  function runtime.tasks.signal()
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

local polling = { first = 1, growth = 2, jitter = 0, ceiling = 10, deadline = 600 }

local function result(status, extra)
  local made = { requestId = "r1", status = status, maxScore = "1" }
  for name, value in pairs(extra or {}) do
    made[name] = value
  end
  return made
end

-- A pending result whose polls are answered in turn by `answers`; the last answer repeats.
local function new(answers, more)
  more = more or {}
  local runtime = more.runtime or virtual()
  local settings = {
    timeout = 5,
    polling = polling,
    final_statuses = { 1003 },
    pending_statuses = { 1001, 1002 },
    retry = { max_retry_after = 60 },
    inbox = more.waiters and { waiters = more.waiters },
    random = function()
      return 0
    end,
  }
  local fetch = more.fetch
    or answers
      and function()
        local polled = runtime.polled_at
        polled[#polled + 1] = runtime.now()
        local answer = answers[math.min(#polled, #answers)]
        if errors.is(answer) then
          return nil, answer
        end
        return answer, { status = 200, headers = {} }
      end
  local submission = { kind = "transaction", requestId = "r1", customId = more.custom_id }
  for name, value in pairs(more.submission or {}) do
    submission[name] = value or nil
  end
  local function same(foreign)
    return foreign
  end
  local state = { settings = settings, runtime = runtime, hide_key = same }
  return awaiting.new(state, submission, fetch or nil, more.delay or 1), runtime
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
  it("is polled at growing intervals up to the ceiling", function()
    local one, runtime = new { result(1001) }
    one:await(40)
    assert.same({ 1, 3, 7, 15, 25, 35 }, runtime.polled_at)
  end)

  it("is polled at once without a delay", function()
    local one, runtime = new({ result(1003) }, { delay = 0 })
    assert.equal(1003, one:await(10).status)
    assert.same({ 0 }, runtime.polled_at)
  end)

  it("ends the wait with the first final status", function()
    local one = new { result(1001), result(1002), result(1003, { maxScore = "7" }) }
    local value, other = one:await(100)
    assert.same({ "7", "poll", 3, 7 }, { value.maxScore, other.source, other.attempts, other.elapsed })
  end)

  it("times out with the last status in the error", function()
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
    assert.equal("there is no result of r1 after 6 s and 2 polls; its status is 1002", err.message)
  end)

  it("is returned to later waits without another poll", function()
    local one, runtime = new { result(1003) }
    local first = one:await(10)
    assert.equal(first, (one:await(0)))
    assert.equal(1, #runtime.polled_at)
  end)

  it("is polled again after a retryable failure", function()
    for _, kind in ipairs { "network", "timeout", "server", "rate_limited", "circuit_open" } do
      local one = new { errors.new(kind, "later"), result(1003) }
      assert.equal(1003, one:await(10).status)
    end
  end)

  it("is not polled before retry_after", function()
    local one, runtime = new { errors.new("rate_limited", "slow", { retry_after = 20 }), result(1003) }
    one:await(100)
    assert.same({ 1, 21 }, runtime.polled_at)
  end)

  it("is polled again after max_retry_after, however long the service asks to wait", function()
    local one, runtime = new { errors.new("rate_limited", "slow", { retry_after = 1e9 }), result(1003) }
    assert.equal(1003, one:await(100).status)
    assert.same({ 1, 61 }, runtime.polled_at)
  end)

  it("times out with the last failure as its cause", function()
    local one = new { errors.new("network", "cut") }
    local _, err = one:await(5)
    assert.same({ "timeout", "network" }, { err.kind, err.cause.kind })
    assert.equal("there is no result of r1 after 5 s and 2 polls; the latest failure: network: cut", err.message)
  end)

  it("is given up after a failure that is not retryable", function()
    for _, kind in ipairs { "unauthorized", "bad_request", "api", "protocol", "http", "tls" } do
      local one, runtime = new { errors.new(kind, "never") }
      local value, err = one:await(100)
      assert.same({ kind, 1 }, { err.kind, runtime.now() })
      assert.is_nil(value)
    end
  end)

  it("is polled again by a later wait", function()
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
    it("is never taken from an answer " .. case[1], function()
      local one = new({ case[2] }, { custom_id = "c1" })
      local value, err = one:await(10)
      assert.is_nil(value)
      assert.equal("protocol", err.kind)
    end)
  end

  it("ends the wait with an error that shows a status neither final nor pending", function()
    local one, runtime = new { result(1001), result(2001, { maxScore = "7" }), result(1003) }
    local value, err = one:await(600)
    assert.is_nil(value)
    assert.same({ "api", "r1", 2001, true, 3 }, { err.kind, err.request_id, err.last.status, err.sent, runtime.now() })
    assert.matches("the status of r1 is 2001", err.message, 1, true)
    assert.matches("pending_statuses", err.message, 1, true)
    assert.equal(1003, one:await(600).status)
  end)

  it("is never taken from an answer about another hash or network", function()
    local submission = { hash = "0xABCD", network = "eth" }
    local function await(extra)
      local one = new({ result(1003, extra) }, { submission = submission })
      local value, err = one:await(10)
      return value and value.status or err.kind
    end
    assert.equal("protocol", await { hash = "0xabce" })
    assert.equal("protocol", await { hash = 7 })
    assert.equal("protocol", await { network = "tron" })
    assert.equal(1003, await { hash = "0xabcd", network = "ethereum" })
    assert.equal(1003, await { hash = "" })
  end)

  it("is not final without a status", function()
    local one = new { { requestId = "r1", maxScore = "0" } }
    local _, err = one:await(3)
    assert.equal("timeout", err.kind)
  end)

  it("is polled at once by poll_now, but not before retry_after", function()
    local one, runtime = new { result(1001), errors.new("rate_limited", "slow", { retry_after = 20 }), result(1003) }
    one:poll_now()
    one:await(1)
    one:poll_now()
    one:await(2)
    one:poll_now()
    one:await(100)
    assert.same({ 0, 1, 21 }, runtime.polled_at)
  end)

  it("is polled by another wait at once when the task that polls is stopped", function()
    local runtime, polls = virtual_time.new(), 0
    local function fetch()
      polls = polls + 1
      runtime.sleep(polls == 1 and 4 or 0)
      return result(1003), { status = 200 }
    end
    local one = new(nil, { fetch = fetch, runtime = runtime })
    runtime.tasks.run(function()
      local first, second = runtime.tasks.spawn(one.await, one, 10), runtime.tasks.spawn(one.await, one, 5)
      runtime.sleep(2)
      first:cancel()
      assert.equal(1003, second:await().status)
    end)
    assert.same({ 2, 2 }, { runtime.now(), polls })
  end)

  it("has its intervals shortened by the jitter", function()
    local jittered = { first = 10, growth = 1, jitter = 0.5, ceiling = 10, deadline = 600 }
    local function interval(random)
      return awaiting.interval(jittered, 1, function()
        return random
      end)
    end
    assert.same({ 10, 7.5, 6.25 }, { interval(0), interval(0.5), interval(0.75) })
  end)

  it("keeps the ceiling when the growth overflows", function()
    local steep = { first = 86400, growth = 100, jitter = 0, ceiling = 30, deadline = 600 }
    assert.equal(30, awaiting.interval(steep, 1000, math.random))
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

  it("ends the wait although a poll is still unanswered", function()
    local runtime
    local one
    one, runtime = new(nil, {
      waiters = waiters(),
      fetch = function()
        one:offer(event(result(1003, { maxScore = "8" })))
        return result(1003, { maxScore = "9" }), { status = 200 }
      end,
    })
    assert.equal("8", one:await(100).maxScore)
    assert.equal("8", one:await(100).maxScore)
    assert.equal(1, runtime.now())
  end)

  for _, waits in ipairs { true, false } do
    it("is looked for until the wait ends, in a place that " .. (waits and "may wait" or "is at hand"), function()
      local its_waiters, looks = waiters(), {}
      local one, runtime
      function its_waiters.attend()
        return { pause = 1, waits = waits }
      end
      function its_waiters.look(_, looking)
        looks[#looks + 1] = runtime.now()
        looking.pause = 2 * looking.pause
        if #looks == 3 then
          one:offer(event(result(1003, { maxScore = "8" })))
        end
      end
      one, runtime = new(nil, { waiters = its_waiters })
      local spawn, tasks = runtime.tasks.spawn, {}
      function runtime.tasks.spawn(...)
        tasks[#tasks + 1] = spawn(...)
        return tasks[#tasks]
      end
      local value, other = one:await(100)
      assert.same({ "8", "webhook", 7 }, { value.maxScore, other.source, other.elapsed })
      assert.same({ waits and 3 or 0, waits }, { #tasks, tasks[3] ~= nil and tasks[3].cancelled })
      assert.same({ 1, 3, 7 }, looks)
      one:await(100)
      assert.equal(3, #looks)
    end)
  end

  it("changes nothing after the result", function()
    local one = new { result(1003, { maxScore = "5" }) }
    one:await(10)
    one:offer(event(result(1003, { maxScore = "0" })))
    assert.equal("5", one:await(10).maxScore)
  end)

  it("that is not final does not end the wait", function()
    local one, runtime = new(nil, { waiters = waiters() })
    runtime.at(1, function()
      one:offer(event(result(1001)))
    end)
    local _, err = one:await(10)
    assert.same({ "timeout", 1001 }, { err.kind, err.last.status })
  end)

  it("that is neither final nor pending ends the wait", function()
    local one, runtime = new(nil, { waiters = waiters() })
    runtime.at(1, function()
      one:offer(event(result(1999)))
    end)
    local _, err = one:await(10)
    assert.same({ "api", 1999, 1 }, { err.kind, err.last.status, runtime.now() })
  end)

  it("ends the wait that begins after it, if its status is neither final nor pending", function()
    for _, answers in ipairs { false, { result(1003, { maxScore = "7" }) } } do
      local one, runtime = new(answers or nil, { waiters = waiters() })
      one:offer(event(result(1999)))
      local _, err = one:await(10)
      assert.same({ "api", 1999, 0 }, { err.kind, err.last.status, runtime.now() })
      -- It is told once: the next wait goes on.
      local value
      value, err = one:await(10)
      assert.equal(answers and "7" or "timeout", value and value.maxScore or err.kind)
    end
  end)

  it("that is pending again takes back an end that nobody was told", function()
    local one = new(nil, { waiters = waiters() })
    one:offer(event(result(1999)))
    one:offer(event(result(1001)))
    one:offer(event(result(1003)))
    assert.equal(1003, one:await(10).status)
  end)

  it("ends all waits that are under way, also where one of them begins anew", function()
    local time = virtual_time.new()
    local settings =
      { polling = polling, final_statuses = { 1003 }, pending_statuses = {}, inbox = { waiters = waiters() } }
    local state = { settings = settings, runtime = time, hide_key = tostring }
    local one = awaiting.new(state, { kind = "transaction", requestId = "r1" }, nil, 0)
    local kinds = {}
    time.tasks.run(function()
      for index = 1, 2 do
        time.tasks.spawn(function()
          kinds[index] = select(2, one:await(10)).kind
          one:await(10)
        end)
      end
      time.sleep(1)
      one:offer(event(result(1999)))
    end)
    assert.same({ "api", "api" }, kinds)
  end)

  it("is awaited although polling failed for good", function()
    local one, runtime = new({ errors.new("unauthorized", "the key") }, { waiters = waiters() })
    runtime.at(50, function()
      one:offer(event(result(1003)))
    end)
    assert.equal("webhook", select(2, one:await(100)).source)
    assert.equal(1, #runtime.polled_at)
  end)

  it("returns the failure of polling when no event comes", function()
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
    it("is ignored when it is " .. case[1], function()
      local one = new(nil, { waiters = waiters(), custom_id = "c1" })
      one:offer(event(case[2]))
      assert.is_nil((one:await(10)))
    end)
  end

  it("is matched by customId when a requestId is missing on either side", function()
    local one = new(nil, { waiters = waiters(), custom_id = "c1" })
    one:offer(event { customId = "c1", status = 1003, maxScore = "4" })
    assert.equal("4", one:await(10).maxScore)
    local unknown = new(nil, { waiters = waiters(), custom_id = "c1", submission = { requestId = false } })
    unknown:offer(event(result(1003, { customId = "c1" })))
    assert.equal("1", unknown:await(10).maxScore)
  end)
end)
