local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local recorder = require "spec.support.recorder"
local response = require "riskscreen.interface.response"
local samples = require "spec.support.samples"

local decoders = response.decoders()

local context = {
  clock = function()
    return 0
  end,
  redact = function(text)
    return (text:gsub("sekret", "[redacted]"))
  end,
}

local risk = operations.by_name.getAddressRisk
local list = operations.by_name.listBlacklistAddresses

local function interpret(operation, reply, parameters)
  local reader = response.reader(operation, nil, nil, decoders)
  local value, other = response.interpret(reader, parameters or samples.of(operation), reply, context)
  return value, other
end

-- The interpretation of a good answer after `change`.
local function changed(operation, change, parameters)
  local given, body = samples.of(operation)
  local other = change(body)
  return interpret(operation, recorder.reply(200, other == nil and body or other), parameters or given)
end

local function refused(kind, value, err)
  assert.is_nil(value)
  assert.is_true(errors.is(err))
  assert.equal(kind, err.kind)
  return err
end

describe("a good answer", function()
  for _, operation in ipairs(operations.list) do
    if operation.path then
      it("to " .. operation.name .. " is its data", function()
        local parameters, body = samples.of(operation)
        local value = interpret(operation, recorder.reply(200, body), parameters)
        assert.same(body.data == nil and true or body.data, value)
      end)
    end
  end

  it("may lack the status, and have 1.0 for its code", function()
    assert.is_table((changed(risk, function(body)
      body.status, body.code = nil, 1.0
    end)))
  end)

  it("may lack the message", function()
    assert.is_table((changed(risk, function(body)
      body.msg = nil
    end)))
  end)

  it("must not have the message of a failure", function()
    for _, message in ipairs { "address is invalid", "success", "", 1, {} } do
      local err = refused(
        "protocol",
        changed(risk, function(body)
          body.msg = message
        end)
      )
      assert.matches("contradicts itself: success is true and msg", err.message, 1, true)
    end
  end)

  it("may have integers up to 2^53, above which a double may be rounded", function()
    local function time(number)
      local parameters, body = samples.of(risk)
      local text = json.encode(body):gsub('("time":)%d+', "%1" .. number)
      return interpret(risk, recorder.page(200, text), parameters)
    end
    for _, number in ipairs { "9007199254740991", "9007199254740991.0", "-9007199254740991.0", "12e2" } do
      assert.is_table((time(number)))
    end
    for _, number in ipairs { "9007199254740992.0", "-9007199254740992.0", "9223372036854775808", "1e300", "0.5" } do
      refused("protocol", time(number))
    end
  end)

  it("may have unknown fields and values", function()
    local value = changed(risk, function(body)
      body.extra, body.data.extra = 1, { 2 }
      body.data.risks[1].riskLevel = "catastrophic"
    end)
    assert.equal("catastrophic", value.risks[1].riskLevel)
    assert.same({ 2 }, value.extra)
  end)

  it("may lack fields that are not required", function()
    local value = changed(risk, function(body)
      body.data.risks, body.data.whitelist, body.data.time = nil, nil, nil
    end)
    assert.is_nil(value.risks)
  end)

  it("may have null for an absent member", function()
    assert.is_table((changed(list, function(body)
      body.data[1].risks = json.null
    end)))
  end)

  it("may hold no items", function()
    local value = changed(list, function(body)
      body.data = json.empty_array()
    end)
    assert.same({}, value)
  end)

  it("carries the pages of a list", function()
    local _, body = samples.of(list)
    local _, pagination = interpret(list, recorder.reply(200, body))
    assert.same({ current_page = 1, per_page = 10, total_pages = 1, total_items = 2 }, pagination)
  end)

  it("may lack the pages of a list", function()
    local _, pagination = changed(list, function(body)
      body.pagination = nil
    end)
    assert.is_nil(pagination)
  end)

  it("to an operation without a published payload is that payload, or true", function()
    local operation = operations.by_name.getAsynchronousResult
    local body = { success = true, code = 1, data = { anything = 1 } }
    assert.same({ anything = 1 }, (interpret(operation, recorder.reply(200, body), {})))
    body.data = nil
    assert.is_true((interpret(operation, recorder.reply(200, body), {})))
  end)
end)

describe("an answer without its list", function()
  local function change(name, data)
    local _, err = changed(operations.by_name[name], function(body)
      body.data = data
    end)
    return { err.kind, err.absent }
  end

  it("is an error that says so", function()
    assert.same({ "protocol", true }, change("getAddressFreezeEvents", nil))
    assert.same({ "protocol", true }, change("getAddressFreezeEvents", json.null))
    assert.same({ "protocol", true }, change("getAddressCounterparties", nil))
    assert.same({ "protocol", true }, change("getAddressCounterparties", json.null))
    assert.same({ "protocol", true }, change("getAddressCounterparties", {}))
    assert.same({ "protocol", true }, change("getAddressCounterparties", { opponents = json.null }))
  end)

  it("is told from a malformed one", function()
    assert.same({ "protocol" }, change("getAddressFreezeEvents", {}))
    assert.same({ "protocol" }, change("getAddressFreezeEvents", "none"))
    assert.same({ "protocol" }, change("getAddressCounterparties", { opponents = "none" }))
    assert.same({ "protocol" }, change("getAddressCounterparties", json.empty_array()))
    assert.same({ "protocol" }, change("getAddressRisk", nil))
  end)
end)

describe("an envelope", function()
  for case, change in pairs {
    ["without success"] = function(body)
      body.success = nil
    end,
    ["with a text for success"] = function(body)
      body.success = "true"
    end,
    ["with 1 for success"] = function(body)
      body.success = 1
    end,
    ["without code"] = function(body)
      body.code = nil
    end,
    ["with a text for code"] = function(body)
      body.code = "1"
    end,
    ["with a fraction for code"] = function(body)
      body.code = 1.5
    end,
    ["of a failure without code"] = function()
      return { success = false, msg = "no" }
    end,
    ["of a failure with a text for code"] = function()
      return { success = false, code = "7", msg = "no" }
    end,
    ["of success with another code"] = function(body)
      body.code = 3016
    end,
    ["of success with the code of the other envelope"] = function(body)
      body.code = 200
    end,
    ["of success with status FAIL"] = function(body)
      body.status = "FAIL"
    end,
    ["with a number for status"] = function(body)
      body.status = 1
    end,
    ["without data"] = function(body)
      body.data = nil
    end,
    ["that is an array"] = function(body)
      return { body }
    end,
    ["that is null"] = function()
      return json.null
    end,
    ["that is a text"] = function()
      return "SUCCESS"
    end,
    ["that is false"] = function()
      return false
    end,
  } do
    it(case .. " is refused", function()
      local err = refused("protocol", changed(risk, change))
      assert.equal(200, err.status)
    end)
  end

  it("that reports a failure gives the service's code and message", function()
    local err = refused(
      "api",
      changed(risk, function()
        return samples.failure(3016, "RiskType is empty")
      end)
    )
    assert.equal(3016, err.code)
    assert.matches("RiskType is empty", err.message, 1, true)
    assert.equal(200, err.status)
  end)

  it("that reports a failure without a message says so", function()
    local err = refused(
      "api",
      changed(risk, function()
        return { success = false, code = 7 }
      end)
    )
    assert.equal(7, err.code)
    assert.matches("without a message", err.message)
  end)

  describe("of the usage query", function()
    local usage = operations.by_name.getAccountUsage

    it("reports a failure by any code but 200", function()
      local err = refused(
        "api",
        changed(usage, function()
          return { code = 500, message = "no such group" }
        end)
      )
      assert.equal(500, err.code)
      assert.matches("no such group", err.message)
    end)

    for case, change in pairs {
      ["without code"] = function(body)
        body.code = nil
      end,
      ["with 200 beside success = false"] = function(body)
        body.success = false
      end,
      ["with the standard code beside success = true"] = function(body)
        body.success, body.code = true, 1
      end,
      ["without data"] = function(body)
        body.data = nil
      end,
    } do
      it(case .. " is refused", function()
        refused("protocol", changed(usage, change))
      end)
    end
  end)
end)

describe("a body", function()
  it("that is not JSON is shown by its beginning", function()
    local err = refused("protocol", interpret(risk, recorder.page(200, "<!DOCTYPE html><html>")))
    assert.matches("<!DOCTYPE html>", err.message, 1, true)
    assert.matches("not JSON", err.message)
  end)

  it("that is not JSON is an error that says once where", function()
    local reply = recorder.page(200, '{"success":tru}')
    assert.matches("at byte 15 (the body begins", refused("protocol", interpret(risk, reply)).message, 1, true)
  end)

  it("that is empty is refused", function()
    local err = refused("protocol", interpret(risk, recorder.reply(200, nil)))
    assert.matches("empty", err.message)
  end)
end)

describe("a shape", function()
  for path, change in pairs {
    ["data must be an object (got an array)"] = function(body)
      body.data = { body.data }
    end,
    ["data must be an object (got a string)"] = function(body)
      body.data = "x"
    end,
    ["data.address is missing"] = function(body)
      body.data.address = nil
    end,
    ["data.address must be a string (got a number)"] = function(body)
      body.data.address = 5
    end,
    ["data.network is missing"] = function(body)
      body.data.network = json.null
    end,
    ["data.whitelist must be a boolean (got a string)"] = function(body)
      body.data.whitelist = "false"
    end,
    ["data.time must be an integer (got a string)"] = function(body)
      body.data.time = "1"
    end,
    ["data.time must be an integer (got 1.5)"] = function(body)
      body.data.time = 1.5
    end,
    ["data.risks must be an array (got an object)"] = function(body)
      body.data.risks = {}
    end,
    ["data.risks[1] must be an object (got null)"] = function(body)
      body.data.risks[1] = json.null
    end,
    ["data.risks[2].riskLevel must be a string (got a number)"] = function(body)
      body.data.risks[2] = { riskLevel = 3 }
    end,
  } do
    it("where " .. path, function()
      assert.equal(path, refused("protocol", changed(risk, change)).message)
    end)
  end

  it("of a list names the entry at fault by its address", function()
    local function fault(change)
      return refused("protocol", changed(list, change)).message
    end
    local address = select(2, samples.of(list)).data[1].address
    assert.equal(
      ("data[1].risks must be an array (got an object), in the entry of '%s'"):format(address),
      fault(function(body)
        body.data[1].risks = {}
      end)
    )
    assert.equal(
      "data[1].address must be a string (got a number)",
      fault(function(body)
        body.data[1].address = 5
      end)
    )
    assert.equal(
      "data[1] must be an object (got a string)",
      fault(function(body)
        body.data[1] = "x"
      end)
    )
    assert.equal(
      "data[1].risks must be an array (got an object), in the entry of '[redacted]'",
      fault(function(body)
        body.data[1].address, body.data[1].risks = "sekret", {}
      end)
    )
  end)

  it("of a balance maps symbols to numbers", function()
    local err = refused(
      "protocol",
      changed(operations.by_name.getAddressBasic, function(body)
        body.data.balance.ETH = "1"
      end)
    )
    assert.equal("data.balance.ETH must be a number (got a string)", err.message)
  end)

  for path, change in pairs {
    ["pagination must be an object (got an array)"] = function(body)
      body.pagination = json.empty_array()
    end,
    ["pagination.total_pages must be an integer (got a string)"] = function(body)
      body.pagination.total_pages = "1"
    end,
    ["pagination.total_items must be at least 0 (got -1)"] = function(body)
      body.pagination.total_items = -1
    end,
  } do
    it("where " .. path, function()
      assert.equal(path, refused("protocol", changed(list, change)).message)
    end)
  end
end)

describe("foreign text in a message", function()
  it("is on one line, bounded, and without the key", function()
    local words = "line\nsekret\r\0" .. ("x"):rep(10000)
    local err = refused("bad_request", interpret(risk, recorder.reply(400, samples.failure(1, words))))
    assert.is_nil(err.message:find "%c")
    assert.is_nil(err.message:find "sekret")
    assert.is_true(#err.message < 500)
  end)

  it("is without the key where an answer is about something else", function()
    local err = refused(
      "protocol",
      changed(risk, function(body)
        body.data.address = ("x"):rep(290) .. "sekret"
      end)
    )
    assert.is_nil(err.message:find "sek")
  end)
end)

describe("response.raw", function()
  it("is the body as it is", function()
    assert.same({ anything = 1 }, (response.raw(recorder.reply(200, { anything = 1 }), context, decoders.dropping)))
    assert.same({ 1, 2 }, (response.raw(recorder.reply(200, { 1, 2 }), context, decoders.dropping)))
  end)

  it("is an error when the status is not 200", function()
    refused("server", response.raw(recorder.reply(500, { anything = 1 }), context, decoders.dropping))
  end)

  it("is an error when the body reports a failure", function()
    local err = refused("api", response.raw(recorder.reply(200, samples.failure(9, "no")), context, decoders.dropping))
    assert.equal(9, err.code)
  end)

  it("is an error when the body is not JSON", function()
    refused("protocol", response.raw(recorder.page(200, "<html>"), context, decoders.dropping))
    refused("protocol", response.raw(recorder.reply(200, nil), context, decoders.dropping))
  end)
end)
