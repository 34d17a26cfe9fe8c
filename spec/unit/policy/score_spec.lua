local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local policies = require "riskscreen.policy"
local score_policy = require "riskscreen.policy.score"
local tables = require "riskscreen.util.tables"

local thresholds = {
  { score_at_least = "80", action = "block" },
  { score_at_least = "30", action = "review" },
  { score_below = "30", action = "allow" },
}

local function result(max_score, extra)
  local plain = { requestId = "r1", status = 1003, maxScore = max_score, dirData = { ["in"] = {}, out = {} } }
  return tables.merge(plain, extra)
end

local function strategy(number, score, details, name)
  local made = { strategyNo = number, strategyName = name or "Strategy " .. number, score = score }
  made.details = details or json.empty_array()
  return made
end

local function with(direction, one)
  local dir_data = { ["in"] = {}, out = {} }
  dir_data[direction][one.strategyNo] = one
  return { dirData = dir_data }
end

-- A policy with the given rules before the thresholds.
local function policy_with(...)
  local rules = { ... }
  for _, rule in ipairs(thresholds) do
    rules[#rules + 1] = rule
  end
  return score_policy.new { rules = rules }
end

describe("a policy of score thresholds", function()
  local policy = score_policy.new { rules = thresholds }

  local expected = {
    { "0", "allow" },
    { "0.00", "allow" },
    { "29.99999999999999999999999", "allow" },
    { "30", "review" },
    { "30.0", "review" },
    { "79.99999999999999999999", "review" },
    { "7.99e1", "review" },
    { "80", "block" },
    { "080.00", "block" },
    { "80.000000000000000000001", "block" },
    { "1e3", "block" },
  }
  for _, case in ipairs(expected) do
    it(("%ss a transaction of score %s"):format(case[2], case[1]), function()
      assert.equal(case[2], policy:decide(result(case[1])).action)
    end)
  end

  local broken = {
    { "without a score", { maxScore = false } },
    { "whose score is null", { maxScore = json.null } },
    { "whose score is a number", { maxScore = 5 } },
    { "whose score is not a decimal", { maxScore = "low" } },
    { "whose score is empty", { maxScore = "" } },
    { "without a status", { status = false } },
    { "whose status is null", { status = json.null } },
    { "whose status is a text", { status = "1003" } },
    { "whose status is not final", { status = 1004 } },
    { "whose directions are a string", { dirData = "none" } },
    { "whose strategies are a list", { dirData = { ["in"] = { strategy("1", "5") }, out = {} } } },
    { "with a strategy that is null", { dirData = { ["in"] = { ["1"] = json.null }, out = {} } } },
    { "with a strategy that is a number", { dirData = { ["in"] = { ["1"] = 5 }, out = {} } } },
    { "with a strategy under another number", { dirData = { ["in"] = { ["2"] = strategy("1", "1") }, out = {} } } },
    { "with a strategy that scores more than the maximum", with("in", strategy("1", "95")) },
    { "whose score is negative", { maxScore = "-5" } },
    { "whose score is hardly negative", { maxScore = "-0.001" } },
    { "with a strategy of a negative score", with("in", strategy("1", "-5")) },
    { "with a detail of a negative score", with("out", strategy("1", "1", { { code = "mixer", score = "-5" } })) },
    { "with a direction never seen", { dirData = { ["in"] = {}, through = { ["1"] = strategy("1", "95") } } } },
    { "with a list of directions", { dirData = { {} } } },
    { "with a detail that is null", with("in", strategy("1", "1", { json.null })) },
    { "with a detail whose score is not a decimal", with("in", strategy("1", "1", { { score = "x" } })) },
  }
  for _, case in ipairs(broken) do
    it("is unknown for a transaction " .. case[1], function()
      local it_is = result("1", case[2])
      for name, value in pairs(it_is) do
        it_is[name] = value or nil
      end
      local decision = policy:decide(it_is)
      assert.equal("unknown", decision.action)
      assert.equal("protocol", decision.error.kind)
      assert.is_false(decision.degraded)
    end)
  end

  it("is unknown for a result that is not a table", function()
    for _, value in ipairs { "ok", 1003, true, {} } do
      assert.equal("unknown", policy:decide(value).action)
    end
    assert.equal("unknown", policy:decide().action)
  end)

  it("makes every kind of failure unknown", function()
    for _, entry in ipairs(errors.kinds) do
      local err = errors.new(entry.kind, "it failed", { elapsed = 2 })
      local decision = policy:decide(nil, err)
      assert.same({ "unknown", err, 2 }, { decision.action, decision.error, decision.elapsed })
    end
  end)

  it("is unknown for a result with risks whose score is missing, unless `absent_score` says otherwise", function()
    local lenient = score_policy.new { rules = thresholds, absent_score = "none" }
    for _, nothing in ipairs { json.null, false } do
      local made = { requestId = "r1", status = 1003, maxScore = nothing or nil, dirData = nothing or nil }
      made.risks = json.empty_array()
      local decision = policy:decide(made)
      assert.equal("unknown", decision.action)
      assert.matches("absent_score", decision.reasons[1].message, 1, true)
      assert.equal("allow", lenient:decide(made).action)
      made.status = nothing or nil
      assert.equal("unknown", lenient:decide(made).action)
      made.requestId = nil
      assert.equal("unknown", lenient:decide(made).action)
    end
    local scored = { requestId = "r1", status = 1003, dirData = { ["in"] = {} }, risks = json.empty_array() }
    assert.equal("unknown", lenient:decide(scored).action)
  end)

  it("takes the risks of a result that failed into account", function()
    local lenient = policy_with { error = true, action = "allow" }
    local made = result("x", { risks = { { riskLevel = "high", riskType = "sanction" } } })
    assert.equal("block", lenient:decide(made).action)
    assert.equal("block", policy:decide(made).action)
    made.risks = json.empty_array()
    assert.same({ "allow", true }, { lenient:decide(made).action, lenient:decide(made).degraded })
  end)

  it("needs the risks of a result if it has a policy for them", function()
    local strict = score_policy.new { rules = thresholds, risks = policies.new() }
    local lenient = score_policy.new { rules = thresholds, risks = policies.new { absent_risks = "none" } }
    for _, risks in ipairs { json.null, false } do
      assert.equal("unknown", strict:decide(result("1", { risks = risks or nil })).action)
      assert.equal("allow", lenient:decide(result("1", { risks = risks or nil })).action)
    end
    assert.equal("allow", strict:decide(result("1", { risks = json.empty_array() })).action)
    assert.equal("block", strict:decide(result "85").action)
    assert.is_false(strict:decide(result "85").degraded)
  end)

  it("is degraded where the policy for the risks is", function()
    local risks = policies.new { rules = { { unrecognised = true, action = "allow" } } }
    local decision = score_policy
      .new({ rules = thresholds, risks = risks })
      :decide(result("1", { risks = { { riskLevel = "new", riskType = "new" } } }))
    assert.same({ "allow", true }, { decision.action, decision.degraded })
  end)

  it("does not need the directions when no rule is about them", function()
    assert.equal("allow", policy:decide(result("1", { dirData = json.null })).action)
  end)

  it("names the rule and the score in the reason", function()
    local made = result("85.5")
    local decision = policy:decide(made, { elapsed = 1.5 })
    local reason = decision.reasons[1]
    assert.equal("85.5", reason.score)
    assert.equal(thresholds[1], reason.rule)
    assert.equal("rule 1 matches score 85.5", reason.message)
    assert.equal(made, decision.record)
    assert.equal(1.5, decision.elapsed)
  end)

  it("is unknown when no rule covers the score", function()
    local gap = score_policy.new { rules = { { score_at_least = "80", action = "block" } } }
    local decision = gap:decide(result("5"))
    assert.equal("unknown", decision.action)
    assert.equal("no rule covers score 5", decision.reasons[1].message)
  end)

  it("accepts the configured final statuses", function()
    local told = score_policy.new { rules = thresholds, final_statuses = { 7, 8 } }
    assert.equal("allow", told:decide(result("1", { status = 8 })).action)
    assert.equal("unknown", told:decide(result("1")).action)
  end)
end)

describe("rules about strategies and details", function()
  local function decide(rule, extra, max_score)
    return policy_with(rule):decide(result(max_score or "20", extra)).action
  end

  it("match a direction", function()
    local rule = { direction = "in", score_at_least = "10", action = "block" }
    assert.equal("block", decide(rule, with("in", strategy("1", "10.0"))))
    assert.equal("allow", decide(rule, with("out", strategy("1", "10.0"))))
    assert.equal("allow", decide(rule, with("in", strategy("1", "9.99"))))
  end)

  it("match a strategy's number", function()
    local rule = { strategy = { "3", "7" }, action = "block" }
    assert.equal("block", decide(rule, with("out", strategy("7", "0"))))
    assert.equal("unknown", decide(rule, with("out", strategy("8", "0"))))
    assert.equal("unknown", decide(rule, with("out", strategy("3 ", "0"))))
  end)

  local named = {
    strategy = with("in", strategy("8", "5")),
    strategy_name = with("in", strategy("1", "5", nil, "Gambling")),
    detail = with("in", strategy("1", "5", { { code = "Swap", score = "5" } })),
    detail_name = with("in", strategy("1", "5", { { name = "Swap", score = "5" } })),
  }
  for name, extra in pairs(named) do
    it("know the values that a rule or `extend` names, and no other one: " .. name, function()
      local rules = { { [name] = "7", action = "block" }, thresholds[3] }
      local decision = score_policy.new({ rules = rules }):decide(result("5", extra))
      assert.equal("unknown", decision.action)
      assert.matches("extend = { " .. name .. " = … }", decision.reasons[1].message, 1, true)
      local value = name == "strategy" and "8" or name == "strategy_name" and "GAMBLING" or "swap"
      local extended = score_policy.new { rules = rules, extend = { [name] = { value } } }
      assert.equal("allow", extended:decide(result("5", extra)).action)
      local other = { [name] = value, score_at_least = "90", action = "block" }
      assert.equal(
        "allow",
        score_policy.new({ rules = { rules[1], other, rules[2] } }):decide(result("5", extra)).action
      )
    end)
  end

  it("match a strategy's name", function()
    local rule = { strategy_name = "Sanctions", score_at_least = "1", action = "block" }
    assert.equal("block", decide(rule, with("in", strategy("1", "1", nil, "Sanctions"))))
    assert.equal("allow", decide(rule, with("in", strategy("1", "0.5", nil, "Gambling"))))
  end)

  it("match a detail's code and the detail's own score", function()
    local rule = { detail = "mixer", score_at_least = "5", action = "block" }
    assert.equal("block", decide(rule, with("in", strategy("1", "1", { { code = "mixer", score = "5" } }))))
    assert.equal("allow", decide(rule, with("in", strategy("1", "9", { { code = "mixer", score = "4" } }))))
    assert.equal("allow", decide(rule, with("in", strategy("1", "9", { { code = "swap", score = "4.5" } }))))
  end)

  it("see the strategies of a direction that the operator has added", function()
    local rules = { { direction = "through", score_at_least = "4", action = "block" }, thresholds[3] }
    local policy = score_policy.new { rules = rules, extend = { direction = { "through" } } }
    local function action(strategies)
      local directions = { ["in"] = {}, out = {}, through = strategies }
      return policy:decide(result("5", { dirData = directions })).action
    end
    assert.equal("block", action { ["1"] = strategy("1", "5") })
    assert.equal("allow", action { ["1"] = strategy("1", "3") })
    assert.equal("allow", action {})
    assert.equal("unknown", action(nil))
    assert.equal("unknown", action { ["1"] = json.null })
    assert.equal("unknown", action { ["1"] = { strategyNo = "1", score = 5 } })
    assert.equal("unknown", action { ["1"] = strategy("1", "6") })
    assert.equal("unknown", policy:decide(result("5", { dirData = { sideways = {} } })).action)
  end)

  it("do not see an empty code or name as another one", function()
    for _, rule in ipairs { { detail = "mixer" }, { detail_name = "mixer" }, { strategy_name = "mixer" } } do
      rule.action = "block"
      local one = strategy("1", "5", { { code = "", name = " ", score = "5" } }, "-")
      assert.equal("unknown", policy_with(rule):decide(result("5", with("in", one))).action)
    end
  end)

  it("ignore spaces, hyphens and underscores in details and names of strategies", function()
    local one = strategy("1", "5", { { code = "ONLINE_GAMBLING", name = "Online-Gambling", score = "5" } }, "The_List")
    for _, rule in ipairs {
      { detail = "online gambling" },
      { detail_name = "online gambling" },
      { strategy_name = "the list" },
    } do
      rule.action = "block"
      assert.equal("block", policy_with(rule):decide(result("5", with("in", one))).action)
    end
  end)

  it("match details and names of strategies in any case", function()
    local one = strategy("1", "5", { { code = "SANCTION", name = "Sanctioned Entity", score = "5" } }, "The List")
    for _, rule in ipairs {
      { detail = "sanction" },
      { detail = { "Sanction", "mixer" } },
      { detail_name = "sanctioned entity" },
      { strategy_name = "THE LIST" },
    } do
      rule.action = "block"
      assert.equal("block", policy_with(rule):decide(result("5", with("in", one))).action)
    end
  end)

  it("match a detail's name", function()
    local rule = { detail_name = "Mixer", action = "block" }
    assert.equal("block", decide(rule, with("in", strategy("1", "1", { { name = "Mixer" } }))))
  end)

  it("can combine all conditions", function()
    local rule = { direction = "out", strategy = "1", detail = "mixer", action = "block" }
    local details = { { code = "mixer", score = "1" } }
    assert.equal("block", decide(rule, with("out", strategy("1", "1", details))))
    assert.equal("allow", decide(rule, with("in", strategy("1", "1", details))))
    assert.equal("unknown", decide(rule, with("out", strategy("2", "1", details))))
  end)

  it("that match a part exclude it from later rules", function()
    local policy = policy_with(
      { detail = "exchange", action = "allow" },
      { detail = { "exchange", "mixer" }, action = "block" }
    )
    assert.equal("allow", policy:decide(result("1", with("in", strategy("1", "1", { { code = "exchange" } })))).action)
    assert.equal("block", policy:decide(result("1", with("in", strategy("1", "1", { { code = "mixer" } })))).action)
  end)

  it("never allow a transaction by themselves", function()
    local rule = { strategy = "1", action = "allow" }
    assert.equal("block", decide(rule, with("in", strategy("1", "90")), "90"))
    assert.equal("review", decide(rule, with("in", strategy("1", "40")), "40"))
    local parts_only = score_policy.new { rules = { rule } }
    assert.equal("unknown", parts_only:decide(result("1", with("in", strategy("1", "1")))).action)
  end)

  it("name the part in the reason, the worst first", function()
    local policy = policy_with { strategy = "2", action = "block" }
    local reasons = policy:decide(result("1", with("out", strategy("2", "0.5")))).reasons
    assert.equal("block", reasons[1].action)
    assert.same({ "out", "2", "0.5" }, { reasons[1].direction, reasons[1].strategy, reasons[1].score })
    assert.equal("allow", reasons[2].action)
  end)

  describe("are undetermined", function()
    it("when the directions are missing", function()
      assert.equal("unknown", decide({ direction = "in", action = "block" }, { dirData = json.null }))
      assert.equal("unknown", decide({ detail = "mixer", action = "review" }, { dirData = json.null }))
    end)

    it("when their own direction is missing", function()
      local only_in = { dirData = { ["in"] = {} } }
      assert.equal("unknown", decide({ direction = "out", action = "block" }, only_in))
      assert.equal("unknown", decide({ strategy = "1", action = "block" }, only_in))
      assert.equal("allow", decide({ direction = "in", action = "block" }, only_in))
    end)

    it("when the details are missing", function()
      local one = strategy("1", "1")
      one.details = nil
      assert.equal("unknown", decide({ detail = "mixer", action = "block" }, with("in", one)))
      assert.equal("allow", decide({ detail = "mixer", direction = "out", action = "block" }, with("in", one)))
    end)

    it("when a code, a name or a score is missing", function()
      assert.equal("unknown", decide({ detail = "mixer", action = "block" }, with("in", strategy("1", "1", { {} }))))
      local nameless, scoreless = strategy("1", "1"), strategy("1")
      nameless.strategyName = nil
      assert.equal("unknown", decide({ strategy_name = "Sanctions", action = "block" }, with("in", nameless)))
      local rule = { strategy = "1", score_at_least = "50", action = "review" }
      assert.equal("unknown", decide(rule, with("in", scoreless)))
    end)

    it("and make the decision unknown unless it is a block", function()
      local rule = { direction = "in", action = "review" }
      assert.equal("unknown", decide(rule, { dirData = json.null }, "50"))
      assert.equal("block", decide(rule, { dirData = json.null }, "90"))
    end)

    it("but do not matter when they allow", function()
      assert.equal("allow", decide({ direction = "in", action = "allow" }, { dirData = json.null }))
    end)
  end)
end)

describe("rules about failures", function()
  it("handle them, and the decision is degraded", function()
    local policy = policy_with { error = "timeout", action = "review" }
    local decision = policy:decide(nil, errors.new("timeout", "late"))
    assert.equal("review", decision.action)
    assert.is_true(decision.degraded)
    assert.equal("unknown", policy:decide(nil, errors.new("network", "cut")).action)
  end)
end)

describe("score_policy", function()
  local refused = {
    { "no rules", {}, "rules is required" },
    { "an empty list of rules", { rules = {} }, "at least one rule" },
    { "a threshold that is a number", { rules = { { score_at_least = 80, action = "block" } } }, "written as a text" },
    { "a threshold that is no decimal", { rules = { { score_below = "30%", action = "allow" } } }, "'30%%'" },
    { "an unknown condition", { rules = { { scor_below = "3", action = "allow" } } }, "did you mean 'score_below'" },
    { "an unknown direction", { rules = { { direction = "into", action = "block" } } }, "must be one of in, out" },
    { "a strategy that is a number", { rules = { { strategy = 3, action = "block" } } }, "strategy must be" },
    { "an unknown action", { rules = { { score_below = "3", action = "pass" } } }, "allow, review, block" },
    { "no final status", { rules = thresholds, final_statuses = {} }, "at least 1" },
    { "`error` with other conditions", { rules = { { error = true, strategy = "1", action = "block" } } }, "mixes" },
  }
  for _, case in ipairs(refused) do
    it("refuses " .. case[1] .. " at the caller's line", function()
      local line = debug.getinfo(1, "l").currentline + 2
      local ok, message = pcall(function()
        return score_policy.new(case[2]), nil
      end)
      assert.is_false(ok)
      assert.matches("score_spec.lua:" .. line .. ": score_policy: ", message)
      assert.matches(case[3], message)
    end)
  end
end)
