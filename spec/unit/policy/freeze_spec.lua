local policies = require "riskscreen.policy"
local samples = require "spec.support.risks"
local tables = require "riskscreen.util.tables"

local record = samples.record

describe("a rule on a freeze in force", function()
  local policy = policies.new {
    not_offered = "unknown",
    rules = {
      { frozen = true, action = "block" },
      { frozen = false, no_risk = true, action = "allow" },
    },
  }

  local function event(extra)
    return tables.merge(
      { chain = "eth", contractAddress = "0xAA", txTime = 1000, type = "freeze", event = "AddToList" },
      extra
    )
  end

  local function action(events, which)
    return (which or policy):decide({ risk = record {}, freeze_events = events }).action
  end

  it("makes the policy need the freeze events", function()
    assert.is_true(policy:needs "freeze_events")
    assert.is_false(policy:needs "counterparties")
  end)

  it("is false without freeze events", function()
    assert.equal("allow", action {})
  end)

  it("is true when an amount was frozen or destroyed", function()
    assert.equal("block", action { event { frozenBalance = "0.000001" } })
    assert.equal("block", action { event { frozenBalance = "1250.5", destroyedBalance = "1250.5" } })
    assert.equal("block", action { event { frozenBalance = "0", destroyedBalance = "12" } })
    assert.equal("block", action { event { frozenBalance = "0" }, event { frozenBalance = "5" } })
    assert.equal("block", action { event { frozenBalance = "5", txTime = false } })
  end)

  it("is undetermined when an event has no amount", function()
    for _, amount in ipairs { "0", "0.00", "", "-5", "1e5", "1,250", "much", 5, false } do
      assert.equal("unknown", action { event { frozenBalance = amount } })
    end
    assert.equal("unknown", action { event {} })
    assert.equal("unknown", action { "frozen" })
  end)

  it("is undetermined when the events are not a proper list", function()
    assert.equal("unknown", action { [2] = event { frozenBalance = "5" } })
    assert.equal("unknown", action { frozenBalance = "5" })
    assert.equal("unknown", action "none")
    assert.equal("unknown", action(nil))
  end)

  it("takes no event as a lifting by default", function()
    local unfreeze = event { type = "unfreeze", event = "Removed", frozenBalance = "5", txTime = 2000 }
    assert.equal("block", action { event { frozenBalance = "5" }, unfreeze })
  end)

  describe("with the operator's `lifting` events", function()
    local lifting = policies.new {
      not_offered = "unknown",
      lifting = { "RemoveFromList" },
      rules = { { frozen = true, action = "block" }, { no_risk = true, action = "allow" } },
    }

    local function lifted(extra)
      return tables.merge(event { event = "removeFromList", frozenBalance = "5", txTime = 2000 }, extra)
    end

    it("is false after a lifting of the same token", function()
      assert.equal("allow", action({ event { frozenBalance = "5" }, lifted() }, lifting))
      assert.equal("allow", action({ lifted { contractAddress = "0xaa" }, event { frozenBalance = "5" } }, lifting))
    end)

    it("is true when the freeze is not earlier than the lifting", function()
      assert.equal("block", action({ lifted(), event { frozenBalance = "5", txTime = 3000 } }, lifting))
      assert.equal("block", action({ lifted(), event { frozenBalance = "5", txTime = 2000 } }, lifting))
    end)

    it("is true when the token differs, or when the token or the time is absent", function()
      local freeze = event { frozenBalance = "5" }
      assert.equal("block", action({ freeze, lifted { contractAddress = "0xbb" } }, lifting))
      assert.equal("block", action({ freeze, lifted { chain = "tron" } }, lifting))
      assert.equal("block", action({ freeze, lifted { contractAddress = false } }, lifting))
      assert.equal("block", action({ freeze, lifted { txTime = false } }, lifting))
      assert.equal("block", action({ event { frozenBalance = "5", contractAddress = false }, lifted() }, lifting))
      assert.equal("block", action({ event { frozenBalance = "5", txTime = false }, lifted() }, lifting))
    end)
  end)
end)
