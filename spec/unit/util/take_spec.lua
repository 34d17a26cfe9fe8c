-- A key that is taken once, whatever becomes of the replies.
local errors = require "riskscreen.errors"
local riskscreen = require "riskscreen"
local take = require "riskscreen.util.take"

describe("a key of a store", function()
  local space

  before_each(function()
    space = riskscreen.store.memory():space "keys"
  end)

  -- The space, with an `add` of its own.
  local function with_add(add)
    return setmetatable({
      add = function(_, ...)
        return add(...)
      end,
      get = function(_, key)
        return space:get(key)
      end,
    }, { __index = space })
  end

  it("is the first one's who takes it", function()
    assert.same({ "one", "one", "one" }, { take(space, "k", "one", 10), take(space, "k", "two", 10), (space:get "k") })
  end)

  it("is taken although the reply was lost", function()
    local lost = with_add(function(...)
      space:add(...)
      return nil, errors.new("storage", "the reply was lost", { uncertain = true })
    end)
    assert.same({ "one", "one" }, { take(lost, "k", "one", 10), (take(lost, "k", "two", 10)) })
  end)

  it("is taken where it was given up between the two looks", function()
    local tries = 0
    local busy = with_add(function(...)
      tries = tries + 1
      return tries == 3 and space:add(...)
    end)
    assert.same({ "one", 3 }, { take(busy, "k", "one", 10), tries })
  end)

  it("is nobody's where the store fails", function()
    local value, err = take(
      with_add(function()
        return nil, errors.new("storage", "it is full", { uncertain = false })
      end),
      "k",
      "one",
      10
    )
    assert.same({ nil, "it is full" }, { value, err.message })
  end)
end)
