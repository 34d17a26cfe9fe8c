-- Two generations of values by key.
local generations = require "riskscreen.util.generations"

describe("two generations", function()
  it("keep the values of one for certain, and of two at most", function()
    local kept = generations.new(10)
    for index = 1, 100 do
      kept:set("key " .. index, index)
      local count = 0
      for other = 1, index do
        count = count + (kept:has("key " .. other) and 1 or 0)
      end
      assert.is_true(count >= math.min(index, 10) and count <= 20)
    end
  end)

  it("keep a value that is used, and drop one that is not", function()
    local kept = generations.new(10)
    kept:set("used", false)
    kept:set("unused", true)
    for index = 1, 100 do
      kept:set("key " .. index, index)
      assert.is_false(kept:get "used")
    end
    assert.is_nil(kept:get "unused")
    assert.is_true(kept.has_dropped)
    kept:clear()
    assert.is_nil(kept:get "used")
    assert.is_false(kept.has_dropped)
  end)
end)
