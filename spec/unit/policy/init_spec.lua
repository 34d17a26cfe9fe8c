local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local policies = require "riskscreen.policy"
local samples = require "spec.support.risks"
local tables = require "riskscreen.util.tables"

local record, risk = samples.record, samples.risk

local EXCHANGE = { entityCategory = "Exchange", entityCategoryCode = "exchange" }

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
    { "allows an address without risks", {}, "allow" },
    { "blocks a low sanction", { risk("low", "sanction") }, "block" },
    { "blocks a whitelisted terrorist", { risk("whitelist", "terrorist") }, "block" },
    { "blocks csam at an elevated level", { risk("generally-high", "csam") }, "block" },
    { "takes the worst of several risks", { risk("low", "scam"), risk("generally-high", "hack") }, "review" },
    { "makes an unrecognised level unknown", { risk("medium", "scam") }, "unknown" },
    { "makes an unrecognised type unknown", { risk("low", "new-type") }, "unknown" },
    { "makes a risk without a level unknown", { { riskType = "scam" } }, "unknown" },
    { "makes a risk without a type unknown", { { riskLevel = "low" } }, "unknown" },
    { "makes a risk whose level is a number unknown", { { riskLevel = 1, riskType = "scam" } }, "unknown" },
    { "makes a risk that is not an object unknown", { "high" }, "unknown" },
    { "blocks a sanction of an unrecognised level", { risk("medium", "sanction") }, "block" },
    { "blocks a high risk of an unrecognised type", { risk("high", "new-type") }, "block" },
    { "lets an unknown risk outweigh an allowed one", { risk("low", "scam"), risk("medium", "scam") }, "unknown" },
    { "lets an unknown risk outweigh a review", { risk("generally-high", "scam"), risk("odd", "scam") }, "unknown" },
    { "lets a blocked risk outweigh an unknown one", { risk("odd", "scam"), risk("high", "scam") }, "block" },
    { "ignores an unrecognised source", { risk("low", "scam", "Acme") }, "allow" },
  }
  for _, case in ipairs(expected) do
    it(case[1], function()
      assert.equal(case[3], decide(policy, case[2]).action)
    end)
  end

  it("makes an assessment without a list of risks unknown", function()
    local decision = decide(policy, nil)
    assert.equal("unknown", decision.action)
    assert.equal("protocol", decision.error.kind)
  end)

  it("makes a list of risks with a hole unknown", function()
    assert.equal("unknown", decide(policy, { [2] = risk("high", "scam") }).action)
  end)

  it("makes an object in place of the list of risks unknown", function()
    assert.equal("unknown", decide(policy, { riskLevel = "high" }).action)
  end)

  it("decides by the risks of a transaction's result, whatever else the result has", function()
    local result = { requestId = "r1", status = 1003, risks = { risk("high", "hack") }, risk = { risks = {} } }
    assert.equal("block", policies.new():decide(result).action)
  end)

  it("blocks a high risk of a whitelisted address", function()
    assert.equal("block", decide(policy, { risk("high", "scam") }, { whitelist = true }).action)
  end)

  it("is unknown without a risk assessment", function()
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

  it("names the unrecognised value in the reason", function()
    local reason = decide(policy, { risk("medium", "scam") }).reasons[1]
    assert.matches("riskLevel 'medium'", reason.message, 1, true)
  end)
end)

describe("rules", function()
  it("are tried in order, and the first that matches decides", function()
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

  it("make a risk that none of them covers unknown", function()
    local policy = policies.new { rules = { { level = "high", action = "block" } } }
    assert.equal("unknown", decide(policy, { risk("low", "scam") }).action)
    assert.equal("unknown", decide(policy, {}).action)
  end)

  it("match sources", function()
    local policy = policies.new {
      rules = { { source = "User-Defined", action = "allow" }, { level = "high", action = "block" } },
    }
    assert.equal("allow", decide(policy, { risk("high", "scam", "User-Defined") }).action)
    assert.equal("block", decide(policy, { risk("high", "scam", "Community") }).action)
  end)

  it("match the configured name of the service as the source `Provider`", function()
    local policy = policies.new {
      provider = "Acme",
      rules = { { source = "Provider", action = "block" }, { source = "Community", action = "allow" } },
    }
    assert.equal("block", decide(policy, { risk("low", "scam", "Acme") }).action)
  end)

  it("must not name the source `Provider` unless the service's own name is given", function()
    local made, message = pcall(policies.new, { rules = { { source = { "Provider" }, action = "block" } } })
    assert.is_false(made)
    assert.matches("rules[1].source", message, 1, true)
    assert.matches("`provider`", message, 1, true)
    assert.is_true((pcall(policies.new, { provider = "Acme", rules = { { source = "Acme", action = "block" } } })))
  end)

  it("about the source are undetermined for a source never seen", function()
    local rules = { { source = "Community", action = "block" }, { level = "low", action = "allow" } }
    for _, provider in ipairs { false, "Acme" } do
      local policy = policies.new { rules = rules, provider = provider or nil }
      -- The interface prints "Provider" in place of the service's own name.
      for _, source in ipairs { "Stranger", "Provider" } do
        local decision = decide(policy, { risk("low", "scam", source) })
        assert.equal("unknown", decision.action)
        assert.matches(("riskSource '%s' is not known"):format(source), decision.reasons[1].message, 1, true)
      end
    end
    local policy = policies.new { rules = rules, provider = "Acme" }
    assert.equal("allow", decide(policy, { risk("low", "scam", "Acme") }).action)
    policy = policies.new { rules = rules, extend = { source = { "Stranger" } } }
    assert.equal("allow", decide(policy, { risk("low", "scam", "Stranger") }).action)
  end)

  it("are undetermined when a field that they need is absent", function()
    local policy = policies.new {
      rules = { { source = "Community", action = "block" }, { level = "low", action = "allow" } },
    }
    local without_source = { riskLevel = "low", riskType = "scam" }
    assert.equal("unknown", decide(policy, { without_source }).action)
  end)

  it("do not matter while undetermined when the action is the same either way", function()
    local policy = policies.new {
      rules = { { source = "Community", action = "block" }, { level = "high", action = "block" } },
    }
    assert.equal("block", decide(policy, { { riskLevel = "high", riskType = "scam" } }).action)
  end)

  it("do not matter while undetermined when they have the action of the rule that matches", function()
    for _, action in ipairs { "allow", "review" } do
      local policy = policies.new {
        rules = { { source = "Community", action = action }, { level = "low", action = action } },
      }
      local decision = decide(policy, { { riskLevel = "low", riskType = "scam" } })
      assert.equal(action, decision.action)
      assert.equal("rule 2 matches low / scam", decision.reasons[1].message)
    end
  end)

  it("that leave a risk unknown do not make the decision degraded", function()
    local rules = { { source = "Community", action = "block" }, { any = true, action = "allow" } }
    local policy = policies.new { rules = rules }
    for _, one in ipairs { risk("medium", "scam"), risk("low", "scam", "Stranger") } do
      local decision = decide(policy, { one })
      assert.same({ "unknown", false }, { decision.action, decision.degraded })
    end
  end)

  it("accept values that the operator has added", function()
    local policy = policies.new {
      extend = { level = { "medium" } },
      rules = { { level = "medium", action = "review" }, { level = "low", action = "allow" } },
    }
    assert.equal("review", decide(policy, { risk("medium", "scam") }).action)
  end)

  it("can decide unrecognised risks, and the decision is degraded", function()
    local policy = policies.new {
      rules = { { unrecognised = true, action = "allow" }, { level = "low", action = "allow" } },
    }
    local decision = decide(policy, { risk("low", "new-type") })
    assert.equal("allow", decision.action)
    assert.is_true(decision.degraded)
    assert.is_false(decide(policy, { risk("low", "scam") }).degraded)
  end)

  it("raise without a condition, which a value of nil may have left out", function()
    for _, rule in ipairs { { action = "allow" }, { action = "allow", name = "low", level = nil } } do
      local made, message = pcall(policies.new, { rules = { { no_risk = true, action = "allow" }, rule } })
      assert.is_false(made)
      assert.matches("rules[2] has no condition", message, 1, true)
      assert.matches("`any = true`", message, 1, true)
    end
  end)

  it("raise with `any` beside a condition or with another value than true", function()
    for _, rule in ipairs { { any = true, level = "low" }, { any = true, error = true }, { any = false } } do
      rule.action = "allow"
      assert.has_error(function()
        policies.new { rules = { rule } }
      end)
    end
  end)

  it("with `any` match every recognised risk and nothing else", function()
    local policy = policies.new { rules = { { any = true, action = "allow" } } }
    assert.equal("allow", decide(policy, { risk("high", "scam") }).action)
    assert.equal("allow", decide(policy, {}).action)
    assert.equal("unknown", decide(policy, { risk("odd", "scam") }).action)
    assert.equal("unknown", policy:decide({ errors = { risk = errors.new("timeout", "late") } }).action)
  end)

  it("match the record's whitelist flag", function()
    local policy = policies.new {
      rules = { { whitelist = true, action = "allow" }, { whitelist = false, action = "review" } },
    }
    assert.equal("allow", decide(policy, { risk("high", "scam") }, { whitelist = true }).action)
    assert.equal("review", decide(policy, {}, { whitelist = false }).action)
  end)

  it("can handle a failure, and the decision is degraded", function()
    local policy = policies.new { rules = { { error = { "timeout", "network" }, action = "allow" } } }
    local decision = policy:decide { errors = { risk = errors.new("timeout", "late") } }
    assert.equal("allow", decision.action)
    assert.is_true(decision.degraded)
    assert.equal("timeout", decision.error.kind)
    assert.equal("unknown", policy:decide({ errors = { risk = errors.new("tls", "expired") } }).action)
  end)

  it("with `error = true` handle every kind of failure", function()
    local policy = policies.new { rules = { { error = true, action = "review" } } }
    for _, entry in ipairs(errors.kinds) do
      assert.equal("review", policy:decide({ errors = { risk = errors.new(entry.kind, "no") } }).action)
    end
  end)
end)

describe("a reason", function()
  local function message(rules, results)
    results.risk = results.risk or not results.errors and record {} or nil
    return policies.new({ rules = rules, not_offered = "skip" }):decide(results).reasons[1].message
  end
  local high = { risk = record { risk("high", "hack") } }
  local late = { risk = errors.new("timeout", "late") }

  it("names the rule and the risk that it matches", function()
    assert.equal("rule 'high risk' matches high / hack", policies.new():decide(high).reasons[1].message)
    local rules = { { no_risk = true, action = "allow" }, { any = true, action = "block" } }
    assert.equal("rule 2 matches high / hack", message(rules, high))
  end)

  it("names the rule that matches an address without risks", function()
    assert.equal("rule 'no risk' matches an address without risks", decide(policies.new(), {}).reasons[1].message)
  end)

  it("says that no rule covers the risk", function()
    local rules = { { level = "low", action = "allow" } }
    assert.equal("no rule covers high / hack", message(rules, high))
    assert.equal("no rule covers an address without risks", message(rules, {}))
  end)

  it("names the rule that is undetermined, and the cause", function()
    local rules = { { name = "frozen", frozen = true, action = "block" } }
    assert.equal("rule 'frozen' is undetermined: a field that it needs is not known", message(rules, {}))
    assert.equal(
      "rule 'frozen' is undetermined: riskscreen: timeout: late",
      message(rules, { risk = record {}, errors = { freeze_events = late.risk } })
    )
  end)

  it("names the rule that handles a failure", function()
    assert.equal("rule 1 handles timeout errors", message({ { error = true, action = "review" } }, { errors = late }))
  end)

  it("names the rule that matches without the risk assessment", function()
    local results = { errors = late, freeze_events = { { frozenBalance = "5" } } }
    local rules = { { frozen = true, action = "block" } }
    assert.equal("rule 1 matches without the risk assessment", message(rules, results))
  end)
end)

describe("the result of a transaction", function()
  local function decide_result(extra)
    return policies.new():decide(tables.merge({ requestId = "r1", status = 1003, risks = {} }, extra))
  end

  it("that a local list refused has the decision of the list", function()
    local listed = { action = "block", reasons = { { action = "block", message = "on the list" } } }
    local refusal = errors.new("invalid_argument", "on the list", { decision = listed })
    local lenient = policies.new { rules = { { error = true, action = "allow" } } }
    assert.equal(listed, lenient:decide(nil, refusal))
    assert.equal("allow", lenient:decide(nil, errors.new("timeout", "late")).action)
  end)

  it("that failed has the action of the rule for its kind", function()
    local policy = policies.new { rules = { { error = "timeout", action = "review" } } }
    assert.equal("review", policy:decide(nil, errors.new("timeout", "late")).action)
    assert.equal("unknown", policy:decide(nil, errors.new("server", "down")).action)
  end)

  it("is decided by its risks if it has nothing else", function()
    assert.equal("allow", decide_result({}).action)
    assert.equal("block", decide_result({ risks = { risk("high", "hack") } }).action)
  end)

  it("is unknown if its scores are null, and no risk says more", function()
    local null = json.null
    for _, nulls in ipairs { { maxScore = null }, { dirData = null }, { maxScore = null, dirData = null } } do
      local decision = decide_result(nulls)
      assert.equal("unknown", decision.action)
      assert.matches("neither risks nor scores", decision.reasons[1].message, 1, true)
      nulls.risks = { risk("low", "online-gambling") }
      assert.equal("allow", decide_result(nulls).action)
      nulls.risks = { risk("high", "hack") }
      assert.equal("block", decide_result(nulls).action)
    end
  end)

  it("is unknown if its scores are null beside null risks, though absent risks mean none", function()
    local policy = policies.new { absent_risks = "none" }
    assert.equal("allow", policy:decide({ status = 1003, risks = json.null }).action)
    for _, name in ipairs { "maxScore", "dirData" } do
      assert.equal("unknown", policy:decide({ status = 1003, risks = json.null, [name] = json.null }).action)
    end
  end)

  it("names score_policy if it has scores and no risks", function()
    for _, absent_risks in ipairs { "unknown", "none" } do
      local policy = policies.new { absent_risks = absent_risks ~= "unknown" and absent_risks or nil }
      for _, result in ipairs { { maxScore = "95" }, { dirData = {} }, { maxScore = "0", dirData = json.null } } do
        local decision = policy:decide(result)
        assert.equal("unknown", decision.action)
        assert.matches("riskscreen.score_policy", decision.error.message, 1, true)
      end
    end
    assert.matches("there is no risk assessment", policies.new():decide({}).error.message, 1, true)
  end)

  it("is unknown if it has scores, which a policy for addresses does not look at", function()
    for _, extra in ipairs { { maxScore = "95" }, { maxScore = 95 }, { dirData = {} }, { maxScore = "0" } } do
      local decision = decide_result(extra)
      assert.equal("unknown", decision.action)
      assert.equal("protocol", decision.error.kind)
      assert.matches("riskscreen.score_policy", decision.reasons[1].message, 1, true)
    end
    assert.equal("block", decide_result({ maxScore = "0", risks = { risk("high", "hack") } }).action)
    local alone = policies.new():decide { maxScore = "0", dirData = {} }
    assert.equal("unknown", alone.action)
    assert.matches("riskscreen.score_policy", alone.reasons[1].message, 1, true)
  end)
end)

describe("rules on the entity", function()
  local policy = policies.new {
    extend = { category = { "exchange" } },
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

  it("make the policy need the entity", function()
    assert.is_true(policy:needs "entity")
  end)

  it("ignore case, spaces, hyphens and underscores in the category and its code", function()
    local online = policies.new { rules = { { category = "Online Gambling", action = "block" } } }
    for _, category in ipairs { "online gambling", "ONLINE_GAMBLING", "Online-Gambling", "OnlineGambling" } do
      for _, field in ipairs { "entityCategory", "entityCategoryCode" } do
        local entity = { contract = false, entity = { [field] = category } }
        assert.equal("block", online:decide({ risk = record {}, entity = entity }).action)
      end
    end
  end)

  it("are undetermined while the category or its code is missing and the other one does not match", function()
    for _, entity in ipairs { { entityCategory = "exchange" }, { entityCategoryCode = "exchange" } } do
      local decision = with_entity { contract = false, entity = entity }
      assert.equal("unknown", decision.action)
      assert.matches("the entity has no entityCategory", decision.reasons[1].message, 1, true)
    end
    assert.equal("block", with_entity({ contract = false, entity = { entityCategory = "mixer" } }).action)
  end)

  it("are undetermined for a category that neither a rule nor the policy names", function()
    local function action(category, code)
      return with_entity({ contract = false, entity = { entityCategory = category, entityCategoryCode = code } })
    end
    local decision = action("Coin Tumbler", "exchange")
    assert.equal("unknown", decision.action)
    assert.matches("the category 'Coin Tumbler' is not known", decision.reasons[1].message, 1, true)
    assert.equal("unknown", action("Exchange", "tumbler").action)
    assert.equal("allow", action("Exchange", "exchange").action)
  end)

  it("know a category that another rule names", function()
    local named = policies.new {
      rules = {
        { category = "mixer", action = "block" },
        { category = "exchange", level = "high", action = "review" },
        { no_risk = true, action = "allow" },
      },
    }
    local entity = EXCHANGE
    assert.equal("allow", named:decide({ risk = record {}, entity = { entity = entity } }).action)
  end)

  it("match in any case", function()
    assert.equal("block", with_entity({ contract = false, entity = { entityCategory = "MIXER" } }).action)
    assert.equal("block", with_entity({ contract = false, entity = { entityCategoryCode = "Gambling" } }).action)
    assert.equal("allow", with_entity({ contract = false, entity = EXCHANGE }).action)
  end)

  it("match contracts", function()
    assert.equal("review", with_entity({ contract = true, entity = EXCHANGE }).action)
  end)

  it("are undetermined when the lookup failed", function()
    local err = errors.new("timeout", "late")
    local decision = with_entity(nil, { entity = err })
    assert.equal("unknown", decision.action)
    assert.equal(err, decision.error)
  end)

  it("are undetermined when a field is absent", function()
    assert.equal("unknown", with_entity({ entity = {} }).action)
    assert.equal("unknown", with_entity({ contract = false }).action)
  end)

  it("are undetermined when the entity has no category", function()
    for _, entity in ipairs {
      {},
      { entityName = "Somebody", entityCode = "somebody" },
      { entityCategory = "", entityCategoryCode = "" },
      { entityCategory = 7 },
    } do
      assert.equal("unknown", with_entity({ contract = false, entity = entity }).action)
    end
  end)

  it('are false without an entity when `absent_entity` is "none"', function()
    local trusting = policies.new {
      absent_entity = "none",
      rules = { { category = "mixer", action = "block" }, { no_risk = true, action = "allow" } },
    }
    assert.equal("allow", trusting:decide({ risk = record {}, entity = {} }).action)
    assert.equal("unknown", trusting:decide({ risk = record {} }).action)
  end)

  it("do not matter to a risk that another rule decides", function()
    local strict = policies.new {
      rules = { { level = "high", action = "block" }, { contract = true, action = "review" } },
    }
    assert.equal("block", strict:decide({ risk = record { risk("high", "scam") } }).action)
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
  local policy = policies.new { rules = frozen_first, not_offered = "skip" }

  local function decide_with(results, which)
    results.risk = results.risk or record {}
    return (which or policy):decide(results)
  end

  it("that failed makes the decision unknown, and the decision has the error", function()
    local decision = decide_with { errors = { freeze_events = late }, counterparties = { opponents = {} } }
    assert.equal("unknown", decision.action)
    assert.equal(late, decision.error)
    assert.same({ freeze_events = late }, decision.errors)
    assert.matches("rule 1", decision.reasons[1].message, 1, true)
  end)

  it("that failed does not matter when no rule needed it", function()
    local blocked = decide_with { risk = record { risk("high", "scam") }, errors = { freeze_events = late } }
    assert.equal("block", blocked.action)
    assert.is_nil(blocked.error)
    local default = decide_with({ errors = { freeze_events = late, entity = late } }, policies.new())
    assert.equal("allow", default.action)
    assert.is_nil(default.error)
    assert.same({ freeze_events = late, entity = late }, default.errors)
  end)

  it("that failed does not matter to rules before the one that needs it", function()
    local early = policies.new {
      not_offered = "unknown",
      rules = { { no_risk = true, action = "allow" }, { frozen = true, action = "block" } },
    }
    assert.equal("allow", decide_with({ errors = { freeze_events = late } }, early).action)
  end)

  it("that failed makes the decision unknown although another lookup found nothing", function()
    assert.equal("unknown", decide_with({ freeze_events = {}, errors = { counterparties = late } }).action)
  end)

  it("that failed does not matter when another lookup leads to a block", function()
    local frozen = { { frozenBalance = "5" } }
    assert.equal("block", decide_with({ freeze_events = frozen, errors = { counterparties = late } }).action)
  end)

  it("that was not made makes the decision unknown", function()
    assert.equal("unknown", decide_with({}).action)
  end)

  describe("that failed, with a rule for the failure,", function()
    local function with_error_rule(action)
      local rules = {}
      for index, one in ipairs(frozen_first) do
        rules[index] = one
      end
      rules[#rules + 1] = { error = "timeout", action = action }
      return policies.new { rules = rules, not_offered = "skip" }
    end

    it("is handled by it, and the decision is degraded", function()
      local results = { errors = { freeze_events = late }, counterparties = { opponents = {} } }
      local decision = decide_with(results, with_error_rule "review")
      assert.equal("review", decision.action)
      assert.is_true(decision.degraded)
      assert.equal(late, decision.error)
      local allowed = decide_with(results, with_error_rule "allow")
      assert.same({ "allow", true, late }, { allowed.action, allowed.degraded, allowed.error })
      assert.equal("block", decide_with(results, with_error_rule "block").action)
    end)

    it("leaves the worst of several such rules, which the reason names", function()
      local rules, down = { { error = "server", name = "down", action = "review" } }, errors.new("server", "down")
      for _, one in ipairs(frozen_first) do
        rules[#rules + 1] = one
      end
      rules[#rules + 1] = { error = "timeout", name = "late", action = "allow" }
      local lenient = policies.new { rules = rules, not_offered = "skip" }
      local decision = decide_with({ errors = { freeze_events = late, counterparties = down } }, lenient)
      assert.same({ "review", down }, { decision.action, decision.error })
      assert.equal("rule 'down' handles server errors", decision.reasons[1].message)
    end)

    it("never makes the action milder than the one without the lookup", function()
      local results = {
        risk = record { risk("generally-high", "scam") },
        errors = { freeze_events = late },
        counterparties = { opponents = {} },
      }
      assert.equal("review", decide_with(results, with_error_rule "allow").action)
    end)

    it("stays unknown when a rule is undetermined for another cause", function()
      local malformed = { errors = { freeze_events = late }, counterparties = {} }
      assert.equal("unknown", decide_with(malformed, with_error_rule "allow").action)
    end)

    it("stays unknown when no rule handles the second failure", function()
      local refused = errors.new("tls", "expired")
      local results = { errors = { freeze_events = late, counterparties = refused } }
      assert.equal("unknown", decide_with(results, with_error_rule "allow").action)
    end)

    it("does not decide a risk that no rule covers", function()
      local results =
        { risk = record { risk("low", "scam") }, errors = { freeze_events = late, counterparties = late } }
      assert.equal("unknown", decide_with(results, with_error_rule "allow").action)
    end)
  end)

  it("makes the decision worse although the risk assessment failed", function()
    local results = { errors = { risk = late }, freeze_events = { { frozenBalance = "5" } } }
    local decision = policy:decide(results)
    assert.equal("block", decision.action)
    assert.equal(late, decision.error)
    local open = policies.new {
      not_offered = "skip",
      rules = {
        { frozen = true, action = "block" },
        { any = true, action = "allow" },
        { error = true, action = "allow" },
      },
    }
    assert.equal("block", open:decide(results).action)
    assert.equal("allow", open:decide({ errors = { risk = late }, freeze_events = {} }).action)
  end)

  it("that failed, too, is not excused by an `error` rule for the risk assessment", function()
    local lenient = policies.new {
      not_offered = "unknown",
      rules = {
        { frozen = true, action = "block" },
        { no_risk = true, action = "allow" },
        { error = "timeout", action = "allow" },
        { error = "server", action = "review" },
      },
    }
    local function action(freeze_error, events)
      return lenient:decide({ errors = { risk = late, freeze_events = freeze_error }, freeze_events = events }).action
    end
    assert.equal("allow", action(nil, {}))
    assert.equal("allow", action(late))
    assert.equal("review", action(errors.new("server", "no")))
    assert.equal("unknown", action(errors.new("network", "no")))
    assert.equal("unknown", action(nil, { { frozenBalance = 5 } }))
    assert.equal("unknown", action(nil, nil))
  end)

  it("is needed for that: rules on the risk and rules for any case do not apply", function()
    local conditions =
      { { no_risk = false }, { no_risk = true }, { whitelist = false }, { unrecognised = false }, { any = true } }
    for _, one in ipairs(conditions) do
      one.action = "block"
      assert.equal("unknown", policies.new({ rules = { one } }):decide({ errors = { risk = late } }).action)
    end
  end)

  it("never makes the decision milder when the risk assessment failed", function()
    local trusting = policies.new { rules = { { category = "exchange", action = "allow" } } }
    local entity = { entity = EXCHANGE }
    assert.equal("unknown", trusting:decide({ errors = { risk = late }, entity = entity }).action)
  end)

  describe("that the service does not offer for the network", function()
    local not_offered = { freeze_events = true, counterparties = true }

    it("makes conditions on it false, whatever value they ask for", function()
      assert.equal("allow", decide_with({ not_offered = not_offered }).action)
      local wants_proof = policies.new {
        not_offered = "skip",
        rules = { { frozen = false, no_risk = true, action = "allow" } },
      }
      assert.equal("unknown", decide_with({ not_offered = not_offered }, wants_proof).action)
    end)

    it("means what a rule says before what the policy says", function()
      local rules =
        { { frozen = true, not_offered = "unknown", action = "block" }, { no_risk = true, action = "allow" } }
      local policy_of = policies.new { not_offered = "skip", rules = rules }
      assert.equal("unknown", decide_with({ not_offered = not_offered }, policy_of).action)
      rules[1].not_offered = "skip"
      policy_of = policies.new { not_offered = "unknown", rules = rules }
      assert.equal("allow", decide_with({ not_offered = not_offered }, policy_of).action)
    end)

    it("must have a meaning: without one the policy is refused, with the rule, the lookup and the networks", function()
      local rules = { { no_risk = true, action = "allow" }, { frozen = true, action = "block" } }
      local made, message = pcall(policies.new, { rules = rules })
      assert.is_false(made)
      assert.matches("rules[2] needs freeze_events", message, 1, true)
      assert.matches("does not offer on btc, bsc, polygon, arbitrum", message, 1, true)
      assert.matches("not_offered = 'unknown'", message, 1, true)
      assert.is_false((pcall(policies.new, { rules = { { counterparty = { level = "high" }, action = "block" } } })))
      assert.is_true((pcall(policies.new, { rules = { { category = "mixer", action = "block" } } })))
      assert.is_false((pcall(policies.new, { rules = rules, not_offered = "none" })))
    end)

    it("is named in the decision", function()
      assert.same({ "counterparties", "freeze_events" }, decide_with({ not_offered = not_offered }).not_offered)
      assert.is_nil(decide_with({ freeze_events = {} }).not_offered)
    end)

    it('makes rules on it undetermined when `not_offered` is "unknown"', function()
      local strict = policies.new { not_offered = "unknown", rules = frozen_first }
      assert.equal("unknown", decide_with({ not_offered = not_offered }, strict).action)
    end)
  end)
end)

describe("of all combinations of lookup results", function()
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
      good = { contract = false, entity = EXCHANGE },
      bad = { contract = false, entity = { entityCategory = "mixer", entityCategoryCode = "MIXER" } },
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
    not_offered = "unknown",
    extend = { category = { "exchange" } },
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

  it("only the complete and harmless one is allowed", function()
    local allowed = {}
    each_combination(function(results, chosen)
      if policy:decide(results).action == "allow" then
        allowed[#allowed + 1] = table.concat(chosen, " ")
      end
    end)
    assert.same({ "good good good good" }, allowed)
  end)

  it("each one with a bad result is blocked or unknown", function()
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

  it("in a value raises and names the nearest known value", function()
    local message = message_of { rules = { { type = "sanctions", action = "block" } } }
    assert.matches("rules[1].type", message, 1, true)
    assert.matches("did you mean 'sanction'?", message, 1, true)
  end)

  it("in a condition's name raises and names the nearest known one", function()
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

  it("that leaves a gap in a list raises, because the rest would be ignored", function()
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

  it("of an empty list of rules raises", function()
    message_of { rules = {} }
  end)

  it("raises at the caller's line", function()
    local line = debug.getinfo(1, "l").currentline + 2
    local _, message = pcall(function()
      policies.new { rules = 1 }
    end)
    assert.matches("init_spec.lua:" .. line .. ":", message, 1, true)
  end)

  it("in what is decided raises at the caller's line", function()
    for _, results in ipairs { 5, { errors = 5 }, { not_offered = "entity" } } do
      local line = debug.getinfo(1, "l").currentline + 2
      local _, message = pcall(function()
        local _ = policies.new():decide(results)
      end)
      assert.matches("init_spec.lua:" .. line .. ": decide: results", message, 1, true)
    end
  end)
end)

describe("a lookup that failed", function()
  it("is not hidden by a list of risks beside it", function()
    local err = errors.new("server", "it failed")
    assert.equal("unknown", policies.new():decide({ risks = {}, errors = { risk = err } }).action)
    assert.equal("allow", policies.new():decide({ risks = {}, errors = { "of the service" } }).action)
  end)
end)

describe("a list that an answer leaves out", function()
  local rules = {
    { frozen = true, action = "block" },
    { counterparty = { level = "high" }, action = "block" },
    { no_risk = true, action = "allow" },
  }
  local none = {
    rules = rules,
    not_offered = "skip",
    absent_risks = "none",
    absent_opponents = "none",
    absent_freeze_events = "none",
  }

  local function lacking(changes)
    local results = { risk = record {}, freeze_events = {}, counterparties = { opponents = {} } }
    for name, value in pairs(changes) do
      results[name] = value or nil
    end
    return results
  end

  local function left_out(lookup)
    return { [lookup] = errors.new("protocol", "data is missing", { absent = true }) }
  end

  local cases = {
    ["the risks of the address"] = { option = "absent_risks", results = lacking { risk = record(nil) } },
    ["the risks of a counterparty"] = {
      option = "absent_risks",
      results = lacking { counterparties = { opponents = { { dir = "in", symbol = "ETH", amount = 1 } } } },
    },
    ["the counterparties"] = { option = "absent_opponents", results = lacking { counterparties = {} } },
    ["the counterparties, which the client found missing"] = {
      option = "absent_opponents",
      results = lacking { counterparties = false, errors = left_out "counterparties" },
    },
    ["the freeze events"] = {
      option = "absent_freeze_events",
      results = lacking { freeze_events = false, errors = left_out "freeze_events" },
    },
  }
  for name, case in pairs(cases) do
    it("is unknown by default, and empty if the operator says so: " .. name, function()
      assert.equal("unknown", policies.new({ rules = rules, not_offered = "skip" }):decide(case.results).action)
      local decision = policies.new(none):decide(case.results)
      assert.equal("allow", decision.action)
      assert.is_false(decision.degraded)
      assert.is_nil(decision.errors)
      for option in pairs { absent_risks = 1, absent_opponents = 1, absent_freeze_events = 1 } do
        local policy = policies.new { rules = rules, not_offered = "skip", [option] = "none" }
        assert.equal(option == case.option and "allow" or "unknown", policy:decide(case.results).action)
      end
    end)
  end

  it("is unknown although absent lists are empty, if it is malformed or the lookup failed", function()
    local policy = policies.new(none)
    for _, changes in ipairs {
      { risk = false },
      { risk = record { riskLevel = "high" } },
      { counterparties = { opponents = "none" } },
      { counterparties = false },
      { freeze_events = false },
      { freeze_events = { a = 1 } },
      { freeze_events = false, errors = { freeze_events = errors.new("protocol", "data must be an array") } },
      { freeze_events = false, errors = { freeze_events = errors.new("timeout", "late") } },
    } do
      assert.equal("unknown", policy:decide(lacking(changes)).action)
    end
  end)
end)

describe("a policy that has cached reasons", function()
  local LEVELS = { "high", "low", "medium", "elevated", 1, false }
  local TYPES = { "scam", "sanction", "new-type", "strange", {}, false }
  local SOURCES = { "", "Provider", "Community", "Acme", "somebody", 2, false }
  local OTHERS = { { whitelist = true }, { whitelist = false }, { whitelist = "yes" } }

  local settings = {
    { rules = { { type = "sanction", source = "Community", action = "block" }, { level = "low", action = "allow" } } },
    { rules = { { whitelist = true, action = "allow" }, { level = "high", action = "block" } } },
    { rules = { { source = "Provider", action = "review" }, { any = true, action = "allow" } }, provider = "Acme" },
    {
      rules = { { unrecognised = true, action = "review" }, { any = true, action = "allow" } },
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

  it("does not take a missing source for one that is empty", function()
    local policy = policies.new {
      rules = { { source = "Community", action = "block" }, { type = "scam", action = "allow" } },
      extend = { source = { "" } },
    }
    assert.equal("allow", decide(policy, { risk("low", "scam", "") }).action)
    assert.equal("unknown", decide(policy, { { riskLevel = "low", riskType = "scam" } }).action)
  end)

  it("decides every risk as a new policy does", function()
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

  it("decides a risk assessment alone in the same way", function()
    for _, options in ipairs(settings) do
      local policy = policies.new(options)
      for _ = 1, 2 do
        for _, source in ipairs(SOURCES) do
          local given = record { risk("low", "scam", source or nil) }
          assert.same(policy:decide { risk = given }, policy:decide_record(given))
        end
      end
    end
  end)

  it("does not use them when a lookup is not offered", function()
    local policy = policies.new { rules = { { level = "low", action = "allow" } } }
    local given = { risk = record { risk("low", "scam") } }
    assert.equal("allow", policy:decide(given).action)
    given.not_offered = { risk = true }
    assert.equal("unknown", policy:decide(given).action)
  end)
end)
