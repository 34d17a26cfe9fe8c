-- The gate's status page in a real browser.
local node = require "spec.support.node"
local metrics = require "riskscreen.nginx.metrics"
local status_page = require "riskscreen.nginx.metrics.status_page"
local shared_dict = require "spec.support.shared_dict"
local statuses = require "riskscreen.nginx.metrics.status"
local temporary = require "spec.support.temporary"

-- An hour of decisions with a pause in it.
local function page()
  local now = os.time() - 3600
  local function time()
    return now
  end
  local counters = { statuses = {}, breaker = { state = "open", opened = 7, retry_after = 2.5 } }
  for _, counter in ipairs(require("riskscreen.call.stats").counters) do
    counters[counter.name] = 123456789
  end
  local recorder = metrics.new {
    name = ("withdrawals-"):rep(6),
    dict = shared_dict.new(time),
    client = {
      stats = function()
        return counters
      end,
    },
    time = time,
    slot = function()
      return 2
    end,
    worker_count = function()
      return 3
    end,
    every = function()
      return true
    end,
  }
  for minute = 1, 60 do
    now = now + 60
    if minute < 20 or minute > 30 then
      for _ = 1, minute do
        recorder:decided("allow", "lru")
      end
      for _, source in ipairs { "lru", "dict", "upstream", "stale" } do
        recorder:decided("block", source)
      end
      recorder:took("upstream", minute / 100)
      recorder:snapshot()
    end
  end
  recorder:count("errors", "timeout")
  local facts = { monitor = true, outcomes = { unknown = "block", review = "allow", invalid = "block" } }
  return status_page.of(statuses.of(recorder:snapshot(), facts, recorder:minutes()), now)
end

describe("the status page in a browser", function()
  local results

  setup(function()
    local path = temporary.path "status.html"
    temporary.write(path, page())
    results = node.run("browser", "status.cjs", path)
  end)

  teardown(temporary.clean)

  local checks = {
    "does not scroll sideways on a phone",
    "has no serious finding of axe",
    "draws the minutes with figures in words",
  }
  for _, name in ipairs(checks) do
    it(name, function()
      if not results then
        return pending(node.MISSING)
      end
      assert.is_true(results[name] == true, results[name] or "the check did not run")
    end)
  end
end)
