local time = require "riskscreen.util.time"

describe("the age of a written moment", function()
  it("is the time since then", function()
    assert.equal(30, time.age(70, 100))
    assert.equal(0, time.age(100, 100))
  end)

  it("is not known for the future, for no number and for NaN", function()
    for _, written in ipairs { 100.5, math.huge, 0 / 0, "70", false } do
      assert.is_nil(time.age(written, 100))
    end
    assert.is_nil(time.age(nil, 100))
  end)

  it("is none while another clock may be so much ahead", function()
    assert.equal(0, time.age(101, 100, 1))
    assert.is_nil(time.age(101.5, 100, 1))
  end)
end)

describe("the wait until a written moment", function()
  it("ends with the moment, and is never longer than its period", function()
    assert.equal(5, time.wait(105, 100, 60))
    assert.equal(0, time.wait(95, 100, 60))
    assert.equal(60, time.wait(1e9, 100, 60))
  end)
end)

describe("the time without the core", function()
  local os_time = os.time
  local loaded, clock

  before_each(function()
    loaded = { package.loaded["riskscreen.util.core"], package.loaded["riskscreen.util.time"] }
    package.loaded["riskscreen.util.core"], package.loaded["riskscreen.util.time"] = false, nil
    package.preload["riskscreen.util.core"] = function()
      return false
    end
    package.loaded["riskscreen.util.core"] = nil
    clock = require("riskscreen.util.time").now
  end)

  after_each(function()
    os.time, package.preload["riskscreen.util.core"] = os_time, nil -- luacheck: ignore 122
    package.loaded["riskscreen.util.core"], package.loaded["riskscreen.util.time"] = loaded[1], loaded[2]
  end)

  it("is the time of the system", function()
    local before = os_time()
    local now = clock()
    assert.is_true(now >= before and now <= os_time() + 1)
    assert.is_true(clock(clock) >= now)
  end)

  it("tells the moments of one second apart", function()
    local first = clock()
    local count = 0
    repeat
      count = count + 1
    until clock() > first or count == 1000000
    assert.is_true(clock() > first)
    assert.is_true(clock() - first < 1)
  end)

  if not rawget(_G, "jit") then
    it("follows a clock that is set", function()
      local now = 1000
      function os.time() -- luacheck: ignore 122
        return now
      end
      local first, second = clock(), clock()
      assert.is_true(first >= 1000 and second > first and second < 1001)
      for _, other in ipairs { 5000, 900 } do
        now = other
        assert.equal(other, clock())
      end
    end)
  end
end)
