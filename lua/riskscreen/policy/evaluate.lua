-- Evaluates a policy's compiled rules for one case and gives the action with its reason. Pure. The first rule that
-- matches decides. A rule is undetermined if it needs a failed lookup or an unknown field. If an earlier rule is
-- undetermined and has another action, the result is unknown. There are two exceptions: the match blocks, or the
-- operator's `error` rules handle each failed lookup; then the worst of the actions counts.

local decision = require "riskscreen.policy.decision"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local worst = decision.worst
local NONE = {}

local M = {}

---@class riskscreen.UndeterminedRule
---@field rule riskscreen.CompiledRule
---@field failures? riskscreen.Error[] the failed lookups, when they alone are the cause
---@field cause? string another cause

---The first rule that matches, and the undetermined rules before it.
---@param rules riskscreen.CompiledRule[] in the operator's order
---@param case table
---@return riskscreen.CompiledRule|nil match
---@return riskscreen.UndeterminedRule[] undetermined
function M.first_match(rules, case)
  local undetermined = NONE
  for _, rule in ipairs(rules) do
    local answer, failures, cause = rule:matches(case)
    if answer then
      return rule, undetermined
    elseif answer == nil then
      undetermined = undetermined == NONE and {} or undetermined
      undetermined[#undetermined + 1] = { rule = rule, failures = failures, cause = cause }
    end
  end
  return nil, undetermined
end

---The undetermined rules that could have changed the action. Nothing changes a block.
---@param undetermined riskscreen.UndeterminedRule[]
---@param action riskscreen.Action
---@return riskscreen.UndeterminedRule[]
function M.relevant(undetermined, action)
  if not undetermined[1] or action == "block" then
    return NONE
  end
  local relevant = {}
  for _, one in ipairs(undetermined) do
    if one.rule.action ~= action then
      relevant[#relevant + 1] = one
    end
  end
  return relevant
end

local function describe(case)
  local risk = case.risk
  if not risk then
    return "an address without risks"
  end
  local level, kind = risk.riskLevel, risk.riskType
  return (type(level) == "string" and text.printable(level) or "absent")
    .. " / "
    .. (type(kind) == "string" and text.printable(kind) or "absent")
end

local function unknown(case, message, err)
  return { action = "unknown", message = message, risk = case.risk, error = err }, false
end

---The message about an undetermined rule.
---@param rule riskscreen.CompiledRule
---@param cause? riskscreen.Error|string
---@return string
function M.undetermined_message(rule, cause)
  return rule.label .. " is undetermined: " .. (cause and tostring(cause) or "a field that it needs is not known")
end

local function undetermined_reason(case, one)
  local err = one.failures and one.failures[1]
  return unknown(case, M.undetermined_message(one.rule, err or one.cause), err)
end

-- The reason of a case that a rule matches. With an unrecognised risk the action is unknown or block, unless the rule
-- handles it.
local function matched_reason(case, rule)
  if case.unrecognised and not rule.handles_unrecognised and rule.action ~= "block" then
    return unknown(case, case.unrecognised)
  end
  local message = rule.label .. " matches " .. describe(case)
  local degraded = case.unrecognised ~= nil and rule.handles_unrecognised
  return { action = rule.action, message = message, rule = rule.rule, risk = case.risk }, degraded
end

-- The rule that handles a failure, or nil.
local function handler_of(rules, err)
  for _, rule in ipairs(rules) do
    if rule.errors and rule.errors[err.kind] then
      return rule
    end
  end
end

local function handled_reason(handler, err)
  local message = ("%s handles %s errors"):format(handler.label, err.kind)
  return { action = handler.action, message = message, rule = handler.rule, error = err }
end

-- The worst of the `error` rules that handle the failures behind an undetermined rule, and its failure. Nil when the
-- rule has another cause, or no rule handles one of the failures.
local function handler_of_all(rules, undetermined)
  local worst_handler, failure
  for _, err in ipairs(undetermined.failures or NONE) do
    local handler = handler_of(rules, err)
    if not handler then
      return nil
    elseif not worst_handler or worst(worst_handler.action, handler.action) ~= worst_handler.action then
      worst_handler, failure = handler, err
    end
  end
  return worst_handler, failure
end

-- The reason of a case whose action undetermined rules could change. The action is the worst of the one decided without
-- them and, for each of them, that of the `error` rules, or unknown.
local function settle(rules, case, reason, degraded, undetermined)
  if not undetermined[1] then
    return reason, degraded
  end
  local result, doubtful = reason, nil
  for _, one in ipairs(undetermined) do
    local handler, err = handler_of_all(rules, one)
    doubtful = doubtful or not handler and one or nil
    local action = worst(handler and handler.action or "unknown", result.action)
    if handler and (action ~= result.action or not result.error) then
      result, degraded = handled_reason(handler, err), true
      result.risk = reason.risk
    end
    result = tables.merge(result, { action = action })
  end
  if result.action ~= "unknown" then
    return result, degraded
  elseif reason.action == "unknown" and (reason.error or case.unrecognised) then
    return reason, false
  end
  return undetermined_reason(case, doubtful or undetermined[1])
end

---Evaluates the rules for a case.
---@param rules riskscreen.CompiledRule[]
---@param case riskscreen.Case
---@return riskscreen.Reason reason
---@return boolean degraded
function M.case(rules, case)
  local match, undetermined = M.first_match(rules, case)
  local reason, degraded
  if match then
    reason, degraded = matched_reason(case, match)
  else
    reason, degraded = unknown(case, case.unrecognised or "no rule covers " .. describe(case))
  end
  return settle(rules, case, reason, degraded, M.relevant(undetermined, reason.action))
end

---Evaluates the rules for a failure to get the risk assessment. The other lookups can only make the action worse. An
---`error` rule for this failure says nothing about theirs.
---@param rules riskscreen.CompiledRule[]
---@param case riskscreen.Case without a risk; the failure is among its failures
---@param err riskscreen.Error
---@return riskscreen.Reason reason
---@return boolean degraded
function M.failure(rules, case, err)
  local handler = handler_of(rules, err)
  local reason = handler and handled_reason(handler, err)
    or { action = "unknown", message = tostring(err), error = err }
  local match, undetermined = M.first_match(rules, case)
  if match and worst(match.action, reason.action) ~= reason.action then
    local message = match.label .. " matches without the risk assessment"
    reason, handler = { action = match.action, message = message, rule = match.rule, error = err }, nil
  end
  local could_worsen = {}
  for _, one in ipairs(undetermined) do
    could_worsen[#could_worsen + 1] = worst(one.rule.action, reason.action) ~= reason.action and one or nil
  end
  return settle(rules, case, reason, handler ~= nil, could_worsen)
end

return M
