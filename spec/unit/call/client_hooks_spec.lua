local plans = require "spec.support.service_plan"
local recorder = require "spec.support.recorder"
local riskscreen = require "riskscreen"
local samples = require "spec.support.samples"
local sandbox = require "riskscreen.sandbox"

local answer, status = plans.answer, plans.status
local names = { "request", "response", "retry", "error" }

local told

-- Hooks that record their descriptions.
local function noting()
  told = {}
  local hooks = {}
  for _, name in ipairs(names) do
    hooks[name] = function(description)
      told[#told + 1] = { name = name, description = description }
    end
  end
  return hooks
end

local function names_told()
  local list = {}
  for index, entry in ipairs(told) do
    list[index] = entry.name
  end
  return table.concat(list, " ")
end

local function last(name)
  for index = #told, 1, -1 do
    if told[index].name == name then
      return told[index].description
    end
  end
end

describe("the hooks of a client", function()
  it("are called for each request, answer and retry in order", function()
    local scene = plans.new({ status(503), plans.failure("network", true), answer() }, { on = noting() })
    scene.risk()
    assert.equal("request response retry request retry request response", names_told())
  end)

  it("are called once for a failed call", function()
    local scene = plans.new({ status(503) }, { on = noting(), retry = { attempts = 2 } })
    scene.risk()
    assert.equal("request response retry request response error", names_told())
  end)

  it("are called for a call that was never sent", function()
    local scene = plans.new({ answer() }, { on = noting(), rate_limit = { rate = 0.01, burst = 1 } })
    scene.risk()
    told = {}
    scene.risk()
    assert.equal("error", names_told())
    assert.same({ "rate_limited", 0 }, { last("error").kind, last("error").attempts })
  end)

  it("are all optional", function()
    local count = 0
    local scene = plans.new({ status(503), answer() }, {
      on = {
        retry = function()
          count = count + 1
        end,
      },
    })
    assert.is_table((scene.risk()))
    assert.equal(1, count)
  end)

  it("get the operation, the path and the attempt of a request", function()
    local traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    local scene = plans.new({ answer() }, { on = noting() })
    scene.risk { timeout = 4, traceparent = traceparent }
    local seen = last "request"
    assert.same({ "getAddressRisk", "GET", "/api/v1/tracker/kya/risks", 1, false, traceparent, 4, 0 }, {
      seen.operation,
      seen.method,
      seen.path,
      seen.attempt,
      seen.hedge,
      seen.traceparent,
      seen.timeout,
      seen.size,
    })
  end)

  it("get the status, the size and the times of an answer", function()
    local reply = recorder.page(503, ("x"):rep(100))
    reply.http_version = "1.1"
    reply.times = { name_lookup = 0.01, connect = 0.02, tls = 0.03, first_byte = 0.1, total = 0.2 }
    local scene = plans.new({ { 0.2, reply } }, { on = noting(), retry = false })
    scene.risk()
    local seen = last "response"
    assert.same({ 503, 100, "1.1", 0.2 }, { seen.status, seen.size, seen.http_version, seen.elapsed })
    assert.same({ 0.01, 0.02, 0.03, 0.1, 0.2 }, {
      seen.times.name_lookup,
      seen.times.connect,
      seen.times.tls,
      seen.times.first_byte,
      seen.times.total,
    })
  end)

  it("get the error and the pause of a retry", function()
    local scene = plans.new({ status(429, { ["retry-after"] = "2" }), answer() }, { on = noting() })
    scene.risk()
    local seen = last "retry"
    assert.same({ "rate_limited", 429, 2, 1, 2.05 }, {
      seen.kind,
      seen.status,
      seen.retry_after,
      seen.attempt,
      seen.wait,
    })
  end)

  it("get the caller's error of a failed call, and why it was given up", function()
    local scene = plans.new({ status(503) }, { on = noting() })
    local _, err = scene.risk()
    local seen = last "error"
    for _, field in ipairs { "operation", "kind", "message", "status", "retryable", "attempts", "elapsed", "sent" } do
      assert.equal(err[field], seen[field], field)
    end
    assert.equal("attempts", seen.gave_up)
  end)

  it("get a mark of a hedge", function()
    local scene = plans.new({ answer(5), answer() }, { on = noting(), hedge = { delay = 0.1 } })
    scene.risk()
    assert.same({ false, true }, { told[1].description.hedge, told[2].description.hedge })
  end)

  it("never get the key", function()
    local leaky = samples.failure(1, "your key " .. plans.key .. " is bad")
    local scene = plans.new({ { 0, recorder.reply(500, leaky, { ["x-echo"] = plans.key }) } }, {
      on = noting(),
      headers = { ["X-Other"] = "b" },
    })
    scene.risk()
    local fields = { "operation", "method", "path", "traceparent", "message", "headers", "request", "body", "key" }
    for _, entry in ipairs(told) do
      for _, field in ipairs(fields) do
        assert.is_nil(tostring(entry.description[field]):find(plans.key, 1, true))
      end
      assert.is_nil(entry.description.headers)
    end
    assert.matches("[redacted]", last("error").message, 1, true)
  end)

  for _, name in ipairs(names) do
    it("change nothing when the one for " .. name .. " raises", function()
      local function run(hooks)
        local scene = plans.new({ status(503), status(503), answer(), status(400) }, { on = hooks })
        local value, response = scene.risk()
        local none, err = scene.risk()
        return { value, response, none, err }, scene.client:stats()
      end
      local expected = run()
      local actual, stats = run {
        [name] = function()
          error "the log is full"
        end,
      }
      assert.same(expected, actual)
      assert.is_true(stats.hook_failures > 0)
      assert.matches("the log is full", stats.last_hook_failure)
    end)
  end

  it("block when they wait, and the call goes on", function()
    local client
    client = sandbox.client {
      on = {
        request = function()
          riskscreen.sleep(0.001)
        end,
      },
    }
    local record = riskscreen.run(function()
      return (client.kya:risk { address = samples.address, network = "eth" })
    end)
    assert.is_table(record)
    assert.equal(0, client:stats().hook_failures)
  end)
end)
