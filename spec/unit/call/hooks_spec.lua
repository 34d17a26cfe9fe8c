local states = require "riskscreen.call.state"

local call = {
  route = { name = "getAddressRisk", operation = { name = "getAddressRisk" } },
  request = { method = "GET", options = {} },
  target = "/api/risks?address=x",
}

-- The state of a client with a hook.
local function with(hook)
  return { hooks = { request = hook }, hook_failures = 0, runtime = { tasks = { contain = pcall } } }
end

local function tell(state, fields)
  call.route.state = state
  states.tell(call, "request", fields)
end

describe("a hook", function()
  it("gets a description of what happened", function()
    local seen
    local own = with(function(description)
      seen = { description.operation, description.times.total }
    end)
    tell(own, { times = { total = 0.5 } })
    assert.same({ "getAddressRisk", 0.5 }, seen)
  end)

  it("gets the path without the query", function()
    local seen
    local own = with(function(description)
      seen = { description.method, description.path }
    end)
    tell(own, {})
    assert.same({ "GET", "/api/risks" }, seen)
  end)

  it("cannot change the call", function()
    local own = with(function(description)
      description.operation, description.path = "other", "/other"
    end)
    tell(own, {})
    assert.same({ "getAddressRisk", "/api/risks?address=x" }, { call.route.name, call.target })
    assert.equal(0, own.hook_failures)
  end)

  it("that raises is contained, and its error is kept", function()
    local own = with(function()
      error("no such\nlog", 0)
    end)
    tell(own, {})
    tell(own, {})
    assert.equal(2, own.hook_failures)
    assert.equal("no such?log", own.last_hook_failure)
  end)

  it("that raises a table is contained as well", function()
    local own = with(function()
      error({}, 0)
    end)
    tell(own, {})
    assert.equal(1, own.hook_failures)
  end)

  it("can walk the description", function()
    local seen = {}
    local own = with(function(description)
      for name, value in pairs(description) do
        seen[name] = value
      end
    end)
    tell(own, { size = 2 })
    assert.same({ operation = "getAddressRisk", method = "GET", path = "/api/risks", size = 2 }, seen)
  end)
end)
