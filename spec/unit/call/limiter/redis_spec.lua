-- The shared rate limit over a real redis-server. shared_bucket_spec.lua has the rules, in virtual time.
local limiters = require "riskscreen.call.limiter"
local redis_server = require "spec.support.redis"
local riskscreen = require "riskscreen"
local runtime = require "riskscreen.runtime"
local tables = require "riskscreen.util.tables"

local PATIENCE = 30 -- seconds: more than any call here has to wait

local describe_if = redis_server.is_installed() and describe or pending

describe_if("a rate limit in a real Redis", function()
  local server, connections

  before_each(function()
    server, connections = redis_server.start(), {}
  end)

  after_each(function()
    for _, connection in ipairs(connections) do
      connection:close()
    end
    redis_server.stop_all()
  end)

  -- A machine's limiter, over a connection of its own.
  local function new_limiter(settings, timeout)
    local connection = riskscreen.redis.new { url = server.url, timeout = timeout }
    connections[#connections + 1] = connection
    local its_settings = tables.merge(settings, { shared = { redis = connection, away = "stop" } })
    return limiters.new(its_settings, runtime, nil, "name", os.time)
  end

  -- The times at which ten machines with three callers each got so many tokens, or all until they met a cap.
  local function run_machines(settings, count)
    local sent, last_cap = {}, nil
    riskscreen.run(function()
      for _ = 1, 10 do
        local limiter = new_limiter { rate = settings.rate, burst = settings.burst, daily = settings.daily }
        for _ = 1, 3 do
          riskscreen.spawn(function()
            local taken, _, cap = true, nil, nil
            while taken and #sent < count do
              taken, _, cap = limiter:acquire("normal", runtime.now() + PATIENCE)
              sent[#sent + 1] = taken and runtime.now() or nil
            end
            last_cap = cap or last_cap
          end)
        end
      end
    end)
    return sent, last_cap
  end

  it("holds for ten machines together", function()
    local began = runtime.now()
    local sent = run_machines({ rate = 200, burst = 50 }, 300)
    local level, most, last = 0, 0, began
    for _, at in ipairs(sent) do
      level = math.max(0, level - 200 * (at - last)) + 1
      most, last = math.max(most, level), at
    end
    assert.is_true(most <= 50)
    assert.is_true(#sent >= 300)
  end)

  it("ends at the cap of the day, which all have used up together", function()
    local sent, cap = run_machines({ rate = 2000, burst = 500, daily = 200 }, math.huge)
    assert.equal("daily", cap)
    assert.is_true(#sent <= 200 and #sent >= 180)
  end)

  it("counts on where Redis was killed and has lost its data", function()
    local limiter = new_limiter { rate = 1000, burst = 1000, daily = 100 }
    local function use_up()
      local used = 0
      while limiter:acquire("normal", runtime.now() + PATIENCE) do
        used = used + 1
        if used == 60 then
          break
        end
      end
      return used
    end
    local first = use_up()
    server:kill()
    riskscreen.sleep(0.6) -- the tokens that it holds are not valid any more
    local taken, _, _, err = limiter:acquire("normal", runtime.now() + PATIENCE)
    assert.is_nil(taken)
    assert.equal("storage", err.kind)
    server:start()
    riskscreen.sleep(1.1)
    local second = use_up()
    assert.equal(60, first)
    assert.is_true(second <= 40 and second >= 20)
  end)

  it("keeps the use by programs that have ended where Redis was killed and has its file", function()
    server:stop()
    server = redis_server.start { "appendonly yes", "appendfsync always" }
    local settings = { rate = 1000, burst = 1000, daily = 30 }
    local ended = new_limiter(settings)
    for _ = 1, 20 do
      assert(ended:acquire("normal", runtime.now() + PATIENCE))
    end
    server:kill()
    server:start()
    local limiter, used = new_limiter(settings), 0
    while limiter:acquire("normal", runtime.now() + PATIENCE) do
      used = used + 1
    end
    assert.is_true(used <= 10)
  end)

  it("fails calls after the time limit of the connection where Redis hangs", function()
    local limiter = new_limiter({ rate = 1000, burst = 1000 }, 0.5)
    assert(limiter:acquire("normal", runtime.now() + PATIENCE))
    riskscreen.sleep(0.6)
    server:signal "STOP"
    local taken, retry_after, _, err = limiter:acquire("normal", runtime.now() + PATIENCE)
    server:signal "CONT"
    assert.is_nil(taken)
    assert.equal("timeout", err.reason)
    assert.is_true(retry_after > 0)
  end)

  it("is paused for all by a refusal of the service", function()
    local one, other = new_limiter { rate = 1000 }, new_limiter { rate = 1000 }
    one:refused(30)
    local taken, retry_after = other:acquire("normal", runtime.now() + 1)
    assert.is_nil(taken)
    assert.near(30, retry_after, 2)
  end)

  local function refusal()
    local taken, _, _, err = new_limiter({ rate = 1000 }):acquire("normal", runtime.now() + PATIENCE)
    assert.is_nil(taken)
    return err.reason
  end

  it("fails where the memory of Redis is full", function()
    server:command "CONFIG SET maxmemory 1"
    assert.equal("full", refusal())
  end)

  it("fails at a master that is cut off from its replicas", function()
    server:command "CONFIG SET min-replicas-to-write 1"
    assert.equal("busy", refusal())
  end)

  it("fails at a replica", function()
    local replica = redis_server.start { "replicaof 127.0.0.1 " .. server.port }
    server = replica
    assert.equal("read_only", refusal())
  end)

  it("fails where the key holds something else", function()
    server:command 'SET {riskscreen}:rate_limit:name "text"'
    assert.equal("wrong_type", refusal())
  end)
end)
