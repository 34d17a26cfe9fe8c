-- The measurement against sandboxes that differ from what is assumed.
local address_data = require "riskscreen.sandbox.address_data"
local assumptions = require "riskscreen.sandbox.assumptions"
local calls = require "riskscreen.call"
local json = require "riskscreen.json"
local measure = require "riskscreen.cli.measure"
local riskscreen = require "riskscreen"
local tables = require "riskscreen.util.tables"

local DAY, NOW = 86400, 1790000000
local sanctioned = riskscreen.sandbox.scenario "type-sanction"

-- A generator that gives the same draws on every Lua (Park and Miller, 1988).
local function new_random(seed)
  return function(most)
    seed = seed * 16807 % 2147483647
    return seed % most + 1
  end
end

-- An address with capital letters about which the sandbox knows nothing.
local function unknown_address()
  for number = 1, 1000 do
    local address = ("0xABCDEF%034x"):format(number)
    local verdict = address_data.verdict(address, "eth", {})
    if
      #verdict.risks == 0
      and not verdict.entity
      and #address_data.counterparties(address, "eth") == 0
      and #address_data.freeze_events(address, "eth", {}) == 0
    then
      return address
    end
  end
end
local UNKNOWN = assert(unknown_address())

-- A client of an account with usage on several days, and a transaction with its result.
local function account(profile, days)
  local now = NOW
  local client, service = riskscreen.sandbox.client {
    profile = profile,
    clock = function()
      return now
    end,
    kyt_delay = 1,
    sleep = function() end,
  }
  local usage = service:account("sandbox-key").usage
  for day = 1, days or 8 do
    for _, name in ipairs { "getAddressRisk", "getAddressEntity" } do
      usage:count({ name = name, path = "/api/v1/x" }, 1, NOW - day * DAY)
    end
  end
  local transaction = assert(client.kyt:submit { network = "eth", hash = "0x5f16", direction = "sent" })
  now = NOW + 5
  local given = { address = UNKNOWN, risky_address = sanctioned.address, write = true }
  given.request_id = transaction.requestId
  return client, given, service
end

local function measured(profile, budget)
  local client, given, service = account(profile)
  local before = #service:requests()
  local result = measure.run(client, given, budget or 100)
  return result, service, #service:requests() - before
end

describe("the measurement of the assumptions", function()
  it("recovers a service that was drawn at random, in 50 of 50 draws", function()
    local random, most = new_random(7), 0
    for _ = 1, 50 do
      local drawn = {}
      for _, assumption in ipairs(assumptions.list) do
        drawn[assumption.name] = assumption.values[random(#assumption.values)]
      end
      local result = measured(drawn)
      assert.same(drawn, result.seen)
      assert.same({}, result.reasons)
      most = math.max(most, result.sent)
    end
    -- Ten answers settle the rest. The largest page needs up to 4, and names that must be tried one by one up to 14.
    assert.is_true(most <= 28, most .. " requests")
  end)

  it("recovers values that nobody has listed", function()
    local drawn = { provider = "Acme Risk", first_page = 3, page_length = 33, invalid_status = 422, final_status = 7 }
    local result = measured(tables.merge(drawn, { empty_type_status = 409, start_date = "from" }))
    assert.same(drawn, tables.pick(result.seen, tables.sorted_keys(drawn)))
    assert.same({ 409, "from" }, { result.seen.empty_type_status, result.seen.start_date })
  end)

  it("sends no more requests than are needed to a service that ignores unknown names", function()
    local result, _, seen = measured { unknown_name = "ignored", longer_page = "cut" }
    assert.equal(result.sent, seen)
    -- One for each of risk, entity, counterparties, freezes, provider, bulk, whitelist, blacklist, an invalid lookup, a
    -- result and an addition; one for the usage without parameters, one for the days, two for the groups.
    assert.equal(15, result.sent)
  end)

  it("never sends more than the budget, and says which assumptions are open", function()
    for budget = 1, 15 do
      local result, _, seen = measured({ unknown_name = "ignored" }, budget)
      assert.equal(budget, seen)
      assert.equal(budget, result.sent)
    end
    local rows = measure.rows((measured({}, 1)))
    assert.equal("as assumed", rows[1].result)
    assert.equal("not known", rows[#rows].result)
    assert.equal("the budget was used up", rows[#rows].set)
  end)

  it("changes nothing in the account without leave to write", function()
    local client, given, service = account {}
    given.write = nil
    local result = measure.run(client, given, 100)
    assert.matches("--write", result.reasons.empty_type_status, 1, true)
    for _, request in ipairs(service:requests()) do
      assert.is_true(request.method == "GET" or request.operation ~= "addBlacklistAddresses", request.target)
    end
  end)

  it("says what to set where the service differs", function()
    local rows = measure.rows((measured { provider = "ExampleRisk", empty_risks = "null", start_date = "from" }))
    local sets = {}
    for _, row in ipairs(rows) do
      if row.result == "differs" then
        sets[#sets + 1] = row.set
      end
    end
    assert.same({
      'policy { absent_risks = "none" }',
      'policy { provider = "ExampleRisk" }',
      'usage_parameters.start_date = "from"',
    }, sets)
  end)

  it("does not guess names from usage on few days, nor an empty form from an address with risks", function()
    local client, given = account({}, 3)
    given.address = sanctioned.address
    local result = measure.run(client, given, 100)
    assert.is_nil(result.seen.start_date)
    assert.matches("fewer than six days", result.reasons.granularity, 1, true)
    assert.is_nil(result.seen.empty_risks)
    assert.matches("the address has risks", result.reasons.empty_risks, 1, true)
  end)

  it("reports a service that fails as not known, within the budget", function()
    local faults = { { kind = "status", status = 500 }, { kind = "status", status = 429 }, { kind = "reset" } }
    for _, fault in ipairs(faults) do
      local client, given, service = account {}
      local before = #service:requests()
      service:fault(fault)
      local result = measure.run(client, given, 7)
      assert.same({}, result.seen)
      assert.equal(7, #service:requests() - before)
      assert.equal(7, result.sent)
    end
  end)

  -- Replaces the bodies of the answers; `change` may change the decoded body.
  local function with_answers(client, change)
    local state = calls.state_of(client)
    local send = state.transport
    function state.transport(...)
      local reply, failure = send(...)
      if reply and reply.status == 200 then
        local body = json.decode(reply.body)
        reply.body = json.encode(change(body) or body)
      end
      return reply, failure
    end
  end

  it("survives answers of any form, and learns nothing false from them", function()
    for _, value in ipairs { "text", 17, true, json.null, json.empty_array(), { 1, "x", json.null }, { a = {} } } do
      for _, place in ipairs { "data", "pagination", "first", "field" } do
        local client, given = account { unknown_name = "ignored" }
        with_answers(client, function(body)
          local data = type(body.data) == "table" and body.data or {}
          if place == "first" then
            data[1] = value
          elseif place == "field" then
            for name in pairs(data) do
              data[name] = value
            end
          else
            body[place] = value
          end
        end)
        local _, profile = measure.rows(measure.run(client, given, 100))
        assert.has_no.errors(function()
          riskscreen.sandbox.client { profile = profile }
        end)
        if place == "pagination" then
          assert.same({}, tables.pick(profile, { "first_page", "page_length", "largest_page" }))
        end
      end
    end
  end)

  it("does not take two failures for an answer to the names of groups", function()
    local client, given = account { unknown_name = "ignored", longer_page = "cut" }
    local sent, state = 0, calls.state_of(client)
    local send = state.transport
    function state.transport(...)
      sent = sent + 1
      if sent > 11 then -- after the days of the usage
        return nil, { kind = "network", message = "reset", sent = true }
      end
      return send(...)
    end
    local result = measure.run(client, given, 100)
    assert.equal("ignored", result.seen.unknown_name)
    assert.is_nil(result.seen.group_by)
    assert.equal("network", result.reasons.group_by)
  end)

  it("shows neither an address nor the key of an answer, and makes no profile of impossible values", function()
    local texts = { UNKNOWN, "sandbox-key", "TNPeeaaFB7K9cmo4uQpcU32zGK8G1NYqeL", ("x"):rep(100), "\27[2J" }
    for _, text in ipairs(texts) do
      local client, given = account {}
      with_answers(client, function(body)
        if type(body.data) == "table" then
          body.data.network = text
          for _, risk in ipairs(body.data.risks or {}) do
            risk.riskSource = text
          end
        end
      end)
      local rows, profile = measure.rows(measure.run(client, given, 100))
      assert.is_nil(json.encode { rows, profile }:find(json.encode(text):sub(2, -2), 1, true), text)
    end
    local client, given = account {}
    with_answers(client, function(body)
      body.data.network = "ETH"
    end)
    local result = measure.run(client, given, 1)
    local rows, profile = measure.rows(result)
    assert.same({ "ETH", "differs" }, { rows[3].seen, rows[3].result })
    assert.is_nil(profile.answered_network)
  end)

  it("shows no address that the service quotes in a refusal, nor that of a probe that has written", function()
    local client, given = account {}
    local state = calls.state_of(client)
    local send = state.transport
    function state.transport(request, ...)
      local reply, failure = send(request, ...)
      if reply then
        local is_written = tostring(request.body):find("riskLevel", 1, true)
        reply.status = is_written and 200 or 400
        local refusal = { success = false, code = 3001, msg = "unknown address " .. UNKNOWN }
        reply.body = json.encode(is_written and { success = true, code = 1, data = {} } or refusal)
      end
      return reply, failure
    end
    local rows = measure.rows(measure.run(client, given, 100))
    assert.is_nil(json.encode(rows):lower():find(UNKNOWN:lower(), 1, true))
    assert.matches("remove it from the blacklist", rows[#rows].set, 1, true)
    assert.matches("bad_request, HTTP 400, code 3001", json.encode(rows), 1, true)
  end)

  it("gives a profile that imitates the service, without an address or a key", function()
    local drawn = { empty_risks = "absent", first_page = 0, largest_page = 50, provider = "ExampleRisk" }
    local result, service = measured(drawn)
    local _, profile = measure.rows(result)
    for name, value in pairs(profile) do
      assert.is_truthy(assumptions.by_name[name])
      assert.is_nil(tostring(value):find "0x")
      assert.is_nil(tostring(value):find "sandbox%-key")
    end
    local again = measured(profile)
    assert.same(result.seen, again.seen)
    assert.is_truthy(service)
  end)

  it("refuses a profile with an unknown name or an impossible value", function()
    for message, profile in pairs {
      ["unknown option 'colour'"] = { colour = "red" },
      ["bulk_order must be such as as asked"] = { bulk_order = "random" },
      ["first_page must be such as 1 (got -1)"] = { first_page = -1 },
    } do
      local ok, problem = pcall(riskscreen.sandbox.client, { profile = profile })
      assert.is_false(ok)
      assert.matches(message, problem, 1, true)
    end
  end)
end)
