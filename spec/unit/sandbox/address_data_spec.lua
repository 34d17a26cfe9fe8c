local address_data = require "riskscreen.sandbox.address_data"

local ADDRESS = "0xAbCdEf0123456789aBcDeF0123456789AbCdEf01"

describe("a verdict", function()
  it("is the same every time", function()
    assert.same(address_data.verdict(ADDRESS), address_data.verdict(ADDRESS))
  end)

  it("does not depend on the case of a hexadecimal address", function()
    for number = 0, 200 do
      local address = ("0xabcdef%034x"):format(number)
      assert.same(address_data.verdict(address), address_data.verdict("0X" .. address:sub(3):upper()))
    end
  end)

  it("depends on the case of an address that is not hexadecimal", function()
    local differ = false
    for number = 1, 20 do
      local upper, lower = address_data.verdict("TAbc" .. number), address_data.verdict("tabc" .. number)
      differ = differ or not pcall(assert.same, upper, lower)
    end
    assert.is_true(differ)
  end)

  it("has every level among many addresses", function()
    local seen = {}
    for number = 1, 1000 do
      local risks = address_data.verdict("address " .. number).risks
      seen[risks[1] and risks[1].riskLevel or "none"] = true
    end
    assert.same({ none = true, low = true, ["generally-high"] = true, high = true }, seen)
  end)

  it("is harmless for most addresses", function()
    local harmless = 0
    for number = 1, 1000 do
      harmless = harmless + (address_data.verdict("address " .. number).risks[1] and 0 or 1)
    end
    assert.is_true(harmless > 600 and harmless < 850)
  end)

  it("is the same in every Lua", function()
    local draw = address_data.stream "riskscreen"
    assert.same({ 864, 793, 48 }, { draw(1000), draw(1000), draw(1000) })
  end)
end)

describe("the activity of an address", function()
  for _, name in ipairs { "counterparties", "basic", "freeze_events" } do
    it("does not depend on the case of the address or the name of the network: " .. name, function()
      assert.same(address_data[name](ADDRESS, "eth"), address_data[name](ADDRESS:lower(), "ethereum"))
    end)
  end

  it("never has the address itself as a counterparty", function()
    local scenario = require("riskscreen.sandbox").scenario "clean-eth"
    for _, opponent in ipairs(address_data.counterparties(scenario.address, "eth")) do
      assert.are_not.equal(scenario.address, opponent.address)
    end
  end)

  it("has a freeze event when the address is frozen", function()
    for number = 1, 2000 do
      local address = "address " .. number
      local frozen = false
      for _, risk in ipairs(address_data.verdict(address).risks) do
        frozen = frozen or risk.riskType == "frozen"
      end
      assert.equal(frozen, #address_data.freeze_events(address, "tron") > 0)
    end
  end)
end)
