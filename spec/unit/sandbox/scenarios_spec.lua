local enums = require "riskscreen.interface.enums"
local sandbox = require "riskscreen.sandbox"
local support = require "spec.support.sandbox"

local function address_of(name)
  return sandbox.scenario(name).address
end

describe("the scenarios", function()
  for enum, field in pairs { risk_level = "riskLevel", risk_type = "riskType", risk_source = "riskSource" } do
    it("show every " .. field, function()
      local seen = {}
      for _, scenario in ipairs(sandbox.scenarios) do
        local risks = scenario.verdict.risks
        for _, risk in ipairs(type(risks) == "table" and risks or {}) do
          seen[risk[field]] = true
        end
      end
      for _, value in ipairs(enums.values[enum]) do
        assert.is_true(seen[value], value)
      end
    end)
  end

  it("have distinct names and addresses, a network and an explanation", function()
    local names, addresses = {}, {}
    for _, scenario in ipairs(sandbox.scenarios) do
      assert.is_nil(names[scenario.name])
      assert.is_nil(addresses[scenario.address:lower()])
      assert.is_true(enums.has("network", scenario.network))
      assert.is_true(#scenario.what > 0)
      names[scenario.name], addresses[scenario.address:lower()] = true, true
    end
  end)

  local forms = {
    eth = { "^0x%x+$" },
    tron = { "^T%w+$" },
    btc = { "^bc1q[%l%d]+$", "^1%w+$" },
    solana = { "^[1-9A-HJ-NP-Za-km-z]+$" },
    doge = { "^D%w+$" },
    ltc = { "^ltc1q[%l%d]+$", "^L%w+$" },
  }

  it("have addresses of the right form for their network", function()
    local seen = {}
    for _, scenario in ipairs(sandbox.scenarios) do
      local matched
      for _, form in ipairs(forms[scenario.network]) do
        if scenario.address:find(form) then
          matched, seen[form] = true, true
        end
      end
      assert.is_true(matched, scenario.name)
    end
    for _, patterns in pairs(forms) do
      for _, form in ipairs(patterns) do
        assert.is_true(seen[form], form)
      end
    end
  end)

  it("are found by name", function()
    assert.equal("clean-btc", sandbox.scenario("clean-btc").name)
  end)

  it("raise at the caller's line for an unknown name", function()
    local ok, message = pcall(function()
      return sandbox.scenario "clean-coal", nil
    end)
    assert.is_false(ok)
    assert.matches("scenarios_spec.lua:%d+: there is no scenario 'clean%-coal'", message)
  end)
end)

for _, way in ipairs(support.ways) do
  describe("a scenario, " .. way.name .. ",", function()
    local connection, client

    setup(function()
      connection = way.connect()
      client = connection.client
    end)

    teardown(function()
      connection.close()
    end)

    local function risk(name, network)
      return client.kya:risk { address = address_of(name), network = network or sandbox.scenario(name).network }
    end

    local function only_risk(name)
      local record, err = risk(name)
      assert.is_nil(not record and err or nil)
      assert.equal(1, #record.risks)
      return record.risks[1]
    end

    for _, network in ipairs { "eth", "tron", "btc", "solana", "doge", "ltc" } do
      it("shows each level on " .. network, function()
        assert.same({}, risk("clean-" .. network).risks)
        for _, level in ipairs { "low", "generally-high", "high" } do
          assert.equal(level, only_risk(level .. "-" .. network).riskLevel)
        end
      end)
    end

    it("shows each type", function()
      for _, kind in ipairs(enums.values.risk_type) do
        assert.equal(kind, only_risk("type-" .. kind).riskType)
      end
    end)

    it("shows each source", function()
      assert.equal("Provider", only_risk("type-scam").riskSource)
      assert.equal("Community", only_risk("source-community").riskSource)
      assert.equal("User-Defined", only_risk("source-user-defined").riskSource)
    end)

    it("shows the level whitelist, without the whitelist flag", function()
      assert.equal("whitelist", only_risk("whitelist-level").riskLevel)
      assert.is_false(risk("whitelist-level").whitelist)
    end)

    it("shows the whitelist flag", function()
      assert.is_true(risk("whitelist-flag").whitelist)
    end)

    it("shows several risks of one address", function()
      assert.equal(3, #risk("mixed-risks").risks)
    end)

    it("shows null risks as an absent field", function()
      assert.is_nil(risk("risks-null").risks)
    end)

    it("shows an answer without risks", function()
      assert.is_nil(risk("risks-absent").risks)
    end)

    it("shows a level, a type and a source that are not documented", function()
      assert.is_false(enums.has("risk_level", only_risk("unseen-level").riskLevel))
      assert.is_false(enums.has("risk_type", only_risk("unseen-type").riskType))
      assert.is_false(enums.has("risk_source", only_risk("unseen-source").riskSource))
    end)

    for _, name in ipairs { "wrong-address", "wrong-network", "malformed-level" } do
      it("with an unusable answer is a protocol error: " .. name, function()
        local record, err = risk(name)
        assert.is_nil(record)
        assert.equal("protocol", err.kind)
      end)
    end

    it("with an answer in lower case is accepted", function()
      local record = risk "lower-case-answer"
      assert.equal(address_of("lower-case-answer"):lower(), record.address)
    end)

    it("omitted from a bulk answer is false at its place", function()
      local records = client.kya:entities {
        addresses = { address_of "entity-mixer", address_of "omitted-in-bulk", address_of "contract" },
        network = "eth",
      }
      assert.equal("Example Mixer", records[1].entity.entityName)
      assert.is_false(records[2])
      assert.is_true(records[3].contract)
    end)

    it("shows the entity of an address and whether it is a contract", function()
      local record = client.kya:entity { address = address_of "entity-defi", network = "eth" }
      assert.same({ "Example Swap", true }, { record.entity.entityName, record.contract })
    end)

    it("shows an entity without a category", function()
      local record = client.kya:entity { address = address_of "entity-no-category", network = "eth" }
      assert.is_nil(record.entity.entityCategory)
    end)

    it("shows a freeze without and with a destroyed balance", function()
      local events = client.kya:freeze_events { address = address_of "destroyed", network = "tron" }
      assert.equal(2, #events)
      assert.is_nil(events[1].destroyedBalance)
      assert.equal("5000000.000001", events[2].destroyedBalance)
    end)

    it("without a freeze has no freeze events", function()
      assert.same({}, (client.kya:freeze_events { address = address_of "clean-eth", network = "eth" }))
    end)

    it("has counterparties and a basic record of the right shape", function()
      assert.is_table(client.kya:counterparties({ address = address_of "high-eth", network = "eth" }).opponents)
      assert.is_table(client.kya:basic({ address = address_of "high-tron", network = "tron" }).balance)
    end)
  end)
end
