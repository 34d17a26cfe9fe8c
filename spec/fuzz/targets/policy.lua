-- Any policy over any lookups. Options, lookups and failures are read from the input (values.lua). A policy is made, or
-- refused with a message. A decision never raises. A missing, failed or unknown value must not become `allow` unless
-- the operator wrote that rule.
local errors = require "riskscreen.errors"
local honest = require "spec.fuzz.honest"
local policies = require "riskscreen.policy"
local values = require "spec.fuzz.values"

local severity = { allow = 1, review = 2, unknown = 3, block = 4 }
local kinds = { "network", "timeout", "server", "api", "protocol", "invalid_argument" }
local names = { "risk", "entity", "freeze_events", "counterparties" }
-- The conditions that rest on each lookup but the risk assessment.
local needs = { contract = "entity", category = "entity", frozen = "freeze_events", counterparty = "counterparties" }

local default = policies.new()

local function is_list(value)
  if type(value) ~= "table" then
    return false
  end
  local count = 0
  for _ in pairs(value) do
    count = count + 1
  end
  for i = 1, count do
    if value[i] == nil then
      return false
    end
  end
  return true
end

local function has_condition(rule)
  for name in pairs(rule) do
    if name ~= "action" and name ~= "name" and name ~= "not_offered" then
      return true
    end
  end
  return false
end

-- A policy of arbitrary options is a programmer's mistake or a policy.
local function policy_of(options)
  if options == nil then
    return default
  end
  local made, policy = pcall(policies.new, options)
  if made then
    assert(options.rules == nil or is_list(options.rules), "rules after a gap are lost")
    for _, rule in ipairs(options.rules or {}) do
      assert(has_condition(rule), "a rule without a condition is taken")
    end
    return policy
  end
  assert(type(policy) == "string" and policy:find "policy: ", policy)
end

-- The lookups. Half of the failures are left out.
local function read_results(reader)
  local results = { errors = {}, not_offered = {} }
  for _, name in ipairs(names) do
    local byte = reader:byte()
    local failure = byte % 16 > 8 and kinds[byte % 16 - 8]
    if failure then
      results.errors[name] = errors.new(failure, "failed")
    elseif byte % 16 == 8 and name ~= "risk" then
      results.not_offered[name] = true
    else
      results[name] = reader:value()
    end
  end
  return results
end

local function set_of(list)
  local set = {}
  for _, value in ipairs(list or {}) do
    set[value] = true
  end
  return set
end

local function covers(rule, kind)
  if type(rule.error) == "table" then
    return set_of(rule.error)[kind] == true
  end
  return rule.error == true or rule.error == kind
end

-- Whether a rule allows, and is such as `wanted` says.
local function some_rule_allows(options, wanted)
  for _, rule in ipairs(options.rules or {}) do
    if rule.action == "allow" and wanted(rule) then
      return true
    end
  end
  return false
end

local function failure_of(results, options)
  local failure = results.errors.risk
  if failure then
    return failure.kind
  elseif type(results.risk) == "table" and results.risk.risks == nil and (options or {}).absent_risks == "none" then
    return nil
  elseif type(results.risk) ~= "table" or not is_list(results.risk.risks) then
    return "protocol"
  end
end

local function has_unseen(results, options)
  local extend = options.extend or {}
  local levels, types = set_of(extend.level), set_of(extend.type)
  for _, risk in ipairs(results.risk.risks or {}) do
    if not honest.is_recognised(risk, levels, types) then
      return true
    end
  end
  return false
end

-- Whether the first rules, before any that allows, hold one that rests on nothing but failed lookups.
local function is_blind(results, options)
  for _, rule in ipairs(options.rules or {}) do
    if rule.action == "allow" then
      return false
    end
    local blind = nil
    for condition in pairs(rule) do
      if condition ~= "action" and condition ~= "name" then
        blind = blind ~= false and needs[condition] ~= nil and results.errors[needs[condition]] ~= nil
      end
    end
    if blind then
      return true
    end
  end
  return false
end

-- Whether the first rules, before any that allows, hold one on nothing but a source, and a risk's source is unknown.
local function is_of_unknown_source(results, options)
  local known = set_of { "Community", "User-Defined", options.provider }
  for _, source in ipairs(options.extend and options.extend.source or {}) do
    known[source] = true
  end
  for _, rule in ipairs(options.rules or {}) do
    if rule.action == "allow" then
      return false
    end
    local others = 0
    for condition in pairs(rule) do
      others = others + ((condition == "action" or condition == "name" or condition == "source") and 0 or 1)
    end
    for _, risk in ipairs(rule.source and others == 0 and results.risk.risks or {}) do
      if not known[risk.riskSource or false] then
        return true
      end
    end
  end
  return false
end

local function check_allow(decision, results, options)
  local failure = failure_of(results, options)
  if failure then
    assert(decision.degraded and some_rule_allows(options, function(rule)
      return covers(rule, failure)
    end), "a failed lookup of the risks is allowed")
    return
  end
  if has_unseen(results, options) then
    assert(decision.degraded and some_rule_allows(options, function(rule)
      return rule.unrecognised == true
    end), "a risk that was never seen is allowed")
  end
  assert(not is_of_unknown_source(results, options), "a source that was never seen is taken as harmless")
  if is_blind(results, options) then
    assert(decision.degraded and some_rule_allows(options, function(rule)
      return rule.error ~= nil
    end), "a lookup that failed is taken as harmless")
  end
end

-- The default policy, stated in full.
local function default_action(results, options)
  if failure_of(results, options) then
    return "unknown"
  end
  local worst = "allow"
  for _, risk in ipairs(results.risk.risks or {}) do
    local verdict = honest.verdict(risk)
    worst = severity[verdict] > severity[worst] and verdict or worst
  end
  return worst
end

return function(input)
  local reader = values.reader(input)
  local options = reader:value()
  local policy = policy_of(options)
  local results = read_results(reader)
  if not policy then
    return
  end
  local decision = policy:decide(results)
  assert(severity[decision.action], "no such action")
  assert(decision.reasons[1].action == decision.action, "the first reason is not the decision's")
  for _, reason in ipairs(decision.reasons) do
    assert(severity[reason.action] <= severity[decision.action], "a reason is worse than the decision")
    assert(type(reason.message) == "string", "a reason without words")
  end
  if options == nil or options.rules == nil and next(options.extend or {}) == nil then
    assert(decision.action == default_action(results, options), "the default policy says " .. decision.action)
    assert(not decision.degraded, "the default policy degrades")
  elseif decision.action == "allow" then
    assert(options.rules == nil or some_rule_allows(options, function()
      return true
    end), "no rule allows")
    check_allow(decision, results, options)
  end
end
