-- Two generations of values by key.
local generations = require "riskscreen.util.generations"

describe("two generations", function()
  it("keep the values of one for certain, and of two at most", function()
    local kept = generations.new(10)
    for index = 1, 100 do
      kept:set("key " .. index, index)
      local count = 0
      for other = 1, index do
        local key = "key " .. other
        count = count + ((kept.young[key] or kept.old[key]) and 1 or 0)
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
    kept:clear()
    assert.is_nil(kept:get "used")
  end)

  it("replace a value", function()
    local kept = generations.new(1)
    kept:set("key", 1)
    kept:set("key", 2)
    assert.equal(2, kept:get "key")
  end)
end)
