local riskscreen = require "riskscreen"
local operations = require "riskscreen.interface.operations"
local recorder = require "spec.support.recorder"
local sandbox = require "riskscreen.sandbox"
local support = require "spec.support.sandbox"

local function address(number)
  return ("0x%040x"):format(number)
end

local function addresses(count)
  local list = {}
  for number = 1, count do
    list[number] = address(number)
  end
  return list
end

local function sizes(service, name)
  local list = {}
  for _, request in ipairs(service:requests()) do
    list[#list + 1] = #request.parameters[name]
  end
  table.sort(list)
  return list
end

local function error_lines(call)
  local line = debug.getinfo(2, "l").currentline
  local ok, message = pcall(call)
  assert.is_false(ok)
  return message, line
end

for _, way in ipairs(support.ways) do
  describe("a lookup of many entities " .. way.name, function()
    local connection, client, service

    before_each(function()
      connection = way.connect()
      client, service = connection.client, connection.service
    end)

    after_each(function()
      connection.close()
    end)

    it("is split at the service's limit and aligned with its input", function()
      local list = addresses(250)
      local records, response = client.kya:entities { addresses = list, network = "eth" }
      assert.equal(250, #records)
      for index, record in ipairs(records) do
        assert.equal(list[index], record.address)
      end
      assert.same({ 50, 100, 100 }, sizes(service, "addresses"))
      assert.equal(3, response.attempts)
      assert.equal(200, response.status)
    end)

    it("asks for an address once, in any letter case, and answers every position", function()
      local one, other = "0x00000000000000000000000000000000000000AB", address(7)
      local list = { one, other, one:lower(), other }
      local records = client.kya:entities { addresses = list, network = "eth" }
      assert.equal(4, #records)
      assert.equal(records[1], records[3])
      assert.equal(records[2], records[4])
      assert.same({ 2 }, sizes(service, "addresses"))
    end)

    it("has false at each position of an address that the service left out", function()
      local omitted = sandbox.scenario("omitted-in-bulk").address
      local list = addresses(120)
      list[5], list[110] = omitted, omitted
      local records = client.kya:entities { addresses = list, network = "eth" }
      assert.is_false(records[5])
      assert.is_false(records[110])
      assert.equal(list[6], records[6].address)
    end)

    it("that fails in part keeps the rest and names the failed positions", function()
      local list = addresses(250)
      service:fault { kind = "status", status = 503, match = { address = address(150) } }
      local records, err = client.kya:entities { addresses = list, network = "eth" }
      assert.is_nil(records)
      assert.equal("server", err.kind)
      assert.equal(503, err.status)
      assert.is_true(err.retryable)
      assert.equal(100, #err.failed)
      assert.equal(101, err.failed[1])
      assert.equal(200, err.failed[100])
      assert.equal(list[1], err.partial[1].address)
      assert.is_nil(err.partial[150])
      assert.equal(list[250], err.partial[250].address)
      assert.matches("100 of 250", tostring(err), 1, true)
    end)

    it("that failed in part is completed by err.retry, which asks only for the rest", function()
      local list = addresses(250)
      list[251] = address(150)
      service:fault { kind = "reset", count = 1, match = { address = address(150) } }
      local _, err = client.kya:entities { addresses = list, network = "eth" }
      assert.equal(101, #err.failed)
      local records = err.retry()
      assert.equal(251, #records)
      for index, record in ipairs(records) do
        assert.equal(list[index], record.address)
      end
      assert.equal(4, #service:requests())
    end)

    it("fails again while the failure lasts", function()
      service:fault { kind = "invalid-json", count = 2 }
      local _, err = client.kya:entities { addresses = addresses(3), network = "eth" }
      _, err = err.retry()
      assert.equal("protocol", err.kind)
      assert.same({ 1, 2, 3 }, err.failed)
      assert.equal(3, #(err.retry()))
    end)

    it("works in a task as well", function()
      local records = riskscreen.run(function()
        return client.kya:entities { addresses = addresses(150), network = "eth" }
      end)
      assert.equal(150, #records)
    end)
  end)

  describe("an addition of many items to the blacklist " .. way.name, function()
    local connection, client, service

    before_each(function()
      connection = way.connect()
      client, service = connection.client, connection.service
    end)

    after_each(function()
      connection.close()
    end)

    local function items(count)
      local list = {}
      for number = 1, count do
        list[number] = { address = address(number), risks = { { riskLevel = "high", riskType = "scam" } } }
      end
      return list
    end

    local function listed()
      local set = {}
      for _, entry in ipairs(client.blacklist:all { pageSize = 100 }) do
        set[entry.address] = true
      end
      return set
    end

    local function indexes(fates)
      local list = {}
      for position, fate in ipairs(fates) do
        list[position] = fate.index
      end
      return list
    end

    it("is split at the service's limit, and all of it is added", function()
      local report, response = client.blacklist:add { network = "eth", list = items(230) }
      assert.equal(230, #report.added)
      assert.same({ {}, {}, {} }, { report.refused, report.uncertain, report.unsent })
      assert.equal(3, response.attempts)
      local set = listed()
      for number = 1, 230 do
        assert.is_true(set[address(number)])
      end
    end)

    it("names exactly the refused items and the reasons, and adds the others", function()
      local list = items(150)
      list[42].risks = { { riskLevel = "high" } }
      list[43].risks = { { riskLevel = "high" } }
      list[120].risks = { { riskLevel = "high" } }
      local report, err = client.blacklist:add { network = "eth", list = list }
      assert.is_nil(report)
      assert.same({ 42, 43, 120 }, indexes(err.report.refused))
      assert.same({ 42, 43, 120 }, err.failed)
      assert.equal(147, #err.report.added)
      local fate = err.report.refused[1]
      assert.equal(3016, fate.error.code)
      assert.equal(address(42), fate.item.address)
      assert.is_false(err.retryable)
      local set = listed()
      for number = 1, 150 do
        assert.equal(not (number == 42 or number == 43 or number == 120) or nil, set[address(number)])
      end
    end)

    it("finds any number of refused items among added ones", function()
      local list, bad = items(200), {}
      for number = 5, 200, 10 do
        list[number].risks = { {} }
        bad[#bad + 1] = number
      end
      local _, err = client.blacklist:add { network = "eth", list = list }
      assert.same(bad, indexes(err.report.refused))
      assert.equal(180, #err.report.added)
    end)

    it("never sends an item again that may have been added", function()
      service:fault { kind = "reset", match = { address = address(150) } }
      local _, err = client.blacklist:add { network = "eth", list = items(250) }
      assert.is_true(err.uncertain)
      assert.equal(100, #err.report.uncertain)
      assert.equal(101, err.report.uncertain[1].index)
      assert.equal(150, #err.report.added)
      assert.is_false(err.retryable)
      local before = #service:requests()
      local _, again = err.retry()
      assert.equal(before, #service:requests())
      assert.equal(100, #again.report.uncertain)
    end)

    it("reports items as uncertain after a server error", function()
      service:fault { kind = "status", status = 500, count = 1 }
      local _, err = client.blacklist:add { network = "eth", list = items(2) }
      assert.same({ 1, 2 }, indexes(err.report.uncertain))
    end)

    it("sends items again by err.retry that the rate limit refused", function()
      service:fault { kind = "status", status = 429, count = 1, match = { address = address(150) } }
      local _, err = client.blacklist:add { network = "eth", list = items(250) }
      assert.equal(100, #err.report.refused)
      assert.equal("rate_limited", err.report.refused[1].error.kind)
      assert.is_true(err.retryable)
      local report = err.retry()
      assert.equal(250, #report.added)
      assert.equal(4, #service:requests())
    end)

    it("does not try every item when all are refused", function()
      service:fault { kind = "status", status = 400 }
      local _, err = client.blacklist:add { network = "eth", list = items(300) }
      assert.equal(300, #err.report.refused)
      assert.is_true(#service:requests() < 40)
    end)

    it("sends the items in their order", function()
      client.blacklist:add { network = "eth", list = items(201) }
      local first = {}
      for _, request in ipairs(service:requests()) do
        first[#first + 1] = request.parameters.list[1].address
      end
      assert.same({ address(1), address(101), address(201) }, first)
    end)
  end)
end

describe("an addition that several tasks retry", function()
  local sent, is_away, call_error

  before_each(function()
    sent, is_away = 0, true
    local client = riskscreen.new {
      base_url = "http://127.0.0.1:1",
      access_key = "test-key",
      retry = false,
      transport = function(request)
        if is_away then
          return nil, { kind = "network", message = "away", sent = false }
        end
        sent = sent + select(2, request.body:gsub('"address"', ""))
        riskscreen.sleep(0.02)
        return { status = 200, headers = {}, body = '{"success":true,"code":1,"msg":"SUCCESS"}' }
      end,
    }
    local list = {}
    for number = 1, 150 do
      list[number] = { address = address(number), risks = { { riskLevel = "high" } } }
    end
    call_error = select(2, client.blacklist:add { network = "eth", list = list })
    assert.equal(150, #call_error.report.unsent)
    is_away = false
  end)

  it("sends each item once where they do so at the same time", function()
    riskscreen.gather { call_error.retry, call_error.retry }
    assert.equal(150, sent)
    assert.equal(150, #(call_error.retry()).added)
    assert.equal(150, sent)
  end)

  it("sends no item again where one of them was stopped before the answer", function()
    riskscreen.run(function()
      local task = riskscreen.spawn(call_error.retry)
      riskscreen.sleep(0.005)
      task:cancel()
    end)
    local _, err = call_error.retry()
    assert.equal(150, sent)
    assert.equal(100, #err.report.uncertain)
    assert.equal(50, #err.report.added)
  end)
end)

describe("a bulk call", function()
  local ENTITY = { time = 1, network = "eth", whitelist = false, contract = false }

  local function client_with(...)
    local transport, requests = recorder.new(...)
    local options = { transport = transport, access_key = "test-key", concurrency = 2, retry = false, breaker = false }
    return riskscreen.new(options), requests
  end

  it("checks the whole list before it sends anything", function()
    local client, requests = client_with(recorder.failure("network", "no"))
    local list = addresses(150)
    list[142] = "not an address"
    local _, err = client.kya:entities { addresses = list, network = "eth" }
    assert.equal("invalid_argument", err.kind)
    assert.equal("addresses[142]", err.field)
    assert.is_false(err.sent)
    assert.equal("listAddressEntities", err.operation)
    assert.equal(0, #requests)
  end)

  it("of one request returns that request's message", function()
    local client = client_with(recorder.failure("timeout", "too late", true))
    local _, err = client.kya:entities { addresses = addresses(2), network = "eth" }
    assert.equal("too late", err.message)
    assert.same({ 1, 2 }, err.failed)
    assert.same({}, err.partial)
  end)

  -- A client with slow requests, and a function: the most requests under way since its last call.
  local function slow_client()
    local running, most = 0, 0
    local client = client_with(function()
      running = running + 1
      most = math.max(most, running)
      riskscreen.sleep(0)
      running = running - 1
      return nil, { kind = "network", message = "no", sent = true }
    end)
    return client, function()
      local result = most
      most = 0
      return result
    end
  end

  it("has at most `concurrency` requests under way", function()
    local client, most = slow_client()
    client.kya:entities { addresses = addresses(900), network = "eth" }
    assert.equal(2, most())
    client.kya:entities({ addresses = addresses(900), network = "eth" }, { concurrency = 4 })
    assert.equal(4, most())
  end)

  it("that changes something sends one request after another by default", function()
    local client, most = slow_client()
    local list = {}
    for number = 1, 900 do
      list[number] = { address = address(number) }
    end
    client.blacklist:add { list = list }
    assert.equal(1, most())
    client.blacklist:add({ list = list }, { concurrency = 3 })
    assert.equal(3, most())
  end)

  it("never uses a record that another request asked for", function()
    local client = client_with(function()
      local record = { address = address(1), network = "eth" }
      for name, value in pairs(ENTITY) do
        record[name] = value
      end
      return recorder.reply(200, { success = true, code = 1, data = { record } })
    end)
    local _, err = client.kya:entities { addresses = addresses(101), network = "eth" }
    assert.equal("protocol", err.kind)
    assert.same({ 101 }, err.failed)
    assert.equal(address(1), err.partial[1].address)
    assert.is_false(err.partial[2])
  end)

  it("tells unsent items from uncertain ones", function()
    local count = 0
    local client = client_with(function()
      count = count + 1
      return nil, { kind = "network", message = "no", sent = count == 2 }
    end)
    local list = {}
    for number = 1, 300 do
      list[number] = { address = address(number) }
    end
    local _, err = client.blacklist:add { list = list }
    assert.equal(200, #err.report.unsent)
    assert.equal(100, #err.report.uncertain)
    assert.equal(101, err.report.uncertain[1].index)
    assert.is_true(err.retryable)
    err.retry()
    assert.equal(5, count)
  end)

  it("was sent where any of its requests was, and counts all attempts", function()
    local outcomes = { false, true }
    local client = client_with(function()
      return nil, { kind = "network", message = "no", sent = table.remove(outcomes, 1) }
    end)
    local _, err = client.kya:entities({ addresses = addresses(101), network = "eth" }, { concurrency = 1 })
    assert.same({ true, 2 }, { err.sent, err.attempts })
    outcomes = { false, false }
    _, err = err.retry()
    assert.same({ false, 4 }, { err.sent, err.attempts })
  end)

  it("tries halves only where the service may have refused it for some of its items", function()
    for code, expected in pairs { [3016] = 3, [77] = 1 } do
      local count = 0
      local client = client_with(function()
        count = count + 1
        return recorder.reply(200, { success = false, code = code, msg = "no" })
      end)
      local _, err = client.blacklist:add { list = { { address = address(1) }, { address = address(2) } } }
      assert.equal(2, #err.report.refused)
      assert.equal(expected, count)
    end
  end)

  it("says how many items were added, refused, uncertain and not sent", function()
    local client = client_with(
      recorder.reply(200, { success = true, code = 1, msg = "SUCCESS", status = "SUCCESS" }),
      recorder.reply(200, { success = false, code = 77, msg = "no" }),
      recorder.failure("network", "no", true),
      recorder.failure("network", "no", false)
    )
    local list = {}
    for number = 1, 310 do
      list[number] = { address = address(number) }
    end
    local _, err = client.blacklist:add { list = list }
    assert.matches("of 310 items, added: 100, refused: 100, uncertain: 100, not sent: 10; ", err.message)
  end)

  it("leaves the limit of the operation as it is", function()
    for _, operation in ipairs(operations.list) do
      local name = operation.aligned or operation.reported
      for _, parameter in ipairs(operation.parameters or {}) do
        if parameter.name == name then
          assert.equal(100, parameter.max_items)
        end
      end
    end
  end)

  it("counts a malformed answer as uncertain and a proxy's 403 as refused", function()
    local expected = {
      { recorder.page(200, "<html>"), "uncertain" },
      { recorder.reply(202, {}), "uncertain" },
      { recorder.reply(408, {}), "uncertain" },
      { recorder.reply(200, { success = true, code = 5 }), "uncertain" },
      { recorder.reply(400, { success = true, code = 1, msg = "SUCCESS" }), "uncertain" },
      { recorder.reply(400, { success = false, code = 1, msg = "no" }), "uncertain" },
      { recorder.reply(401, { success = true, code = 401 }), "uncertain" },
      { recorder.reply(429, { success = true, code = 1 }), "uncertain" },
      { recorder.reply(403, { success = true, code = 1 }), "uncertain" },
      { recorder.reply(302, { success = true, code = 1 }), "uncertain" },
      { recorder.reply(200, { success = false, code = 1, msg = "no" }), "uncertain" },
      { recorder.reply(200, { success = false, code = 3016, msg = "no", status = "SUCCESS" }), "uncertain" },
      { recorder.reply(200, { success = false, code = 77, msg = "SUCCESS" }), "uncertain" },
      { recorder.page(403, "<html>"), "refused" },
      { recorder.reply(302, {}), "refused" },
      { recorder.reply(401, { success = false, code = 401, msg = "no" }), "refused" },
      { recorder.reply(200, { success = false, code = 77, msg = "no" }), "refused" },
    }
    for _, case in ipairs(expected) do
      local client = client_with(case[1])
      local _, err = client.blacklist:add { list = { { address = address(1) }, { address = address(2) } } }
      assert.equal(2, #err.report[case[2]], case[1].status)
      if case[2] == "uncertain" then
        local requests = client:stats().requests
        assert.equal(1, requests)
        assert.is_false(err.retryable)
        err.retry()
        assert.equal(requests, client:stats().requests)
      end
    end
  end)

  it("does not change the caller's tables", function()
    local client = sandbox.client {}
    local parameters = { addresses = addresses(101), network = "eth" }
    client.kya:entities(parameters)
    assert.same({ addresses = addresses(101), network = "eth" }, parameters)
  end)

  it("raises misuse at the caller's line", function()
    local client = sandbox.client {}
    local message, line = error_lines(function()
      client.kya:entities({ addresses = {}, network = "eth" }, { concurrency = 0 })
    end)
    assert.matches("bulk_spec.lua:" .. line + 1 .. ":", message, 1, true)
    assert.matches("concurrency must be between", message, 1, true)
  end)

  it("is the only kind of call with a concurrency", function()
    local client = sandbox.client {}
    assert.has_error(function()
      client.kya:risk({ address = address(1), network = "eth" }, { concurrency = 2 })
    end)
  end)
end)
