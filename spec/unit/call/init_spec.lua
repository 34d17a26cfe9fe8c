local plans = require "spec.support.service_plan"
local riskscreen = require "riskscreen"
local tables = require "riskscreen.util.tables"

local answer, status, failure, new = plans.answer, plans.status, plans.failure, plans.new

local function assert_times(expected, scene)
  local times = scene.times()
  assert.equal(#expected, #times)
  for index, at in ipairs(expected) do
    assert.near(at, times[index], 1e-9)
  end
end

describe("the cost of a call under rate_limit", function()
  local sandbox = require "riskscreen.sandbox"

  local function addresses(count)
    local list = {}
    for index = 1, count do
      list[index] = ("0x%040x"):format(index)
    end
    return list
  end

  it("is by operation and by item, up to the daily cap", function()
    local client = sandbox.client {
      rate_limit = {
        rate = 1000,
        daily = 20,
        cost = { listAddressEntities = { item = 1 }, getAddressRisk = 5, getAddressBasic = 0 },
      },
    }
    assert(client.kya:entities { addresses = addresses(10), network = "eth" })
    assert.equal(10, client:stats().rate_limit.left_today)
    assert(client.kya:risk { address = addresses(1)[1], network = "eth" })
    assert(client.kya:basic { address = addresses(1)[1], network = "eth" })
    assert(client.kya:entity { address = addresses(1)[1], network = "eth" })
    local records, err = client.kya:entities { addresses = addresses(5), network = "eth" }
    assert.is_nil(records)
    assert.same({ "rate_limited", false }, { err.kind, err.sent })
    assert.matches("rate_limit.daily is used up", err.message, 1, true)
    assert.is_true(err.retry_after > 0 and err.retry_after <= 86400)
  end)

  it("counts for the day on which the request began, also if it was not sent", function()
    local scene
    scene = new({ failure("network", false, 1), status(500) }, {
      retry = false,
      rate_limit = { rate = 1000, daily = 2 },
      clock = function()
        return 86400 * 20000 - 0.5 + (scene and scene.time.now() or 0)
      end,
    })
    for _ = 1, 10 do
      scene.risk()
    end
    assert.equal(1 + 2, #scene.requests)
  end)

  it("is that of each call's own items", function()
    local rate_limit = { rate = 1000, daily = 100, cost = { listAddressEntities = { item = 1 } } }
    local client = sandbox.client { rate_limit = rate_limit, runtime = require("riskscreen.runtime.virtual").new() }
    for count, left in ipairs { 99, 97, 94 } do
      assert(client.kya:entities { addresses = addresses(count), network = "eth" })
      assert.equal(left, client:stats().rate_limit.left_today)
    end
  end)

  it("is checked", function()
    for message, cost in pairs {
      ["unknown option 'getNothing'"] = { getNothing = 1 },
      ["getAddressRisk.request must be between 0 and"] = { getAddressRisk = -1 },
      ["getAddressRisk must be a number or a table"] = { getAddressRisk = "1" },
      ["unknown option 'item' in getAddressRisk"] = { getAddressRisk = { item = 1 } },
      ["unknown option 'items' in listAddressEntities"] = { listAddressEntities = { items = 1 } },
    } do
      local made, refusal = pcall(sandbox.client, { rate_limit = { rate = 1, cost = cost } })
      assert.is_false(made)
      assert.matches(message, refusal, 1, true)
    end
  end)
end)

describe("a call", function()
  it("is repeated after a retryable failure, with growing pauses", function()
    local scene = new { failure("network", true), status(503), answer() }
    local record, response = scene.risk()
    assert.is_table(record)
    assert.equal(3, response.attempts)
    assert.near(0.15, response.elapsed, 1e-9)
    assert_times({ 0, 0.05, 0.15 }, scene)
  end)

  it("has all its attempts, whatever the call before it needed", function()
    local scene = new({ failure("network", true), answer(), status(503) }, { retry = { base_delay = 0 } })
    assert.equal(2, select(2, scene.risk()).attempts)
    local _, err = scene.risk()
    assert.same({ "server", 3, true }, { err.kind, err.attempts, err.sent })
  end)

  it("has the status and the headers of its answer beside its value", function()
    local scene = new { answer() }
    local _, response = scene.risk()
    assert.same({ 200, 1, 0, false }, { response.status, response.attempts, response.elapsed, response.cached })
    assert.same({}, response.headers)
  end)

  it("fails with the last failure when all its attempts have failed", function()
    local scene = new { status(500), status(502), status(503) }
    local record, err = scene.risk()
    assert.is_nil(record)
    assert.same({ "server", 503, 3, true }, { err.kind, err.status, err.attempts, err.sent })
    assert.near(0.15, err.elapsed, 1e-9)
    assert.equal("getAddressRisk", err.operation)
  end)

  it("of an operation that may take effect twice is not repeated", function()
    for _, planned in ipairs { status(503), status(429), failure("network", true), failure("timeout", true) } do
      local scene = new { planned, answer() }
      assert.is_nil((scene.add()))
      assert.equal(1, #scene.requests)
    end
  end)

  it("of such an operation is repeated when the request was never sent", function()
    local scene = new { failure("network", false), status(500) }
    local _, err = scene.add()
    assert.same({ 2, "server", true }, { #scene.requests, err.kind, err.sent })
  end)

  it("may have reached the service when any of its requests may have", function()
    local scene = new { failure("network", true), failure("network", false) }
    local _, err = scene.risk()
    assert.is_true(err.sent)
    _, err = new({ failure("network", false) }).risk()
    assert.is_false(err.sent)
  end)

  it("is not repeated when retries are off", function()
    local scene = new({ status(503) }, { retry = false })
    assert.equal(1, select(2, scene.risk()).attempts)
    scene = new { status(503) }
    assert.equal(1, select(2, scene.risk({ retry = false })).attempts)
  end)

  it("may have more attempts than the client's other calls", function()
    local scene = new({ status(503) }, { retry = { attempts = 2, base_delay = 1 }, breaker = false })
    assert.equal(2, select(2, scene.risk()).attempts)
    assert.equal(4, select(2, scene.risk { retry = { attempts = 4 } }).attempts)
    assert.near(0.5, scene.requests[4].at - scene.requests[3].at, 1e-9)
  end)

  it("may be repeated when the client's other calls are not", function()
    local scene = new({ status(503) }, { retry = false })
    assert.equal(3, select(2, scene.risk { retry = true }).attempts)
  end)

  it("asks for the key before each request", function()
    local count = 0
    local scene = new({ status(503) }, {
      access_key = function()
        count = count + 1
        return "the-key-" .. count
      end,
    })
    local at_first = count
    scene.risk()
    for index = 1, 3 do
      assert.equal("the-key-" .. at_first + index, scene.requests[index].request.headers["X-Access-Key"])
    end
  end)

  it("that no operation describes is repeated when it is a GET", function()
    local scene = new { status(503) }
    assert.equal(3, select(2, scene.client:request("GET", "/x")).attempts)
    assert.equal(1, select(2, scene.client:request("POST", "/x")).attempts)
  end)

  it("is not repeated after the client was closed", function()
    local scene = new { status(503) }
    local err
    scene.time.tasks.run(function()
      scene.time.tasks.spawn(function()
        err = select(2, scene.risk())
      end)
      scene.time.sleep(0.01)
      scene.client:close()
    end)
    assert.same({ "cancelled", 1, 1 }, { err.kind, err.attempts, #scene.requests })
  end)

  it("is cancelled when the client is closed before the function of the key returns", function()
    local scene
    scene = new({ answer() }, {
      access_key = function()
        scene.client:close()
        return "key-of-a-vault"
      end,
    })
    local _, err = scene.risk()
    assert.same({ "cancelled", false, 0, 0 }, { err.kind, err.sent, err.attempts, #scene.requests })
  end)

  it("is cancelled when a hook closes the client", function()
    local scene
    scene = new({ answer() }, {
      on = {
        request = function()
          scene.client:close()
        end,
      },
    })
    local _, err = scene.risk()
    assert.same({ "cancelled", false, 0, 0 }, { err.kind, err.sent, err.attempts, #scene.requests })
  end)
end)

describe("the service's Retry-After", function()
  it("is waited for", function()
    local scene = new { status(429, { ["retry-after"] = "3" }), answer() }
    assert.is_table((scene.risk()))
    assert_times({ 0, 3.05 }, scene)
  end)

  it("may be a date", function()
    local header = { ["retry-after"] = "Sun, 06 Nov 1994 08:49:47 GMT" }
    local scene = new({ status(503, header), answer() }, {
      clock = function()
        return 784111777 + 6
      end,
    })
    assert.is_table((scene.risk()))
    assert_times({ 0, 4.05 }, scene)
  end)

  it("makes the call fail at once when the deadline comes first", function()
    local scene = new { status(429, { ["retry-after"] = "11" }), answer() }
    local _, err = scene.risk()
    assert.same({ "rate_limited", 11, 1, 0 }, { err.kind, err.retry_after, err.attempts, err.elapsed })
  end)

  it("makes the call fail at once when it is above max_retry_after", function()
    local scene = new({ status(503, { ["retry-after"] = "61" }), answer() }, { timeout = 1000 })
    local _, err = scene.risk()
    assert.same({ "server", 61, 1, 0 }, { err.kind, err.retry_after, err.attempts, err.elapsed })
  end)
end)

describe("a call's timeout", function()
  it("bounds all its attempts and the pauses between them", function()
    local scene = new({ failure("network", true, 0.9) }, { timeout = 2, retry = { attempts = 10, base_delay = 0.2 } })
    local _, err = scene.risk()
    assert.is_true(err.elapsed <= 2)
    assert.is_true(scene.time.now() <= 2)
    assert.equal(2, err.attempts)
  end)

  it("gives a later attempt only the time that is left", function()
    local scene = new({ status(503, nil, 1), answer(60) }, { timeout = 3 })
    local _, err = scene.risk()
    assert.same({ "timeout", 2 }, { err.kind, err.attempts })
    assert.equal(3, scene.requests[1].timeout)
    assert.near(1.95, scene.requests[2].timeout, 1e-9)
    assert.near(3, scene.time.now(), 1e-9)
  end)

  it("counts the time of the operator's functions", function()
    local scene
    local function wait()
      scene.time.sleep(0.75)
      return "key-of-a-vault"
    end
    for name, options in pairs { key = { access_key = wait }, hook = { on = { request = wait } } } do
      scene = new({ answer(60) }, tables.merge(options, { timeout = 2, retry = false }))
      local _, err = scene.risk()
      assert.same({ "timeout", 2 }, { err.kind, scene.time.now() }, name)
      assert.equal(1.25, scene.requests[1].timeout, name)
      scene = new({ answer() }, tables.merge(options, { timeout = 0.5 }))
      _, err = scene.risk()
      assert.same({ "timeout", false, 0 }, { err.kind, err.sent, #scene.requests }, name)
      scene =
        new({ answer() }, tables.merge(options, { timeout = 3, attempt_timeout = 0.5, breaker = { failures = 1 } }))
      _, err = scene.risk()
      assert.same({ "timeout", false, 0 }, { err.kind, err.sent, #scene.requests }, name)
      assert.equal("closed", scene.client:stats().breaker.state, name)
    end
  end)

  it("is apart from the timeout of an attempt", function()
    local scene = new({ answer(60), answer(0.1) }, { timeout = 10, attempt_timeout = 1 })
    local record, response = scene.risk()
    assert.is_table(record)
    assert.equal(2, response.attempts)
    assert_times({ 0, 1.05 }, scene)
  end)

  it("includes the wait for a turn", function()
    local scene = new({ answer(60) }, { timeout = 3, rate_limit = { rate = 0.5, burst = 1 }, retry = false })
    scene.time.tasks.run(function()
      scene.time.tasks.spawn(scene.risk)
      local _, err = scene.risk()
      assert.same({ "timeout", 1 }, { err.kind, err.attempts })
      assert.near(1, scene.requests[2].timeout, 1e-6)
      assert.near(3, err.elapsed, 1e-6)
    end)
  end)

  it("ends before a request that would have less time than any transport takes", function()
    local scene
    local function slow_key()
      scene.time.sleep(0.4998)
      return "key-of-a-vault"
    end
    scene = new({ answer() }, { timeout = 0.5, access_key = slow_key })
    local _, err = scene.risk()
    assert.same({ "timeout", false, 0 }, { err.kind, err.sent, #scene.requests })
    scene = new({ answer() }, { timeout = 0.5, rate_limit = { rate = 2.001, burst = 1 } })
    assert(scene.risk())
    _, err = scene.risk()
    assert.same({ "timeout", false, 1 }, { err.kind, err.sent, #scene.requests })
  end)
end)

describe("a client's retry budget", function()
  it("bounds the load while everything fails", function()
    local scene = new({ status(503) }, { breaker = false })
    for _ = 1, 1000 do
      scene.risk()
    end
    assert.is_true(#scene.requests <= 1000 * 1.2 + 10, #scene.requests)
    assert.is_true(scene.client:stats().budget_exhausted > 0)
  end)

  it("grows again while calls succeed", function()
    local scene = new({ status(503) }, { breaker = false })
    for _ = 1, 100 do
      scene.risk()
    end
    scene.plan[1] = answer()
    for _ = 1, 100 do
      scene.risk()
    end
    scene.plan[1] = status(503)
    assert.equal(3, select(2, scene.risk()).attempts)
  end)
end)

describe("a client's rate limit", function()
  it("spaces requests", function()
    local scene = new({ answer() }, { rate_limit = { rate = 10, burst = 2 } })
    for _ = 1, 4 do
      scene.risk()
    end
    assert_times({ 0, 0, 0.1, 0.2 }, scene)
  end)

  it("makes a call fail that would get no turn in time", function()
    local scene = new({ answer() }, { rate_limit = { rate = 0.1, burst = 1 } })
    scene.risk()
    local _, err = scene.risk { timeout = 2 }
    assert.same({ "rate_limited", 0, false }, { err.kind, err.attempts, err.sent })
    assert.near(10, err.retry_after, 1e-6)
    assert.is_nil(err.status)
    assert.is_true(err.retryable)
    assert.equal(0, scene.time.now())
    assert.equal(1, scene.client:stats().limited)
  end)

  it("lets urgent calls pass", function()
    local scene = new({ answer() }, { rate_limit = { rate = 1, burst = 1 } })
    local order = {}
    scene.time.tasks.run(function()
      scene.risk()
      for _, priority in ipairs { "low", "normal", "high" } do
        scene.time.tasks.spawn(function()
          scene.risk { priority = priority }
          order[#order + 1] = priority
        end)
      end
    end)
    assert.same({ "high", "normal", "low" }, order)
  end)

  it("stops everyone when the service refuses one", function()
    local scene = new(
      { status(429, { ["retry-after"] = "2" }), answer() },
      { rate_limit = { rate = 100, burst = 100 } }
    )
    scene.time.tasks.run(function()
      scene.time.tasks.spawn(scene.risk)
      scene.time.sleep(0.5)
      assert.is_table((scene.risk()))
    end)
    assert.is_true(scene.requests[2].at >= 2)
    assert.is_true(scene.requests[3].at >= 2)
  end)

  it("stops them for max_retry_after at most", function()
    local scene = new(
      { status(429, { ["retry-after"] = "100000" }), answer() },
      { rate_limit = { rate = 100, burst = 100 }, retry = { max_retry_after = 2 } }
    )
    scene.risk()
    assert.is_table((scene.risk()))
    assert.near(2, scene.requests[2].at, 0.1)
  end)

  it("counts every request of a call", function()
    local scene = new({ status(503) }, { rate_limit = { rate = 1, burst = 1 } })
    scene.risk()
    assert_times({ 0, 1, 2 }, scene)
  end)

  it("reports the first failure when there is no turn for another attempt", function()
    local scene = new({ status(503) }, { rate_limit = { rate = 0.01, burst = 1 } })
    local _, err = scene.risk()
    assert.same({ "server", 1 }, { err.kind, err.attempts })
  end)
end)

describe("a client's circuit breaker", function()
  local settings = { breaker = { failures = 3, cooldown = 5 }, retry = false }

  it("is off by default", function()
    local scene = new({ status(503) }, { retry = false })
    for _ = 1, 100 do
      scene.risk()
    end
    assert.equal(100, #scene.requests)
    assert.is_nil(scene.client:stats().breaker)
  end)

  it("stops requests after failures and says how long", function()
    local scene = new({ status(503) }, settings)
    scene.risks(3)
    scene.time.sleep(1)
    local _, err = scene.risk()
    assert.same({ "circuit_open", 4, 0, false, true }, {
      err.kind,
      err.retry_after,
      err.attempts,
      err.sent,
      err.retryable,
    })
    assert.equal(3, #scene.requests)
    assert.equal(1, scene.client:stats().circuit_open)
  end)

  it("tries again after its cooldown", function()
    local scene = new({ status(503), status(503), status(503), answer() }, settings)
    scene.risks(3)
    scene.time.sleep(5)
    assert.is_table((scene.risk()))
    assert.equal("closed", scene.client:stats().breaker.state)
  end)

  for what, planned in pairs {
    ["no connection"] = failure("network", false),
    ["a timeout"] = failure("timeout", true),
    ["an untrusted certificate"] = failure("tls", false),
    ["a failure of the service"] = status(500),
  } do
    it("counts " .. what, function()
      local scene = new({ planned }, settings)
      scene.risks(4)
      assert.equal(3, #scene.requests)
    end)
  end

  for what, planned in pairs {
    ["a refused request"] = status(400),
    ["a rate limit"] = status(429),
    ["an answer that is malformed"] = status(200),
    ["a proxy's refusal"] = status(403),
  } do
    it("does not count " .. what, function()
      local scene = new({ planned }, settings)
      for _ = 1, 10 do
        scene.risk()
      end
      assert.equal(10, #scene.requests)
    end)
  end

  it("ends a call's attempts when it opens, with the failure that opened it", function()
    local scene = new({ failure("network", false) }, { breaker = { failures = 2 }, retry = { attempts = 5 } })
    local _, err = scene.risk()
    assert.same({ "network", 2 }, { err.kind, err.attempts })
  end)

  for what, planned in pairs {
    ["a failure of the service"] = status(500),
    ["a timeout"] = failure("timeout", true),
  } do
    it("counts " .. what .. " about one address once, in each attempt and each call", function()
      local scene = new({ planned }, { breaker = { failures = 2 }, retry = { attempts = 3 } })
      for _ = 1, 20 do
        scene.risk()
      end
      assert.equal("closed", scene.client:stats().breaker.state)
      scene.risks(1)
      assert.equal("open", scene.client:stats().breaker.state)
    end)
  end

  for what, spellings in pairs {
    ["an address in another case"] = {
      eth = { "0x" .. ("ab"):rep(20), "0x" .. ("AB"):rep(20), "0X" .. ("aB"):rep(20) },
    },
    ["an address in another form"] = {
      tron = { "TRXcKoEvHr6Y38VMcDYGBEYKznvH3XUX4g", "41" .. ("aa"):rep(20), "41" .. ("AA"):rep(20) },
    },
  } do
    it("counts failures about " .. what .. " once", function()
      local network, list = next(spellings)
      local scene = new({ status(500) }, { breaker = { failures = 2 }, retry = false })
      for _, address in ipairs(list) do
        scene.client.kya:risk { network = network, address = address }
      end
      assert.equal(#list, #scene.requests)
      assert.equal("closed", scene.client:stats().breaker.state)
    end)
  end

  it("counts each failure of a call about no address", function()
    local scene = new({ status(500) }, { breaker = { failures = 2 }, retry = false })
    scene.add()
    scene.add()
    assert.equal("open", scene.client:stats().breaker.state)
  end)

  it("counts failures about one transaction once", function()
    local scene = new({ status(500) }, { breaker = { failures = 2 }, retry = false })
    for _, digits in ipairs { "ab", "AB", "aB" } do
      scene.client.kyt:submit { network = "eth", hash = "0x" .. digits:rep(32) }
    end
    assert.equal(3, #scene.requests)
    assert.equal("closed", scene.client:stats().breaker.state)
  end)

  it("does not use up a turn for a request that it stops", function()
    local limit = { rate = 1, burst = 5 }
    local scene = new({ status(503) }, { breaker = { failures = 1 }, rate_limit = limit, retry = false })
    for _ = 1, 10 do
      scene.risk()
    end
    assert.near(4, scene.client:stats().rate_limit.tokens, 1e-6)
  end)

  it("lets another probe through when the task of one is cancelled", function()
    local scene = new({ status(503), status(503), status(503), answer(3), answer() }, settings)
    scene.risks(3)
    scene.time.sleep(5)
    scene.time.tasks.run(function()
      local probe = scene.time.tasks.spawn(scene.risk)
      scene.time.sleep(1)
      assert.equal("circuit_open", select(2, scene.risk()).kind)
      probe:cancel()
      scene.time.sleep(0)
      assert.is_table((scene.risk()))
    end)
  end)
end)

describe("a client that hedges", function()
  it("does not do so by default", function()
    local scene = new { answer(5) }
    scene.risk()
    assert.equal(1, #scene.requests)
  end)

  it("sends a lookup once more when its answer is late", function()
    local scene = new({ answer(5), answer(0.1) }, { hedge = { delay = 0.2 } })
    local record, response = scene.risk()
    assert.is_table(record)
    assert.equal(2, response.attempts)
    assert.near(0.3, response.elapsed, 1e-9)
    assert_times({ 0, 0.2 }, scene)
    local stats = scene.client:stats()
    assert.same({ 2, 1, 1, 0 }, { stats.requests, stats.hedges, stats.hedges_won, stats.retries })
  end)

  it("never hedges an operation that may take effect twice", function()
    local scene = new({ answer(5) }, { hedge = { delay = 0.2 } })
    scene.add()
    assert.equal(1, #scene.requests)
  end)

  it("gives both requests the time of one attempt", function()
    local scene = new({ answer(60) }, { hedge = { delay = 0.2 }, attempt_timeout = 1, retry = false })
    local _, err = scene.risk()
    assert.same({ "timeout", 2 }, { err.kind, err.attempts })
    assert.near(0.8, scene.requests[2].timeout, 1e-9)
    assert.near(1, err.elapsed, 1e-9)
  end)

  it("takes the second request from the retry budget", function()
    local scene = new({ answer(1) }, { hedge = { delay = 0.2 }, retry = { reserve = 2, budget = 0 } })
    for _ = 1, 10 do
      scene.risk()
    end
    assert.equal(12, #scene.requests)
  end)

  it("sends no second request where there is no turn for it", function()
    local scene = new({ answer(1) }, { hedge = { delay = 0.2 }, rate_limit = { rate = 0.001, burst = 1 } })
    scene.risk()
    assert.equal(1, #scene.requests)
  end)

  it("stops for a 429 that its losing request has got", function()
    for _, plan in ipairs {
      { status(429, { ["retry-after"] = "30" }, 0.5), answer(1) },
      { answer(1), status(429, {}, 0.3) },
    } do
      local scene = new(plan, { hedge = { delay = 0.2 }, rate_limit = { rate = 10 }, retry = false })
      assert.is_table((scene.risk()))
      assert.equal(2, #scene.requests)
      assert.is_true(scene.client:stats().rate_limit.paused > 0)
    end
  end)

  it("learns the delay from the operation's recent answers", function()
    local scene = new({ answer(0.1) }, { hedge = true })
    for _ = 1, 20 do
      scene.risk()
    end
    scene.plan[1] = answer(5)
    scene.plan[22] = answer(0.01)
    scene.risk()
    assert.equal(22, #scene.requests)
    assert.near(0.1, scene.requests[22].at - scene.requests[21].at, 1e-9)
  end)

  it("repeats an attempt after both requests have failed", function()
    local scene = new({ status(503, nil, 0.3), status(503, nil, 0.3), answer() }, { hedge = { delay = 0.2 } })
    local record, response = scene.risk()
    assert.is_table(record)
    assert.equal(3, response.attempts)
  end)

  it("says that a request may have reached the service, also where the other one's failure ends the call", function()
    local unsent = { network = failure("network", false, 0.1), tls = failure("tls", false, 0.1) }
    for _, plan in ipairs {
      { answer(60), unsent.tls },
      { answer(60), unsent.network },
      { failure("tls", false, 0.3), answer(60) },
    } do
      local scene = new(plan, { hedge = { delay = 0.2 }, timeout = 1, retry = false })
      local _, err = scene.risk()
      assert.same({ 2, true }, { err.attempts, err.sent })
    end
    local scene = new({ failure("network", false, 0.3), unsent.network }, { hedge = { delay = 0.2 }, retry = false })
    local _, err = scene.risk()
    assert.same({ 2, false }, { err.attempts, err.sent })
  end)
end)

describe("a task that is cancelled", function()
  local scene

  -- Cancels a call in a task after so many seconds.
  local function cancel_after(seconds)
    scene.time.tasks.run(function()
      local task = scene.time.tasks.spawn(scene.risk)
      scene.time.sleep(seconds)
      task:cancel()
      assert.equal("cancelled", select(2, task:await()).kind)
    end)
  end

  -- Checks the state after a cancelled call, and the next call.
  local function assert_sound()
    local stats = scene.client:stats()
    assert.equal(0, stats.in_flight)
    assert.equal(1, stats.cancelled)
    assert.equal(stats.calls, stats.succeeded + stats.failed + stats.cancelled)
    assert.equal(0, stats.rate_limit and stats.rate_limit.waiting or 0)
    assert.equal(0, scene.time.timers())
    for index = 1, #scene.plan do
      scene.plan[index] = answer()
    end
    assert.is_table((scene.risk()))
    assert.equal(1, scene.client:stats().succeeded)
  end

  it("during a request leaves nothing behind", function()
    scene = new({ answer(5) }, { breaker = true })
    cancel_after(1)
    assert_sound()
  end)

  it("during a pause leaves nothing behind", function()
    scene = new({ status(503) }, { retry = { base_delay = 2 }, breaker = true })
    cancel_after(0.5)
    assert.equal(1, #scene.requests)
    assert_sound()
  end)

  it("while it waits for its turn leaves its turn to the next call", function()
    scene = new({ status(400) }, { rate_limit = { rate = 1, burst = 1 } })
    scene.risk()
    cancel_after(0.5)
    assert.equal(1, #scene.requests)
    assert_sound()
    assert.near(1, scene.requests[2].at, 1e-6)
  end)

  it("while two requests race leaves nothing behind", function()
    scene = new({ answer(5) }, { hedge = { delay = 0.2 } })
    cancel_after(1)
    assert.equal(2, #scene.requests)
    assert_sound()
  end)

  it("during a request whose transport answers nevertheless leaves nothing to the next call", function()
    local plan = { answer(5) }
    scene = new(plan)
    local time, sleep = scene.time, scene.time.sleep
    function time.sleep(seconds)
      time.tasks.pcall(sleep, seconds)
    end
    time.tasks.run(function()
      local task = time.tasks.spawn(scene.risk)
      sleep(1)
      task:cancel()
      assert.is_table((task:await()))
    end)
    plan[1] = "broken"
    assert.equal("protocol", select(2, scene.risk()).kind)
    local stats = scene.client:stats()
    assert.same({ 2, 0, 1, 1, 0 }, { stats.calls, stats.succeeded, stats.failed, stats.cancelled, stats.in_flight })
    assert.equal(1, stats.statuses[200])
  end)

  it("while the function access_key waits ends its task", function()
    local client = riskscreen.new {
      access_key = function()
        riskscreen.sleep(0.05)
        return "a-key-of-a-function"
      end,
      transport = function()
        riskscreen.sleep(0)
      end,
    }
    riskscreen.run(function()
      local task = riskscreen.spawn(client.kya.risk, client.kya, { address = ("0x%040x"):format(1), network = "eth" })
      riskscreen.sleep(0.01)
      task:cancel()
      assert.equal("cancelled", select(2, task:await()).kind)
    end)
    local stats = client:stats()
    assert.same({ 1, 1, 0 }, { stats.calls, stats.cancelled, stats.in_flight })
  end)

  it("before it has begun leaves nothing behind", function()
    scene = new { answer(5) }
    scene.time.tasks.run(function()
      scene.time.tasks.spawn(scene.risk):cancel()
    end)
    assert.equal(0, scene.client:stats().calls)
  end)
end)

describe("a trace", function()
  local traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  it("of the caller is sent with every request", function()
    local scene = new { status(503) }
    scene.risk { traceparent = traceparent }
    for index = 1, 3 do
      assert.equal(traceparent, scene.requests[index].request.headers.traceparent)
    end
  end)

  it("of one call is not sent with the next one", function()
    local scene = new { answer() }
    for _, own in ipairs { traceparent, false, (traceparent:gsub("^00%-4", "00-5")), false } do
      scene.risk(own and { traceparent = own } or nil)
      assert.equal(own or nil, scene.requests[#scene.requests].request.headers.traceparent)
    end
  end)

  it("is not sent without a traceparent", function()
    local scene = new { answer() }
    scene.risk()
    assert.is_nil(scene.requests[1].request.headers.traceparent)
  end)

  it("with a malformed traceparent is refused at the caller's line", function()
    local scene = new { answer() }
    local ok, message = pcall(function()
      scene.client.kya:risk({ address = "0x1", network = "eth" }, { traceparent = "00-1-2-3" })
    end)
    assert.is_false(ok)
    assert.matches("init_spec.lua:%d+: traceparent must be as W3C Trace Context writes it", message)
  end)
end)

describe("a client's statistics", function()
  it("count its calls by their results", function()
    local scene = new { status(503, nil, 0.2), answer(0.1), status(400) }
    scene.risk()
    scene.risk()
    scene.add()
    local stats = scene.client:stats()
    assert.same({ 3, 1, 2, 4, 1 }, { stats.calls, stats.succeeded, stats.failed, stats.requests, stats.retries })
    assert.same({ [200] = 1, [400] = 2, [503] = 1 }, stats.statuses)
    assert.same({ bad_request = 2 }, stats.errors)
    assert.equal(2, stats.operations.getAddressRisk.calls)
    assert.equal(1, stats.operations.addBlacklistAddresses.failed)
    assert.equal(3, stats.latency.calls.count)
    assert.near(0.35, stats.latency.calls.max, 1e-9)
    assert.near(0.2, stats.latency.requests.max, 1e-9)
    assert.is_true(stats.bytes_sent > 10)
    assert.equal(#answer()[2].body, stats.bytes_received)
  end)

  it("count the duration of each request, also where it is that of its call", function()
    local scene = new { answer(0.1), status(503, nil, 0.2), answer(0.4), status(400) }
    scene.risk()
    scene.risk()
    scene.risk()
    local stats = scene.client:stats()
    local calls, requests = stats.latency.calls, stats.latency.requests
    assert.same({ 3, 4, 3 }, { calls.count, requests.count, stats.operations.getAddressRisk.latency.count })
    assert.near(0.1 + 0.2 + 0.4, requests.sum, 1e-9)
    assert.near(0.4, requests.max, 1e-9)
  end)

  it("no longer count a call under way that its transport has left with an error", function()
    local scene = new { "broken" }
    for _ = 1, 3 do
      assert.is_true((pcall(scene.risk)))
    end
    scene.plan[1] = answer()
    assert(scene.risk())
    assert(scene.risk())
    collectgarbage()
    collectgarbage()
    local stats = scene.client:stats()
    assert.same({ 5, 2, 3, 0, 0 }, { stats.calls, stats.succeeded, stats.failed, stats.cancelled, stats.in_flight })
  end)

  it("hold the status of its limit and its circuit", function()
    local scene = new({ answer() }, { rate_limit = { rate = 10, burst = 5 }, breaker = true })
    scene.risk()
    local stats = scene.client:stats()
    assert.same({ rate = 10, tokens = 4, waiting = 0, paused = 0 }, stats.rate_limit)
    assert.same({ state = "closed", opened = 0 }, stats.breaker)
  end)

  it("do not hold the key", function()
    local scene = new { status(503) }
    scene.risk()
    local function search(value)
      if type(value) == "table" then
        for name, member in pairs(value) do
          search(name)
          search(member)
        end
      end
      assert.is_nil(tostring(value):find(plans.key, 1, true))
    end
    search(scene.client:stats())
  end)
end)
