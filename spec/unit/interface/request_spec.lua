local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local options = require "riskscreen.options"
local request = require "riskscreen.interface.request"

local function settings(more)
  local given = { base_url = "https://service.example", access_key = "test-key" }
  for name, value in pairs(more or {}) do
    given[name] = value
  end
  return assert(options.check_client(given))
end

-- The request of an operation with its target, or nil and the error.
local function build(name, parameters, more, call)
  local endpoint = request.endpoint(operations.by_name[name], settings(more))
  local built, target = request.build(endpoint, parameters, call or {})
  if not built then
    return nil, target
  end
  built.target = target
  return built
end

describe("a blacklist addition", function()
  it("may have an empty list of risks, which is sent as a list", function()
    local validate = require "riskscreen.interface.validate"
    local address = ("0x%040x"):format(1)
    local given = { list = { { address = address, risks = {} } } }
    local parameters = assert(validate.parameters(operations.by_name.addBlacklistAddresses, given))
    local body = build("addBlacklistAddresses", parameters).body
    assert.matches('"risks":[]', body, 1, true)
    assert.same({}, given.list[1].risks)
    assert.is_nil((validate.parameters(operations.by_name.addBlacklistAddresses, { list = {} })))
  end)
end)

describe("the call option extra", function()
  local subject = { address = "0x1", network = "eth" }
  local bulk = { addresses = { "0x1" }, network = "eth" }

  it("adds parameters to the query and to the body", function()
    local built = build("getAddressCounterparties", subject, nil, { extra = { query = { top = 50, ["a b"] = "c&d" } } })
    assert.matches("counterparties?address=0x1&network=eth&a%20b=c%26d&top=50", built.target, 1, true)
    built = build("listAddressEntities", bulk, nil, { extra = { query = { v = 2 }, body = { depth = { 1 } } } })
    assert.matches("entities?v=2", built.target, 1, true)
    assert.same({ addresses = { "0x1" }, network = "eth", depth = { 1 } }, json.decode(built.body))
  end)

  it("replaces no parameter, and needs a body for a body", function()
    for name, extra in pairs {
      getAddressRisk = { query = { network = "tron" } },
      getAddressEntity = { body = { a = 1 } },
      getAddressBasic = { query = { a = {} } },
    } do
      local built, err = build(name, subject, nil, { extra = extra })
      assert.is_nil(built)
      assert.equal("invalid_argument", err.kind)
    end
    assert.is_nil((build("listAddressEntities", bulk, nil, { extra = { body = { network = "tron" } } })))
  end)
end)

describe("a configured endpoint", function()
  local function replays(key, name, endpoint, parameters)
    local all = settings { endpoints = { [key] = endpoint } }
    local operation = operations.by_name[name]
    local sent = parameters or { requestId = "r" }
    return assert(request.build(request.endpoint(operation, all), sent, all, {}, {})).replay
  end

  it("is repeated only as a GET, unless the operator says otherwise", function()
    for method, expected in pairs { GET = true, POST = false, PUT = false, DELETE = false } do
      local endpoint = { method = method, path = "/x" }
      assert.equal(expected, replays("kyt_result", "getAsynchronousResult", endpoint))
      endpoint.idempotent = not expected
      assert.equal(not expected, replays("kyt_result", "getAsynchronousResult", endpoint))
    end
  end)

  it("is never repeated by default when the operation changes something", function()
    assert.is_false(replays("kyt_custom_score", "getCustomRiskScore", { method = "GET", path = "/x" }))
  end)

  it("is repeated with the interface's own method, which is known", function()
    local parameters = { addresses = { "0x1" }, network = "eth" }
    assert.is_true(replays("kya_entities", "listAddressEntities", { method = "POST", path = "/x" }, parameters))
    assert.is_false(replays("kya_entities", "listAddressEntities", { method = "PUT", path = "/x" }, parameters))
  end)
end)

describe("request.build", function()
  it("puts a lookup's parameters in the query, in the interface's order", function()
    local built = build("getAddressRisk", { network = "eth", address = "0xab" })
    assert.equal("GET", built.method)
    assert.equal("/api/v1/tracker/kya/risks?address=0xab&network=eth", built.target)
    assert.is_nil(built.body)
    assert.same({ Accept = "application/json" }, built.headers)
  end)

  it("gives lookups one request while they have the same options", function()
    local endpoint = request.endpoint(operations.by_name.getAddressRisk, settings())
    local function lookup(address, own)
      return request.build(endpoint, { address = address, network = "eth" }, own)
    end
    local plain, other = {}, { timeout = 0.5, headers = { ["X-A"] = "b" } }
    local first, target = lookup("0xab", plain)
    assert.equal("/api/v1/tracker/kya/risks?address=0xab&network=eth", target)
    local second
    second, target = lookup("0xcd", plain)
    assert.equal(first, second)
    assert.equal("/api/v1/tracker/kya/risks?address=0xcd&network=eth", target)
    local third = lookup("0xcd", other)
    assert.same({ 0.5, "b" }, { third.timeout, third.headers["X-A"] })
    assert.same(first, (lookup("0xab", plain)))
  end)

  it("has no question mark without parameters", function()
    assert.equal("/api/v1/tracker/address/whitelist", build("listWhitelistAddresses", {}).target)
  end)

  it("encodes every byte that is not unreserved", function()
    local bytes = {}
    for byte = 0, 255 do
      bytes[#bytes + 1] = string.char(byte)
    end
    local target = build("getAddressRisk", { address = table.concat(bytes), network = "eth" }).target
    local encoded = target:match "address=([^&]*)&network=eth$"
    assert.is_nil(encoded:find "[^A-Za-z0-9%%._~-]")
    local decoded = encoded:gsub("%%(%x%x)", function(hex)
      return string.char(tonumber(hex, 16))
    end)
    assert.equal(table.concat(bytes), decoded)
    assert.truthy(encoded:find("-.", 1, true))
    assert.truthy(encoded:find("~", 1, true))
  end)

  it("sends a body as JSON", function()
    local built = build("listAddressEntities", { addresses = { "a", "b" }, network = "eth" })
    assert.equal("POST", built.method)
    assert.equal("/api/v1/tracker/kya/entities", built.target)
    assert.same({ addresses = { "a", "b" }, network = "eth" }, json.decode(built.body))
    assert.equal("application/json", built.headers["Content-Type"])
  end)

  it("writes integers without a fraction", function()
    local target = build("listBlacklistAddresses", { page = 2, pageSize = 50 }).target
    assert.equal("/api/v1/tracker/address/blacklist?page=2&pageSize=50", target)
  end)

  it("joins the grouping list and uses the assumed names", function()
    local built = build("getAccountUsage", {
      granularity = "day",
      start_date = "2026-01-01",
      end_date = "2026-01-31",
      group_by = { "endpoint", "user" },
    })
    assert.equal(
      "/api/v1/tracker/account/usage?granularity=day&startDate=2026-01-01&endDate=2026-01-31&groupBy=endpoint%2Cuser",
      built.target
    )
  end)

  it("uses the names that usage_parameters gives", function()
    local more = { usage_parameters = { granularity = "timeUnit", group_by = "group" } }
    local parameters = { granularity = "month", group_by = { "org" }, start_date = "2026-01-01" }
    local built = build("getAccountUsage", parameters, more)
    assert.equal("/api/v1/tracker/account/usage?timeUnit=month&startDate=2026-01-01&group=org", built.target)
  end)

  it("puts the path of base_url before the operation's", function()
    local more = { base_url = "https://gateway.example/aml/" }
    assert.equal("/aml/api/v1/tracker/address/whitelist", build("listWhitelistAddresses", {}, more).target)
  end)

  it("may be repeated for a lookup but not for an addition", function()
    assert.is_true(build("getAddressRisk", { address = "a", network = "eth" }).replay)
    assert.is_true(build("listAddressEntities", { addresses = { "a" }, network = "eth" }).replay)
    assert.is_false(build("addBlacklistAddresses", { list = { { address = "a" } } }).replay)
    assert.is_false(build("screenTransaction", { network = "eth", hash = "h" }).replay)
  end)

  it("has the client's time limits, replaced by the call's", function()
    local parameters = { address = "a", network = "eth" }
    local built = build("getAddressRisk", parameters, { timeout = 8, connect_timeout = 2 })
    assert.same({ 8, 2 }, { built.timeout, built.connect_timeout })
    built = build("getAddressRisk", parameters, { timeout = 8, connect_timeout = 2 }, { timeout = 1 })
    assert.same({ 1, 1 }, { built.timeout, built.connect_timeout })
    built = build("getAddressRisk", parameters, { timeout = 8, attempt_timeout = 5, connect_timeout = 2 })
    assert.same({ 5, 2 }, { built.timeout, built.connect_timeout })
    built = build("getAddressRisk", parameters, { timeout = 8, connect_timeout = 2 }, { attempt_timeout = 9 })
    assert.same({ 8, 2 }, { built.timeout, built.connect_timeout })
  end)

  it("adds the client's headers and the call's, which win", function()
    local more = { headers = { ["X-Team"] = "a", ["X-Trace"] = "client" } }
    local built = build("listWhitelistAddresses", {}, more, { headers = { ["x-trace"] = "call" } })
    assert.same({ Accept = "application/json", ["X-Team"] = "a", ["x-trace"] = "call" }, built.headers)
  end)

  it("does not change its arguments", function()
    local parameters = { addresses = { "a" }, network = "eth" }
    local shared = settings { headers = { ["X-Team"] = "a" } }
    local operation = operations.by_name.listAddressEntities
    local endpoint = request.endpoint(operation, shared)
    request.build(endpoint, parameters, { headers = { ["X-Call"] = "b" } })
    assert.same({ addresses = { "a" }, network = "eth" }, parameters)
    assert.same({ ["X-Team"] = "a" }, shared.headers)
  end)
end)

describe("an operation whose path is not published", function()
  it("names the option to set", function()
    local operation = operations.by_name.getAsynchronousResult
    assert.is_false(request.endpoint(operation, settings()))
    local err = request.unpublished(operation)
    assert.equal("unsupported", err.kind)
    assert.matches("endpoints.kyt_result = { method", err.message, 1, true)
  end)

  it("is sent to its endpoint, with its parameters in the query of a GET", function()
    local more = { endpoints = { kyt_result = { method = "GET", path = "/api/v1/results" } } }
    local built = build("getAsynchronousResult", { requestId = "r 1", detail = true, page = 2 }, more)
    assert.equal("/api/v1/results?detail=true&page=2&requestId=r%201", built.target)
  end)

  it("is sent with its parameters in the body of a POST", function()
    local more = { endpoints = { whitelist_add = { method = "POST", path = "/api/v1/whitelist" } } }
    local built = build("addWhitelistAddresses", { list = { { address = "a" } } }, more)
    assert.equal("POST", built.method)
    assert.equal("/api/v1/whitelist", built.target)
    assert.same({ list = { { address = "a" } } }, json.decode(built.body))
  end)

  it("fills in the names in a path and sends the others", function()
    local more = { endpoints = { kyt_result = { method = "GET", path = "/api/v1/results/{requestId}" } } }
    local built = build("getAsynchronousResult", { requestId = "a/b?c", other = "d" }, more)
    assert.equal("/api/v1/results/a%2Fb%3Fc?other=d", built.target)
  end)

  for case, value in pairs { ["an empty text"] = "", ["a dot"] = ".", ["two dots"] = "..", ["a table"] = {} } do
    it("refuses " .. case .. " in a path", function()
      local more = { endpoints = { kyt_result = { method = "GET", path = "/api/v1/results/{requestId}" } } }
      local built, err = build("getAsynchronousResult", { requestId = value }, more)
      assert.is_nil(built)
      assert.equal("invalid_argument", err.kind)
      assert.equal("requestId", err.field)
    end)
  end

  it("refuses a table in a query", function()
    local more = { endpoints = { kyt_result = { method = "GET", path = "/r" } } }
    local built, err = build("getAsynchronousResult", { filter = { 1 } }, more)
    assert.is_nil(built)
    assert.equal("filter", err.field)
  end)

  it("refuses a function in a body", function()
    local more = { endpoints = { whitelist_add = { method = "POST", path = "/w" } } }
    local built, err = build("addWhitelistAddresses", { list = { print } }, more)
    assert.is_nil(built)
    assert.equal("invalid_argument", err.kind)
  end)
end)

describe("a published operation", function()
  it("can have another path and method", function()
    local more = { endpoints = { kya_risk = { method = "POST", path = "/api/v2/risks" } } }
    local built = build("getAddressRisk", { address = "a", network = "eth" }, more)
    assert.equal("POST", built.method)
    assert.equal("/api/v2/risks", built.target)
    assert.same({ address = "a", network = "eth" }, json.decode(built.body))
  end)
end)

describe("request.raw", function()
  it("sends a query by name and a body as it is", function()
    local call = { query = { b = 2, a = "x y", c = false }, body = { 1, 2 } }
    local built, target = request.raw("PUT", "/api/v9/new", settings { base_url = "https://a.example/p" }, call)
    assert.equal("/p/api/v9/new?a=x%20y&b=2&c=false", target)
    assert.equal("[1,2]", built.body)
    assert.is_false(built.replay)
  end)

  it("may repeat a GET", function()
    assert.is_true(request.raw("GET", "/x", settings(), {}).replay)
  end)
end)
