local json = require "riskscreen.json"
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
      assert.equal("allow", action({ event { frozenBalance = "5" }, lifted { chain = "ethereum" } }, lifting))
    end)

    it("is true when the freeze is not earlier than the lifting", function()
      assert.equal("block", action({ lifted(), event { frozenBalance = "5", txTime = 3000 } }, lifting))
      assert.equal("block", action({ lifted(), event { frozenBalance = "5", txTime = 2000 } }, lifting))
    end)

    it("is true when the token differs", function()
      local freeze = event { frozenBalance = "5" }
      assert.equal("block", action({ freeze, lifted { contractAddress = "0xbb" } }, lifting))
      assert.equal("block", action({ freeze, lifted { chain = "tron" } }, lifting))
    end)

    -- Rules for which a freeze is no worse than none: neither answer may come from a lost field.
    local either_way = policies.new {
      not_offered = "unknown",
      lifting = { "RemoveFromList" },
      rules = { { frozen = true, action = "review" }, { frozen = false, action = "block" } },
    }

    for _, name in ipairs { "type", "event", "chain", "contractAddress", "txTime" } do
      it("is undetermined when a lifting lacks its " .. name .. ", or has it as another type", function()
        for _, value in ipairs { json.null, false, { {} } } do
          local lifts, freeze = lifted { [name] = value }, event { frozenBalance = "5" }
          if name == "type" then
            lifts.event, lifts.type = json.null, "unfreeze"
          end
          assert.equal("unknown", action({ freeze, lifts }, either_way))
          lifts[name] = nil
          assert.equal("unknown", action({ freeze, lifts }, either_way))
        end
      end)
    end

    it("is undetermined when the freeze lacks a field that tells whether it was lifted", function()
      for _, name in ipairs { "chain", "contractAddress", "txTime" } do
        for _, value in ipairs { json.null, false, "" } do
          local freeze = event { frozenBalance = "5", [name] = value }
          assert.equal("unknown", action({ freeze, lifted() }, either_way), name)
          freeze[name] = nil
          assert.equal("unknown", action({ freeze, lifted() }, either_way), name)
        end
      end
    end)

    it("is undetermined beside an event that cannot be read", function()
      assert.equal("unknown", action({ event { frozenBalance = "5" }, "frozen" }, either_way))
    end)

    it("does not need a field that cannot matter", function()
      local freeze = event { frozenBalance = "5", txTime = 3000 }
      assert.equal("review", action({ freeze, lifted { chain = json.null } }, either_way))
      assert.equal("review", action({ freeze, lifted { chain = "tron", txTime = json.null } }, either_way))
      assert.equal("block", action({ lifted { frozenBalance = json.null } }, either_way))
      assert.equal("block", action({ event { frozenBalance = "5" }, lifted { type = json.null } }, either_way))
    end)
  end)
end)
