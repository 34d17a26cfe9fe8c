-- Evaluates a policy's compiled rules for one case and gives the action with its reason. Pure. The first rule that
-- matches decides. A rule is undetermined if it needs a failed lookup or an unknown field. If an earlier rule is
-- undetermined and has another action, the result is unknown. There are two exceptions: the match blocks, or the
-- operator's `error` rules handle each failed lookup; then the worst of the actions counts.

local decision = require "riskscreen.policy.decision"
local tables = require "riskscreen.util.tables"

local NONE = {}

---The rules are evaluated for a case: a risk, an address without risks, or a part of a transaction's result.
---@class riskscreen.Case
---@field risk? table
---@field no_risk? boolean the record has an empty list of risks
---@field unrecognised? string the message about a level or type that is absent or not known
---@field part? riskscreen.ScorePart
---@field may_exist? boolean the part may be absent: rules that match it are undetermined
---@field is_optional? boolean no rule need match it
---@field describe fun(case: riskscreen.Case): string
---@field results riskscreen.LookupResults
---@field failures table<riskscreen.LookupName, riskscreen.Error>
---@field not_offered table<riskscreen.LookupName, boolean>
---@field policy riskscreen.Policy|riskscreen.ScorePolicy

local M = {}

local function is_worse(action, other)
  return action ~= other and decision.worst(action, other) == action
end

local function new_reason(case, action, message, rule, err)
  local reason = { action = action, message = message, rule = rule and rule.rule, risk = case.risk, error = err }
  return case.part and tables.merge(case.part, reason) or reason
end

---Whether a condition holds; when that is not known, also the cause if there is something to say about it.
---Where the service does not offer its lookup, the operator's `not_offered` counts.
---@param entry { condition: riskscreen.Condition, wanted: any, lookup: riskscreen.LookupName }
---@param case riskscreen.Case
---@param not_offered? "unknown"|"skip"
---@return boolean|nil
---@return string|nil cause
function M.condition(entry, case, not_offered)
  if case.failures[entry.lookup] then
    return nil
  elseif not case.not_offered[entry.lookup] then
    return entry.condition.matches(entry.wanted, case)
  elseif not_offered == "skip" then
    return false
  end
  return nil, "the service does not offer this lookup for the network"
end

-- Whether the rule matches. When that is not known, also its cause: the failed lookups if there is no other one, or a
-- text where a condition tells one.
local function matches(rule, case)
  if rule.errors then
    return false
  end
  local answer, failures, other_cause, first_cause = true, nil, nil, nil
  for _, entry in ipairs(rule.conditions) do
    local holds, cause = M.condition(entry, case, rule.not_offered)
    if holds == false then
      return false
    elseif holds == nil then
      local failure = case.failures[entry.lookup]
      answer, failures = nil, failures or {}
      failures[#failures + 1] = failure
      other_cause = other_cause or not failure
      first_cause = first_cause or cause
    end
  end
  if case.may_exist then
    return nil
  end
  return answer, not other_cause and failures or nil, first_cause
end

-- The first rule that matches, and the undetermined rules before it.
local function first_match(rules, case)
  local undetermined = NONE
  for _, rule in ipairs(rules) do
    local answer, failures, cause = matches(rule, case)
    if answer then
      return rule, undetermined
    elseif answer == nil then
      undetermined = undetermined == NONE and {} or undetermined
      undetermined[#undetermined + 1] = { rule = rule, failures = failures, cause = cause }
    end
  end
  return nil, undetermined
end

-- The reason of a case that a rule matches, and whether it is degraded. With an unrecognised risk the action is unknown
-- or block, unless the rule handles it.
local function matched_reason(case, rule, err)
  if case.unrecognised and not rule.handles_unrecognised and rule.action ~= "block" then
    return new_reason(case, "unknown", case.unrecognised), false
  end
  local message = " matches " .. (err and "without the risk assessment" or case:describe())
  return new_reason(case, rule.action, rule.label .. message, rule, err), rule.handles_unrecognised
end

---The reason of the `error` rule that handles a failure, or nil.
---@param rules riskscreen.CompiledRule[]
---@param case riskscreen.Case
---@param err riskscreen.Error
---@return riskscreen.Reason|nil
function M.handled_reason(rules, case, err)
  for _, rule in ipairs(rules) do
    if rule.errors and rule.errors[err.kind] then
      return new_reason(case, rule.action, ("%s handles %s errors"):format(rule.label, err.kind), rule, err)
    end
  end
end

-- The reason of an undetermined rule: the worst of the `error` rules that handle the failures behind it. It is unknown
-- when the rule has another cause or no rule handles one of the failures.
local function undetermined_reason(rules, case, one)
  local worst
  for _, err in ipairs(one.failures or NONE) do
    local handled = M.handled_reason(rules, case, err)
    if not handled then
      worst = nil
      break
    elseif not worst or is_worse(handled.action, worst.action) then
      worst = handled
    end
  end
  if worst then
    return worst, true
  end
  local err = one.failures and one.failures[1]
  local cause = err and tostring(err) or one.cause or "a field that it needs is not known"
  return new_reason(case, "unknown", one.rule.label .. " is undetermined: " .. cause, nil, err), false
end

-- The reason without the undetermined rules. Without the risk assessment a match counts where it is worse alone.
local function first_reason(rules, case, match, err)
  local reason = err and (M.handled_reason(rules, case, err) or new_reason(case, "unknown", tostring(err), nil, err))
  local degraded = reason ~= nil and reason.rule ~= nil
  if match and not (reason and not is_worse(match.action, reason.action)) then
    local matched, is_degraded = matched_reason(case, match, err)
    return matched, is_degraded or degraded and match.action ~= "block"
  end
  return reason or case.unrecognised and new_reason(case, "unknown", case.unrecognised), degraded
end

---Evaluates the rules for a case. An error is the failure to get the risk assessment, which is among the case's
---failures. The other lookups can only make its action worse, and an `error` rule for it says nothing about theirs.
---@param rules riskscreen.CompiledRule[]
---@param case riskscreen.Case
---@param err? riskscreen.Error
---@return riskscreen.Reason|nil reason nil where the case is optional and no rule matches
---@return boolean degraded
function M.case(rules, case, err)
  local match, undetermined = first_match(rules, case)
  local reason, degraded = first_reason(rules, case, match, err)
  local action = reason and reason.action or case.is_optional and "allow" or "unknown"
  for _, one in ipairs(action ~= "block" and undetermined or NONE) do
    local own = one.rule.action
    if own ~= action and (not err or is_worse(own, action)) then
      local other, is_handled = undetermined_reason(rules, case, one)
      if not reason and other.action == "unknown" or is_worse(other.action, reason and reason.action or action) then
        reason, degraded = other, degraded or is_handled
      elseif reason and is_handled then
        reason, degraded = tables.merge(reason, { error = reason.error or other.error }), true
      end
    end
  end
  if not reason and not case.is_optional then
    reason = new_reason(case, "unknown", "no rule covers " .. case:describe())
  end
  return reason, degraded and reason ~= nil and reason.action ~= "unknown"
end

return M
