-- A text that is no address is refused before anything is sent, and every spelling of an address is one address.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local json = require "riskscreen.json"
local recorder = require "spec.support.recorder"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"
local spellings = require "spec.support.spellings"
local tables = require "riskscreen.util.tables"

local CLEAN = addresses["clean-eth"]
local MISSPELT = CLEAN:sub(1, -2) .. "4"
local BYTE_ORDER_MARK = "\239\187\191"

local not_addresses = {
  [BYTE_ORDER_MARK .. CLEAN] = "U+FEFF",
  [CLEAN:sub(1, -2)] = "41 characters",
  [CLEAN .. "\194\160"] = "U+00A0",
  ['"' .. CLEAN .. '"'] = "character",
  ["ethereum:" .. CLEAN] = "begins with 'ethereum:'",
  [CLEAN:gsub("a", "\208\176", 1)] = "U+0430",
  [CLEAN .. ",eth"] = "character ','",
  [MISSPELT] = "the checksum fails: is a letter wrong?",
  [addresses["clean-tron"]] = "it looks like a tron address, and the network is eth",
}

describe("a text that is no address", function()
  local client, service

  before_each(function()
    client, service = sandbox.client()
  end)

  it("leaves the decision unknown, and nothing is sent", function()
    for text, reason in pairs(not_addresses) do
      local decision = client:screen { address = text, network = "eth" }
      assert.equal("unknown", decision.action)
      assert.equal("invalid_argument", decision.error.kind)
      assert.equal("address", decision.error.field)
      assert.is_false(decision.error.sent)
      assert.matches(reason, decision.reasons[1].message, 1, true)
      assert.equal(text, decision.address)
    end
    assert.same({}, service:requests())
  end)

  it("does not get the decision about a similar address", function()
    local decisions = {}
    for decision in client:screen_all { source = { CLEAN, MISSPELT, CLEAN:lower() }, network = "eth" } do
      decisions[#decisions + 1] = decision.action
    end
    assert.same({ "allow", "unknown", "allow" }, decisions)
    assert.equal(1, #service:requests())
  end)

  it("makes calls fail whose parameter it is", function()
    for _, case in ipairs {
      { "outputAddress", client.kyt.submit, client.kyt, { network = "eth", hash = "0x1", outputAddress = MISSPELT } },
      {
        "tokenContractAddress",
        client.kyt.submit,
        client.kyt,
        { network = "eth", hash = "0x1", tokenContractAddress = "USDT" },
      },
      { "address", client.kya.risk, client.kya, { network = "eth", address = CLEAN .. "0" } },
      { "addresses[2]", client.kya.entities, client.kya, { network = "eth", addresses = { CLEAN, "x" } } },
      { "list[1].address", client.blacklist.add, client.blacklist, { list = { { address = MISSPELT } } } },
    } do
      local value, err = case[2](case[3], case[4])
      assert.is_nil(value)
      assert.same({ "invalid_argument", case[1], false }, { err.kind, err.field, err.sent })
    end
    assert.same({}, service:requests())
  end)

  it("makes calls fail whose parameters the interface does not list", function()
    for _, case in ipairs {
      { "address", client.kya.score, client.kya, { network = "eth", address = MISSPELT } },
      { "address", client.kya.score, client.kya, { address = CLEAN .. "0" } },
      { "outputAddress", client.kyt.custom_score, client.kyt, { network = "eth", outputAddress = MISSPELT } },
    } do
      local value, err = case[2](case[3], case[4], { address_check = "checksum" })
      assert.is_nil(value)
      assert.same({ "invalid_argument", case[1], false }, { err.kind, err.field, err.sent })
    end
    assert.same({}, service:requests())
  end)

  it("may name a token that is no contract on other networks", function()
    assert(client.kyt:submit { network = "tron", hash = "1", tokenContractAddress = "1002000" })
  end)
end)

describe("the option address_check", function()
  local function sent_for(options, call)
    local transport, requests = recorder.new(recorder.reply(400))
    options.access_key, options.transport = "test-key", transport
    call(riskscreen.new(options))
    return #requests
  end

  local function screened(options, address, own)
    return sent_for(options, function(client)
      client:screen { address = address, network = "eth", address_check = own }
    end)
  end

  local function looked_up(options, address, own)
    return sent_for(options, function(client)
      client.kya:risk({ address = address, network = "eth" }, { address_check = own })
    end)
  end

  it("is checksum for screenings and format for calls by default", function()
    assert.equal(0, screened({}, MISSPELT))
    assert.equal(1, looked_up({}, MISSPELT))
    assert.equal(0, looked_up({}, "x"))
    assert.equal(1, screened({}, CLEAN))
  end)

  it("is the client's, and the call's in its place", function()
    assert.equal(1, screened({ address_check = "format" }, MISSPELT))
    assert.equal(0, screened({ address_check = "format" }, "x"))
    assert.equal(1, screened({ address_check = false }, "x"))
    assert.equal(0, looked_up({ address_check = "checksum" }, MISSPELT))
    assert.equal(0, screened({ address_check = false }, MISSPELT, "checksum"))
    assert.equal(1, looked_up({ address_check = "checksum" }, "x", false))
    assert.equal(1, screened({}, "x", false))
  end)

  it("has no other values", function()
    for _, value in ipairs { "none", true } do
      local ok, message =
        pcall(riskscreen.new, { base_url = "https://a.b", access_key = "test-key", address_check = value })
      assert.is_false(ok)
      assert.matches("address_check must be 'checksum', 'format' or false", message, 1, true)
    end
  end)
end)

describe("every spelling of an address", function()
  it("is asked for once on a network that the operator has added", function()
    for network, list in pairs(spellings) do
      local known = assert(sandbox.client().kya:entities { addresses = { list[1] }, network = network })[1]
      for _, answered in ipairs(list) do
        local record = tables.merge(known, { address = answered, network = "added" })
        local answer = { success = true, code = 1, msg = "SUCCESS", status = "SUCCESS", data = { record } }
        local transport, requests = recorder.new(recorder.reply(200, answer))
        local extend = { network = { added = network } }
        local client = riskscreen.new { transport = transport, access_key = "test-key", extend = extend }
        local records = assert(client.kya:entities { addresses = list, network = "added" })
        assert.equal(#list, #records)
        assert.equal(1, #json.decode(requests[1].body).addresses, network)
        for index in ipairs(list) do
          assert.equal(answered, records[index].address)
        end
      end
    end
  end)

  it("is asked for once", function()
    for network, list in pairs(spellings) do
      local client, service = sandbox.client()
      local actions = {}
      for decision in client:screen_all { source = list, network = network } do
        actions[decision.action] = true
        assert.equal(list[decision.index], decision.address)
      end
      assert.equal(1, #service:requests(), network)
      assert.is_nil(actions.unknown)
      local before = #service:requests()
      assert.equal(#list, #assert(client.kya:entities { addresses = list, network = network }))
      assert.equal(1, #service:requests()[before + 1].parameters.addresses, network)
      local risks = {}
      for index, spelling in ipairs(list) do
        risks[index] = assert(client.kya:risk { address = spelling, network = network }).risks
      end
      for _, other in ipairs(risks) do
        assert.same(risks[1], other)
      end
    end
  end)
end)
