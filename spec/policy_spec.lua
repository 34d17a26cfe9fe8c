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

  it("that leaves it without rules raises", function()
    message_of { rules = {} }
  end)

  it("raises at the caller's line", function()
    local line = debug.getinfo(1, "l").currentline + 2
    local _, message = pcall(function()
      policies.new { rules = 1 }
    end)
    assert.matches("policy_spec.lua:" .. line .. ":", message, 1, true)
  end)
end)
