-- The contract of every runtime and transport, for every operation with a published path: its answer, and each way to
-- fail. A runner gives the suite a function that makes a client of a sandbox service; see the *_spec.lua files beside
-- this one.
local busted = require "busted"
local errors = require "riskscreen.errors"
local operations = require "riskscreen.interface.operations"
local sandbox = require "riskscreen.sandbox"
local samples = require "spec.support.samples"
local score_policy = require "riskscreen.policy.score"
local secrecy = require "spec.support.secrecy"
local tables = require "riskscreen.util.tables"

local assert, describe, it = busted.assert, busted.describe, busted.it
local before_each, after_each = busted.before_each, busted.after_each

local KEY = "contract-key-5f1d"
-- Seconds: the timeout of requests that are to time out. On a busy machine they must have left by then.
local SHORT = 0.3
local ATTEMPTS = 3

-- The operations that are made to time out, one that may be repeated and one that may not: it takes its time.
local timed = { getAddressRisk = true, addBlacklistAddresses = true }

---@class riskscreen.spec.Failure
---@field what string
---@field fault riskscreen.sandbox.Fault
---@field kind string of the error
---@field status? integer of the error
---@field options? table of the call
---@field retry_after? number of the error
---@field repeated? boolean the request is sent again where it may be

---@type riskscreen.spec.Failure[]
local failures = {
  { what = "HTTP 400", fault = { kind = "status", status = 400 }, kind = "bad_request", status = 400 },
  { what = "HTTP 401", fault = { kind = "status", status = 401 }, kind = "unauthorized", status = 401 },
  {
    what = "HTTP 429",
    fault = { kind = "status", status = 429, retry_after = 3 },
    kind = "rate_limited",
    status = 429,
    retry_after = 3,
    options = { timeout = 2.5 },
  },
  {
    what = "HTTP 429 without Retry-After",
    fault = { kind = "status", status = 429 },
    kind = "rate_limited",
    status = 429,
    repeated = true,
  },
  { what = "HTTP 500", fault = { kind = "status", status = 500 }, kind = "server", status = 500, repeated = true },
  {
    what = "HTTP 503 with Retry-After",
    fault = { kind = "status", status = 503, retry_after = 7 },
    kind = "server",
    status = 503,
    retry_after = 7,
    options = { timeout = 6 },
  },
  { what = "a redirect", fault = { kind = "status", status = 302 }, kind = "http", status = 302 },
  { what = "another success than 200", fault = { kind = "status", status = 202 }, kind = "http", status = 202 },
  { what = "a proxy's 403 page", fault = { kind = "html", status = 403 }, kind = "http", status = 403 },
  { what = "a body that is not JSON", fault = { kind = "invalid-json" }, kind = "protocol", status = 200 },
  { what = "two members of one name", fault = { kind = "duplicate" }, kind = "protocol", status = 200 },
  { what = "a page with HTTP 200", fault = { kind = "html" }, kind = "protocol", status = 200 },
  { what = "HTTP 200 with no body", fault = { kind = "empty" }, kind = "protocol", status = 200 },
  { what = "a body that ends early", fault = { kind = "truncate", bytes = 5 }, kind = "network", repeated = true },
  { what = "a connection that is reset", fault = { kind = "reset" }, kind = "network", repeated = true },
  { what = "no answer", fault = { kind = "hang" }, kind = "timeout", options = { timeout = SHORT } },
  {
    what = "no answer to an attempt",
    fault = { kind = "hang" },
    kind = "timeout",
    options = { attempt_timeout = SHORT },
    repeated = true,
  },
  { what = "a late answer", fault = { kind = "delay", delay = 5 }, kind = "timeout", options = { timeout = SHORT } },
  {
    what = "a trickle",
    fault = { kind = "drip", bytes = 1, every = 5 },
    kind = "timeout",
    options = { timeout = SHORT },
  },
}

local function published()
  local list = {}
  for _, operation in ipairs(operations.list) do
    if operation.path then
      list[#list + 1] = operation
    end
  end
  return list
end

local function failures_of(operation)
  local list = {}
  for _, failure in ipairs(failures) do
    if timed[operation.name] or failure.kind ~= "timeout" then
      list[#list + 1] = failure
    end
  end
  return list
end

-- The fault, of one request only.
local function with_count(fault)
  local once = { count = 1 }
  for name, value in pairs(fault) do
    once[name] = value
  end
  return once
end

---@param make_client fun(service: table, options: table): riskscreen.Client, fun() the client, and what ends it
return function(make_client)
  local service, client, finish

  local function start(key, settings, options)
    service = sandbox.new(tables.merge({ accounts = { [KEY] = {} } }, settings))
    local common = { access_key = key, retry = { attempts = ATTEMPTS, base_delay = 0.001 } }
    client, finish = make_client(service, tables.merge(common, options))
  end

  before_each(function()
    start(KEY)
  end)

  after_each(function()
    finish()
  end)

  local function requests_of(operation)
    local count = 0
    for _, seen in ipairs(service:requests()) do
      count = count + (seen.operation == operation.name and 1 or 0)
    end
    return count
  end

  -- The error of a call that sends so many requests, after what is true of every error.
  local function failed(operation, options, attempts)
    local results = { n = 0 }
    local function collect(...)
      results = { n = select("#", ...), ... }
    end
    collect(client:call(operation.name, samples.of(operation), options))
    local err = results[2]
    assert.equal(2, results.n)
    assert.is_nil(results[1])
    assert.is_true(errors.is(err))
    assert.equal(operation.name, err.operation)
    assert.equal(attempts or 1, err.attempts)
    assert.is_true(err.elapsed >= 0)
    assert.is_true(err.sent, tostring(err))
    assert.is_false(secrecy.holds(err, KEY))
    return err
  end

  local function succeeds(operation, options)
    local value, response = client:call(operation.name, (samples.of(operation)), options)
    assert.is_not_nil(value, tostring(response))
    return value, response
  end

  for _, operation in ipairs(published()) do
    describe(operation.name, function()
      it("answers", function()
        local value, response = succeeds(operation)
        assert.equal(operation.data and "table" or "boolean", type(value))
        assert.equal(200, response.status)
        assert.equal(1, response.attempts)
        assert.is_true(response.elapsed >= 0)
        assert.equal(operation.paginated or false, response.pagination ~= nil)
      end)

      it("sends what it was given", function()
        local parameters = samples.of(operation)
        succeeds(operation)
        local seen = service:requests()
        assert.equal(1, #seen)
        assert.equal(operation.http, seen[1].method)
        assert.same(parameters, seen[1].parameters)
      end)

      it("is unauthorized with a key the service does not know", function()
        finish()
        start "another-key"
        local err = failed(operation)
        assert.equal("unauthorized", err.kind)
        assert.equal(401, err.status)
        assert.is_nil(tostring(err):find("another-key", 1, true))
      end)

      for _, failure in ipairs(failures_of(operation)) do
        it("tells " .. failure.what, function()
          service:fault(failure.fault)
          local attempts = failure.repeated and operation.idempotent and ATTEMPTS or 1
          local err = failed(operation, failure.options, attempts)
          assert.equal(failure.kind, err.kind)
          assert.equal(failure.status, err.status)
          assert.equal(failure.retry_after, err.retry_after)
          assert.equal(attempts, requests_of(operation))
          assert.is_nil(err.message:find " at %a+ %d+.* at %a+ %d+", err.message)
        end)

        it("answers again after " .. failure.what, function()
          local options = { retry = false }
          for name, value in pairs(failure.options or {}) do
            options[name] = value
          end
          service:fault(failure.fault)
          failed(operation, options)
          service:clear_faults()
          succeeds(operation)
          assert.equal(2, requests_of(operation))
        end)

        if failure.repeated and operation.idempotent then
          it("answers in spite of " .. failure.what .. ", once", function()
            service:fault(with_count(failure.fault))
            local _, response = succeeds(operation, failure.options)
            assert.equal(2, response.attempts)
            assert.equal(2, requests_of(operation))
          end)
        end
      end

      if not operation.idempotent then
        it("is not sent again when a connection that was kept open breaks", function()
          succeeds(operation)
          service:fault { kind = "reset" }
          assert.equal("network", failed(operation).kind)
          assert.equal(2, requests_of(operation))
        end)
      end
    end)
  end

  for source, case in pairs {
    submission = { results = "at_once", options = { immediate_results = true }, requests = 1 },
    poll = {
      results = "later",
      options = { endpoints = sandbox.endpoints, polling = { first = 0.001 } },
      requests = 2,
    },
  } do
    it("takes the result of a transaction that comes by " .. source, function()
      finish()
      start(KEY, { kyt_results = case.results, kyt_delay = 0 }, case.options)
      local address = sandbox.scenario("type-sanction").address
      local transaction = { network = "eth", hash = "0xabc", outputAddress = address, direction = "received" }
      local result, response = client.kyt:screen(transaction)
      assert.equal(source, response.source, tostring(response))
      assert.equal(case.requests, #service:requests())
      local policy = score_policy.new { rules = { { score_at_least = "50", action = "block" } } }
      assert.equal("block", policy:decide(result, response).action)
    end)
  end

  for address, problem in pairs {
    ["0x52908400098527886e0F7030069857D2E4169EE7"] = "the checksum fails",
    ["\239\187\1910x52908400098527886E0F7030069857D2E4169EE7"] = "U+FEFF",
    ["TLMAJ9BpuKppJ16MmqHDvLDcD677cjYCDG"] = "it looks like a tron address",
  } do
    it("sends no request about a text that is no address: " .. problem, function()
      local lookup = { address = address, network = "eth" }
      local record, err = client:call("getAddressRisk", lookup, { address_check = "checksum" })
      assert.is_nil(record)
      assert.same({ "invalid_argument", false }, { err.kind, err.sent })
      assert.matches(problem, err.message, 1, true)
      assert.same({}, service:requests())
    end)
  end
end
