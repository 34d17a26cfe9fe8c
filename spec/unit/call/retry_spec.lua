local errors = require "riskscreen.errors"
local retry = require "riskscreen.call.retry"

local settings = { attempts = 3, base_delay = 0.1, max_delay = 1, max_retry_after = 60 }

local function always(value)
  return function()
    return value
  end
end

-- The decision about a failed first attempt.
local function decide(kind, fields, failed)
  local all = { idempotent = true, attempt = 1, remaining = 100, err = errors.new(kind, "it failed", fields) }
  for name, value in pairs(failed or {}) do
    all[name] = value
  end
  return retry.decide(settings, all, always(0.5))
end

local repeatable = { network = true, timeout = true, rate_limited = true, server = true }

describe("a failed request of an operation that may be repeated", function()
  for _, entry in ipairs(errors.kinds) do
    local kind = entry.kind
    if repeatable[kind] then
      it("is sent again after a failure of kind " .. kind, function()
        assert.is_number((decide(kind, { sent = true })))
      end)
    else
      it("is not sent again after a failure of kind " .. kind, function()
        assert.same({ nil, "final" }, { decide(kind) })
      end)
    end
  end

  it("is sent at most as often as `attempts`", function()
    assert.is_number((decide("server", nil, { attempt = 2 })))
    assert.equal("attempts", select(2, decide("server", nil, { attempt = 3 })))
  end)
end)

describe("a failed request of an operation that may take effect twice", function()
  local function decide_once(kind, sent)
    return decide(kind, { sent = sent }, { idempotent = false })
  end

  for _, kind in ipairs { "network", "timeout" } do
    it("is sent again when it was never sent: " .. kind, function()
      assert.is_number((decide_once(kind, false)))
    end)

    it("is not sent again when it may have arrived: " .. kind, function()
      assert.equal("final", select(2, decide_once(kind, true)))
    end)

    it("is not sent again when its fate is unknown: " .. kind, function()
      assert.equal("final", select(2, decide_once(kind, nil)))
    end)
  end

  for _, kind in ipairs { "server", "rate_limited", "tls", "protocol", "circuit_open" } do
    it("is not sent again after a failure of kind " .. kind, function()
      assert.equal("final", select(2, decide_once(kind, kind == "tls" and false or true)))
    end)
  end
end)

describe("the pause", function()
  it("is a random share of a bound that doubles with each attempt", function()
    for attempt, bound in ipairs { 0.1, 0.2, 0.4, 0.8 } do
      assert.equal(0, retry.backoff(settings, attempt, always(0)))
      assert.near(bound / 2, retry.backoff(settings, attempt, always(0.5)), 1e-12)
    end
  end)

  it("has a bound of at most max_delay", function()
    assert.near(0.999, retry.backoff(settings, 5, always(0.999)), 1e-12)
    assert.near(0.999, retry.backoff(settings, 1000, always(0.999)), 1e-12)
  end)

  it("is Retry-After and the jitter", function()
    assert.near(2.05, decide("rate_limited", { retry_after = 2 }), 1e-12)
    assert.near(7.05, decide("server", { retry_after = 7 }), 1e-12)
  end)

  it("is not made when Retry-After is above max_retry_after", function()
    assert.is_number((decide("server", { retry_after = 60 })))
    assert.equal("retry_after", select(2, decide("server", { retry_after = 61 })))
  end)

  it("is not made when the deadline comes before its end", function()
    assert.is_number((decide("server", { retry_after = 2 }, { remaining = 2.1 })))
    assert.equal("deadline", select(2, decide("server", { retry_after = 2 }, { remaining = 2.05 })))
    assert.equal("deadline", select(2, decide("server", nil, { remaining = 0.05 })))
    assert.equal("deadline", select(2, decide("timeout", nil, { remaining = -1 })))
  end)
end)

describe("a retry budget", function()
  local function taken(budget, tries)
    local count = 0
    for _ = 1, tries do
      count = count + (budget:take() and 1 or 0)
    end
    return count
  end

  it("begins with its reserve", function()
    assert.equal(10, taken(retry.budget(0.2, 10), 100))
  end)

  it("lets the load grow by its share when everything fails", function()
    local budget, sent = retry.budget(0.25, 10), 0
    for _ = 1, 1000 do
      budget:earn()
      sent = sent + 1 + taken(budget, 2)
    end
    assert.is_true(sent <= 1000 * 1.25 + 10, sent)
    assert.is_true(sent >= 1000 * 1.25)
  end)

  it("saves no more than its reserve", function()
    local budget = retry.budget(0.5, 3)
    for _ = 1, 1000 do
      budget:earn()
    end
    assert.equal(3, taken(budget, 100))
  end)
end)
