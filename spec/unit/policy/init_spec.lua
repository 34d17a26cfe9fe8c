local errors = require "riskscreen.errors"
local policies = require "riskscreen.policy"

local function record(risks, extra)
  local result = { address = "0xab", network = "eth", whitelist = false, risks = risks }
  for name, value in pairs(extra or {}) do
    result[name] = value
  end
  return result
end

local function risk(level, type, source)
  return { riskLevel = level, riskType = type, riskSource = source or "Provider" }
end

local function decide(policy, risks, extra)
  return policy:decide { risk = record(risks, extra) }
end

describe("the default policy", function()
  local policy = policies.new()

  local expected = {
    { "blocks a high risk", { risk("high", "scam") }, "block" },
    { "reviews an elevated risk", { risk("generally-high", "hack") }, "review" },
    { "allows a low risk", { risk("low", "porn") }, "allow" },
    { "allows a whitelisted risk", { risk("whitelist", "frozen") }, "allow" },
    { "allows an address without risk", {}, "allow" },
    { "blocks a low sanction", { risk("low", "sanction") }, "block" },
    { "blocks a whitelisted terrorist", { risk("whitelist", "terrorist") }, "block" },
    { "blocks csam at an elevated level", { risk("generally-high", "csam") }, "block" },
    { "takes the worst of several risks", { risk("low", "scam"), risk("generally-high", "hack") }, "review" },
    { "does not know a level it never saw", { risk("medium", "scam") }, "unknown" },
    { "does not know a type it never saw", { risk("low", "new-type") }, "unknown" },
    { "does not know a risk without a level", { { riskType = "scam" } }, "unknown" },
    { "does not know a risk without a type", { { riskLevel = "low" } }, "unknown" },
    { "does not know a risk whose level is no text", { { riskLevel = 1, riskType = "scam" } }, "unknown" },
    { "does not know a risk that is no object", { "high" }, "unknown" },
    { "blocks a sanction of a level it never saw", { risk("medium", "sanction") }, "block" },
    { "blocks a high risk of a type it never saw", { risk("high", "new-type") }, "block" },
    { "does not let an allowed risk hide an unknown one", { risk("low", "scam"), risk("medium", "scam") }, "unknown" },
    { "does not let a review hide an unknown one", { risk("generally-high", "scam"), risk("odd", "scam") }, "unknown" },
    { "does not let an unknown risk hide a block", { risk("odd", "scam"), risk("high", "scam") }, "block" },
    { "does not mind a source it never saw", { risk("low", "scam", "Acme") }, "allow" },
  }
  for _, case in ipairs(expected) do
    it(case[1], function()
      assert.equal(case[3], decide(policy, case[2]).action)
    end)
  end

  it("does not take absent risks for no risk", function()
    local decision = decide(policy, nil)
    assert.equal("unknown", decision.action)
    assert.equal("protocol", decision.error.kind)
  end)

  it("does not take risks with a hole for a list", function()
    assert.equal("unknown", decide(policy, { [2] = risk("high", "scam") }).action)
  end)

  it("does not take an object for a list of risks", function()
    assert.equal("unknown", decide(policy, { riskLevel = "high" }).action)
  end)

  it("does not let the record's whitelist flag excuse a high risk", function()
    assert.equal("block", decide(policy, { risk("high", "scam") }, { whitelist = true }).action)
  end)

  it("knows nothing when there is no record at all", function()
    assert.equal("unknown", policy:decide({}).action)
  end)

  it("makes every kind of failure unknown", function()
    for _, entry in ipairs(errors.kinds) do
      local err = errors.new(entry.kind, "it failed")
      local decision = policy:decide { errors = { risk = err } }
      assert.equal("unknown", decision.action)
      assert.equal(err, decision.error)
      assert.is_false(decision.degraded)
    end
  end)

  it("needs no entity", function()
    assert.is_false(policy:needs "entity")
  end)

  it("gives a reason for every risk, the worst first, with its rule and the risk", function()
    local low, high = risk("low", "porn"), risk("high", "scam")
    local reasons = decide(policy, { low, high }).reasons
    assert.equal(2, #reasons)
    assert.equal(high, reasons[1].risk)
    assert.equal("block", reasons[1].action)
    assert.equal("high", reasons[1].rule.level)
    assert.equal(low, reasons[2].risk)
  end)

  it("says which value it does not know", function()
    local reason = decide(policy, { risk("medium", "scam") }).reasons[1]
    assert.matches("riskLevel 'medium'", reason.message, 1, true)
  end)
end)

describe("rules", function()
  it("are tried in order and the first that matches decides a risk", function()
    local policy = policies.new {
      rules = { { type = "scam", action = "review" }, { level = "high", action = "block" } },
    }
    assert.equal("review", decide(policy, { risk("high", "scam") }).action)
    assert.equal("block", decide(policy, { risk("high", "hack") }).action)
  end)

  it("match only when all their conditions do", function()
    local policy = policies.new {
      rules = { { type = "scam", level = "low", action = "allow" }, { level = { "low", "high" }, action = "block" } },
    }
    assert.equal("allow", decide(policy, { risk("low", "scam") }).action)
    assert.equal("block", decide(policy, { risk("high", "scam") }).action)
    assert.equal("block", decide(policy, { risk("low", "hack") }).action)
  end)

  it("leave what none of them covers unknown", function()
    local policy = policies.new { rules = { { level = "high", action = "block" } } }
    assert.equal("unknown", decide(policy, { risk("low", "scam") }).action)
    assert.equal("unknown", decide(policy, {}).action)
  end)

  it("tell sources apart", function()
    local policy = policies.new {
      rules = { { source = "User-Defined", action = "allow" }, { level = "high", action = "block" } },
    }
    assert.equal("allow", decide(policy, { risk("high", "scam", "User-Defined") }).action)
    assert.equal("block", decide(policy, { risk("high", "scam", "Community") }).action)
  end)

  it("know the service's own name as a source when they are told it", function()
    local policy = policies.new {
      provider = "Acme",
      rules = { { source = "Provider", action = "block" }, { source = "Community", action = "allow" } },
    }
    assert.equal("block", decide(policy, { risk("low", "scam", "Acme") }).action)
  end)

  it("leave a doubt when the field they need is absent", function()
    local policy = policies.new {
      rules = { { source = "Community", action = "block" }, { level = "low", action = "allow" } },
    }
    local without_source = { riskLevel = "low", riskType = "scam" }
    assert.equal("unknown", decide(policy, { without_source }).action)
  end)

  it("leave no doubt when the outcome is the same either way", function()
    local policy = policies.new {
      rules = { { source = "Community", action = "block" }, { level = "high", action = "block" } },
    }
    assert.equal("block", decide(policy, { { riskLevel = "high", riskType = "scam" } }).action)
  end)

  it("can cover values the service has added", function()
    local policy = policies.new {
      extend = { level = { "medium" } },
      rules = { { level = "medium", action = "review" }, { level = "low", action = "allow" } },
    }
    assert.equal("review", decide(policy, { risk("medium", "scam") }).action)
  end)

  it("can decide what is unrecognised, and the decision says that it was", function()
    local policy = policies.new {
      rules = { { unrecognised = true, action = "allow" }, { level = "low", action = "allow" } },
    }
    local decision = decide(policy, { risk("low", "new-type") })
    assert.equal("allow", decision.action)
    assert.is_true(decision.degraded)
    assert.is_false(decide(policy, { risk("low", "scam") }).degraded)
  end)

  it("without any condition cover everything recognised and nothing else", function()
    local policy = policies.new { rules = { { action = "allow" } } }
    assert.equal("allow", decide(policy, { risk("high", "scam") }).action)
    assert.equal("allow", decide(policy, {}).action)
    assert.equal("unknown", decide(policy, { risk("odd", "scam") }).action)
    assert.equal("unknown", policy:decide({ errors = { risk = errors.new("timeout", "late") } }).action)
  end)

  it("use the record's whitelist flag", function()
    local policy = policies.new {
      rules = { { whitelist = true, action = "allow" }, { whitelist = false, action = "review" } },
    }
    assert.equal("allow", decide(policy, { risk("high", "scam") }, { whitelist = true }).action)
    assert.equal("review", decide(policy, {}, { whitelist = false }).action)
  end)

  it("can turn a failure into an action, and the decision says that it was", function()
    local policy = policies.new { rules = { { error = { "timeout", "network" }, action = "allow" } } }
    local decision = policy:decide { errors = { risk = errors.new("timeout", "late") } }
    assert.equal("allow", decision.action)
    assert.is_true(decision.degraded)
    assert.equal("timeout", decision.error.kind)
    assert.equal("unknown", policy:decide({ errors = { risk = errors.new("tls", "expired") } }).action)
  end)

  it("for any failure cover every kind", function()
    local policy = policies.new { rules = { { error = true, action = "review" } } }
    for _, entry in ipairs(errors.kinds) do
      assert.equal("review", policy:decide({ errors = { risk = errors.new(entry.kind, "no") } }).action)
    end
  end)
end)

describe("rules on the entity", function()
  local policy = policies.new {
    rules = {
      { category = { "Mixer", "gambling" }, action = "block" },
      { contract = true, action = "review" },
      { level = "low", action = "allow" },
      { no_risk = true, action = "allow" },
    },
  }

  local function with_entity(entity, errs)
    return policy:decide { risk = record {}, entity = entity, errors = errs }
  end

  it("say that the entity is needed", function()
    assert.is_true(policy:needs "entity")
  end)

  it("compare the category and its code without case", function()
    assert.equal("block", with_entity({ contract = false, entity = { entityCategory = "MIXER" } }).action)
    assert.equal("block", with_entity({ contract = false, entity = { entityCategoryCode = "Gambling" } }).action)
    assert.equal("allow", with_entity({ contract = false, entity = { entityCategory = "exchange" } }).action)
  end)

  it("tell a contract", function()
    assert.equal("review", with_entity({ contract = true, entity = { entityCategory = "exchange" } }).action)
  end)

  it("leave a doubt when the lookup failed", function()
    local err = errors.new("timeout", "late")
    local decision = with_entity(nil, { entity = err })
    assert.equal("unknown", decision.action)
    assert.equal(err, decision.error)
  end)

  it("leave a doubt when a field is absent", function()
    assert.equal("unknown", with_entity({ entity = {} }).action)
    assert.equal("unknown", with_entity({ contract = false }).action)
  end)

  it("do not take an entity without a category for one of another category", function()
    for _, entity in ipairs {
      {},
      { entityName = "Somebody", entityCode = "somebody" },
      { entityCategory = "", entityCategoryCode = "" },
      { entityCategory = 7 },
    } do
      assert.equal("unknown", with_entity({ contract = false, entity = entity }).action)
    end
  end)

  it("take an absent entity for none when the operator says so", function()
    local trusting = policies.new {
      absent_entity = "none",
      rules = { { category = "mixer", action = "block" }, { no_risk = true, action = "allow" } },
    }
    assert.equal("allow", trusting:decide({ risk = record {}, entity = {} }).action)
    assert.equal("unknown", trusting:decide({ risk = record {} }).action)
  end)

  it("do not matter to a risk that is decided without them", function()
    local strict = policies.new {
      rules = { { level = "high", action = "block" }, { contract = true, action = "review" } },
    }
    assert.equal("block", strict:decide({ risk = record { risk("high", "scam") } }).action)
  end)
end)

describe("rules on a freeze in force", function()
  local policy = policies.new {
    rules = {
      { frozen = true, action = "block" },
      { frozen = false, no_risk = true, action = "allow" },
    },
  }

  local function event(extra)
    local result = { chain = "eth", contractAddress = "0xAA", txTime = 1000, type = "freeze", event = "AddToList" }
    for name, value in pairs(extra) do
      result[name] = value
    end
    return result
  end

  local function action(events, which)
    return (which or policy):decide({ risk = record {}, freeze_events = events }).action
  end

  it("say that the freeze events are needed", function()
    assert.is_true(policy:needs "freeze_events")
    assert.is_false(policy:needs "counterparties")
  end)

  it("see none where there is no event", function()
    assert.equal("allow", action {})
  end)

  it("see one where an amount was frozen or destroyed", function()
    assert.equal("block", action { event { frozenBalance = "0.000001" } })
    assert.equal("block", action { event { frozenBalance = "1250.5", destroyedBalance = "1250.5" } })
    assert.equal("block", action { event { frozenBalance = "0", destroyedBalance = "12" } })
    assert.equal("block", action { event { frozenBalance = "0" }, event { frozenBalance = "5" } })
    assert.equal("block", action { event { frozenBalance = "5", txTime = false } })
  end)

  it("do not know what an event without an amount is", function()
    for _, amount in ipairs { "0", "0.00", "", "-5", "1e5", "1,250", "much", 5, false } do
      assert.equal("unknown", action { event { frozenBalance = amount } })
    end
    assert.equal("unknown", action { event {} })
    assert.equal("unknown", action { "frozen" })
  end)

  it("do not take events with a hole, or that are no list, for none", function()
    assert.equal("unknown", action { [2] = event { frozenBalance = "5" } })
    assert.equal("unknown", action { frozenBalance = "5" })
    assert.equal("unknown", action "none")
    assert.equal("unknown", action(nil))
  end)

  it("take no event for a lifting by itself", function()
    local unfreeze = event { type = "unfreeze", event = "Removed", frozenBalance = "5", txTime = 2000 }
    assert.equal("block", action { event { frozenBalance = "5" }, unfreeze })
  end)

  describe("with events that the operator says are liftings", function()
    local lifting = policies.new {
      lifting = { "RemoveFromList" },
      rules = { { frozen = true, action = "block" }, { no_risk = true, action = "allow" } },
    }

    local function lifted(extra)
      local result = event { event = "removeFromList", frozenBalance = "5", txTime = 2000 }
      for name, value in pairs(extra or {}) do
        result[name] = value
      end
      return result
    end

    it("see the end of an earlier freeze of the same token", function()
      assert.equal("allow", action({ event { frozenBalance = "5" }, lifted() }, lifting))
      assert.equal("allow", action({ lifted { contractAddress = "0xaa" }, event { frozenBalance = "5" } }, lifting))
    end)

    it("see no end of a later freeze, or one at the same time", function()
      assert.equal("block", action({ lifted(), event { frozenBalance = "5", txTime = 3000 } }, lifting))
      assert.equal("block", action({ lifted(), event { frozenBalance = "5", txTime = 2000 } }, lifting))
    end)

    it("see no end of a freeze of another token, or where the token or the time is not known", function()
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

describe("rules on counterparties", function()
  local function with(condition, opponents)
    local policy = policies.new {
      rules = { { counterparty = condition, action = "block" }, { no_risk = true, action = "allow" } },
    }
    return policy:decide({ risk = record {}, counterparties = { opponents = opponents } }).action
  end

  local function opponent(dir, amount, risks, symbol)
    return { dir = dir, amount = amount, risks = risks or {}, symbol = symbol or "ETH", entities = {} }
  end

  local bad, mild = { risk("high", "sanction") }, { risk("low", "scam") }

  it("say that the counterparties are needed", function()
    local policy = policies.new { rules = { { counterparty = { level = "high" }, action = "block" } } }
    assert.is_true(policy:needs "counterparties")
  end)

  it("see those of the level and the type", function()
    assert.equal("block", with({ level = "high" }, { opponent("in", 1, mild), opponent("in", 1, bad) }))
    assert.equal("allow", with({ level = "high" }, { opponent("in", 1, mild) }))
    assert.equal("block", with({ type = { "sanction", "hack" } }, { opponent("out", 1, bad) }))
    assert.equal("allow", with({ level = "high", type = "hack" }, { opponent("out", 1, bad) }))
    assert.equal("allow", with({ level = "high" }, {}))
  end)

  it("want level and type of one risk, not of two", function()
    local two = { risk("high", "scam"), risk("low", "hack") }
    assert.equal("allow", with({ level = "high", type = "hack" }, { opponent("in", 1, two) }))
  end)

  it("see only those of the direction", function()
    assert.equal("block", with({ level = "high", direction = "in" }, { opponent("in", 1, bad) }))
    assert.equal("allow", with({ level = "high", direction = "in" }, { opponent("out", 1, bad) }))
  end)

  it("do not know about a direction, risks, a level or a type that is absent or was never seen", function()
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
    end
  end)

  it("do not mind what they do not ask about", function()
    assert.equal("allow", with({ type = "hack" }, { opponent("in", 1, { risk("severe", "scam") }) }))
    assert.equal("allow", with({ level = "high", direction = "in" }, { opponent("out", 1, nil) }))
    assert.equal("allow", with({ level = "high", type = "hack" }, { opponent("in", 1, { risk("odd", "scam") }) }))
    assert.equal("block", with({ level = "high" }, { opponent("in", nil, bad, false) }))
  end)

  it("do not take counterparties that are no list for none", function()
    assert.equal("unknown", with({ level = "high" }, nil))
    assert.equal("unknown", with({ level = "high" }, { [2] = opponent("in", 1, bad) }))
    assert.equal("unknown", with({ level = "high" }, { dir = "in" }))
  end)

  describe("and their share", function()
    local condition = { level = "high", direction = "in", share = 0.25 }

    it("compare the amounts of one direction and one token", function()
      assert.equal("block", with(condition, { opponent("in", 25, bad), opponent("in", 75) }))
      assert.equal("allow", with(condition, { opponent("in", 24, bad), opponent("in", 76) }))
      assert.equal("block", with(condition, { opponent("in", 1, bad), opponent("out", 1000) }))
      assert.equal("block", with(condition, { opponent("in", 1, bad, "BTC"), opponent("in", 1000) }))
      local small, large = opponent("in", 10, bad), opponent("in", 20, bad)
      assert.equal("allow", with(condition, { small, small, opponent("in", 90) }))
      assert.equal("block", with(condition, { large, large, opponent("in", 90) }))
    end)

    it("are not known where an amount or a token is not", function()
      for _, amount in ipairs { -1, 0 / 0, math.huge, "25" } do
        assert.equal("unknown", with(condition, { opponent("in", 1, bad), opponent("in", amount) }))
        assert.equal("unknown", with(condition, { opponent("in", amount, bad), opponent("in", 1000) }))
      end
      assert.equal("unknown", with(condition, { { dir = "in", risks = bad, symbol = "ETH" } }))
      assert.equal("unknown", with(condition, { { dir = "in", risks = bad, amount = 1 } }))
      assert.equal("unknown", with(condition, { opponent("in", 0, bad), opponent("in", 0) }))
    end)

    it("are nothing without a risky counterparty, whatever the amounts", function()
      assert.equal("allow", with(condition, { opponent("in", -1), opponent("in", 0), opponent("out", 5, bad) }))
      local nothing = opponent("in", 0, {}, "BTC")
      assert.equal("allow", with(condition, { nothing, opponent("in", 1, bad), opponent("in", 9) }))
    end)

    it("are known where the doubt is too small to matter", function()
      local doubtful = { risk("severe", "scam") }
      assert.equal("allow", with(condition, { opponent("in", 1, doubtful), opponent("in", 99) }))
      assert.equal("block", with(condition, { opponent("in", 1, doubtful), opponent("in", 99, bad) }))
      assert.equal("unknown", with(condition, { opponent("in", 30, doubtful), opponent("in", 70) }))
      assert.equal("unknown", with(condition, { opponent("in", 30, bad), opponent("sideways", 100) }))
      assert.equal("block", with(condition, { opponent("in", 50, bad), opponent("sideways", 100) }))
      assert.equal("allow", with(condition, { opponent("in", 1, bad), opponent("in", 50), opponent("sideways", 9) }))
    end)
  end)
end)

describe("a lookup besides the risk assessment", function()
  local late = errors.new("timeout", "late")
  local frozen_first = {
    { frozen = true, action = "block" },
    { counterparty = { level = "high" }, action = "review" },
    { no_risk = true, action = "allow" },
    { level = "high", action = "block" },
    { level = "generally-high", action = "review" },
  }
  local policy = policies.new { rules = frozen_first }

  local function decide_with(results, which)
    results.risk = results.risk or record {}
    return (which or policy):decide(results)
  end

  it("that failed leaves a doubt, and the decision carries the failure", function()
    local decision = decide_with { errors = { freeze_events = late }, counterparties = { opponents = {} } }
    assert.equal("unknown", decision.action)
    assert.equal(late, decision.error)
    assert.same({ freeze_events = late }, decision.errors)
    assert.matches("rule 1", decision.reasons[1].message, 1, true)
  end)

  it("that failed does not matter when no rule could have needed it", function()
    local blocked = decide_with { risk = record { risk("high", "scam") }, errors = { freeze_events = late } }
    assert.equal("block", blocked.action)
    assert.is_nil(blocked.error)
    local default = decide_with({ errors = { freeze_events = late, entity = late } }, policies.new())
    assert.equal("allow", default.action)
    assert.is_nil(default.error)
    assert.same({ freeze_events = late, entity = late }, default.errors)
  end)

  it("that failed for a rule after the one that decided does not matter", function()
    local early = policies.new { rules = { { no_risk = true, action = "allow" }, { frozen = true, action = "block" } } }
    assert.equal("allow", decide_with({ errors = { freeze_events = late } }, early).action)
  end)

  it("that failed cannot be hidden by another that shows nothing", function()
    assert.equal("unknown", decide_with({ freeze_events = {}, errors = { counterparties = late } }).action)
  end)

  it("that failed cannot hide what another shows", function()
    local frozen = { { frozenBalance = "5" } }
    assert.equal("block", decide_with({ freeze_events = frozen, errors = { counterparties = late } }).action)
  end)

  it("that was not made leaves a doubt", function()
    assert.equal("unknown", decide_with({}).action)
  end)

  describe("that failed, with a rule about the failure,", function()
    local function with_error_rule(action)
      local rules = {}
      for index, one in ipairs(frozen_first) do
        rules[index] = one
      end
      rules[#rules + 1] = { error = "timeout", action = action }
      return policies.new { rules = rules }
    end

    it("is decided by it, and the decision says so", function()
      local results = { errors = { freeze_events = late }, counterparties = { opponents = {} } }
      local decision = decide_with(results, with_error_rule "review")
      assert.equal("review", decision.action)
      assert.is_true(decision.degraded)
      assert.equal(late, decision.error)
      assert.equal("allow", decide_with(results, with_error_rule "allow").action)
      assert.equal("block", decide_with(results, with_error_rule "block").action)
    end)

    it("is never better than what was decided without it", function()
      local results = {
        risk = record { risk("generally-high", "scam") },
        errors = { freeze_events = late },
        counterparties = { opponents = {} },
      }
      assert.equal("review", decide_with(results, with_error_rule "allow").action)
    end)

    it("leaves a doubt that has another cause", function()
      local malformed = { errors = { freeze_events = late }, counterparties = {} }
      assert.equal("unknown", decide_with(malformed, with_error_rule "allow").action)
    end)

    it("leaves a doubt where one of two failures is of another kind", function()
      local refused = errors.new("tls", "expired")
      local results = { errors = { freeze_events = late, counterparties = refused } }
      assert.equal("unknown", decide_with(results, with_error_rule "allow").action)
    end)

    it("does not make an uncovered risk covered", function()
      local results =
        { risk = record { risk("low", "scam") }, errors = { freeze_events = late, counterparties = late } }
      assert.equal("unknown", decide_with(results, with_error_rule "allow").action)
    end)
  end)

  it("counts although the risk assessment failed, if it makes the decision worse", function()
    local results = { errors = { risk = late }, freeze_events = { { frozenBalance = "5" } } }
    local decision = policy:decide(results)
    assert.equal("block", decision.action)
    assert.equal(late, decision.error)
    local open = policies.new {
      rules = { { frozen = true, action = "block" }, { action = "allow" }, { error = true, action = "allow" } },
    }
    assert.equal("block", open:decide(results).action)
    assert.equal("allow", open:decide({ errors = { risk = late }, freeze_events = {} }).action)
  end)

  it("alone counts then: rules on the risk, and rules on nothing, do not", function()
    local conditions = { { no_risk = false }, { no_risk = true }, { whitelist = false }, { unrecognised = false }, {} }
    for _, one in ipairs(conditions) do
      one.action = "block"
      assert.equal("unknown", policies.new({ rules = { one } }):decide({ errors = { risk = late } }).action)
    end
  end)

  it("does not make a decision better when the risk assessment failed", function()
    local trusting = policies.new { rules = { { category = "exchange", action = "allow" } } }
    local entity = { entity = { entityCategory = "exchange" } }
    assert.equal("unknown", trusting:decide({ errors = { risk = late }, entity = entity }).action)
  end)

  describe("that the service does not offer for a network", function()
    local not_offered = { freeze_events = true, counterparties = true }

    it("has conditions that do not hold, whichever way they ask", function()
      assert.equal("allow", decide_with({ not_offered = not_offered }).action)
      local wants_proof = policies.new { rules = { { frozen = false, no_risk = true, action = "allow" } } }
      assert.equal("unknown", decide_with({ not_offered = not_offered }, wants_proof).action)
    end)

    it("is named by the decision", function()
      assert.same({ "freeze_events", "counterparties" }, decide_with({ not_offered = not_offered }).not_offered)
      assert.is_nil(decide_with({ freeze_events = {} }).not_offered)
    end)

    it("leaves a doubt when the operator wants that", function()
      local strict = policies.new { not_offered = "unknown", rules = frozen_first }
      assert.equal("unknown", decide_with({ not_offered = not_offered }, strict).action)
    end)
  end)
end)

describe("no combination of what was looked up", function()
  -- Each lookup result in every state, and a policy with a rule on each and `allow` rules behind them.
  local late = errors.new("timeout", "late")
  local states = {
    risk = {
      good = record {},
      bad = record { risk("high", "scam") },
      malformed = record(nil),
      odd = { risks = "none" },
    },
    entity = {
      good = { contract = false, entity = { entityCategory = "exchange" } },
      bad = { contract = false, entity = { entityCategory = "mixer" } },
      malformed = { contract = "no", entity = { entityCategory = 1 } },
      odd = {},
    },
    freeze_events = {
      good = {},
      bad = { { frozenBalance = "5" } },
      malformed = { { frozenBalance = 5 } },
      odd = { { frozenBalance = "0" } },
    },
    counterparties = {
      good = { opponents = {} },
      bad = { opponents = { { risks = { risk("high", "scam") } } } },
      malformed = {},
      odd = { opponents = { { risks = { risk("severe", "scam") } } } },
    },
  }
  local names = { "risk", "entity", "freeze_events", "counterparties" }
  local kinds = { "good", "bad", "malformed", "odd", "failed", "absent" }
  local policy = policies.new {
    rules = {
      { level = "high", action = "block" },
      { category = "mixer", action = "block" },
      { frozen = true, action = "block" },
      { counterparty = { level = "high" }, action = "block" },
      { no_risk = true, action = "allow" },
      { level = "low", action = "allow" },
    },
  }

  local function each_combination(visit)
    local count, places = #kinds, #names
    local total = count ^ places
    for number = 0, total - 1 do
      local results, chosen, rest = { errors = {} }, {}, number
      for _, name in ipairs(names) do
        local kind = kinds[rest % #kinds + 1]
        rest = math.floor(rest / #kinds)
        chosen[#chosen + 1] = kind
        results[name] = states[name][kind]
        results.errors[name] = kind == "failed" and late or nil
      end
      visit(results, chosen)
    end
  end

  it("but the one in which everything is there and harmless is allowed", function()
    local allowed = {}
    each_combination(function(results, chosen)
      if policy:decide(results).action == "allow" then
        allowed[#allowed + 1] = table.concat(chosen, " ")
      end
    end)
    assert.same({ "good good good good" }, allowed)
  end)

  it("with something bad in it is anything but blocked or unknown", function()
    each_combination(function(results, chosen)
      local action = policy:decide(results).action
      for _, kind in ipairs(chosen) do
        if kind == "bad" then
          assert.is_true(action == "block" or action == "unknown", table.concat(chosen, " "))
        end
      end
    end)
  end)
end)

describe("a mistake in a policy", function()
  local function message_of(options)
    local ok, message = pcall(policies.new, options)
    assert.is_false(ok)
    return message
  end

  it("in a value raises with the nearest known one", function()
    local message = message_of { rules = { { type = "sanctions", action = "block" } } }
    assert.matches("rules[1].type", message, 1, true)
    assert.matches("did you mean 'sanction'?", message, 1, true)
  end)

  it("in a condition's name raises with the nearest known one", function()
    assert.matches("did you mean 'level'?", message_of { rules = { { levle = "high", action = "block" } } }, 1, true)
  end)

  it("in an action raises", function()
    assert.matches("rules[1].action", message_of { rules = { { level = "high", action = "deny" } } }, 1, true)
  end)

  it("in an option's name raises", function()
    assert.matches("did you mean 'rules'?", message_of { rule = {} }, 1, true)
  end)

  it("that mixes a failure with other conditions raises", function()
    assert.matches("error", message_of { rules = { { error = true, level = "low", action = "allow" } } }, 1, true)
  end)

  it("in a condition on counterparties raises", function()
    local function with(condition)
      return message_of { rules = { { counterparty = condition, action = "block" } } }
    end
    assert.matches("did you mean 'share'?", with { level = "high", shar = 1 }, 1, true)
    assert.matches("did you mean 'sanction'?", with { type = "sanctions" }, 1, true)
    assert.matches("direction must be one of in, out", with { level = "high", direction = "both" }, 1, true)
    assert.matches("share must be between", with { level = "high", share = 25 }, 1, true)
    assert.matches("must name a level or a type", with { direction = "in" }, 1, true)
  end)

  it("that leaves a gap in a list raises, since what is behind it would never be tried", function()
    local rule = { level = "high", action = "block" }
    assert.matches("without a gap", message_of { rules = { rule, nil, rule } }, 1, true)
    assert.matches("without a gap", message_of { rules = { rule, extra = rule } }, 1, true)
    assert.matches(
      "rules[1].level",
      message_of { rules = { { level = { "high", nil, "low" }, action = "block" } } },
      1,
      true
    )
    assert.matches("lifting", message_of { lifting = { "a", nil, "b" } }, 1, true)
    assert.matches("extend.level", message_of { extend = { level = { "a", nil, "b" } } }, 1, true)
  end)

  it("that leaves it without rules raises", function()
    message_of { rules = {} }
  end)

  it("raises at the caller's line", function()
    local line = debug.getinfo(1, "l").currentline + 2
    local _, message = pcall(function()
      policies.new { rules = 1 }
    end)
    assert.matches("init_spec.lua:" .. line .. ":", message, 1, true)
  end)
end)

describe("a policy that has decided before", function()
  local LEVELS = { "high", "low", "medium", "elevated", 1, false }
  local TYPES = { "scam", "sanction", "new-type", "strange", {}, false }
  local SOURCES = { "Provider", "Community", "Acme", "somebody", 2, false }
  local OTHERS = { { whitelist = true }, { whitelist = false }, { whitelist = "yes" } }

  local settings = {
    { rules = { { type = "sanction", source = "Community", action = "block" }, { level = "low", action = "allow" } } },
    { rules = { { whitelist = true, action = "allow" }, { level = "high", action = "block" } } },
    { rules = { { source = "Provider", action = "review" }, { action = "allow" } }, provider = "Acme" },
    {
      rules = { { unrecognised = true, action = "review" }, { action = "allow" } },
      extend = { level = { "elevated" } },
    },
    { rules = { { category = "exchange", action = "allow" }, { level = "high", action = "block" } } },
    {},
  }

  local function told(decision, given)
    local reasons = {}
    for index, reason in ipairs(decision.reasons) do
      reasons[index] = { reason.action, reason.message, reason.rule and reason.rule.action, reason.risk == given }
    end
    return { decision.action, decision.degraded, reasons }
  end

  it("decides every risk as one that has not", function()
    for _, options in ipairs(settings) do
      local used = policies.new(options)
      for _ = 1, 2 do
        for _, level in ipairs(LEVELS) do
          for _, kind in ipairs(TYPES) do
            for _, source in ipairs(SOURCES) do
              for _, other in ipairs(OTHERS) do
                local given = { riskLevel = level or nil, riskType = kind or nil, riskSource = source or nil }
                local fresh = told(decide(policies.new(options), { given }, other), given)
                assert.same(fresh, told(decide(used, { given }, other), given))
              end
            end
          end
        end
      end
    end
  end)

  it("still leaves the doubts of lookups that failed or are not offered", function()
    local policy = policies.new { rules = { { level = "low", action = "allow" } } }
    local given = { risk = record { risk("low", "scam") } }
    assert.equal("allow", policy:decide(given).action)
    given.not_offered = { risk = true }
    assert.equal("unknown", policy:decide(given).action)
  end)
end)
