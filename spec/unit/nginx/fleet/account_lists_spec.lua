-- The lease of the account's lists in Redis, with a stand-in for Redis and a clock that is set.
local account_lists = require "riskscreen.nginx.fleet.account_lists"

describe("the lease of the account's lists", function()
  local now, reply, lists

  before_each(function()
    now, reply = 1000, false
    local client = {
      key = function(_, name)
        return name
      end,
      call = function()
        return reply
      end,
    }
    lists = account_lists.new(client, { "a secret of the fleet" }, "id", 1, function()
      return now
    end, "holder")
  end)

  it("of another machine counts for its time alone, whatever the date of Redis and who has written it", function()
    assert.is_false(lists:take_lease(20))
    now = now + 19
    assert.is_false(lists:take_lease(20))
    now = now + 1
    assert.is_true(lists:take_lease(20))
  end)

  it("of yet another machine counts again", function()
    assert.is_false(lists:take_lease(20))
    now, reply = now + 20, "OK"
    assert.is_true(lists:take_lease(20))
    reply = false
    assert.is_false(lists:take_lease(20))
  end)

  it("is nobody's where Redis fails", function()
    reply = nil
    assert.is_true(lists:take_lease(20))
  end)
end)
