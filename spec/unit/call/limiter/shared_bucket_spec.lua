-- One rate limit for many machines: the limiters of a simulated fleet over one Redis, in virtual time.
local limiters = require "riskscreen.call.limiter"
local riskscreen = require "riskscreen"
local runtime = require "riskscreen.runtime"
local random = require "riskscreen.util.random"
local scripted_redis = require "spec.support.scripted_redis"
local virtual_time = require "riskscreen.runtime.virtual"

local START = 1790000000.25 -- Unix seconds at the start of the virtual clock
local time, redis

before_each(function()
  time = virtual_time.new()
  redis = scripted_redis.new(function()
    return START + time.now()
  end)
end)

local function new_limiter(settings, over)
  settings.shared = settings.shared or {}
  settings.shared.redis = over or redis
  settings.shared.away = settings.shared.away or "stop"
  return limiters.new(settings, time, nil, "https://risk.example", function()
    return START + time.now()
  end)
end

local function connect(script)
  return { key = redis.key, script = script }
end

-- A connection that takes some time in each direction.
local function slow(generator, longest)
  return connect(function(_, ...)
    time.sleep(generator() * longest / 2)
    local reply, err = redis:script(...)
    time.sleep(generator() * longest / 2)
    return reply, err
  end)
end

-- The size of the smallest bucket that would have let all these requests pass.
local function burst_of(sent, rate)
  local level, most, last = 0, 0, 0
  for _, at in ipairs(sent) do
    level = math.max(0, level - rate * (at - last)) + 1
    most, last = math.max(most, level), at
  end
  return most
end

local function spawn_caller(limiter, priority, sent, finish, pause)
  time.tasks.spawn(function()
    while time.now() < finish do
      local taken, retry_after = limiter:acquire(priority, time.now() + 10)
      if taken then
        sent[#sent + 1] = time.now()
      end
      time.sleep(taken and pause() or retry_after)
    end
  end)
end

local function spawn_callers(limiter, count, priority, sent, finish, pause)
  for _ = 1, count do
    spawn_caller(limiter, priority, sent, finish, pause)
  end
end

local function count_until(sent, finish)
  local count = 0
  for _, at in ipairs(sent) do
    count = count + (at <= finish and 1 or 0)
  end
  return count
end

local function no_pause()
  return 0
end

describe("a rate limit that machines share", function()
  -- Machines with different loads, priorities and distances to Redis.
  local function run_fleet(machines, settings, seconds)
    local generator, sent = random.new(7), {}
    local function pause()
      return generator() * settings.pause
    end
    time.tasks.run(function()
      for index = 1, machines do
        local limiter = new_limiter({ rate = settings.rate, burst = settings.burst }, slow(generator, 0.02))
        local priority = ({ "high", "normal", "low" })[index % 3 + 1]
        spawn_callers(limiter, index % 10 == 0 and 20 or 1, priority, sent, seconds, pause)
      end
    end)
    return sent
  end

  for _, case in ipairs {
    { machines = 1000, rate = 500, burst = 500, pause = 1, seconds = 4 },
    { machines = 1000, rate = 50, burst = 50, pause = 1, seconds = 8 },
    { machines = 100, rate = 1000, burst = 100, pause = 0.01, seconds = 3 },
    { machines = 20, rate = 2000, burst = 2000, pause = 0.01, seconds = 5 },
    { machines = 20, rate = 100, burst = 10, pause = 0.1, seconds = 20 },
    { machines = 5, rate = 5, burst = 5, pause = 1, seconds = 200 },
  } do
    it(("of %g a second holds for %d machines, and they use it"):format(case.rate, case.machines), function()
      local sent = run_fleet(case.machines, case, case.seconds)
      assert.is_true(burst_of(sent, case.rate) <= case.burst)
      assert.is_true(count_until(sent, case.seconds) >= 0.95 * case.rate * case.seconds)
    end)
  end

  it("lets no more than the burst through when all machines wake up at once, again and again", function()
    local sent, limiters_made = {}, {}
    for index = 1, 50 do
      limiters_made[index] = new_limiter { rate = 100, burst = 100 }
    end
    time.tasks.run(function()
      for _ = 1, 20 do
        for _, limiter in ipairs(limiters_made) do
          spawn_callers(limiter, 4, "normal", sent, time.now() + 0.001, no_pause)
        end
        time.sleep(1.7)
      end
    end)
    assert.is_true(#sent >= 0.95 * 100 * 20 * 1.7)
    assert.is_true(burst_of(sent, 100) <= 100)
  end)

  for _, seconds in ipairs { 100, 3600, 40000 } do
    it(("waits no longer where the clock of Redis is set back by %d seconds"):format(seconds), function()
      local ahead, taken = seconds, 0
      local limiter = new_limiter(
        { rate = 10, burst = 10 },
        scripted_redis.new(function()
          return START + time.now() + ahead
        end)
      )
      time.tasks.run(function()
        spawn_callers(limiter, 3, "low", {}, 1, no_pause)
        time.sleep(1)
        limiter:refused(5)
        ahead = 0
        local began = time.now()
        assert.is_true(limiter:acquire("low", began + 12))
        while time.now() < began + 30 do
          taken = taken + (limiter:acquire("high", time.now() + 10) and 1 or 0)
        end
      end)
      assert.is_true(taken > 100)
    end)
  end

  it("asks Redis seldom for a machine that calls often", function()
    local sent, limiter = {}, new_limiter { rate = 1000, burst = 1000 }
    time.tasks.run(function()
      spawn_callers(limiter, 1, "normal", sent, 20, function()
        return 0.01
      end)
    end)
    assert.is_true(#sent > 1900)
    assert.is_true(redis.calls < #sent / 10)
  end)

  it("sends Redis few questions while a thousand machines wait", function()
    local sent = {}
    time.tasks.run(function()
      for _ = 1, 1000 do
        spawn_caller(new_limiter { rate = 10, burst = 10 }, "normal", sent, 10, no_pause)
      end
    end)
    assert.is_true(redis.calls < 4000)
  end)

  it("serves a withdrawal at once while backfills use up the rate", function()
    local sent, waits = {}, {}
    time.tasks.run(function()
      for _ = 1, 20 do
        spawn_callers(new_limiter { rate = 100, burst = 100 }, 20, "low", sent, 20, no_pause)
      end
      local gate = new_limiter { rate = 100, burst = 100 }
      for index = 1, 40 do
        time.sleep(0.4)
        local from = time.now()
        assert(gate:acquire("high", from + 10))
        waits[index] = time.now() - from
      end
    end)
    assert.is_true(math.max((table.unpack or unpack)(waits)) <= 0.05) -- luacheck: ignore 113 143
    assert.is_true(count_until(sent, 20) >= 0.95 * (100 * 20 - 40))
  end)

  it("lets a request pass that costs more than the bucket holds, and makes up for it", function()
    local limiter = new_limiter { rate = 10, burst = 10 }
    time.sleep(1)
    assert(limiter:acquire("normal", 100, 30))
    local before = time.now()
    assert(limiter:acquire("normal", 100, 1))
    assert.is_true(time.now() - before >= 2.5)
  end)

  it("gives back the tokens of a request that was not sent", function()
    local limiter = new_limiter { rate = 10, burst = 10 }
    assert(limiter:acquire("normal", 100, 5))
    limiter:refund(5)
    local calls = redis.calls
    assert(limiter:acquire("normal", 100, 5))
    assert.equal(calls, redis.calls)
  end)

  it("does not use tokens after their lifetime", function()
    local limiter = new_limiter { rate = 10, burst = 10 }
    assert(limiter:acquire("normal", 100, 5))
    limiter:refund(5)
    time.sleep(0.5)
    assert.equal(0, limiter:status().tokens)
  end)

  it("fails at once where the turn would come after the deadline", function()
    local limiter = new_limiter { rate = 1, burst = 2 }
    assert(limiter:acquire("normal", 100, 1))
    local before = time.now()
    local taken, retry_after = limiter:acquire("normal", before + 0.5, 1)
    assert.is_nil(taken)
    assert.near(1, retry_after, 0.01)
    assert.near(before, time.now(), 0.01)
  end)

  it("stops all machines for the time that the service names, and goes on at half the rate", function()
    local one, other = new_limiter { rate = 100, burst = 10 }, new_limiter { rate = 100, burst = 10 }
    assert(one:acquire("normal", 100))
    one:refused(5)
    local paused = time.now()
    assert(other:acquire("normal", 100))
    assert.near(paused + 5, time.now(), 0.05)
    local from = time.now()
    for _ = 1, 50 do
      assert(other:acquire("normal", 100))
    end
    assert.is_true(time.now() - from > 0.9)
  end)
end)

describe("a cap that machines share", function()
  -- Machines that take all tokens that they get until `finish`.
  local function run(machines, settings, finish, over)
    local sent, last_cap = {}, nil
    local generator = random.new(3)
    time.tasks.run(function()
      for _ = 1, machines do
        local limiter = new_limiter({
          rate = settings.rate,
          burst = settings.burst,
          daily = settings.daily,
        }, over)
        time.tasks.spawn(function()
          while time.now() < finish do
            local taken, retry_after, cap = limiter:acquire("normal", time.now() + 10)
            if taken then
              sent[#sent + 1] = time.now()
              time.sleep(generator() * 0.1)
            else
              last_cap = cap or last_cap
              time.sleep(math.min(retry_after, finish - time.now() + 1))
            end
          end
        end)
      end
    end)
    return sent, last_cap
  end

  local function at_seconds_before(unix_time)
    time.sleep(unix_time - START - 60)
  end

  it("of a day is used up by all together and never exceeded; it starts anew at midnight UTC", function()
    local midnight = (math.floor(START / 86400) + 1) * 86400
    at_seconds_before(midnight)
    local sent, cap = run(100, { rate = 100, burst = 100, daily = 2000 }, midnight - START + 600)
    local today = count_until(sent, midnight - START - 1e-6)
    assert.equal("daily", cap)
    assert.is_true(today <= 2000 and today >= 1900)
    assert.is_true(#sent - today <= 2000 and #sent - today >= 1900)
  end)

  it("tells when its day ends", function()
    local limiter = new_limiter { rate = 100, burst = 100, daily = 1 }
    assert(limiter:acquire("normal", 10))
    local taken, retry_after, cap = limiter:acquire("normal", time.now() + 10)
    assert.is_nil(taken)
    assert.equal("daily", cap)
    assert.near((math.floor(START / 86400) + 1) * 86400 - START - time.now(), retry_after, 1)
  end)

  it("is not exceeded where the clock of Redis is set back to the day before", function()
    local ahead, taken = math.floor(START / 86400 + 1) * 86400 - START + 10, 0
    local set_back = scripted_redis.new(function()
      return START + time.now() + ahead
    end)
    local machines = {}
    for index = 1, 4 do
      machines[index] = new_limiter({ rate = 100, burst = 100, daily = 100 }, set_back)
    end
    time.tasks.run(function()
      for index, limiter in ipairs(machines) do
        for _ = 1, 40 do
          taken = taken + (limiter:acquire("high", time.now() + 10) and 1 or 0)
        end
        ahead = index == 2 and ahead - 60 or ahead
      end
    end)
    assert.is_true(taken <= 100 and taken > 90)
  end)

  it("is not exceeded where the answers of Redis get lost", function()
    local generator = random.new(11)
    local losing = connect(function(_, ...)
      local reply, err = redis:script(...)
      if generator() < 0.2 then
        return nil, { message = "lost" }
      end
      return reply, err
    end)
    local sent = run(20, { rate = 100, burst = 100, daily = 500 }, 60, losing)
    assert.is_true(#sent <= 500 and #sent > 250)
  end)

  it("is not exceeded where Redis loses its data, because the machines tell what they have used", function()
    local sent = {}
    local settings = { rate = 100, burst = 100, daily = 500 }
    local machines = {}
    for index = 1, 10 do
      machines[index] = new_limiter { rate = settings.rate, burst = settings.burst, daily = settings.daily }
    end
    local function use(count)
      for _ = 1, count do
        for _, limiter in ipairs(machines) do
          if limiter:acquire("normal", time.now() + 10) then
            sent[#sent + 1] = time.now()
          end
        end
      end
    end
    use(30)
    redis.data = {}
    use(60)
    assert.equal(500, #sent)
  end)
end)

describe("without its Redis, a shared rate limit", function()
  local down = { kind = "storage", message = "redis: connection refused" }

  it("fails calls at once by default, and tries again a second later", function()
    local limiter = new_limiter { rate = 100, burst = 100 }
    redis.failure = down
    local taken, retry_after, cap, err = limiter:acquire("normal", 100)
    assert.same({ nil, 1, nil, down }, { taken, retry_after, cap, err })
    limiter:acquire("normal", 100)
    assert.equal(1, redis.calls)
    redis.failure = nil
    time.sleep(1)
    assert.is_true(limiter:acquire("normal", 100))
    assert.is_false(limiter:status().away)
  end)

  it("uses this machine's share where the operator has said so", function()
    local limiter = new_limiter { rate = 100, burst = 100, shared = { away = "share", share = 0.1 } }
    redis.failure = down
    local sent = {}
    time.tasks.run(function()
      spawn_callers(limiter, 5, "normal", sent, 20, no_pause)
    end)
    assert.is_true(burst_of(sent, 10) <= 10)
    assert.is_true(count_until(sent, 20) >= 190)
  end)

  describe("where some of the machines are cut off, again and again", function()
    local MACHINES, CUT, SHARE = 12, 4, 0.2

    -- Each machine has a connection of its own. Those of the first few are cut most of the time.
    local function run_fleet(settings, seconds)
      local generator, sent, before_cut = random.new(5), {}, nil
      local has_begun = false
      local function cut_off(index)
        return connect(function(_, ...)
          if index <= CUT and has_begun and math.floor(time.now() / 3 + index / 7) % 3 > 0 then
            return nil, down
          end
          return redis:script(...)
        end)
      end
      time.tasks.run(function()
        for index = 1, MACHINES do
          local limiter = new_limiter({
            rate = settings.rate,
            burst = settings.burst,
            daily = settings.daily,
            shared = { away = "share", share = SHARE },
          }, cut_off(index))
          for _ = 1, 3 do
            time.tasks.spawn(function()
              while time.now() < seconds do
                local taken, retry_after = limiter:acquire("normal", time.now() + 1)
                if taken then
                  sent[#sent + 1] = time.now()
                end
                time.sleep(taken and generator() * settings.pause or math.min(1, retry_after))
              end
            end)
          end
        end
        time.sleep(2)
        before_cut, has_begun = #sent, true
      end)
      return sent, before_cut
    end

    it("takes at most the share of each machine more than the rate", function()
      local rate, burst = 100, 50
      local sent = run_fleet({ rate = rate, burst = burst, pause = 0.05 }, 60)
      assert.is_true(burst_of(sent, rate) > burst)
      assert.is_true(burst_of(sent, rate * (1 + CUT * SHARE)) <= burst + CUT * SHARE * burst)
    end)

    it("takes at most the share of each machine of what was left of the cap more than the cap", function()
      local sent, before_cut = run_fleet({ rate = 200, burst = 100, daily = 3000, pause = 0.05 }, 60)
      assert.is_true(#sent > 3000)
      assert.is_true(#sent <= 3000 + CUT * SHARE * (3000 - before_cut))
    end)
  end)

  it("uses no more than its share of what is left of a cap, and tells Redis later", function()
    local settings = { rate = 100, burst = 100, daily = 200, shared = { away = "share", share = 0.1 } }
    local limiter = new_limiter(settings)
    for _ = 1, 100 do
      assert(limiter:acquire("normal", 100))
    end
    redis.failure = down
    time.sleep(2)
    local taken = 0
    for _ = 1, 100 do
      taken = taken + (limiter:acquire("normal", time.now() + 5) and 1 or 0)
    end
    assert.is_true(taken >= 8 and taken <= 10)
    redis.failure = nil
    time.sleep(2)
    assert(limiter:acquire("normal", time.now() + 5))
    local status = limiter:status()
    local left = status.left_today + status.tokens
    -- A few tokens were held when Redis failed. They count as used.
    assert.is_true(left <= 200 - 100 - taken - 1 and left > 200 - 100 - taken - 10)
  end)
end)

describe("a client with a shared rate limit", function()
  local client, answered

  -- The client has the real clock.
  before_each(function()
    redis = scripted_redis.new(function()
      return START + runtime.now()
    end)
  end)

  local function new(rate_limit)
    answered = 0
    rate_limit.shared = { redis = redis }
    client = riskscreen.new {
      access_key = "an-access-key",
      rate_limit = rate_limit,
      retry = false,
      transport = function()
        answered = answered + 1
        return { status = 200, headers = {}, body = "{}" }
      end,
    }
  end

  local function request(count)
    for _ = 2, count do
      client:request("GET", "/api/v1/x")
    end
    return select(2, client:request("GET", "/api/v1/x"))
  end

  it("sends a request for each token of all clients", function()
    new { rate = 10000, burst = 10000, daily = 5 }
    request(3)
    local first = client
    new { rate = 10000, burst = 10000, daily = 5 }
    local err = request(3)
    assert.equal(2, answered)
    assert.equal("rate_limited", err.kind)
    assert.is_false(err.sent)
    assert.matches("rate_limit.daily is used up", err.message, 1, true)
    assert.equal(0, client:stats().rate_limit.left_today)
    assert.equal(1, client:stats().limited)
    first:close()
  end)

  it("sends nothing while Redis cannot be reached, and says why", function()
    new { rate = 100 }
    redis.failure = { kind = "storage", message = "redis: connection refused" }
    local err = request(1)
    assert.equal(0, answered)
    assert.equal("rate_limited", err.kind)
    assert.is_true(err.retryable)
    assert.equal(redis.failure, err.cause)
    assert.matches("the shared rate_limit cannot be reached: redis: connection refused", err.message, 1, true)
    assert.equal("unknown", client:screen({ address = "0x" .. ("1"):rep(40), network = "eth" }).action)
  end)
end)
