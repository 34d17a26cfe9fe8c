-- A flight at its deadline. nginx tells the time in milliseconds, and a wait of less than one is none there: the clock
-- stands still until the loop goes on, so that whoever repeats such a wait stops the worker for ever.
local flights = require "riskscreen.nginx.cache.single_flight"

local TICK = 0.001 -- seconds

describe("a flight whose time is all but up", function()
  local now, waits, count

  -- As in nginx: no time passes in a wait shorter than a tick.
  local function wait(seconds)
    count = count + 1
    assert(count < 10000, "waits for ever")
    now = now + (seconds >= TICK and math.floor(seconds / TICK) * TICK or 0)
  end

  before_each(function()
    now, count = 1000, 0
    waits = {
      now = function()
        return now
      end,
      sleep = wait,
      semaphore = function()
        return {
          wait = function(_, seconds)
            wait(seconds)
          end,
          post = function() end,
        }
      end,
      contain = pcall,
    }
  end)

  local function new(dict)
    return flights.new {
      waits = waits,
      dict = dict,
      prefix = "lock:",
      is_alone = function()
        return false
      end,
      identity = function()
        return 1
      end,
    }
  end

  local held = {
    add = function()
      return nil, "exists"
    end,
    get = function() end,
    delete = function() end,
  }

  local function request(ask)
    return {
      key = "k",
      may_join = function()
        return true
      end,
      ask = ask,
      recall = function() end,
    }
  end

  it("ends while another worker has the lock", function()
    for step = 1, 50 do
      now, count = 1000 + step / 7, 0
      assert.is_nil((new(held):join(request(function() end), 0.01 + step * 0.00037)))
    end
  end)

  it("ends while another request of the worker asks", function()
    for step = 1, 50 do
      now, count = 1000 + step / 7, 0
      local all, inner = new(nil), "not asked"
      all:join(
        request(function()
          inner = all:join(request(function() end), 0.01 + step * 0.00037)
          return { decision = {} }
        end),
        10
      )
      assert.is_nil(inner)
    end
  end)

  it("takes the place of a leader that is as good as dead", function()
    local all, led = new(nil), nil
    all:join(
      request(function()
        -- Longer than it may: of its last moment a fraction of a tick is left.
        now = now + 0.01 + 0.25 - 0.0004
        led = all:join(
          request(function()
            return { decision = "mine" }
          end),
          5
        )
        return { decision = "late" }
      end),
      0.01
    )
    assert.same({ decision = "mine" }, led)
  end)
end)
