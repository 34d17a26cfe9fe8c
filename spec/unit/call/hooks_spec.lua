local hooks = require "riskscreen.call.hooks"

local call = {
  route = { name = "getAddressRisk" },
  request = { method = "GET" },
  target = "/api/risks?address=x",
  options = {},
}

local function with(hook)
  return hooks.new({ request = hook }, pcall)
end

describe("a hook", function()
  it("gets a description of what happened", function()
    local seen
    with(function(description)
      seen = { description.operation, description.times.total }
    end):tell("request", call, { times = { total = 0.5 } })
    assert.same({ "getAddressRisk", 0.5 }, seen)
  end)

  it("gets the path without the query", function()
    local seen
    with(function(description)
      seen = { description.method, description.path }
    end):tell("request", call, {})
    assert.same({ "GET", "/api/risks" }, seen)
  end)

  it("cannot change the call", function()
    local own = with(function(description)
      description.operation, description.path = "other", "/other"
    end)
    own:tell("request", call, {})
    assert.same({ "getAddressRisk", "/api/risks?address=x" }, { call.route.name, call.target })
    assert.equal(0, own.failures)
  end)

  it("that raises is contained, and its error is kept", function()
    local own = with(function()
      error("no such\nlog", 0)
    end)
    own:tell("request", call, {})
    own:tell("request", call, {})
    assert.equal(2, own.failures)
    assert.equal("no such?log", own.last_failure)
  end)

  it("that raises a table is contained as well", function()
    local own = with(function()
      error({}, 0)
    end)
    own:tell("request", call, {})
    assert.equal(1, own.failures)
  end)

  it("can walk the description", function()
    local seen = {}
    local own = with(function(description)
      for name, value in pairs(description) do
        seen[name] = value
      end
    end)
    own:tell("request", call, { size = 2 })
    assert.same({ operation = "getAddressRisk", method = "GET", path = "/api/risks", size = 2 }, seen)
  end)
end)
