local outboxes = require "riskscreen.watch.outbox"
local riskscreen = require "riskscreen"

describe("the outbox of a watch", function()
  local space, given, answer

  before_each(function()
    space, given = nil, {}
    answer = function()
      return true
    end
  end)

  local function new(...)
    local store = riskscreen.store.memory()
    space = store:space "changes"
    for number, text in ipairs { ... } do
      assert(space:put(tostring(number), text))
    end
    return outboxes.new(store, "changes", function(change, text)
      given[#given + 1] = text
      return answer(change)
    end)
  end

  it("delivers what waits in its order, once", function()
    local outbox = new('{"id":1}', '{"id":2}')
    assert.equal(2, outbox:waiting())
    assert.is_nil(outbox:flush(0))
    assert.same({ '{"id":1}', '{"id":2}' }, given)
    outbox:flush(0)
    assert.same({ 2, 0 }, { #given, outbox:waiting() })
    assert.is_nil(outbox:retry_at())
  end)

  local failures = {
    ["returns false"] = {
      "refused",
      function()
        return false
      end,
    },
    ["returns nil and a reason"] = {
      "no room",
      function()
        return nil, "no room"
      end,
    },
    ["raises"] = {
      "broken",
      function()
        error("broken", 0)
      end,
    },
  } -- stylua: ignore
  for case, failure in pairs(failures) do
    it("keeps a change whose receiver " .. case .. ", and all after it", function()
      local outbox = new('{"id":1}', '{"id":2}')
      answer = failure[2]
      assert.matches(failure[1], outbox:flush(0))
      assert.same({ '{"id":1}' }, given)
      assert.equal(2, outbox:waiting())
    end)
  end

  it("takes a change whose receiver returns nothing", function()
    local outbox = new '{"id":1}'
    answer = function() end
    assert.is_nil(outbox:flush(0))
    assert.equal(0, outbox:waiting())
  end)

  it("waits 5 seconds after a failure, twice as long after the next one, and at most an hour", function()
    local outbox, now = new '{"id":1}', 0
    answer = failures["returns false"][2]
    for _, pause in ipairs { 5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600 } do
      outbox:flush(now)
      assert.equal(now + pause, outbox:retry_at())
      assert.is_nil(outbox:flush(now + pause - 1))
      now = now + pause
    end
    assert.equal(12, #given)
  end)

  it("delivers within the pause where it is told to, and begins with 5 seconds after a success", function()
    local outbox = new('{"id":1}', '{"id":2}')
    answer = failures["returns false"][2]
    outbox:flush(0)
    outbox:flush(0, true)
    assert.equal(10, outbox:retry_at())
    answer = function(change)
      return change.id == 1
    end
    outbox:flush(1, true)
    assert.same({ 1, 6 }, { outbox:waiting(), outbox:retry_at() })
  end)

  it("raises the failure of its store", function()
    local outbox = new '{"id":1}'
    outbox.space = {
      each = function()
        return next, { ["1"] = '{"id":1}' }
      end,
      delete = function()
        return nil, "the disk is full"
      end,
      count = function()
        return nil, "the disk is gone"
      end,
    }
    assert.has_error(function()
      outbox:flush(0)
    end, "the disk is full")
    assert.has_error(function()
      outbox:waiting()
    end, "the disk is gone")
  end)
end)
