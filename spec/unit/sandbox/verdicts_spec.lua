local activity = require "riskscreen.sandbox.activity"
local verdicts = require "riskscreen.sandbox.verdicts"

local ADDRESS = "0xAbCdEf0123456789aBcDeF0123456789AbCdEf01"

describe("a verdict", function()
  it("is the same whenever it is asked for", function()
    assert.same(verdicts.of(ADDRESS), verdicts.of(ADDRESS))
  end)

  it("does not depend on the case of a hexadecimal address", function()
    for number = 0, 200 do
      local address = ("0xabcdef%034x"):format(number)
      assert.same(verdicts.of(address), verdicts.of("0X" .. address:sub(3):upper()))
    end
  end)

  it("of an address that is not hexadecimal depends on its case", function()
    assert.equal("TAbc", verdicts.canonical "TAbc")
  end)

  it("is of every level among many addresses", function()
    local seen = {}
    for number = 1, 1000 do
      local risks = verdicts.of("address " .. number).risks
      seen[risks[1] and risks[1].riskLevel or "none"] = true
    end
    assert.same({ none = true, low = true, ["generally-high"] = true, high = true }, seen)
  end)

  it("is harmless for most addresses", function()
    local harmless = 0
    for number = 1, 1000 do
      harmless = harmless + (verdicts.of("address " .. number).risks[1] and 0 or 1)
    end
    assert.is_true(harmless > 600 and harmless < 850)
  end)

  it("is the one that every Lua computes", function()
    local draw = verdicts.stream "riskscreen"
    assert.same({ 864, 793, 48 }, { draw(1000), draw(1000), draw(1000) })
  end)
end)

describe("what an address has done", function()
  for _, name in ipairs { "counterparties", "basic", "freeze_events" } do
    it("does not depend on the address's case or the network's name: " .. name, function()
      assert.same(activity[name](ADDRESS, "eth"), activity[name](ADDRESS:lower(), "ethereum"))
    end)
  end

  it("never includes dealing with itself", function()
    local scenario = require("riskscreen.sandbox").scenario "clean-eth"
    for _, opponent in ipairs(activity.counterparties(scenario.address, "eth")) do
      assert.are_not.equal(scenario.address, opponent.address)
    end
  end)

  it("includes a freeze if the address is frozen", function()
    for number = 1, 2000 do
      local address = "address " .. number
      local frozen = false
      for _, risk in ipairs(verdicts.of(address).risks) do
        frozen = frozen or risk.riskType == "frozen"
      end
      assert.equal(frozen, #activity.freeze_events(address, "tron") > 0)
    end
  end)
end)
