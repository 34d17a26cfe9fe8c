-- Proofs and differences of score policies, against random results.

local cases_of = require "spec.support.policy_cases"
local errors = require "riskscreen.errors"
local policies = require "riskscreen.policy"
local randoms = require "spec.support.random"
local score_policy = require "riskscreen.policy.score"
local tables = require "riskscreen.util.tables"

local ACTIONS = { "allow", "review", "unknown", "block" }

-- A random policy; sometimes it has a policy for risks of its own.
local function new_policy(cases)
  local options, risks = cases.score_options()
  return score_policy.new(tables.merge(options, { risks = risks and policies.new(risks) }))
end

-- A random result, or a failure.
local function decided(random, policy, cases)
  if random.integer(10) == 1 then
    return policy:decide(nil, errors.new(random.pick { "timeout", "network", "protocol", "server" }, "no")).action, {}
  end
  local result = cases.result()
  return policy:decide(result).action, result
end

describe("a proof about scores and random results", function()
  it("agree: no action comes that a policy never takes, and a counterexample is one", function()
    local random = randoms.new(randoms.SEED)
    local cases, undecided = cases_of(random), 0
    local rounds = randoms.rounds(6)
    for _ = 1, rounds do
      local policy, possible = new_policy(cases), {}
      for _, action in ipairs(ACTIONS) do
        local proof = policy:prove { never = action }
        possible[action] = proof.holds ~= true
        undecided = undecided + (proof.holds == nil and 1 or 0)
        if proof.evidence then
          local err = proof.evidence.errors and proof.evidence.errors.risk
          assert.equal(action, policy:decide(proof.evidence.risk, err).action)
        end
      end
      for _ = 1, 200 do
        local action, result = decided(random, policy, cases)
        if not possible[action] then
          error(("seed %d: never %s holds, but\n%s"):format(randoms.SEED, action, cases.show(result)))
        end
      end
    end
    assert.is_true(undecided * 50 < rounds * 4, undecided .. " undecided")
  end)

  it("agree about a difference", function()
    local random = randoms.new(randoms.SEED)
    local cases = cases_of(random)
    for _ = 1, randoms.rounds(1) do
      local options = cases.score_options()
      local other = tables.copy(options)
      options.rules = { options.rules[1], options.rules[2], options.rules[3] }
      other.rules = tables.copy(options.rules)
      other.rules[random.integer(#options.rules)] = cases.score_options().rules[1]
      local old, made, new = score_policy.new(options), pcall(score_policy.new, other)
      new = made and new or old
      local diff, known = old:diff(new), {}
      for _, change in ipairs(diff.changes) do
        known[change.before .. change.after] = true
      end
      for _ = 1, 200 do
        local result = cases.result()
        local before, after = old:decide(result).action, new:decide(result).action
        local is_known = before == after or known[before .. after] or not diff.complete
        assert.is_truthy(is_known, ("seed %d: %s to %s"):format(randoms.SEED, before, after))
      end
    end
  end)
end)

describe("a proof about a score policy", function()
  local RULES = {
    { score_at_least = "70", action = "block" },
    { direction = "in", strategy = "7", score_at_least = "30", action = "block" },
    { detail = "mixer", action = "block" },
    { score_at_least = "30", action = "review" },
    { name = "low", score_below = "30", action = "allow" },
    { error = "timeout", action = "review" },
  }
  local policy = score_policy.new { rules = RULES }

  it("is about the part that its conditions name", function()
    for claim, holds in pairs {
      ["never allow where score_at_least = 70"] = true,
      ["block where score_at_least = 70"] = true,
      ["never allow where detail = mixer"] = true,
      ["never allow where direction = in and strategy = 7 and score_at_least = 30"] = true,
      ["never allow where direction = out and strategy = 7"] = false,
      ["never allow where a lookup failed"] = true,
      ["review where error = timeout"] = true,
      ["unknown where a lookup failed"] = false,
      ["never allow where max_score is unknown"] = true,
      ["review at most where score_below = 70"] = false,
    } do
      local proof = policy:prove(claim)
      assert.equal(holds, proof.holds, claim)
      assert.is_true(proof.cases > 0, claim)
    end
  end)

  it("is about a field that is missing, not known or of another type", function()
    local lax = score_policy.new { rules = { { any = true, action = "allow" }, { error = true, action = "allow" } } }
    for field, kinds in pairs {
      status = "absent null unseen wrong",
      max_score = "absent null wrong",
      score = "absent null wrong",
      strategy = "unseen wrong",
      strategy_name = "absent null unseen wrong",
      details = "absent null wrong",
      detail = "absent null unseen wrong",
      detail_name = "absent null unseen wrong",
      detail_score = "absent null wrong",
    } do
      for kind in kinds:gmatch "%a+" do
        local proof = lax:prove { never = "allow", where = { is = { [field] = kind } } }
        assert.is_false(proof.holds, field .. " " .. kind)
      end
    end
  end)

  it("tries results without strategies, without a direction, and without a list of risks", function()
    local any = { any = true, action = "allow" }
    local out, into = { direction = "out", action = "block" }, { direction = "in", action = "block" }
    assert.is_false(score_policy.new({ rules = { into, out, any } }):prove("never allow").holds)
    local known = {}
    for _, change in
      ipairs(score_policy.new({ rules = { into, any } }):diff(score_policy.new { rules = { any } }).changes)
    do
      known[change.before .. " " .. change.after] = change.evidence ~= nil
    end
    assert.same(
      { ["block allow"] = true, ["unknown allow"] = true },
      tables.pick(known, { "block allow", "unknown allow" })
    )
    local handled = { error = true, action = "allow" }
    local risks = policies.new {
      absent_risks = "none",
      rules = { { no_risk = true, action = "block" }, { any = true, action = "block" }, handled },
    }
    local lax = score_policy.new { rules = { { any = true, action = "block" }, handled }, risks = risks }
    assert.equal("none", lax:prove("never allow where max_score is wrong").evidence.risk.risks)
  end)

  it("refuses a number as a threshold, and a condition on an address", function()
    assert.error_matches(function()
      policy:prove { never = "allow", where = { score_at_least = 70 } }
    end, "decimal number written as a text")
    assert.error_matches(function()
      policy:prove "never allow where frozen = true"
    end, "frozen")
  end)

  it("finds a hidden rule, and a dropped one", function()
    local hidden = score_policy.new { rules = tables.concat(RULES, { { score_below = "20", action = "review" } }) }
    local faults = {}
    for _, finding in ipairs(hidden:check()) do
      faults[#faults + 1] = finding.is_fault and finding.about or nil
    end
    assert.same({ "rule 7" }, faults)
    local dropped = tables.copy(RULES)
    table.remove(dropped, 3)
    local change = policy:diff(score_policy.new { rules = dropped }).changes[1]
    assert.same({ "block", "allow" }, { change.before, change.after })
    assert.error_matches(function()
      policy:diff(policies.new())
    end, "expected a score policy")
  end)
end)
