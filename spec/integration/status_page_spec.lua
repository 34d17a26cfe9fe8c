-- The gate's status page in a real browser.
local browser = require "spec.support.browser"
local metrics = require "riskscreen.nginx.metrics"
local status_page = require "riskscreen.nginx.metrics.status_page"
local statuses = require "riskscreen.nginx.metrics.status"
local temporary = require "spec.support.temporary"

local function page()
  local counters = { statuses = {}, breaker = { state = "open", opened = 7, retry_after = 2.5 } }
  for _, counter in ipairs(require("riskscreen.call.stats").counters) do
    counters[counter.name] = 123456789
  end
  local recorder = metrics.new {
    name = ("withdrawals-"):rep(6),
    client = {
      stats = function()
        return counters
      end,
    },
    time = os.time,
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
  for _, source in ipairs { "lru", "dict", "upstream", "stale" } do
    recorder:decided("block", source)
  end
  recorder:error "timeout"
  local facts = { monitor = true, outcomes = { unknown = "block", review = "allow", invalid = "block" } }
  return status_page.of(statuses.of(recorder:snapshot(), facts), os.time())
end

describe("the status page in a browser", function()
  local results

  setup(function()
    local path = temporary.path "status.html"
    temporary.write(path, page())
    results = browser.run("status.cjs", path)
  end)

  teardown(temporary.clean)

  for _, name in ipairs { "does not scroll sideways on a phone", "has no serious finding of axe" } do
    it(name, function()
      assert.is_true(results[name] == true, results[name] or "the check did not run")
    end)
  end
end)
