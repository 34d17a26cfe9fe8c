-- Leases of workers in a shared dict, also of a worker that was stopped for longer than its lease.
local leases = require "riskscreen.nginx.lease"
local shared_dict = require "spec.support.shared_dict"

describe("a lease", function()
  local now, dict

  before_each(function()
    now = 1000
    dict = shared_dict.new(function()
      return now
    end)
  end)

  local function take(holder)
    return leases.take(dict, "key", holder, now, 10)
  end

  it("is one worker's until it ends it", function()
    local lease = take "one"
    assert.is_false(take "two")
    leases.release(dict, "key", lease)
    assert.is_string(take "two")
  end)

  it("ends with its time, also where the date of the dict is set back", function()
    dict.now = function()
      return 0
    end
    take "one"
    now = now + 10
    assert.is_string(take "two")
  end)

  it("of another worker is neither ended nor extended by the one that had it before", function()
    local first = take "one"
    now = now + 11
    local second = take "two"
    leases.release(dict, "key", first)
    assert.is_nil(leases.renew(dict, "key", first, now, 10))
    assert.is_false(take "three")
    assert.is_string(leases.renew(dict, "key", second, now, 10))
  end)

  it("is not taken where the dict has no room", function()
    dict.full = true
    local lease, message = take "one"
    assert.is_nil(lease)
    assert.equal("no memory", message)
  end)
end)
