-- Differences of policies, against random evidence and with planted faults.

local cases_of = require "spec.support.policy_cases"
local enums = require "riskscreen.interface.enums"
local policies = require "riskscreen.policy"
local randoms = require "spec.support.random"
local tables = require "riskscreen.util.tables"

local BLOCKING = { type = { "sanction", "csam" }, action = "block" }
local LOW = { level = "low", action = "allow" }

local function with_rules(...)
  return policies.new { rules = { ... }, not_offered = "skip" }
end

describe("a difference of policies", function()
  it("belongs to a reported change, and each example is one", function()
    local random = randoms.new(randoms.SEED)
    local cases, decided = cases_of(random), 0
    local rounds = randoms.rounds(30)
    for _ = 1, rounds do
      local options = cases.options()
      local other = tables.copy(options)
      other.rules = tables.copy(options.rules or {})
      local more = cases.options().rules or { LOW }
      table.insert(other.rules, random.integer(#other.rules + 1), more[1])
      if random.integer(2) == 1 then
        table.remove(other.rules, random.integer(#other.rules))
      end
      other.rules = other.rules[1] and other.rules or { LOW }
      local made, new = pcall(cases.new, other)
      local old = cases.new(options)
      new = made and new or policies.new()
      local diff, known = old:diff(new), {}
      decided = decided + (diff.complete and 1 or 0)
      for _, change in ipairs(diff.changes) do
        known[change.before .. change.after] = true
        if change.evidence then
          assert.equal(change.before, old:decide(change.evidence).action)
          assert.equal(change.after, new:decide(change.evidence).action)
        end
      end
      for _ = 1, 200 do
        local evidence = cases.evidence()
        local before, after = old:decide(evidence).action, new:decide(evidence).action
        local is_known = before == after or known[before .. after] or not diff.complete
        assert.is_truthy(is_known, ("seed %d: %s to %s"):format(randoms.SEED, before, after))
      end
    end
    assert.is_true(decided * 2 > rounds)
  end)

  it("is found where a rule is dropped, weakened or moved, the worst first", function()
    local old = with_rules(BLOCKING, LOW)
    for _, new in ipairs {
      with_rules(LOW),
      with_rules({ type = "sanction", action = "block" }, LOW),
      with_rules(LOW, BLOCKING),
    } do
      local diff = old:diff(new)
      assert.is_true(diff.differs)
      assert.same({ "block", "allow" }, { diff.changes[1].before, diff.changes[1].after })
    end
    assert.is_false(old:diff(with_rules(BLOCKING, LOW, LOW)).differs)
  end)

  it("is found where the new policy decides by an earlier rule", function()
    local rules = { { whitelist = true, action = "allow" } }
    local known = {}
    for _, change in ipairs(policies.new():diff(policies.new { rules = rules }).changes) do
      known[change.before .. " " .. change.after] = true
    end
    assert.is_true(known["review allow"] and known["block allow"] and known["review unknown"])
  end)

  it("of lists is found where no single risk has these actions", function()
    local low = { level = "low", action = "review" }
    local old = with_rules({ level = "high", action = "block" }, low)
    for _, change in ipairs(old:diff(with_rules({ level = "high", action = "allow" }, low)).changes) do
      if change.after == "review" then
        assert.equal(2, #change.evidence.risk.risks)
        return
      end
    end
    error "no change from block to review"
  end)

  it("is complete also for large policies that read every lookup", function()
    local rules = {
      { frozen = true, action = "block" },
      { category = "mixer", action = "block" },
      { counterparty = { level = "high", type = { "sanction", "terrorist" } }, action = "block" },
      { counterparty = { level = "high", direction = "in", share = 0.25 }, action = "review" },
      { error = "timeout", action = "review" },
      { level = { "low", "whitelist" }, contract = false, action = "allow" },
      { no_risk = true, action = "allow" },
    }
    for _, kind in ipairs(enums.values.risk_type) do
      rules[#rules + 1] = { type = kind, level = "high", action = "block" }
      rules[#rules + 1] = { type = kind, level = "generally-high", action = "review" }
      rules[#rules + 1] = { type = kind, level = "low", contract = true, action = "review" }
    end
    local dropped = tables.copy(rules)
    table.remove(dropped, 30)
    local options = { not_offered = "unknown", absent_entity = "none", extend = { category = { "exchange" } } }
    local diff = policies
      .new(tables.merge(options, { rules = rules }))
      :diff(policies.new(tables.merge(options, { rules = dropped })))
    assert.equal("1 change", tostring(diff))
    assert.same(rules[30].type, diff.changes[1].evidence.risk.risks[1].riskType)
  end)

  it("is found where only the meaning of an absent field is another one", function()
    local cases = {
      absent_entity = { { category = "mixer", action = "block" }, LOW },
      absent_risks = {
        { no_risk = true, action = "review" },
        { counterparty = { level = "high" }, action = "block" },
        LOW,
      },
      absent_opponents = { { counterparty = { level = "high" }, action = "block" }, LOW },
      absent_freeze_events = { { frozen = true, action = "block" }, LOW },
    }
    for setting, rules in pairs(cases) do
      local options, known = { rules = rules, not_offered = "skip" }, {}
      local new = policies.new(tables.merge(options, { [setting] = "none" }))
      for _, change in ipairs(policies.new(options):diff(new).changes) do
        known[change.before .. " " .. change.after] = change.evidence ~= nil
      end
      assert.is_true(known["unknown allow"], setting)
    end
  end)

  it("is found where only a rule counts for which a lookup that is not offered is unknown", function()
    local frozen, clean = { frozen = true, action = "block" }, { no_risk = true, action = "allow" }
    local diff = with_rules(frozen, { frozen = true, action = "review", not_offered = "unknown" }, clean):diff(
      with_rules(frozen, clean)
    )
    assert.same({ "unknown", "allow" }, { diff.changes[1].before, diff.changes[1].after })
  end)

  it("is not decided where freezes are lifted by other events", function()
    local rules = { { frozen = true, action = "block" }, LOW }
    local old = policies.new { rules = rules, not_offered = "skip", lifting = { "lift" } }
    local diff = old:diff(policies.new { rules = rules, not_offered = "skip" })
    assert.is_nil(diff.differs)
    assert.equal("not decided", tostring(diff))
  end)
end)
