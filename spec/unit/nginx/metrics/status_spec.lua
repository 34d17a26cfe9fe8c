local json = require "riskscreen.json"
local metrics = require "riskscreen.nginx.metrics"
local shared_dict = require "spec.support.shared_dict"
local statuses = require "riskscreen.nginx.metrics.status"
local status_page = require "riskscreen.nginx.metrics.status_page"

local now, recorder, stats

local FACTS = { monitor = false, outcomes = { unknown = "block", invalid = "block", review = "review" } }

local function new_recorder(name, more)
  local settings = {
    name = name,
    dict = shared_dict.new(function()
      return now
    end),
    client = {
      stats = function()
        return stats
      end,
    },
    time = function()
      return now
    end,
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
  for option, value in pairs(more or {}) do
    settings[option] = value
  end
  if settings.dict == false then
    settings.dict = nil
  end
  return metrics.new(settings)
end

before_each(function()
  now = 1000
  stats = { statuses = {}, breaker = { state = "closed", opened = 0 } }
  for _, counter in ipairs(require("riskscreen.call.stats").counters) do
    stats[counter.name] = 0
  end
  recorder = new_recorder "withdrawals"
end)

local function status(facts)
  return statuses.of(recorder:snapshot(), facts or FACTS, recorder:minutes())
end

-- The text of a page as it is read, without its tags.
local function page(facts)
  return (status_page.of(status(facts), now):gsub("<style>.*</style>", ""):gsub("<[^>]*>", " "):gsub("%s+", " "))
end

describe("the status of a gate", function()
  it("sums up decisions by action and by source", function()
    recorder:decided("allow", "lru")
    recorder:decided("allow", "lru")
    recorder:decided("block", "upstream")
    local decisions = status().decisions
    assert.equal(3, decisions.total)
    assert.same({ total = 2, by_source = { lru = 2 } }, decisions.allow)
    assert.same({ total = 0, by_source = {} }, decisions.unknown)
  end)

  it("shows the hit ratio of the cache", function()
    for index = 1, 4 do
      recorder:lookup("lru", index > 1)
    end
    assert.same({ hits = 3, misses = 1, hit_ratio = 0.75 }, status().cache.lru)
    assert.same({ hits = 0, misses = 0 }, status().cache.dict)
  end)

  it("shows the duration of fetches and their errors", function()
    for _ = 1, 98 do
      recorder:took("upstream", 0.04)
    end
    recorder:took("upstream", 4)
    recorder:took("upstream", 1000)
    recorder:count("errors", "timeout")
    stats.in_flight = 1
    local upstream = status().upstream
    assert.equal(100, upstream.lookups)
    assert.equal(1, upstream.in_flight)
    assert.is_near((98 * 0.04 + 1004) / 100, upstream.mean_seconds, 1e-9)
    assert.equal(0.05, upstream.p50_seconds_at_most)
    assert.equal(5, upstream.p99_seconds_at_most)
    assert.same({ timeout = 1 }, upstream.errors)
  end)

  it("shows no durations before the first fetch", function()
    local upstream = status().upstream
    assert.is_nil(upstream.mean_seconds)
    assert.is_nil(upstream.p95_seconds_at_most)
  end)

  it("shows when counting began, before a reload", function()
    local dict = recorder.dict
    status()
    now = 2000
    recorder = new_recorder("withdrawals", { dict = dict })
    assert.equal(1000, status().counted_since)
  end)

  it("has the mean duration of a minute's fetches", function()
    recorder:took("upstream", 0.25)
    recorder:took("upstream", 0.75)
    local minutes = status().minutes
    assert.equal(60, #minutes)
    assert.equal(2, minutes[60].fetches)
    assert.equal(0.5, minutes[60].mean_fetch_seconds)
    assert.is_nil(minutes[60].fetch_seconds)
    now = now + 60
    assert.is_nil(status().minutes[60].mean_fetch_seconds)
  end)

  it("can be encoded as JSON", function()
    recorder:decided("allow", "lru")
    local said = json.decode(assert(json.encode(status())))
    assert.equal(1, said.decisions.total)
    assert.equal("closed", said.circuit.state)
    assert.equal(1, said.minutes[60].allow)
    assert.is_true(json.is_array(said.notes))
  end)
end)

describe("the notes for an operator", function()
  local function note(pattern, facts)
    local notes = status(facts).notes
    for _, text in ipairs(notes) do
      if text:find(pattern) then
        return true
      end
    end
    return table.concat(notes, "; ")
  end

  it("are empty while all is well", function()
    assert.is_nil(next(status().notes))
  end)

  it("say that monitor mode refuses no request", function()
    assert.is_true(note("Monitor mode", { monitor = true, outcomes = {} }))
  end)

  it("say that the circuit is open, and when the next probe is", function()
    stats.breaker = { state = "open", opened = 1, retry_after = 2.5 }
    assert.is_true(note "circuit is open.*2%.5 s")
    stats.breaker = { state = "half_open", opened = 1 }
    assert.is_true(note "circuit is half open")
  end)

  it("say that the service answered 429", function()
    stats.rate_limit = { rate = 1, tokens = 0, waiting = 0, paused = 3.5 }
    assert.is_true(note "429.*3%.5 s")
  end)

  it("say that the access key is refused", function()
    recorder:count("errors", "unauthorized")
    assert.is_true(note "access key 1 time%.")
    recorder:count("errors", "unauthorized")
    assert.is_true(note "access key 2 times%.")
  end)

  it("say which worker the numbers are of where there is no shared dict", function()
    recorder = new_recorder("withdrawals", { dict = false })
    assert.is_true(note "of worker 2")
    assert.equal("2", status().worker)
  end)

  it("say that the dict is full", function()
    recorder.dict.free_space = function()
      return 0
    end
    assert.is_true(note "dict is full")
  end)
end)

describe("the page", function()
  it("shows decisions, cache and fetches", function()
    recorder:decided("block", "stale")
    recorder:count("errors", "timeout")
    stats.breaker = { state = "open", opened = 7, retry_after = 2.5 }
    now = now + 7200
    local text = page()
    assert.matches("withdrawals", text, 1, true)
    assert.matches("1 decision in the last 2 hours.", text, 1, true)
    assert.matches(" block 1 ", (text:gsub("%s+", " ")), 1, true)
    assert.matches("The circuit is open", text, 1, true)
    assert.matches("opened 7", text, 1, true)
    assert.matches("timeout 1", text, 1, true)
  end)

  it("has a unit that fits the time since counting began", function()
    status()
    local started = now
    for span, words in pairs {
      [0] = "0 seconds",
      [1] = "1 second",
      [119] = "119 seconds",
      [170] = "2 minutes",
      [7199] = "119 minutes",
      [2 * 86400 - 1] = "47 hours",
      [10 * 86400] = "10 days",
    } do
      now = started + span
      assert.matches("0 decisions in the last " .. words .. ".", page(), 1, true)
    end
  end)

  it("leads to itself with a refresh and without", function()
    local html = status_page.of(status(), now)
    assert.matches('<a href="?refresh=10">', html, 1, true)
    assert.matches('<a href="?">', html, 1, true)
    assert.is_nil(html:find("http-equiv", 1, true))
  end)

  it("has the circuit and the errors before the counts", function()
    recorder:count("errors", "timeout")
    local text = page()
    local circuit, failed = text:find("Circuit breaker", 1, true), text:find("Failed fetches", 1, true)
    local decided = text:find("Decisions", 1, true)
    assert.is_true(circuit < failed and failed < decided)
  end)

  it("draws the last 60 minutes after the circuit and the errors", function()
    now = 7200
    recorder:decided("block", "lru")
    recorder:decided("block", "lru")
    status()
    now = 7320
    recorder:decided("block", "lru")
    local text = page()
    assert.matches("From 01:03 to 02:02 UTC.", text, 1, true)
    assert.matches("Block : 3 in all, at most 2 in a minute", text, 1, true)
    assert.matches("Mean fetch in seconds : at most 0 in a minute", text, 1, true)
    local html = status_page.of(status(), now)
    assert.matches('aria-label="Block: 3 in all, at most 2 in a minute"', html, 1, true)
    -- Minute 58 has twice the bar of minute 60.
    assert.matches('<path d="M230 40v-39.0M238 40v-19.5"', html, 1, true)
    assert.is_true(text:find("Circuit breaker", 1, true) < text:find("Last 60 minutes", 1, true))
    assert.is_true(text:find("Last 60 minutes", 1, true) < text:find("Decisions", 1, true))
  end)

  it("draws no minutes where there is no dict", function()
    recorder = new_recorder("withdrawals", { dict = false })
    assert.is_nil(page():find("Last 60 minutes", 1, true))
  end)

  it("escapes the name of the gate", function()
    recorder = new_recorder [[<script>"a" & 'b'</script>]]
    local html = status_page.of(status(), now)
    assert.is_nil(html:find("<script", 1, true))
    assert.matches("<h1>&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;</h1>", html, 1, true)
  end)

  it("is served to a client that accepts HTML", function()
    local browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    assert.is_true(statuses.wants_page(browser))
    assert.is_true(statuses.wants_page "TEXT/HTML ; q=0.5")
    for _, accept in ipairs {
      "*/*",
      "application/json",
      "",
    } do
      assert.is_false(statuses.wants_page(accept), accept)
    end
    assert.is_false(statuses.wants_page(nil))
  end)
end)
