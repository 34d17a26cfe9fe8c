local exposition = require "riskscreen.nginx.metrics.prometheus"
local metrics = require "riskscreen.nginx.metrics"
local prometheus = require "spec.support.prometheus"
local shared_dict = require "spec.support.shared_dict"

local now, dict

before_each(function()
  now = 1000
  dict = shared_dict.new(function()
    return now
  end)
end)

-- A worker: its recorder, its timer, and the number nginx gives it.
local function new_worker(slot, settings)
  local worker = { slot = slot, timers = 0 }
  local all = {
    dict = dict,
    name = "withdrawals",
    slot = function()
      return worker.slot
    end,
    worker_count = function()
      return 4
    end,
    time = function()
      return now
    end,
    every = function(_, callback)
      if worker.exiting then
        return nil, "process exiting"
      end
      worker.timers = worker.timers + 1
      worker.tick = callback
      return true
    end,
  }
  for name, value in pairs(settings or {}) do
    all[name] = value
  end
  worker.recorder = metrics.new(all)
  return worker
end

local function without_dict(slot)
  dict = nil
  return new_worker(slot)
end

local function read(worker)
  return prometheus.parse(worker.recorder:render())
end

local function decisions(read_metrics, action, source)
  return read_metrics:get("riskscreen_decisions_total", { gate = "withdrawals", action = action, source = source })
end

describe("a recorder", function()
  it("takes an error of a kind that is not known, as a client of another library may give", function()
    local worker = new_worker(0)
    worker.recorder:count("errors", "a kind of its own")
    worker.recorder:count("errors", "timeout")
    local labels = { gate = "withdrawals", kind = "timeout" }
    assert.equal(1, read(worker):get("riskscreen_errors_total", labels))
  end)

  it("shows decisions by action and source, beginning with zero", function()
    local worker = new_worker(0)
    worker.recorder:decided("block", "lru")
    worker.recorder:decided("block", "lru")
    worker.recorder:decided("allow", "upstream")
    local said = read(worker)
    assert.equal(2, decisions(said, "block", "lru"))
    assert.equal(1, decisions(said, "allow", "upstream"))
    assert.equal(0, decisions(said, "unknown", "stale"))
    assert.equal("counter", said.families.riskscreen_decisions_total.type)
  end)

  it("shows the hits of each tier and the failed fetches", function()
    local worker = new_worker(0)
    worker.recorder:lookup("lru", true)
    worker.recorder:lookup("lru", false)
    worker.recorder:lookup("dict", false)
    worker.recorder:count("errors", "timeout")
    local said = read(worker)
    local function lookups(tier, result)
      return said:get("riskscreen_cache_lookups_total", { gate = "withdrawals", tier = tier, result = result })
    end
    assert.same({ 1, 1, 0, 1 }, {
      lookups("lru", "hit"),
      lookups("lru", "miss"),
      lookups("dict", "hit"),
      lookups("dict", "miss"),
    })
    assert.equal(1, said:get("riskscreen_errors_total", { gate = "withdrawals", kind = "timeout" }))
    assert.equal(0, said:get("riskscreen_errors_total", { gate = "withdrawals", kind = "tls" }))
  end)

  it("shows the duration of fetches in buckets", function()
    local worker = new_worker(0)
    for _, seconds in ipairs { 0.002, 0.2, 0.25, 0.3, 1000 } do
      worker.recorder:took("upstream", seconds)
    end
    local said = read(worker)
    local function at_most(bound)
      return said:get("riskscreen_upstream_seconds_bucket", { gate = "withdrawals", le = bound })
    end
    assert.same({ 0, 1, 1, 3, 4, 4, 5 }, {
      at_most "0.001",
      at_most "0.0025",
      at_most "0.1",
      at_most "0.25",
      at_most "0.5",
      at_most "60",
      at_most "+Inf",
    })
    assert.near(1000.752, said:get("riskscreen_upstream_seconds_sum", { gate = "withdrawals" }), 1e-9)
  end)

  it("says since when it counts where nobody has asked before a reload, or others fill the dict", function()
    local worker = new_worker(0)
    worker.recorder:decided("allow", "lru")
    worker.tick()
    dict:evict ":since"
    now = 1001
    worker.tick()
    now = 2000
    local snapshot = new_worker(1).recorder:snapshot()
    assert.equal(1, snapshot.decided.allow.lru)
    assert.equal(1000, snapshot.since)
  end)

  it("shows the free room of the dict", function()
    local said = read(new_worker(0))
    assert.equal(65536, said:get("riskscreen_dict_capacity_bytes", { gate = "withdrawals" }))
    assert.equal(4096, said:get("riskscreen_dict_free_bytes", { gate = "withdrawals" }))
  end)
end)

describe("a recorder of a gate with webhooks", function()
  it("shows deliveries by status, and the free room of their dict", function()
    local events = shared_dict.new(function()
      return now
    end)
    local worker = new_worker(0, { inbox = { dict = events } })
    worker.recorder:delivered(200)
    worker.recorder:delivered(200)
    worker.recorder:delivered(503)
    worker.recorder:delivered(599)
    local said = read(worker)
    local function deliveries(status)
      return said:get("riskscreen_webhooks_total", { gate = "withdrawals", status = status })
    end
    assert.same({ 2, 0, 1, 1 }, { deliveries "200", deliveries "401", deliveries "503", deliveries "500" })
    assert.equal(events:capacity(), said:get("riskscreen_webhooks_dict_capacity_bytes", { gate = "withdrawals" }))
    assert.equal(events:free_space(), said:get("riskscreen_webhooks_dict_free_bytes", { gate = "withdrawals" }))
  end)

  it("adds up the deliveries of all workers", function()
    local one, two = new_worker(0, { inbox = {} }), new_worker(1, { inbox = {} })
    one.recorder:delivered(200)
    two.recorder:delivered(200)
    one.tick()
    assert.equal(2, read(two):get("riskscreen_webhooks_total", { gate = "withdrawals", status = "200" }))
  end)
end)

describe("the recorders of several workers", function()
  it("add up their counts within a second", function()
    local first, second = new_worker(0), new_worker(1)
    first.recorder:decided("allow", "lru")
    second.recorder:decided("allow", "lru")
    second.recorder:took("upstream", 0.3)
    assert.equal(1, second.timers)
    second.tick(false)
    local said = read(first)
    assert.equal(2, decisions(said, "allow", "lru"))
    assert.equal(1, said:get("riskscreen_upstream_seconds_count", { gate = "withdrawals" }))
    assert.equal(2, decisions(read(second), "allow", "lru"))
  end)

  it("continue the counts from before a reload", function()
    local old = new_worker(0)
    old.recorder:decided("allow", "lru")
    old.exiting = true
    old.tick(true)
    local new = new_worker(0)
    assert.equal(1, decisions(read(new), "allow", "lru"))
    new.recorder:decided("allow", "lru")
    assert.equal(2, decisions(read(new), "allow", "lru"))
  end)

  it("lose no count of an exiting worker", function()
    local old = new_worker(0)
    old.recorder:decided("allow", "lru")
    old.exiting = true
    old.tick(true)
    old.recorder:decided("allow", "lru")
    assert.equal(2, decisions(read(new_worker(0)), "allow", "lru"))
  end)

  -- A client with a number of calls under way.
  local function with_calls(count)
    local client = { count = count }
    function client.stats()
      return { in_flight = client.count }
    end
    return { client = client }
  end

  local function under_way(worker)
    return read(worker):get("riskscreen_in_flight", { gate = "withdrawals" })
  end

  it("show the calls under way in all workers, exiting ones included", function()
    local first, second = new_worker(0, with_calls(1)), new_worker(1, with_calls(1))
    local old = new_worker(0, with_calls(1))
    for _, worker in ipairs { second, old } do
      worker.recorder:lookup("lru", false)
    end
    old.slot = "ending:0"
    second.tick(false)
    old.tick(true)
    assert.equal(3, under_way(first))
    first.recorder.client.count = 0
    assert.equal(2, under_way(first))
  end)

  it("drop the gauge of a crashed worker", function()
    local crashed, other = new_worker(0, with_calls(1)), new_worker(1, with_calls(0))
    crashed.recorder:lookup("lru", false)
    crashed.tick(false)
    assert.equal(1, under_way(other))
    now = now + 60
    assert.equal(0, under_way(other))
  end)

  it("never decrease when the dict loses counters", function()
    local first, second = new_worker(0), new_worker(1)
    for _ = 1, 10 do
      first.recorder:decided("allow", "lru")
    end
    second.tick = nil
    first.tick(false)
    second.recorder:decided("allow", "lru")
    second.tick(false)
    first.tick(false)
    dict:evict ":decided:"
    first.recorder:decided("allow", "lru")
    assert.equal(12, decisions(read(first), "allow", "lru"))
    assert.equal(12, decisions(read(second), "allow", "lru"))
  end)

  it("never decrease when a worker restores a counter from an older total", function()
    local first, second = new_worker(0), new_worker(1)
    second.recorder:decided("allow", "lru")
    second.tick(false)
    for _ = 1, 10 do
      first.recorder:decided("allow", "lru")
    end
    assert.equal(11, decisions(read(first), "allow", "lru"))
    dict:evict ":decided:"
    second.tick(false)
    assert.equal(11, decisions(read(first), "allow", "lru"))
    assert.equal(11, decisions(read(second), "allow", "lru"))
  end)

  it("keep counts for which a full dict has no room", function()
    dict.full = true
    local worker = new_worker(0)
    worker.recorder:decided("allow", "lru")
    assert.equal(1, decisions(read(worker), "allow", "lru"))
    dict.full = false
    assert.equal(1, decisions(read(worker), "allow", "lru"))
    assert.equal(1, decisions(read(new_worker(1)), "allow", "lru"))
  end)

  it("survive a foreign value under the same key", function()
    dict:set("riskscreen:metrics:withdrawals:decided:allow:lru", "not ours")
    dict:set("riskscreen:metrics:withdrawals:in_flight:0", "not ours")
    local worker = new_worker(0)
    worker.recorder:decided("allow", "lru")
    assert.equal(1, decisions(read(worker), "allow", "lru"))
  end)

  it("carry the worker as a label where there is no dict", function()
    local worker = without_dict(3)
    worker.recorder:decided("allow", "lru")
    local labels = { gate = "withdrawals", worker = "3", action = "allow", source = "lru" }
    assert.equal(1, read(worker):get("riskscreen_decisions_total", labels))
    assert.equal(0, worker.timers)
  end)
end)

describe("the last 60 minutes", function()
  -- The figures of the minute that began at a time.
  local function minute_at(worker, time)
    for _, minute in ipairs(worker.recorder:minutes()) do
      if minute.time == time then
        return minute
      end
    end
  end

  it("have the figures of all workers, minute by minute", function()
    local first, second = new_worker(0), new_worker(1)
    now = 6000
    first.recorder:decided("block", "upstream")
    first.recorder:took("upstream", 0.25)
    first.recorder:count("errors", "timeout")
    second.recorder:decided("block", "lru")
    second.recorder:decided("allow", "lru")
    first.tick(false)
    second.tick(false)
    now = 6060
    second.recorder:decided("block", "lru")
    second.tick(false)
    local expected = { time = 6000, allow = 1, review = 0, block = 2, unknown = 0 }
    expected.fetches, expected.failed_fetches, expected.mean_fetch_seconds = 1, 1, 0.25
    assert.same(expected, minute_at(first, 6000))
    assert.equal(1, minute_at(first, 6060).block)
    assert.equal(60, #first.recorder:minutes())
    assert.equal(6060, first.recorder:minutes()[60].time)
  end)

  it("tell a minute without decisions from a minute without records", function()
    local worker = new_worker(0)
    now = 6000
    worker.recorder:decided("allow", "lru")
    worker.tick(false)
    now = 6120
    worker.tick(false)
    assert.same({ time = 6060 }, minute_at(worker, 6060))
    assert.equal(0, minute_at(worker, 6120).allow)
  end)

  it("end after 60 minutes, and leave nothing in the dict", function()
    local worker = new_worker(0)
    now = 6000
    worker.recorder:decided("allow", "lru")
    worker.tick(false)
    now = 6000 + 59 * 60 + 59
    assert.equal(1, minute_at(worker, 6000).allow)
    now = now + 1
    assert.is_nil(minute_at(worker, 6000))
    now = now + 60
    dict:flush_expired(math.huge)
    for key in pairs(dict.entries) do
      assert.is_nil(key:find(":minute:", 1, true))
    end
  end)

  it("keep what a full dict has no room for", function()
    dict.full = true
    local worker = new_worker(0)
    worker.recorder:decided("allow", "lru")
    worker.tick(false)
    dict.full = false
    worker.tick(false)
    assert.equal(1, worker.recorder:minutes()[60].allow)
  end)

  it("cost a decision no access to the dict", function()
    local worker = new_worker(0)
    worker.recorder:decided("allow", "lru")
    local before = dict.operations
    worker.recorder:decided("allow", "lru")
    assert.equal(before, dict.operations)
  end)

  it("are absent where there is no dict", function()
    assert.is_nil(without_dict(0).recorder:minutes())
  end)
end)

describe("the counts of a recorder's client", function()
  local stats

  local function with_client()
    return {
      client = {
        stats = function()
          return stats
        end,
      },
    }
  end

  before_each(function()
    stats = { statuses = { [200] = 3, [204] = 1, [503] = 2 }, breaker = { state = "open", opened = 4 } }
    for _, counter in ipairs(require("riskscreen.call.stats").counters) do
      stats[counter.name] = 0
    end
    stats.retries = 2
  end)

  it("are added up over the workers", function()
    local first, second = new_worker(0, with_client()), new_worker(1, with_client())
    first.recorder:decided("allow", "lru")
    first.tick(false)
    stats.retries = 5
    local said = read(second)
    assert.equal(7, said:get("riskscreen_client_retries_total", { gate = "withdrawals" }))
    assert.equal(8, said:get("riskscreen_client_answers_total", { gate = "withdrawals", class = "2xx" }))
    assert.equal(4, said:get("riskscreen_client_answers_total", { gate = "withdrawals", class = "5xx" }))
  end)

  it("include the status of the circuit and of the rate limit", function()
    local said = read(new_worker(0, with_client()))
    local function state(name)
      return said:get("riskscreen_circuit_state", { gate = "withdrawals", state = name })
    end
    assert.same({ 0, 1, 0 }, { state "closed", state "open", state "half_open" })
    assert.equal(4, said:get("riskscreen_circuit_opened_total", { gate = "withdrawals" }))
    assert.is_nil(said.families.riskscreen_rate_limit_rate)
    stats.breaker, stats.rate_limit = nil, { rate = 2.5, tokens = 1, waiting = 0, paused = 0.5 }
    said = read(new_worker(0, with_client()))
    assert.is_nil(said.families.riskscreen_circuit_state)
    assert.equal(2.5, said:get("riskscreen_rate_limit_rate", { gate = "withdrawals" }))
    assert.equal(0.5, said:get("riskscreen_rate_limit_paused_seconds", { gate = "withdrawals" }))
  end)
end)

describe("the text of a gate", function()
  it("has its name, whatever its characters", function()
    local worker = new_worker(0, { name = 'a "name"\n with \\ all' })
    worker.recorder:decided("review", "dict")
    local labels = { gate = 'a "name"\n with \\ all', action = "review", source = "dict" }
    assert.equal(1, read(worker):get("riskscreen_decisions_total", labels))
  end)
end)

describe("the text format", function()
  local function line_of(value)
    local metric = { name = "x", type = "gauge", path = "part.value", doc = "A \\ and\na line.", labels = {} }
    local text = exposition.text({ metric }, { name = "withdrawals", part = { value = value } })
    return prometheus.parse(text):get("x", { gate = "withdrawals" }), text
  end

  it("writes every number so that it reads back as the same", function()
    for _, value in ipairs { 0, 1, -1, 0.1, 1 / 3, 1e-9, 2 ^ 53, 1e300, math.huge, -math.huge, 123456789012345 } do
      assert.equal(value, (line_of(value)))
    end
    local nan = line_of(0 / 0)
    assert.is_true(nan ~= nan)
  end)

  it("keeps a description on one line", function()
    local _, text = line_of(1)
    assert.matches("# HELP x A \\\\ and\\na line.\n", text, 1, true)
  end)
end)
