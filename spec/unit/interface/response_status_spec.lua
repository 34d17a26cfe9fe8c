-- The meaning of a reply's status, with any body.
local errors = require "riskscreen.errors"
local operations = require "riskscreen.interface.operations"
local recorder = require "spec.support.recorder"
local response = require "riskscreen.interface.response"
local samples = require "spec.support.samples"

local NOW = 784111777 -- Sun, 06 Nov 1994 08:49:37 GMT

local decoders = response.decoders()

local context = {
  clock = function()
    return NOW
  end,
  redact = function(text)
    return text
  end,
}

local risk = operations.by_name.getAddressRisk

local function interpret(reply)
  return response.interpret(response.reader(risk, nil, nil, decoders), (samples.of(risk)), reply, context)
end

local function refused(kind, value, err)
  assert.is_nil(value)
  assert.is_true(errors.is(err))
  assert.equal(kind, err.kind)
  return err
end

describe("a status", function()
  local function of(status, reply_headers, body)
    return interpret(recorder.reply(status, body, reply_headers))
  end

  for status, kind in pairs {
    [400] = "bad_request",
    [401] = "unauthorized",
    [429] = "rate_limited",
    [500] = "server",
    [502] = "server",
    [503] = "server",
    [599] = "server",
    [100] = "http",
    [201] = "http",
    [204] = "http",
    [206] = "http",
    [301] = "http",
    [304] = "http",
    [403] = "http",
    [404] = "http",
    [405] = "http",
    [407] = "http",
    [408] = "http",
    [418] = "http",
    [600] = "http",
  } do
    it(("%d is %s, even with the body of a success"):format(status, kind), function()
      local _, body = samples.of(risk)
      assert.equal(status, refused(kind, of(status, nil, body)).status)
      assert.equal(status, refused(kind, of(status)).status)
    end)
  end

  it("comes with the code and message of the error envelope", function()
    local err = refused("bad_request", of(400, nil, samples.failure(3016, "RiskType is empty")))
    assert.equal(3016, err.code)
    assert.matches("RiskType is empty", err.message, 1, true)
  end)

  it("comes with the timestamp and the message of the envelope", function()
    local body = { success = false, code = 3016, msg = "RiskType is empty", status = "FAIL", timestamp = 1700000000000 }
    for _, status in ipairs { 200, 400, 403, 500 } do
      local _, err = of(status, nil, body)
      assert.same({ "RiskType is empty", 1700000000000, 3016 }, { err.msg, err.timestamp, err.code })
      assert.same({ "FAIL", status }, { err.envelope_status, err.status })
    end
    body.status = { "FAIL" }
    assert.is_nil(select(2, of(400, nil, body)).envelope_status)
    body.timestamp = "today"
    assert.is_nil(select(2, of(400, nil, body)).timestamp)
  end)

  it("that only a proxy sends otherwise says what the service said in its envelope", function()
    local body = { success = false, code = 4030, msg = "no permission for this operation", status = "FAIL" }
    for _, status in ipairs { 403, 404, 405, 418 } do
      local err = refused("http", of(status, nil, body))
      assert.equal("the service refused the request: no permission for this operation", err.message)
    end
    assert.matches("probably by a proxy", select(2, of(403, nil, { msg = "denied" })).message, 1, true)
  end)

  it("ignores a code or message of another type", function()
    local err = refused("server", of(500, nil, { success = false, code = "x", msg = { 1 } }))
    assert.is_nil(err.code)
  end)

  it("shows the beginning of a page", function()
    local err = refused("http", interpret(recorder.page(403, "<html>blocked by example</html>")))
    assert.matches("<html>blocked by example", err.message, 1, true)
    assert.matches("proxy", err.message)
  end)

  it("of a redirect names its location, which is not followed", function()
    local err = refused("http", of(302, { location = "https://elsewhere.example/login" }))
    assert.matches("https://elsewhere.example/login", err.message, 1, true)
    assert.matches("not followed", err.message)
  end)

  for status, kind in pairs { [429] = "rate_limited", [503] = "server" } do
    it(("%d gives the seconds to wait"):format(status), function()
      assert.equal(7, refused(kind, of(status, { ["retry-after"] = "7" })).retry_after)
    end)

    it(("%d gives the seconds until the date to wait for"):format(status), function()
      local date = "Sun, 06 Nov 1994 08:50:37 GMT"
      assert.equal(60, refused(kind, of(status, { ["retry-after"] = date })).retry_after)
    end)

    it(("%d does not wait for a date in the past"):format(status), function()
      local date = "Sun, 06 Nov 1994 08:00:00 GMT"
      assert.equal(0, refused(kind, of(status, { ["retry-after"] = date })).retry_after)
    end)

    it(("%d ignores a time to wait that it cannot read"):format(status), function()
      for _, value in ipairs { "soon", "-5", "1.5", "", "7 seconds" } do
        assert.is_nil(refused(kind, of(status, { ["retry-after"] = value })).retry_after)
      end
    end)
  end
end)
