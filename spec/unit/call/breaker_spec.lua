local breakers = require "riskscreen.call.breaker"
local shared_dict = require "spec.support.shared_dict"

local now, breaker

local function clock()
  return now
end

-- A client's own circuit, and one that workers share: used by one worker they behave the same.
local kinds = {
  ["a circuit breaker"] = function(settings)
    return breakers.new(settings, clock)
  end,
  ["a shared circuit breaker"] = function(settings)
    return breakers.new(settings, clock, shared_dict.new(clock), "name")
  end,
}

for name, make in pairs(kinds) do
  describe(name .. ":", function()
    local function new(settings)
      local all = { failures = 3, share = 0.5, minimum = 10, window = 10, cooldown = 5, probes = 1 }
      for option, value in pairs(settings or {}) do
        all[option] = value
      end
      now = 1000
      breaker = make(all)
    end

    -- Sends requests with these outcomes: "f" failed, "s" succeeded.
    local function outcomes(text)
      for letter in text:gmatch "." do
        breaker:report(assert(breaker:admit(1)), letter == "f")
      end
    end

    local function state()
      return breaker:status().state
    end

    before_each(function()
      new()
    end)

    describe("a closed circuit", function()
      it("lets everything through", function()
        outcomes "ssfs"
        assert.is_table((breaker:admit(1)))
        assert.equal("closed", state())
      end)

      it("opens after so many failures in a row", function()
        outcomes "ff"
        assert.equal("closed", state())
        outcomes "f"
        assert.equal("open", state())
      end)

      it("starts the count of failures in a row again after a success", function()
        outcomes "ffsffsff"
        assert.equal("closed", state())
      end)

      it("opens when the share of failures within the window is reached", function()
        new { failures = 100 }
        outcomes "sfsfsfsfs"
        assert.equal("closed", state())
        outcomes "f"
        assert.equal("open", state())
      end)

      it("ignores the share below the minimum of requests", function()
        new { failures = 100, minimum = 10 }
        outcomes(("f"):rep(9))
        assert.equal("closed", state())
      end)

      it("forgets requests before the window", function()
        new { failures = 100 }
        outcomes(("f"):rep(9))
        now = now + 11
        outcomes "f"
        assert.equal("closed", state())
      end)

      it("counts requests within the window", function()
        new { failures = 100 }
        outcomes(("f"):rep(9))
        now = now + 8
        outcomes "f"
        assert.equal("open", state())
      end)

      it("learns nothing from a permit that is taken back", function()
        for _ = 1, 5 do
          local permit = breaker:admit(1)
          breaker:forget(permit)
        end
        assert.equal("closed", state())
      end)
    end)

    describe("a closed circuit, about one subject,", function()
      local function fail_on(...)
        for _, subject in ipairs { ... } do
          breaker:report(assert(breaker:admit(1)), true, subject)
        end
      end

      it("counts failures in a row once", function()
        fail_on("a", "b", "a", "a", "b")
        assert.equal("closed", state())
        fail_on "c"
        assert.equal("open", state())
      end)

      it("counts failures again after a success", function()
        fail_on("a", "b")
        outcomes "s"
        fail_on("a", "b", "c")
        assert.equal("open", state())
      end)

      it("counts failures of the window once, also between successes", function()
        for _ = 1, 20 do
          fail_on "a"
          outcomes "s"
        end
        assert.equal("closed", state())
      end)

      it("counts failures that are due to no subject each time", function()
        fail_on("a", "a")
        outcomes "ff"
        assert.equal("open", state())
      end)

      it("opens by the share when many subjects fail", function()
        new { failures = 100 }
        for index = 1, 9 do
          fail_on(("address %d"):format(index))
        end
        assert.equal("closed", state())
        fail_on "address 10"
        assert.equal("open", state())
      end)

      it("counts failures again after the window", function()
        new { failures = 100, minimum = 2, share = 1 }
        fail_on("a", "a")
        now = now + 11
        fail_on("a", "b")
        assert.equal("open", state())
      end)

      it("lets the next probe through when a probe fails on a subject of the row", function()
        fail_on("a", "b", "c")
        now = now + 5
        fail_on "b"
        assert.is_nil(breaker:refuses())
        fail_on "d"
        assert.equal("open", state())
        now = now + 5
        fail_on "d"
        outcomes "s"
        assert.equal("closed", state())
      end)
    end)

    describe("an open circuit", function()
      before_each(function()
        outcomes "fff"
      end)

      it("lets nothing through and returns the time until a probe", function()
        now = now + 2
        local permit, retry_after = breaker:admit(1)
        assert.is_nil(permit)
        assert.equal(3, retry_after)
        assert.equal(3, breaker:refuses())
      end)

      it("does not stay open longer for a request that was under way", function()
        new()
        local late = breaker:admit(10)
        outcomes "fff"
        now = now + 4
        breaker:report(late, true)
        assert.equal(1, breaker:refuses())
      end)

      it("is not closed by a request that was under way", function()
        new()
        local late = breaker:admit(10)
        outcomes "fff"
        breaker:report(late, false)
        assert.equal("open", state())
      end)

      it("counts how often it has opened", function()
        now = now + 5
        outcomes "f"
        assert.equal(2, breaker:status().opened)
      end)
    end)

    describe("a circuit after its cooldown", function()
      before_each(function()
        outcomes "fff"
        now = now + 5
      end)

      it("lets one probe through, and no more while it is under way", function()
        assert.is_table((breaker:admit(2)))
        local permit, retry_after = breaker:admit(2)
        assert.is_nil(permit)
        assert.equal(2, retry_after)
        assert.equal("half_open", state())
      end)

      it("closes when the probe succeeds", function()
        outcomes "s"
        assert.equal("closed", state())
        outcomes "ff"
        assert.equal("closed", state())
      end)

      it("opens again when the probe fails", function()
        outcomes "f"
        assert.equal("open", state())
        assert.equal(5, breaker:refuses())
      end)

      it("lets another probe through when one is taken back", function()
        breaker:forget((breaker:admit(2)))
        assert.is_table((breaker:admit(2)))
      end)

      it("lets another probe through when a probe does not end", function()
        breaker:admit(2)
        now = now + 2
        assert.is_table((breaker:admit(2)))
      end)

      it("closes when enough probes have succeeded", function()
        new { probes = 2 }
        outcomes "fff"
        now = now + 5
        outcomes "s"
        assert.equal("half_open", state())
        outcomes "s"
        assert.equal("closed", state())
      end)
    end)
  end)
end

describe("a worker with a shared circuit breaker", function()
  local settings = { failures = 3, share = 1, minimum = 100, window = 10, cooldown = 5, probes = 1 }
  local own, other

  before_each(function()
    now = 1000
    local shared = shared_dict.new(clock)
    own = breakers.new(settings, clock, shared, "name")
    other = breakers.new(settings, clock, shared, "name")
  end)

  it("hears with the next tick that another worker has opened the circuit", function()
    own:report(own:admit(1), false)
    for _ = 1, settings.failures do
      other:report(other:admit(1), true)
    end
    now = now + 0.001
    assert.is_nil((own:admit(1)))
  end)

  it("ends the row of another worker's failures with the next tick", function()
    own:report(own:admit(1), false)
    other:report(other:admit(1), true)
    other:report(other:admit(1), true)
    now = now + 0.001
    own:report(own:admit(1), false)
    other:report(other:admit(1), true)
    assert.equal("closed", other:status().state)
  end)
end)
