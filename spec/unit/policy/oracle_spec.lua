-- Random policies and answers. `./dev soak policy` runs more of them.

local cases_of = require "spec.support.policy_cases"
local json = require "riskscreen.json"
local randoms = require "spec.support.random"
local reference = require "spec.support.policy_reference"

local CASES_OF_A_POLICY = 20
local ROUNDS = (tonumber(os.getenv "RISKSCREEN_POLICY_CASES") or randoms.rounds(8000)) / CASES_OF_A_POLICY
local ORDER = { allow = 1, review = 2, unknown = 3, block = 4 }
local SHOWN = "seed %d\npolicy %s\nrisks %s\ncase %s"

-- Checks random cases of random policies: for addresses, or for scores, with a policy for risks or without one.
local function each_case(about_scores, check)
  local cases = cases_of(randoms.new(randoms.SEED))
  for _ = 1, ROUNDS do
    local options, risks
    if about_scores then
      options, risks = cases.score_options()
    else
      options = cases.options()
    end
    local policy = about_scores and cases.new_score(options, risks) or cases.new(options)
    for _ = 1, CASES_OF_A_POLICY do
      local case = about_scores and cases.result() or cases.evidence()
      local message = check(policy, case, options, risks, cases)
      if message then
        local shown = SHOWN:format(randoms.SEED, cases.show(options), cases.show(risks or json.null), cases.show(case))
        error(message .. "\n" .. shown)
      end
    end
  end
end

describe("a policy and the second implementation", function()
  local function difference(got, expected)
    return got ~= expected and ("got %s, expected %s"):format(got, expected)
  end

  it("decide alike about addresses", function()
    each_case(false, function(policy, case, options)
      return difference(policy:decide(case).action, reference.address(options, case))
    end)
  end)

  it("decide alike about scores", function()
    each_case(true, function(policy, case, options, risks)
      return difference(policy:decide(case).action, reference.scores(options, risks, case))
    end)
  end)
end)

describe("an answer that loses knowledge", function()
  -- Whether the operator has a rule about failures or unknown values, with this action or a milder one.
  local function asked_for(action, options)
    for _, rule in ipairs(options and options.rules or {}) do
      if ORDER[rule.action] <= ORDER[action] and (rule.error or rule.unrecognised) then
        return true
      end
    end
    return false
  end

  -- The decision after the loss must be as bad as before, or unknown. A rule with `error` or `unrecognised` names what
  -- is missing; the decision is degraded then.
  local function milder(before, after, lost, options, risks)
    local is_asked = after.degraded and (asked_for(after.action, options) or asked_for(after.action, risks))
    if not is_asked and after.action ~= "unknown" and ORDER[after.action] < ORDER[before.action] then
      return ("%s became %s without %s"):format(before.action, after.action, lost)
    end
  end

  it("never gains a milder decision about an address", function()
    each_case(false, function(policy, case, options, _, cases)
      local before = policy:decide(case)
      local lost = cases.lessen(case, options)
      return milder(before, policy:decide(case), lost, options)
    end)
  end)

  it("never gains a milder decision about scores", function()
    each_case(true, function(policy, result, options, risks, cases)
      local before = policy:decide(result)
      -- A result that is malformed or contradicts itself is a failure: it has no fields.
      if not before.error then
        local lost = cases.lessen({ result = result }, options, risks)
        return milder(before, policy:decide(result), lost, options, risks)
      end
    end)
  end)

  it("never gains a milder decision because a lookup fails", function()
    each_case(false, function(policy, case, options, _, cases)
      local before = policy:decide(case)
      local lost = cases.fail(case)
      return milder(before, policy:decide(case), lost, options)
    end)
  end)
end)

describe("the lists of an answer", function()
  local function changed(before, after)
    return before.action ~= after.action and ("%s became %s"):format(before.action, after.action)
  end

  it("have no order, and a repeated element means nothing", function()
    each_case(false, function(policy, case, _, _, cases)
      local before = policy:decide(case)
      cases.mix(case)
      return changed(before, policy:decide(case))
    end)
    each_case(true, function(policy, result, _, _, cases)
      local before = policy:decide(result)
      cases.mix { result = result }
      return changed(before, policy:decide(result))
    end)
  end)

  it("never give a milder decision for one more risk", function()
    each_case(false, function(policy, case, _, _, cases)
      local before = policy:decide(case)
      local is_added = cases.add_risk(case)
      local after = policy:decide(case)
      return is_added and ORDER[after.action] < ORDER[before.action] and changed(before, after)
    end)
  end)
end)
