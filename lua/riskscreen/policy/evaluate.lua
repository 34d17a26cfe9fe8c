-- What a policy's compiled rules make of one case: the action and its reason. Pure.
-- The first rule that matches decides. A rule that might match leaves a doubt, unless the outcome is the same anyway.

local enums = require "riskscreen.interface.enums"
local text = require "riskscreen.util.text"
local verdict = require "riskscreen.policy.verdict"

local first_match, handler_of, label, relevant, worst =
  verdict.first_match, verdict.handler_of, verdict.label, verdict.relevant, verdict.worst

local function word(value, enum)
  if type(value) ~= "string" then
    return "absent"
  end
  return enums.has(enum, value) and value or text.printable(value)
end

local function describe(risk)
  return word(risk.riskLevel, "risk_level") .. " / " .. word(risk.riskType, "risk_type")
end

-- The reason why a rule decided a case. An unrecognised risk is at least unknown, unless the rule is about such risks.
local function settle(case, compiled)
  local action, degraded = compiled.action, false
  if case.unrecognised then
    if compiled.handles_unrecognised then
      degraded = true
    elseif worst(action, "unknown") == "unknown" then
      return { action = "unknown", message = case.unrecognised, risk = case.risk }, false
    end
  end
  local what = case.risk and describe(case.risk) or "no risk"
  return { action = action, message = label(compiled) .. ": " .. what, rule = compiled.rule, risk = case.risk },
    degraded
end

local function unknown(case, message, err)
  return { action = "unknown", message = message, risk = case.risk, error = err }, false
end

local function unsettled(case, doubt)
  local err = doubt.failures and doubt.failures[1]
  local why = err and (": " .. tostring(err)) or ""
  return unknown(case, "it is not known whether " .. label(doubt.rule) .. " applies" .. why, err)
end

-- What the operator's `error` rules make of the lookups whose failure leaves doubts: the worst of it and of what was
-- decided without them. Nil when one of the doubts is about something else, or no rule is about a failure.
local function settle_failures(rules, reason, doubts)
  local result = reason
  for _, doubt in ipairs(doubts) do
    for _, err in ipairs(doubt.failures or {}) do
      local handler = handler_of(rules, err)
      if not handler then
        return nil
      elseif not result.error or worst(handler.action, result.action) ~= result.action then
        result = {
          action = worst(handler.action, result.action),
          message = label(handler) .. ": " .. err.kind,
          rule = handler.rule,
          risk = reason.risk,
          error = err,
        }
      end
    end
    if not doubt.failures then
      return nil
    end
  end
  return result
end

local function unrecognised_value(field, value, enum, extended)
  if value == nil then
    return "a risk has no " .. field
  elseif type(value) ~= "string" or not (enums.has(enum, value) or extended[value]) then
    return field .. " " .. text.show(value) .. " is not a value this library knows"
  end
end

local M = { worst = worst }

---What is wrong with a risk, when its level or type is absent or was never seen.
---@param risk any
---@param extended { level: table<string, boolean>, type: table<string, boolean> }
---@return string|nil
function M.unrecognised(risk, extended)
  if type(risk) ~= "table" then
    return "a risk is not an object"
  end
  return unrecognised_value("riskLevel", risk.riskLevel, "risk_level", extended.level)
    or unrecognised_value("riskType", risk.riskType, "risk_type", extended.type)
end

---What the rules make of a case.
---@param rules table[] compiled
---@param case riskscreen.Case
---@return riskscreen.Reason reason
---@return boolean degraded
function M.of_case(rules, case)
  local match, doubts = first_match(rules, case)
  if not match then
    if case.unrecognised then
      return unknown(case, case.unrecognised)
    elseif doubts[1] then
      return unsettled(case, doubts[1])
    end
    return unknown(
      case,
      case.risk and "no rule covers " .. describe(case.risk) or "no rule covers an address without risk"
    )
  end
  local reason, degraded = settle(case, match)
  doubts = relevant(doubts, reason.action)
  if not doubts[1] then
    return reason, degraded
  end
  local settled = settle_failures(rules, reason, doubts)
  if settled and settled.action ~= "unknown" then
    return settled, true
  end
  return unsettled(case, doubts[1])
end

-- The reason of a rule that knows the risk assessment is not needed for it and is worse than `action`.
local function worse_without_risk(rules, case, action)
  for _, compiled in ipairs(rules) do
    if compiled:is_about_other_facets() and compiled:matches(case) and worst(compiled.action, action) ~= action then
      return { action = compiled.action, message = label(compiled), rule = compiled.rule }
    end
  end
end

---What the rules make of a failure to get the risk assessment. What the other lookups say can only make it worse.
---@param rules table[] compiled
---@param case riskscreen.Case without a risk
---@param err riskscreen.Error
---@return riskscreen.Reason reason
---@return boolean degraded
function M.of_failure(rules, case, err)
  local handler = handler_of(rules, err)
  local reason = { action = "unknown", message = tostring(err), error = err }
  if handler then
    reason = { action = handler.action, message = label(handler) .. ": " .. err.kind, rule = handler.rule, error = err }
  end
  local worse = worse_without_risk(rules, case, reason.action)
  if worse then
    worse.error = err
    return worse, false
  end
  return reason, handler ~= nil
end

return M
