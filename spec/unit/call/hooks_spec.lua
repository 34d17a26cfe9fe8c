local hooks = require "riskscreen.call.hooks"

local function with(hook)
  return hooks.new({ request = hook }, pcall)
end

describe("a hook", function()
  it("is told what happened", function()
    local seen
    with(function(description)
      seen = { description.operation, description.times.total }
    end):tell("request", { operation = "getAddressRisk", times = { total = 0.5 } })
    assert.same({ "getAddressRisk", 0.5 }, seen)
  end)

  it("cannot change what it is told, however deep", function()
    local own = with(function(description)
      assert.has_error(function()
        description.operation = "other"
      end)
      assert.has_error(function()
        description.new = 1
      end)
      assert.has_error(function()
        description.times.total = 0
      end)
      assert.has_error(function()
        setmetatable(description, nil)
      end)
      assert.equal("getAddressRisk", description.operation)
    end)
    own:tell("request", { operation = "getAddressRisk", times = { total = 0.5 } })
    assert.equal(0, own.failures, own.last_failure)
  end)

  it("that raises is contained, and what it raised is kept", function()
    local own = with(function()
      error("no such\nlog", 0)
    end)
    own:tell("request", {})
    own:tell("request", {})
    assert.equal(2, own.failures)
    assert.equal("no such?log", own.last_failure)
  end)

  it("that raises something that is no text is contained as well", function()
    local own = with(function()
      error({}, 0)
    end)
    own:tell("request", {})
    assert.equal(1, own.failures)
  end)

  it("is there or not", function()
    local own = with(print)
    assert.is_true(own:has "request")
    assert.is_false(own:has "retry")
    assert.is_false(hooks.new(nil, pcall):has "request")
  end)

  if _VERSION ~= "Lua 5.1" then
    it("can walk what it is told", function()
      local seen = {}
      local own = with(function(description)
        for name, value in pairs(description) do
          seen[name] = value
        end
      end)
      own:tell("request", { a = 1, b = 2 })
      assert.same({ a = 1, b = 2 }, seen)
    end)
  end
end)
