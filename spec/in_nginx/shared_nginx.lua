-- The workers of a real nginx share the circuit and the rate limit of a client with `shared_dict`.
local json = require "riskscreen.json"
local nginx = require "spec.support.nginx"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"

local RUN = "return require('spec.support.nginx_shared').run(...)"
local WORKERS = 3
local NEVER = 1000 -- seconds
local PROBE_TIMEOUT = 5 -- seconds
local MOST_TRIES = 2000

-- Log lines of nginx about connections of the hanging sandbox, and about a killed worker.
local ALLOWED = { "recv%(%) failed %(104:", "send%(%) failed %(104:", "exited on signal 9" }

describe("workers with a shared dict", function()
  local server, service, its_server, options
  local first_address = 0

  before_each(function()
    server = nginx.start { workers = WORKERS, http = "lua_shared_dict riskscreen 1m; lua_shared_dict small 16k;" }
    service = sandbox.new {}
    its_server = assert(sandbox.serve { service = service })
    options = {
      base_url = its_server.url,
      access_key = its_server.access_key,
      shared_dict = "riskscreen",
      retry = false,
      breaker = { failures = 3, cooldown = NEVER },
    }
  end)

  after_each(function()
    its_server:close()
    server:stop(ALLOWED)
  end)

  -- Every connection is new. The kernel gives connections to different workers, so one of them reaches the worker.
  local function run(worker, more)
    local given = {
      id = 1,
      options = options,
      worker = worker,
      calls = 1,
      first_address = first_address,
    }
    for name, value in pairs(more or {}) do
      given[name] = value
    end
    first_address = first_address + given.calls
    local body = assert(json.encode { code = RUN, argument = given })
    for _ = 1, MOST_TRIES do
      local answer = assert(server.get("/eval", { body = body, headers = { "Connection: close" } }))
      assert(answer.status == 200, answer.body)
      local told = json.decode(answer.body).values[1].value
      if told.outcomes then
        return told
      end
    end
    error("the worker does not answer: " .. worker)
  end

  local function outcomes(worker, more)
    return table.concat(run(worker, more).outcomes, " ")
  end

  local function fail_always(status)
    service:fault { kind = "status", status = status or 500 }
  end

  local function requests()
    return #service:requests()
  end

  -- Waits in a task until the service has had so many requests.
  local function await_requests(count)
    for _ = 1, MOST_TRIES do
      if requests() >= count then
        return
      end
      riskscreen.sleep(0.01)
    end
    error("waited in vain for as many requests: " .. count)
  end

  -- Repeats a worker's call until it has the expected outcome.
  local function await_outcome(worker, expected)
    nginx.wait_for("a call that is " .. expected, function()
      return outcomes(worker) == expected
    end)
  end

  it("have one circuit: failures of one worker stop all", function()
    fail_always()
    assert.equal("server server server circuit_open", outcomes(0, { calls = 4 }))
    for worker = 0, WORKERS - 1 do
      assert.equal("circuit_open", outcomes(worker))
    end
    assert.equal(3, requests())
  end)

  it("open the circuit by failures of which each has seen one", function()
    fail_always()
    for worker = 0, WORKERS - 1 do
      assert.equal("server", outcomes(worker))
    end
    assert.equal("circuit_open", outcomes(0))
    local breaker = run(1).breaker
    assert.same({ "open", 1 }, { breaker.state, breaker.opened })
  end)

  it("have one probe under way, and close the circuit for all when it succeeds", function()
    options.breaker.cooldown = 0.05
    service:fault { kind = "status", status = 500, count = 3 }
    service:fault { kind = "hang", nth = 1, count = 1 }
    assert.equal("server server server", outcomes(0, { calls = 3 }))
    local probe
    riskscreen.run(function()
      local probing = riskscreen.spawn(function()
        -- Until the circuit lets it through.
        repeat
          probe = outcomes(1, { call_options = { timeout = PROBE_TIMEOUT } })
        until probe ~= "circuit_open"
      end)
      await_requests(4)
      for worker = 0, WORKERS - 1 do
        assert.equal("circuit_open circuit_open", outcomes(worker, { calls = 2, together = true }))
      end
      assert.equal(4, requests())
      probing:await()
    end)
    assert.equal("timeout", probe)
    await_outcome(2, "ok")
    for worker = 0, WORKERS - 1 do
      assert.equal("ok", outcomes(worker))
    end
  end)

  it("have one bucket", function()
    options.rate_limit = { rate = 1 / NEVER, burst = 5 }
    local passed = 0
    riskscreen.run(function()
      local bodies = {}
      for worker = 0, WORKERS - 1 do
        bodies[#bodies + 1] = function()
          for _, outcome in ipairs(run(worker, { calls = 4, together = true }).outcomes) do
            assert.is_true(outcome == "ok" or outcome == "rate_limited", outcome)
            passed = passed + (outcome == "ok" and 1 or 0)
          end
        end
      end
      riskscreen.gather(bodies)
    end)
    assert.equal(5, passed)
    assert.equal(5, requests())
  end)

  it("all slow down when the service has refused one of them", function()
    options.rate_limit = { rate = 10, burst = 10 }
    service:fault { kind = "status", status = 429, retry_after = 50, count = 1 }
    assert.equal("rate_limited", outcomes(0))
    for worker = 0, WORKERS - 1 do
      local told = run(worker)
      assert.equal("rate_limited", told.outcomes[1])
      assert.equal(5, told.rate_limit.rate)
      assert.is_true(told.rate_limit.paused > 0)
    end
    assert.equal(1, requests())
  end)

  it("queue for tokens in each worker", function()
    options.rate_limit = { rate = 50, burst = 1 }
    riskscreen.run(function()
      local bodies = {}
      for worker = 0, WORKERS - 1 do
        bodies[#bodies + 1] = function()
          assert.equal("ok ok ok ok", outcomes(worker, { calls = 4, together = true }))
        end
      end
      riskscreen.gather(bodies)
    end)
    assert.equal(4 * WORKERS, requests())
  end)

  local function pids()
    local list = {}
    for _, pid in ipairs(server:workers()) do
      list[pid] = true
    end
    return list
  end

  it("keep circuit and bucket over a reload", function()
    options.rate_limit = { rate = 1 / NEVER, burst = 4 }
    fail_always()
    assert.equal("server server server", outcomes(0, { calls = 3 }))
    local before = pids()
    server:reload()
    nginx.wait_for("the old workers to go", function()
      for pid in pairs(pids()) do
        if before[pid] then
          return false
        end
      end
      return next(pids()) ~= nil
    end)
    local told = run(1)
    assert.equal("circuit_open", told.outcomes[1])
    assert.is_near(1, told.rate_limit.tokens, 0.1)
    assert.equal(3, requests())
  end)

  it("go on when the worker with the probe is killed", function()
    options.breaker.cooldown = 0.05
    options.timeout = 2
    service:fault { kind = "status", status = 500, count = 3 }
    service:fault { kind = "hang", nth = 1, count = 1 }
    local pid = run(1, { calls = 3 }).pid
    riskscreen.run(function()
      local probing = riskscreen.spawn(function()
        while requests() < 4 do
          -- The connection ends with the worker.
          pcall(run, 1)
        end
      end)
      await_requests(4)
      assert.is_truthy(os.execute("kill -KILL " .. pid))
      probing:await()
    end)
    await_outcome(0, "ok")
    for worker = 0, WORKERS - 1 do
      assert.equal("ok", outcomes(worker))
    end
  end)

  it("go on when the dict is full", function()
    options.shared_dict = "small"
    options.rate_limit = { rate = 1000, burst = 1000 }
    local fill = "for i = 1, 500 do ngx.shared.small:set('other' .. ... .. i, ('x'):rep(i % 100)) end"
    fail_always()
    for turn = 1, 20 do
      server:eval(fill, turn)
      local outcome = outcomes(turn % WORKERS)
      assert.is_true(outcome == "server" or outcome == "circuit_open", outcome)
    end
    service:clear_faults()
    server:eval(fill, 0)
    assert.equal("ok", outcomes(0))
  end)

  it("keep the circuit open while other entries fill the dict slowly", function()
    options.shared_dict = "small"
    fail_always()
    for turn = 1, 30 do
      server:eval("for i = 1, 5 do ngx.shared.small:set('other' .. ... .. i, ('x'):rep(50)) end", turn)
      outcomes(turn % WORKERS)
    end
    assert.equal(3, requests())
  end)

  it("have another circuit under another name", function()
    fail_always()
    assert.equal("server server server", outcomes(0, { calls = 3 }))
    options.shared_as = "another"
    assert.equal("server", outcomes(0, { id = 2 }))
  end)

  it("have a circuit each without a dict", function()
    options.shared_dict, options.breaker = nil, nil
    fail_always()
    assert.equal(("server "):rep(5) .. "circuit_open", outcomes(0, { calls = 6 }))
    assert.equal("server", outcomes(1))
  end)

  it("refuse a dict that the configuration does not name", function()
    local told = server:eval(
      [[local ok, message = pcall(require("riskscreen").new, ...) return message]],
      { base_url = options.base_url, access_key = "test-key", shared_dict = "riskscren" }
    )
    assert.matches("shared_dict must name a lua_shared_dict of the configuration (got 'riskscren')", told, 1, true)
  end)
end)
