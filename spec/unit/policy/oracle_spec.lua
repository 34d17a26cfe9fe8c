-- Random policies and answers. `./dev soak policy` runs more of them.

local cases_of = require "spec.support.policy_cases"
local oracle = require "spec.support.policy_oracle"
local randoms = require "spec.support.random"
local score_oracle = require "spec.support.score_oracle"

local CASES_OF_A_POLICY = 20
local ROUNDS = (tonumber(os.getenv "RISKSCREEN_POLICY_CASES") or randoms.rounds(8000)) / CASES_OF_A_POLICY
local ORDER = { allow = 1, review = 2, unknown = 3, block = 4 }
local SHOWN = "seed %d\npolicy %s\ncase %s"

local function each_case(make_policy, make_case, check)
  local cases = cases_of(randoms.new(randoms.SEED))
  for _ = 1, ROUNDS do
    local options, risks = make_policy(cases)
    local policy = risks and cases.new_score(options, risks) or cases.new(options)
    for _ = 1, CASES_OF_A_POLICY do
      local case = make_case(cases)
      local message = check(policy, case, options, risks, cases)
      if message then
        error(message .. "\n" .. SHOWN:format(randoms.SEED, cases.show { options, risks }, cases.show(case)))
      end
    end
  end
end

local function address_options(cases)
  return cases.options()
end

local function score_options(cases)
  return cases.score_options()
end

local function evidence(cases)
  return cases.evidence()
end

describe("a policy and the second implementation", function()
  local function difference(got, expected)
    return got ~= expected and ("got %s, expected %s"):format(got, expected)
  end

  it("decide alike about addresses", function()
    each_case(address_options, evidence, function(policy, case, options)
      return difference(policy:decide(case).action, oracle.address(options, case))
    end)
  end)

  it("decide alike about scores", function()
    each_case(score_options, function(cases)
      return cases.result()
    end, function(policy, case, options, risks)
      return difference(policy:decide(case).action, score_oracle(options, risks, case))
    end)
  end)
end)

describe("an answer that loses fields", function()
  -- The decision after the loss must be as bad as before, or unknown. A rule with `error` or `unrecognised` names what
  -- is missing; the decision is degraded then.
  local function milder(before, after, lost)
    if not after.degraded and after.action ~= "unknown" and ORDER[after.action] < ORDER[before.action] then
      return ("%s became %s without %s"):format(before.action, after.action, lost)
    end
  end

  it("never gains a milder decision about an address", function()
    each_case(address_options, evidence, function(policy, case, options, _, cases)
      local before = policy:decide(case)
      local lost = cases.lessen(case, options)
      return milder(before, policy:decide(case), lost)
    end)
  end)

  it("never gains a milder decision about scores", function()
    each_case(score_options, function(cases)
      return { result = cases.result() }
    end, function(policy, case, options, risks, cases)
      local before = policy:decide(case.result)
      -- A result that is malformed or contradicts itself is a failure, and has no good fields to lose.
      if not before.error then
        local lost = cases.lessen(case, options, risks)
        return milder(before, policy:decide(case.result), lost)
      end
    end)
  end)
end)
