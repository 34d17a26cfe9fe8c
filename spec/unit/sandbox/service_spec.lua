local operations = require "riskscreen.interface.operations"
local sandbox = require "riskscreen.sandbox"
local support = require "spec.support.sandbox"

local path = support.path
local ADDRESS = "0x00000000000000000000000000000000000000AA"

describe("the sandbox service", function()
  local service

  before_each(function()
    service = support.service()
  end)

  describe("envelopes", function()
    local function fields(body)
      local names = {}
      for name in pairs(body) do
        names[#names + 1] = name
      end
      table.sort(names)
      return table.concat(names, " ")
    end

    for name, expected in pairs {
      entities = "code data msg success",
      risk = "code data msg success",
      basic = "code data msg success",
      counterparties = "code data msg status success",
      freeze_events = "code data msg status success",
    } do
      it("of " .. name .. " has the fields that the interface shows: " .. expected, function()
        local _, body = support.get(service, path[name], { address = ADDRESS, network = "eth" })
        assert.equal(expected, fields(body))
      end)
    end

    it("of bulk entities has no status", function()
      local _, body = support.post(service, path.entities, { addresses = { ADDRESS }, network = "eth" })
      assert.equal("code data msg success", fields(body))
    end)

    it("of a list has pagination", function()
      local _, body = support.get(service, path.blacklist)
      assert.equal("code data msg pagination status success", fields(body))
    end)

    it("of adding to the blacklist has no data", function()
      local _, body = support.post(service, path.blacklist, { list = { { address = ADDRESS } } })
      assert.equal("code msg status success", fields(body))
    end)

    it("of usage has code 200", function()
      local _, body = support.get(service, path.usage)
      assert.equal("code data message", fields(body))
      assert.equal(200, body.code)
    end)

    it("of success has code 1 and SUCCESS", function()
      local status, body = support.get(service, path.counterparties, { address = ADDRESS, network = "eth" })
      assert.same({ 200, true, 1, "SUCCESS", "SUCCESS" }, { status, body.success, body.code, body.status, body.msg })
    end)

    it("of a validation failure has status FAIL and a timestamp", function()
      local status, body = support.get(service, path.risk, { network = "eth" })
      assert.same({ 400, false, "FAIL" }, { status, body.success, body.status })
      assert.equal(support.START * 1000, body.timestamp)
    end)
  end)

  describe("the access key", function()
    it("that is missing is answered 401 and named", function()
      local status, body = support.get(service, path.risk, {}, { ["x-access-key"] = false })
      assert.equal(401, status)
      assert.equal("X-Access-Key is missing", body.msg)
    end)

    it("that is wrong is answered 401 with the error envelope", function()
      local status, body = support.get(service, path.risk, {}, { ["x-access-key"] = "another" })
      assert.same({ 401, false, "X-Access-Key is incorrect" }, { status, body.success, body.msg })
    end)

    it("never appears in the log of requests", function()
      support.get(service, path.risk, { address = ADDRESS, network = "eth" })
      for _, seen in ipairs(service:requests()) do
        for _, value in pairs(seen) do
          assert.is_nil(tostring(value):find(sandbox.default_key, 1, true))
        end
      end
    end)
  end)

  describe("routes", function()
    for _, operation in ipairs(operations.list) do
      if operation.path then
        it("answer " .. operation.name, function()
          local status = service:handle({
            method = operation.http,
            target = operation.path,
            headers = { ["x-access-key"] = sandbox.default_key },
          }).status
          assert.is_true(status == 200 or status == 400)
        end)
      end
    end

    it("answer an unknown path with 404 and JSON", function()
      local status, body = support.get(service, "/api/v1/nothing")
      assert.same({ 404, "there is no /api/v1/nothing" }, { status, body.msg })
    end)

    it("answer another method with 405 and the allowed methods", function()
      local response = service:handle { method = "DELETE", target = path.entities, headers = {} }
      assert.same({ 405, "GET, POST" }, { response.status, response.headers.allow })
    end)
  end)

  describe("parameters", function()
    local function refusal(status, body)
      assert.equal(400, status)
      return body.msg
    end

    it("that are missing are named", function()
      assert.matches("^address is required", refusal(support.get(service, path.risk, { network = "eth" })))
    end)

    it("that are unknown are refused, with the nearest known name", function()
      local message = refusal(support.get(service, path.risk, { adress = ADDRESS, address = "a", network = "eth" }))
      assert.matches("did you mean 'address'", message)
    end)

    it("that come twice are refused", function()
      assert.equal("network is given twice", refusal(support.get(service, path.risk .. "?network=eth&network=btc")))
    end)

    it("are percent-decoded", function()
      support.get(service, path.risk .. "?address=a%2Bb&network=eth")
      assert.equal("a+b", service:requests()[1].parameters.address)
    end)

    it("with a network that the operation does not accept are refused", function()
      local message = refusal(support.get(service, path.freeze_events, { address = ADDRESS, network = "btc" }))
      assert.matches("network must be one of ethereum, eth, tron %(got 'btc'", message)
    end)

    for name, networks in pairs {
      counterparties = { "ethereum", "eth", "tron", "btc", "bsc" },
      basic = { "ethereum", "eth", "tron", "btc", "bsc" },
      freeze_events = { "ethereum", "eth", "tron" },
    } do
      it("of " .. name .. " may name the networks " .. table.concat(networks, ", "), function()
        for _, network in ipairs(networks) do
          assert.equal(200, (support.get(service, path[name], { address = ADDRESS, network = network })))
        end
      end)

      it("of " .. name .. " may name no other network", function()
        assert.equal(400, (support.get(service, path[name], { address = ADDRESS, network = "solana" })))
      end)
    end

    local function many(count)
      local list = {}
      for index = 1, count do
        list[index] = "0x" .. index
      end
      return list
    end

    it("can have 100 addresses", function()
      local _, body = support.post(service, path.entities, { addresses = many(100), network = "eth" })
      assert.equal(100, #body.data)
    end)

    it("cannot have 101 addresses", function()
      local message = refusal(support.post(service, path.entities, { addresses = many(101), network = "eth" }))
      assert.matches("addresses must hold at most 100 items", message)
    end)

    it("that are not JSON are refused with the position", function()
      local message = refusal(support.post(service, path.entities, '{"a":}'))
      assert.equal("the body must be JSON: expected a value, got '}' at byte 6", message)
    end)

    it("that are not a JSON object are refused", function()
      assert.equal("the body must be a JSON object", refusal(support.post(service, path.entities, "[1]")))
    end)

    it("in a body of another content type are refused", function()
      local message = refusal(support.post(service, path.entities, "{}", { ["content-type"] = "text/plain" }))
      assert.matches("Content%-Type must be application/json", message)
    end)
  end)

  describe("rate limits", function()
    local clock
    local lookup = { address = ADDRESS, network = "eth" }

    before_each(function()
      service, clock = support.service {
        accounts = { [sandbox.default_key] = { rate = 0.5, burst = 2 }, other = {} },
      }
    end)

    it("let a burst pass", function()
      assert.equal(200, (support.get(service, path.risk, lookup)))
      assert.equal(200, (support.get(service, path.risk, lookup)))
    end)

    it("answer requests above them with 429 and the seconds to wait", function()
      for _ = 1, 2 do
        support.get(service, path.risk, lookup)
      end
      local status, _, response = support.get(service, path.risk, lookup)
      assert.same({ 429, "2" }, { status, response.headers["retry-after"] })
    end)

    it("let requests pass again after that time", function()
      for _ = 1, 3 do
        support.get(service, path.risk, lookup)
      end
      clock.now = clock.now + 2
      assert.equal(200, (support.get(service, path.risk, lookup)))
    end)

    it("of one account do not apply to another", function()
      for _ = 1, 3 do
        support.get(service, path.risk, lookup)
      end
      assert.equal(200, (support.get(service, path.risk, lookup, { ["x-access-key"] = "other" })))
    end)

    it("include a quota of credits, with no time to wait", function()
      service = support.service { accounts = { [sandbox.default_key] = { quota = 1 } } }
      support.get(service, path.risk, lookup)
      local status, body, response = support.get(service, path.risk, lookup)
      assert.same({ 429, "the quota of 1 credits is exceeded" }, { status, body.msg })
      assert.is_nil(response.headers["retry-after"])
    end)
  end)

  describe("bulk entities", function()
    it("are in the order of the request", function()
      local _, body = support.post(service, path.entities, { addresses = { "0xb", "0xa" }, network = "eth" })
      assert.same({ "0xb", "0xa" }, { body.data[1].address, body.data[2].address })
    end)

    it("have one record for an address that is requested twice", function()
      local _, body = support.post(service, path.entities, { addresses = { "0xA", "0xa" }, network = "eth" })
      assert.equal(1, #body.data)
    end)

    it("omit the address of the scenario omitted-in-bulk", function()
      local omitted = sandbox.scenario("omitted-in-bulk").address
      local _, body = support.post(service, path.entities, { addresses = { omitted, "0xa" }, network = "eth" })
      assert.same({ "0xa" }, { body.data[1].address, body.data[2] })
    end)
  end)

  describe("its log", function()
    it("has the operation, the parameters and the status of each request", function()
      support.get(service, path.risk, { address = ADDRESS, network = "eth" })
      assert.same({
        method = "GET",
        target = service:requests()[1].target,
        operation = "getAddressRisk",
        parameters = { address = ADDRESS, network = "eth" },
        status = 200,
      }, service:requests()[1])
    end)

    it("drops the oldest request when it is full", function()
      service = support.service { log_size = 2 }
      for index = 1, 3 do
        support.get(service, "/" .. index)
      end
      local seen = service:requests()
      assert.same({ 2, "/2", "/3" }, { #seen, seen[1].target, seen[2].target })
    end)
  end)
end)
