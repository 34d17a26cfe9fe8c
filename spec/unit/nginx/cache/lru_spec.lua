-- The LRU of a worker.
local lrus = require "riskscreen.nginx.cache.lru"

describe("an LRU", function()
  it("keeps half of its size for certain, and never more than its size", function()
    local lru = lrus.new(100)
    for index = 1, 1000 do
      lru:set("key " .. index, index)
      local kept = 0
      for other = 1, index do
        kept = kept + ((lru.young["key " .. other] or lru.old["key " .. other]) and 1 or 0)
      end
      assert.is_true(kept <= 100 and kept >= math.min(index, 50), kept)
      assert.equal(index, lru:get("key " .. index))
    end
  end)

  it("keeps an entry that is used", function()
    local lru = lrus.new(10)
    lru:set("used", true)
    for index = 1, 1000 do
      lru:set("key " .. index, index)
      assert.is_true(lru:get "used")
    end
    assert.is_nil(lru:get "key 1")
  end)

  it("takes each entry until it is full, then each fourth one", function()
    local lru = lrus.new(10)
    for index = 1, 10 do
      assert.is_true(lru:takes("key " .. index))
      lru:set("key " .. index, index)
    end
    assert.is_true(lru:takes "other")
    lru:set("other", true)
    local taken = 0
    for index = 1, 100 do
      taken = taken + (lru:takes("another " .. index) and 1 or 0)
    end
    assert.equal(25, taken)
    assert.is_true(lru:takes "other" and lru:takes "key 10")
    lru:clear()
    assert.is_true(lru:takes "another" and lru:takes "another" and lru:takes "another")
  end)

  it("replaces a value", function()
    local lru = lrus.new(1)
    lru:set("key", 1)
    lru:set("key", 2)
    assert.equal(2, lru:get "key")
  end)

  it("forgets everything when it is cleared", function()
    local lru = lrus.new(4)
    for index = 1, 4 do
      lru:set(index, true)
    end
    lru:clear()
    for index = 1, 4 do
      assert.is_nil(lru:get(index))
    end
  end)
end)
