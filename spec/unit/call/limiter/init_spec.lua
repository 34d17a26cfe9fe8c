local limiters = require "riskscreen.call.limiter"
local shared_dict = require "spec.support.shared_dict"
local virtual_time = require "riskscreen.runtime.virtual"

local time, limiter

before_each(function()
  time = virtual_time.new()
end)

-- A client's own bucket, and one that workers share: used by one worker they behave the same.
local kinds = {
  ["a limiter"] = function() end,
  ["a limiter with a shared bucket"] = function()
    return shared_dict.new(time.now)
  end,
}

for kind, new_memory in pairs(kinds) do
  describe(kind .. ":", function()
    local function new(rate, burst)
      local settings = { rate = rate, burst = burst }
      limiter = limiters.new(settings, time, new_memory(), "name")
    end

    -- Takes `count` tokens one after another and returns the time of each.
    local function times_of(count, deadline)
      local list = {}
      for index = 1, count do
        assert(limiter:acquire("normal", deadline or 1000))
        list[index] = time.now()
      end
      return list
    end

    local function assert_near(expected, actual)
      assert.equal(#expected, #actual)
      for index, value in ipairs(expected) do
        assert.near(value, actual[index], 1e-6)
      end
    end

    describe("a rate limit", function()
      it("lets a burst through at once and later calls at its rate", function()
        new(10, 3)
        local sent = times_of(6)
        assert_near({ 0, 0, 0 }, { sent[1], sent[2], sent[3] })
        assert_near({ 0.3 }, { sent[6] })
      end)

      if kind == "a limiter" then
        it("spaces evenly the calls that follow a burst", function()
          new(10, 3)
          assert_near({ 0, 0, 0, 0.1, 0.2, 0.3 }, times_of(6))
        end)
      end

      it("counts a request for its cost", function()
        new(10, 5)
        local list = {}
        for index, cost in ipairs { 5, 1, 4, 0 } do
          assert(limiter:acquire("normal", 1000, cost))
          list[index] = time.now()
        end
        assert.equal(0, list[1])
        assert.is_true(list[2] >= 0.1 - 1e-6 and list[3] >= 0.5 - 1e-6 and list[4] == list[3])
      end)

      it("lets a request pass that costs more than a burst, and then waits for it", function()
        new(10, 5)
        assert(limiter:acquire("normal", 1000, 20))
        assert.equal(0, time.now())
        assert(limiter:acquire("normal", 1000, 1))
        if kind == "a limiter" then
          assert.near(1.6, time.now(), 1e-6)
        end
        assert.is_true(time.now() >= 0.5)
      end)

      it("gives back the cost of a request that was not sent", function()
        new(10, 5)
        assert(limiter:acquire("normal", 1000, 5))
        limiter:refund(5)
        assert(limiter:acquire("normal", 1000, 5))
        assert.equal(0, time.now())
      end)

      it("does not give back the rate for a request that failed to connect", function()
        limiter = limiters.new({ rate = 10, burst = 5, daily = 20 }, time, new_memory(), "name", os.time)
        assert(limiter:acquire("normal", 1000, 5))
        limiter:refund(5, true)
        assert.equal(20, limiter:status().left_today)
        assert(limiter:acquire("normal", 1000, 5))
        assert.is_true(time.now() >= 0.5 - 1e-6)
      end)

      it("ends the day's requests at the daily cap, and renews them on the next day", function()
        local midnight = 86400
        local settings = { rate = 1000, burst = 1000, daily = 12 }
        local memory = new_memory()
        local function clock()
          return midnight - 100 + time.now()
        end
        limiter = limiters.new(settings, time, memory, "name", clock)
        assert(limiter:acquire("normal", 1000, 10))
        local taken, retry_after, cap = limiter:acquire("normal", 1000, 10)
        assert.is_nil(taken)
        assert.equal("daily", cap)
        assert.near(100, retry_after, 1)
        assert.equal(2, limiter:status().left_today)
        assert.is_true(limiter:try(2))
        assert.is_false(limiter:try(1))
        if memory then
          assert.is_false(limiters.new(settings, time, memory, "name", clock):try(1))
        end
        time.sleep(101)
        assert.is_true(limiter:acquire("normal", 1000, 10))
        limiter:refund(10)
        assert.equal(12, limiter:status().left_today)
      end)

      it("gives a day no tokens of the day before", function()
        local function clock()
          return 86400 - 100 + time.now()
        end
        limiter = limiters.new({ rate = 1000, burst = 1000, daily = 12 }, time, new_memory(), "name", clock)
        assert(limiter:acquire("normal", 1000, 10))
        local day = limiter:day()
        limiter:refund(5, false, day)
        assert.equal(7, limiter:status().left_today)
        time.sleep(101)
        limiter:refund(5, false, day)
        assert.equal(12, limiter:status().left_today)
      end)

      it("waits no longer than a day where the date was far ahead, and gives nothing twice before", function()
        local ahead = 1e9
        local function clock()
          return 1e8 + ahead + time.now()
        end
        limiter = limiters.new({ rate = 1000, burst = 1000, daily = 12 }, time, new_memory(), "name", clock)
        assert(limiter:acquire("normal", 1000, 12))
        ahead = 0
        local taken, retry_after = limiter:acquire("normal", 1e9, 1)
        assert.is_nil(taken)
        assert.is_true(retry_after <= 86400)
        time.sleep(86400)
        assert.is_true(limiter:acquire("normal", 1000, 12))
      end)

      it("saves no more than a burst while nothing is sent", function()
        new(10, 3)
        time.sleep(100)
        local sent = times_of(4)
        assert_near({ 100, 100, 100 }, { sent[1], sent[2], sent[3] })
        assert.is_true(sent[4] >= 100.1 - 1e-6)
      end)

      it("has by default the burst of a second", function()
        new(5)
        assert.equal(5, limiter:status().tokens)
        new(0.5)
        assert.equal(1, limiter:status().tokens)
      end)

      it("never lets more through than rate and burst allow", function()
        new(7, 4)
        local sent = {}
        time.tasks.run(function()
          for index = 1, 200 do
            time.tasks.spawn(function()
              time.sleep(index * 13 % 29)
              limiter:acquire("normal", 1000)
              sent[#sent + 1] = time.now()
            end)
          end
        end)
        assert.equal(200, #sent)
        for first = 1, #sent do
          for last = first, #sent do
            assert.is_true(last - first + 1 <= 4 + 7 * (sent[last] - sent[first]) + 1e-6)
          end
        end
      end)

      it("gives back a token that was not used", function()
        new(1, 1)
        limiter:acquire("normal", 10)
        limiter:refund()
        assert.is_true(limiter:try())
        assert.is_false(limiter:try())
      end)

      it("fails at once when no token can come before the deadline", function()
        new(1, 1)
        limiter:acquire("normal", 10)
        local taken, retry_after = limiter:acquire("normal", 0.5)
        assert.is_nil(taken)
        assert.near(1, retry_after, 1e-9)
        assert.equal(0, time.now())
      end)

      it("waits no longer than the deadline behind others", function()
        new(1, 1)
        limiter:acquire("normal", 1000)
        local ended = {}
        time.tasks.run(function()
          for index = 1, 4 do
            time.tasks.spawn(function()
              ended[index] = { limiter:acquire("normal", 2.5), time.now() }
            end)
          end
        end)
        assert.same({ true, true }, { ended[1][1], ended[2][1] })
        assert.is_nil(ended[3][1])
        assert.is_nil(ended[4][1])
        assert.is_true(time.now() <= 2.5)
        assert.equal(0, limiter:status().waiting)
      end)
    end)

    describe("tasks that wait for a token", function()
      local order

      before_each(function()
        order = {}
        new(1, 1)
        limiter:acquire("normal", 1000)
      end)

      local function waiting(name, priority, deadline)
        return time.tasks.spawn(function()
          if limiter:acquire(priority or "normal", deadline or 1000) then
            order[#order + 1] = name
          end
        end)
      end

      it("are served in the order in which they came", function()
        time.tasks.run(function()
          for index = 1, 5 do
            waiting(index)
            time.sleep(0.1)
          end
        end)
        assert.same({ 1, 2, 3, 4, 5 }, order)
        assert.near(5, time.now(), 1e-6)
      end)

      it("take turns, however many calls each makes", function()
        local function caller(name)
          return function()
            for _ = 1, 3 do
              limiter:acquire("normal", 1000)
              order[#order + 1] = name
            end
          end
        end
        time.tasks.run(function()
          time.tasks.gather { caller "a", caller "b", caller "c" }
        end)
        assert.equal("abcabcabc", table.concat(order))
      end)

      it("pass those of lower priority that came before", function()
        time.tasks.run(function()
          waiting("low 1", "low")
          waiting("normal 1", "normal")
          waiting("low 2", "low")
          time.sleep(0.1)
          waiting("high 1", "high")
          waiting("normal 2", "normal")
          waiting("high 2", "high")
        end)
        assert.same({ "high 1", "high 2", "normal 1", "normal 2", "low 1", "low 2" }, order)
      end)

      it("do not lose a turn when the one before them gives up", function()
        time.tasks.run(function()
          waiting("short", "high", 1.5)
          waiting("shorter", "high", 1.2)
          waiting "long"
        end)
        assert.same({ "short", "long" }, order)
        assert.near(2, time.now(), 1e-6)
      end)

      it("leave the queue when they are cancelled", function()
        time.tasks.run(function()
          local first, second = waiting "first", waiting "second"
          waiting "third"
          time.sleep(0.5)
          second:cancel()
          first:cancel()
          time.sleep(0)
          assert.equal(1, limiter:status().waiting)
        end)
        assert.same({ "third" }, order)
        assert.near(1, time.now(), 1e-6)
        assert.equal(0, limiter:status().waiting)
        assert.equal(0, time.timers())
      end)

      it("do not lose a token when they are cancelled at its moment", function()
        time.tasks.run(function()
          local first
          local killer = time.tasks.spawn(function()
            time.sleep(1)
            first:cancel()
          end)
          first = waiting "first"
          waiting "second"
          killer:await()
        end)
        assert.same({ "second" }, order)
        assert.near(1, time.now(), 1e-6)
      end)

      it("do not delay a blocking call within another for ever", function()
        local task = time.tasks.spawn(function()
          time.sleep(0.1)
          coroutine.wrap(function()
            limiter:acquire("low", 1000)
            order[#order + 1] = "inner"
          end)()
        end)
        limiter:acquire("normal", 1000)
        order[#order + 1] = "outer"
        task:await()
        assert.same({ "inner", "outer" }, order)
        assert.near(2, time.now(), 1e-6)
      end)
    end)

    describe("a call whose wait raised an error", function()
      it("does not block those behind it for ever", function()
        new(1, 1)
        limiter:acquire("normal", 1000)
        local function broken_signal()
          local signal = time.tasks.signal()
          function signal.wait()
            error "interrupted"
          end
          return signal
        end
        limiter.tasks = setmetatable({ signal = broken_signal }, { __index = time.tasks })
        assert.is_false(pcall(limiter.acquire, limiter, "normal", 3))
        limiter.tasks = time.tasks
        assert.is_true(limiter:acquire("normal", 1000))
      end)
    end)

    describe("a refusal of the service", function()
      it("stops all calls for as long as the service says", function()
        new(10, 10)
        limiter:refused(5)
        assert.near(5, limiter:status().paused, 1e-9)
        assert.is_true(times_of(1)[1] >= 5)
      end)

      it("without Retry-After stops all calls for a second", function()
        new(10, 10)
        limiter:refused(nil)
        assert.near(1, limiter:status().paused, 1e-9)
      end)

      it("stops no call for longer than a minute", function()
        new(10, 10)
        limiter:refused(86400)
        assert.near(60, limiter:status().paused, 1e-9)
      end)

      it("makes a call fail at once whose deadline comes before the end of the pause", function()
        new(10, 10)
        limiter:refused(5)
        local taken, retry_after = limiter:acquire("high", 4)
        assert.is_nil(taken)
        assert.is_true(retry_after >= 5)
        assert.equal(0, time.now())
      end)

      it("halves the rate", function()
        new(10, 10)
        limiter:refused(5)
        assert.near(5, limiter:status().rate, 1e-9)
      end)

      it("of requests that were under way together halves it once", function()
        new(10, 10)
        limiter:refused(5)
        time.sleep(1)
        limiter:refused(4)
        assert.near(5, limiter:status().rate, 1e-9)
      end)

      it("that follows another halves it again, and never to nothing", function()
        new(64, 10)
        local before = 64
        for _ = 1, 20 do
          limiter:refused(0.001)
          local rate = limiter:status().rate
          assert.is_true(rate < before or rate <= 1.1)
          assert.is_true(rate >= 1)
          before = rate
          time.sleep(0.001)
        end
      end)

      it("is followed by no burst", function()
        new(10, 10)
        limiter:refused(5)
        local list = times_of(3)
        assert.is_true(list[2] - list[1] > 0.1)
        assert.is_true(list[3] - list[2] > 0.1)
      end)

      it("is forgotten gradually", function()
        new(10, 10)
        limiter:refused(5)
        local rates = {}
        for index = 1, 5 do
          time.sleep(10)
          rates[index] = limiter:status().rate
        end
        for index = 2, 5 do
          assert.is_true(rates[index] > rates[index - 1] or rates[index] == 10)
        end
        assert.is_true(rates[1] < 7)
        assert.equal(10, rates[5])
      end)

      it("also stops calls that wait already", function()
        new(1, 1)
        limiter:acquire("normal", 1000)
        local at
        time.tasks.run(function()
          time.tasks.spawn(function()
            limiter:acquire("high", 1000)
            at = time.now()
          end)
          time.sleep(0.5)
          limiter:refused(10)
        end)
        assert.is_true(at > 10.5)
      end)
    end)
  end)
end

describe("the cap of a day of a client", function()
  local riskscreen = require "riskscreen"
  local subject = { address = ("0x%040x"):format(1), network = "eth" }

  local function client_of(options)
    local sent = 0
    options.rate_limit = { rate = 1e5, burst = 1e5, daily = 100 }
    options.identity, options.retry, options.breaker = "specs", false, false -- nginx has a breaker by default
    options.access_key = options.access_key or "key-of-the-limiter-specs"
    options.transport = options.transport
      or function()
        sent = sent + 1
        riskscreen.sleep(options.hedge and 0.004 or 0)
        return { status = 500, headers = {}, body = "{}" }
      end
    local client = riskscreen.new(options)
    return client, function()
      return 100 - client:stats().rate_limit.left_today, sent
    end
  end

  it("is not used by calls whose access key cannot be had", function()
    local client, used = client_of {
      access_key = function()
        error "the vault is down"
      end,
    }
    for _ = 1, 10 do
      assert.equal("unauthorized", select(2, client.kya:risk(subject)).kind)
    end
    assert.same({ 0, 0 }, { used() })
  end)

  it("is not used by requests that could not be sent", function()
    local attempts = 0
    local client, used = client_of {
      transport = function()
        attempts = attempts + 1
        local kind = attempts % 2 == 0 and "tls" or "network"
        return nil, { kind = kind, message = "refused", sent = false }
      end,
    }
    for _ = 1, 200 do
      assert.is_false(select(2, client.kya:risk(subject)).sent)
    end
    assert.same({ 0, 200 }, { used(), attempts })
  end)

  it("is not used by hedges that the retry budget does not allow", function()
    local client, used = client_of { hedge = { delay = 0.001 } }
    riskscreen.run(function()
      for _ = 1, 40 do
        client.kya:risk(subject)
      end
    end)
    local taken, sent = used()
    assert.is_true(sent > 40 and sent < 80)
    assert.equal(sent, taken)
  end)
end)
