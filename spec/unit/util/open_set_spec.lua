-- Things under way, and their number.
local open_sets = require "riskscreen.util.open_set"

local open

before_each(function()
  open = open_sets.new()
end)

describe("an open set", function()
  it("counts what was added and not removed", function()
    local things, slots = {}, {}
    for index = 1, 100 do
      things[index] = {}
      slots[index] = open:add(things[index])
    end
    assert.equal(100, open:count())
    for index = 1, 100, 2 do
      open:remove(things[index], slots[index])
    end
    assert.equal(50, open:count())
    for index = 1, 100, 2 do
      slots[index] = open:add(things[index])
    end
    assert.equal(100, open:count())
  end)

  it("removes a thing once, and no other one that has its slot", function()
    local first, second = {}, {}
    local slot = open:add(first)
    open:remove(first, slot)
    open:remove(first, slot)
    assert.equal(slot, open:add(second))
    open:remove(first, slot)
    assert.equal(1, open:count())
  end)

  it("does not count a thing that was collected, and uses its slot again", function()
    local kept = {}
    local slots = { open:add {}, open:add {} }
    open:add(kept)
    collectgarbage()
    collectgarbage()
    assert.equal(1, open:count())
    local used = { [open:add(kept)] = true, [open:add(kept)] = true }
    assert.same({ [slots[1]] = true, [slots[2]] = true }, used)
  end)
end)
