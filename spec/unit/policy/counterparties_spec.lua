local json = require "riskscreen.json"
local policies = require "riskscreen.policy"
local samples = require "spec.support.risks"

local record, risk = samples.record, samples.risk

describe("a rule on counterparties", function()
  local function with(condition, opponents)
    local policy = policies.new {
      not_offered = "skip",
      rules = { { counterparty = condition, action = "block" }, { no_risk = true, action = "allow" } },
    }
    return policy:decide({ risk = record {}, counterparties = { opponents = opponents } }).action
  end

  local function opponent(dir, amount, risks, symbol)
    return { dir = dir, amount = amount, risks = risks or {}, symbol = symbol or "ETH", entities = {} }
  end

  local bad, mild = { risk("high", "sanction") }, { risk("low", "scam") }

  it("makes the policy need the counterparties", function()
    local policy = policies.new {
      rules = { { counterparty = { level = "high" }, not_offered = "skip", action = "block" } },
    }
    assert.is_true(policy:needs "counterparties")
  end)

  it("matches the level and the type", function()
    assert.equal("block", with({ level = "high" }, { opponent("in", 1, mild), opponent("in", 1, bad) }))
    assert.equal("allow", with({ level = "high" }, { opponent("in", 1, mild) }))
    assert.equal("block", with({ type = { "sanction", "hack" } }, { opponent("out", 1, bad) }))
    assert.equal("allow", with({ level = "high", type = "hack" }, { opponent("out", 1, bad) }))
    assert.equal("allow", with({ level = "high" }, {}))
  end)

  it("needs the level and the type in the same risk", function()
    local two = { risk("high", "scam"), risk("low", "hack") }
    assert.equal("allow", with({ level = "high", type = "hack" }, { opponent("in", 1, two) }))
  end)

  it("matches the direction", function()
    assert.equal("block", with({ level = "high", direction = "in" }, { opponent("in", 1, bad) }))
    assert.equal("allow", with({ level = "high", direction = "in" }, { opponent("out", 1, bad) }))
  end)

  it("is undetermined when a direction, a level or a type is absent or unrecognised", function()
    local condition = { level = "high", type = "sanction", direction = "in" }
    for _, one in ipairs {
      opponent(nil, 1, bad),
      opponent("sideways", 1, bad),
      { dir = "in", amount = 1, symbol = "ETH" },
      opponent("in", 1, { risk("severe", "sanction") }),
      opponent("in", 1, { risk("high", "time-travel") }),
      opponent("in", 1, { { riskType = "sanction" } }),
      opponent("in", 1, { "high" }),
      opponent("in", 1, { [2] = bad[1] }),
      "somebody",
    } do
      assert.equal("unknown", with(condition, { one }))
      assert.equal("unknown", with(condition, { opponent("in", 1), one }))
      assert.equal("unknown", with(condition, { one, opponent("in", 1, mild) }))
      assert.equal("block", with(condition, { one, opponent("in", 1, bad) }))
    end
  end)

  it("ignores unknown fields that it does not need", function()
    assert.equal("allow", with({ type = "hack" }, { opponent("in", 1, { risk("severe", "scam") }) }))
    assert.equal("allow", with({ level = "high", direction = "in" }, { opponent("out", 1, nil) }))
    assert.equal("allow", with({ level = "high", type = "hack" }, { opponent("in", 1, { risk("odd", "scam") }) }))
    assert.equal("block", with({ level = "high" }, { opponent("in", nil, bad, false) }))
  end)

  it("is undetermined when the counterparties are not a proper list", function()
    assert.equal("unknown", with({ level = "high" }, nil))
    assert.equal("unknown", with({ level = "high" }, { [2] = opponent("in", 1, bad) }))
    assert.equal("unknown", with({ level = "high" }, { dir = "in" }))
  end)

  it("is undetermined for an element that is no object, also where absent risks are none", function()
    local policy = policies.new {
      not_offered = "skip",
      absent_risks = "none",
      rules = { { counterparty = { level = "high" }, action = "block" }, { no_risk = true, action = "allow" } },
    }
    for _, one in ipairs { "somebody", json.null } do
      local evidence = { risk = record {}, counterparties = { opponents = { one } } }
      assert.equal("unknown", policy:decide(evidence).action)
    end
  end)

  describe("with a share", function()
    local condition = { level = "high", direction = "in", share = 0.25 }

    it("compares the amounts of one direction and one token", function()
      assert.equal("block", with(condition, { opponent("in", 25, bad), opponent("in", 75) }))
      assert.equal("allow", with(condition, { opponent("in", 24, bad), opponent("in", 76) }))
      assert.equal("block", with(condition, { opponent("in", 1, bad), opponent("out", 1000) }))
      assert.equal("block", with(condition, { opponent("in", 1, bad, "BTC"), opponent("in", 1000) }))
      local small, large = opponent("in", 10, bad), opponent("in", 20, bad)
      assert.equal("allow", with(condition, { small, small, opponent("in", 90) }))
      assert.equal("block", with(condition, { large, large, opponent("in", 90) }))
    end)

    it("is undetermined where rounding alone may keep it below the bound", function()
      local most = { level = "high", share = 0.8 }
      local list = { opponent("in", 0.1, bad), opponent("in", 0.7, bad), opponent("in", 0.2) }
      assert.equal("unknown", with(most, list)) -- 0.1 + 0.7 is below 0.8 in doubles
      assert.equal("unknown", with(most, { opponent("in", 1.6e308, bad), opponent("in", 0.3e308) }))
      assert.equal("allow", with(most, { opponent("in", 0.79, bad), opponent("in", 0.21) }))
    end)

    it("is undetermined when an amount or a token is absent or malformed", function()
      for _, amount in ipairs { -1, 0 / 0, math.huge, "25" } do
        assert.equal("unknown", with(condition, { opponent("in", 1, bad), opponent("in", amount) }))
        assert.equal("unknown", with(condition, { opponent("in", amount, bad), opponent("in", 1000) }))
      end
      assert.equal("unknown", with(condition, { { dir = "in", risks = bad, symbol = "ETH" } }))
      assert.equal("unknown", with(condition, { { dir = "in", risks = bad, amount = 1 } }))
      assert.equal("unknown", with(condition, { opponent("in", 0, bad), opponent("in", 0) }))
    end)

    it("is false without a risky counterparty, whatever the amounts", function()
      assert.equal("allow", with(condition, { opponent("in", -1), opponent("in", 0), opponent("out", 5, bad) }))
      local nothing = opponent("in", 0, {}, "BTC")
      assert.equal("allow", with(condition, { nothing, opponent("in", 1, bad), opponent("in", 9) }))
    end)

    it("is determined when the unknown amounts cannot change the answer", function()
      local doubtful = { risk("severe", "scam") }
      assert.equal("allow", with(condition, { opponent("in", 1, doubtful), opponent("in", 99) }))
      assert.equal("block", with(condition, { opponent("in", 1, doubtful), opponent("in", 99, bad) }))
      assert.equal("unknown", with(condition, { opponent("in", 30, doubtful), opponent("in", 70) }))
      assert.equal("unknown", with(condition, { opponent("in", 25, doubtful), opponent("in", 75) }))
      assert.equal("unknown", with(condition, { opponent("in", 30, bad), opponent("sideways", 100) }))
      assert.equal("block", with(condition, { opponent("in", 50, bad), opponent("sideways", 100) }))
      assert.equal("allow", with(condition, { opponent("in", 1, bad), opponent("in", 50), opponent("sideways", 9) }))
    end)
  end)
end)
