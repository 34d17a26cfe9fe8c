local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local operations = require "riskscreen.operations"
local recorder = require "spec.support.recorder"
local response = require "riskscreen.response"
local samples = require "spec.support.samples"

local NOW = 784111777 -- Sun, 06 Nov 1994 08:49:37 GMT

local context = {
  clock = function()
    return NOW
  end,
  redact = function(text)
    return (text:gsub("sekret", "[redacted]"))
  end,
}

local risk = operations.by_name.getAddressRisk
local entities = operations.by_name.listAddressEntities
local list = operations.by_name.listBlacklistAddresses

local function interpret(operation, reply, parameters)
  return response.interpret(operation, parameters or samples.of(operation), reply, context)
end

-- What an answer means after `change` has had its way with a good one.
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
        local value, result = interpret(operation, recorder.reply(200, body, { ["x-a"] = "b" }), parameters)
        assert.same(body.data == nil and true or body.data, value)
        assert.equal(200, result.status)
        assert.same({ ["x-a"] = "b" }, result.headers)
        assert.is_false(result.cached)
      end)
    end
  end

  it("may lack the status, and have 1.0 for its code", function()
    assert.is_table((changed(risk, function(body)
      body.status, body.code = nil, 1.0
    end)))
  end)

  it("may have fields and values that were never seen", function()
    local value = changed(risk, function(body)
      body.extra, body.data.extra = 1, { 2 }
      body.data.risks[1].riskLevel = "catastrophic"
    end)
    assert.equal("catastrophic", value.risks[1].riskLevel)
    assert.same({ 2 }, value.extra)
  end)

  it("may lack what the interface does not promise", function()
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
    local _, result = interpret(list, recorder.reply(200, body))
    assert.same({ current_page = 1, per_page = 10, total_pages = 1, total_items = 2 }, result.pagination)
  end)

  it("may come without pages", function()
    local _, result = changed(list, function(body)
      body.pagination = nil
    end)
    assert.is_nil(result.pagination)
  end)

  it("to an operation without a published payload is that payload, or true", function()
    local operation = operations.by_name.getAsynchronousResult
    local body = { success = true, code = 1, data = { anything = 1 } }
    assert.same({ anything = 1 }, (interpret(operation, recorder.reply(200, body), {})))
    body.data = nil
    assert.is_true((interpret(operation, recorder.reply(200, body), {})))
  end)
end)

describe("an envelope", function()
  for what, change in pairs {
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
    it(what .. " is no answer", function()
      local err = refused("protocol", changed(risk, change))
      assert.equal(200, err.status)
    end)
  end

  it("that reports a failure gives the service's code and words", function()
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

  it("that reports a failure without words says so", function()
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

    for what, change in pairs {
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
      it(what .. " is no answer", function()
        refused("protocol", changed(usage, change))
      end)
    end
  end)
end)

describe("a body", function()
  it("that is a page is shown by its beginning", function()
    local err = refused("protocol", interpret(risk, recorder.page(200, "<!DOCTYPE html><html>")))
    assert.matches("<!DOCTYPE html>", err.message, 1, true)
    assert.matches("not JSON", err.message)
  end)

  it("that is empty is no answer", function()
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

describe("an answer about something else", function()
  it("than the address asked is never used", function()
    local err = refused(
      "protocol",
      changed(risk, function(body)
        body.data.address = samples.other_address
      end)
    )
    assert.matches(samples.other_address, err.message, 1, true)
    assert.matches(samples.address, err.message, 1, true)
  end)

  it("than the network asked is never used", function()
    refused(
      "protocol",
      changed(risk, function(body)
        body.data.network = "bsc"
      end)
    )
  end)

  it("is not one where a hexadecimal address differs in case", function()
    local value = changed(risk, function(body)
      body.data.address = body.data.address:lower()
    end)
    assert.is_table(value)
  end)

  it("is one where another kind of address differs in case", function()
    local parameters = { address = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", network = "tron" }
    refused(
      "protocol",
      changed(risk, function(body)
        body.data.address, body.data.network = parameters.address:lower(), "tron"
      end, parameters)
    )
  end)

  for _, pair in ipairs { { "eth", "ethereum" }, { "ethereum", "eth" } } do
    it(("is not one where %s stands for %s"):format(pair[1], pair[2]), function()
      assert.is_table((changed(risk, function(body)
        body.data.network = pair[1]
      end, { address = samples.address, network = pair[2] })))
    end)
  end
end)

describe("a bulk answer", function()
  local A, B = samples.address, samples.other_address

  local function asked(addresses, change)
    return changed(entities, change or function() end, { addresses = addresses, network = "eth" })
  end

  it("is aligned with the addresses, whatever its own order", function()
    local value = asked({ B, A })
    assert.same({ B, A }, { value[1].address, value[2].address })
  end)

  it("answers a repeated address at each of its places", function()
    local value = asked({ A, B, A:lower() })
    assert.equal(value[1], value[3])
    assert.equal(B, value[2].address)
  end)

  it("has false where the service left one out", function()
    local value = asked({ A, B }, function(body)
      table.remove(body.data, 1)
    end)
    assert.is_false(value[1])
    assert.equal(B, value[2].address)
  end)

  it("is all false where the service left all out", function()
    assert.same({ false, false }, (asked({ A, B }, function(body)
      body.data = json.empty_array()
    end)))
  end)

  it("about an address that was not asked is never used", function()
    local err = refused("protocol", asked { A })
    assert.matches("data[2].address", err.message, 1, true)
  end)

  it("on another network is never used", function()
    local err = refused(
      "protocol",
      asked({ A, B }, function(body)
        body.data[2].network = "bsc"
      end)
    )
    assert.matches("data[2].network", err.message, 1, true)
  end)

  it("with two different records of one address is never used", function()
    refused(
      "protocol",
      asked({ A, B }, function(body)
        body.data[3] = samples.of and select(2, samples.of(entities)).data[1]
        body.data[3].entity.entityName = "Another"
      end)
    )
  end)

  it("with one record twice is used", function()
    local value = asked({ A, B }, function(body)
      body.data[3] = select(2, samples.of(entities)).data[1]
    end)
    assert.equal(2, #value)
  end)
end)

describe("a status", function()
  local function of(status, reply_headers, body)
    return interpret(risk, recorder.reply(status, body, reply_headers))
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

  it("comes with the code and words of the error envelope", function()
    local err = refused("bad_request", of(400, nil, samples.failure(3016, "RiskType is empty")))
    assert.equal(3016, err.code)
    assert.matches("RiskType is empty", err.message, 1, true)
  end)

  it("takes no code or words that are of another type", function()
    local err = refused("server", of(500, nil, { success = false, code = "x", msg = { 1 } }))
    assert.is_nil(err.code)
  end)

  it("shows the beginning of a page", function()
    local err = refused("http", interpret(risk, recorder.page(403, "<html>blocked by example</html>")))
    assert.matches("<html>blocked by example", err.message, 1, true)
    assert.matches("proxy", err.message)
  end)

  it("of a redirect says where it leads, and that it was not followed", function()
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

    it(("%d waits for no date that has passed"):format(status), function()
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
    assert.same({ anything = 1 }, (response.raw(recorder.reply(200, { anything = 1 }), context)))
    assert.same({ 1, 2 }, (response.raw(recorder.reply(200, { 1, 2 }), context)))
  end)

  it("looks at the status first", function()
    refused("server", response.raw(recorder.reply(500, { anything = 1 }), context))
  end)

  it("sees a failure that is reported", function()
    local err = refused("api", response.raw(recorder.reply(200, samples.failure(9, "no")), context))
    assert.equal(9, err.code)
  end)

  it("refuses what is not JSON", function()
    refused("protocol", response.raw(recorder.page(200, "<html>"), context))
    refused("protocol", response.raw(recorder.reply(200, nil), context))
  end)
end)
