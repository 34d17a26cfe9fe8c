-- Retries, limits and hedging over real sockets and in real time.
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"
local scheduler = require "riskscreen.runtime.native.scheduler"

local clean = sandbox.scenario("clean-eth").address

describe("over HTTP, a client", function()
  local server, client

  before_each(function()
    server = assert(sandbox.serve {})
  end)

  after_each(function()
    client:close()
    server:close()
  end)

  local function new(options)
    options.base_url, options.access_key = server.url, server.access_key
    client = riskscreen.new(options)
  end

  local function ask(options)
    return client.kya:risk({ address = clean, network = "eth" }, options)
  end

  for where, run in pairs {
    ["blocking"] = function(fn)
      return fn()
    end,
    ["in a task"] = riskscreen.run,
  } do
    it("that hedges takes the first answer and drops the other, " .. where, function()
      new { hedge = { delay = 0.05 } }
      server.service:fault { kind = "hang", count = 1 }
      local record, response = run(ask)
      assert.equal(clean, record.address)
      assert.equal(2, response.attempts)
      assert.equal(2, #server.service:requests())
      assert.equal(0, scheduler.loop():stats().transfers)
    end)

    it("with a rate limit waits for its turn, " .. where, function()
      new { rate_limit = { rate = 50, burst = 1 } }
      run(function()
        for _ = 1, 4 do
          assert.is_table((ask()))
        end
      end)
      assert.equal(0, client:stats().limited)
    end)

    it("repeats a failed request, " .. where, function()
      new { retry = { base_delay = 0.001 } }
      server.service:fault { kind = "reset", count = 2 }
      assert.equal(3, select(2, run(ask)).attempts)
    end)
  end

  it("with a rate limit serves tasks, blocking calls and blocking calls within each other", function()
    new { rate_limit = { rate = 100, burst = 1 } }
    local served = 0
    local function served_by(call)
      assert.is_table((call()))
      served = served + 1
    end
    local tasks = {}
    for index = 1, 6 do
      tasks[index] = riskscreen.spawn(function()
        served_by(index % 2 == 0 and ask or coroutine.wrap(function()
          return (ask { priority = "low" })
        end))
      end)
    end
    served_by(ask)
    served_by(ask)
    for _, task in ipairs(tasks) do
      task:await()
    end
    assert.equal(8, served)
    assert.equal(0, client:stats().rate_limit.waiting)
  end)

  it("with a rate limit screens a list in a generic for, in a task", function()
    new { rate_limit = { rate = 200, burst = 1 } }
    local list, count = {}, 0
    for index = 1, 10 do
      list[index] = ("0x%040x"):format(index)
    end
    riskscreen.run(function()
      for decision in client:screen_all { source = list, network = "eth", concurrency = 4 } do
        assert.is_nil(decision.error)
        count = count + 1
      end
    end)
    assert.equal(10, count)
  end)

  it("slows down after refusals of the service, and finishes all calls", function()
    server:close()
    server = assert(sandbox.serve { accounts = { ["sandbox-key"] = { rate = 50, burst = 2 } } })
    new { rate_limit = { rate = 1000, burst = 100 }, retry = { attempts = 10, reserve = 100 }, timeout = 60 }
    local done = 0
    riskscreen.run(function()
      for _ = 1, 6 do
        riskscreen.spawn(function()
          assert.is_table((ask()))
          done = done + 1
        end)
      end
    end)
    assert.equal(6, done)
    assert.is_true(client:stats().statuses[429] > 0)
    assert.is_true(client:stats().rate_limit.rate < 1000)
  end)
end)
