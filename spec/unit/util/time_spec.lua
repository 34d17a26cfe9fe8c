-- The time where the core is not compiled.

describe("the time without the core", function()
  local os_time = os.time
  local loaded, time

  before_each(function()
    loaded = { package.loaded["riskscreen.util.core"], package.loaded["riskscreen.util.time"] }
    package.loaded["riskscreen.util.core"], package.loaded["riskscreen.util.time"] = false, nil
    package.preload["riskscreen.util.core"] = function()
      return false
    end
    package.loaded["riskscreen.util.core"] = nil
    time = require "riskscreen.util.time"
  end)

  after_each(function()
    os.time, package.preload["riskscreen.util.core"] = os_time, nil -- luacheck: ignore 122
    package.loaded["riskscreen.util.core"], package.loaded["riskscreen.util.time"] = loaded[1], loaded[2]
  end)

  it("is the time of the system", function()
    local before = os_time()
    local now = time()
    assert.is_true(now >= before and now <= os_time() + 1)
    assert.is_true(time(time) >= now)
  end)

  it("tells the moments of one second apart", function()
    local first = time()
    local count = 0
    repeat
      count = count + 1
    until time() > first or count == 1000000
    assert.is_true(time() > first)
    assert.is_true(time() - first < 1)
  end)

  if not rawget(_G, "jit") then
    it("follows a clock that is set", function()
      local now = 1000
      function os.time() -- luacheck: ignore 122
        return now
      end
      local first, second = time(), time()
      assert.is_true(first >= 1000 and second > first and second < 1001)
      for _, other in ipairs { 5000, 900 } do
        now = other
        assert.equal(other, time())
      end
    end)
  end
end)
