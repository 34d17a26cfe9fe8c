-- A queue whose processes are killed; `./dev soak queue` does the same for 50,000 addresses.
local kills = require "spec.support.queue_kills"
local random = require "spec.support.random"
local redis_server = require "spec.support.redis"

local describe_if = redis_server.is_installed() and describe or pending

describe_if("a queue whose workers, reader, producer, service and Redis are killed", function()
  it("gives every input exactly one result, and the right one", function()
    local options = {
      rows = tonumber(os.getenv "RISKSCREEN_QUEUE_ROWS") or 3000,
      distinct = 2500,
      kills = 12,
      shortest = 0.05,
      longest = 0.4,
      seed = random.SEED,
      seconds = 60,
    }
    local outcome, remove = kills.run(options)
    local faults = kills.faults(outcome, options)
    remove()
    assert.same({}, faults, ("seed %d"):format(options.seed))
  end)
end)
