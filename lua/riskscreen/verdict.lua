-- What every policy shares: which action is worse, how rules in order decide a case, and what a doubt does. Not here:
-- what a rule is about (rule.lua, score_policy.lua).

local severity = { allow = 1, review = 2, unknown = 3, block = 4 }

local M = {}

---Whether an action says no more than that nothing is known: a doubt may stand in its place.
---@param action "allow"|"review"|"block"|"unknown"
---@return boolean
function M.at_most_unknown(action)
  return severity[action] <= severity.unknown
end

---What messages call a rule.
---@param compiled table
---@return string
function M.label(compiled)
  return compiled.rule.name or "rule " .. compiled.index
end

---The reason that the first matching rule gives, by `settle`. A rule before it that might match as well leaves a doubt,
---unless the outcome is the same anyway.
---@param rules table[] compiled, in order
---@param case table what they are matched against
---@param settle fun(compiled: table): riskscreen.Reason, boolean? reason and whether it is degraded
---@return riskscreen.Reason|nil reason nil when no rule matches
---@return boolean|table[] degraded or, when no rule matches, those that might
function M.judge(rules, case, settle)
  local doubts = {}
  for _, compiled in ipairs(rules) do
    local answer = compiled:matches(case)
    if answer then
      local reason, degraded = settle(compiled)
      for _, doubt in ipairs(doubts) do
        if doubt.action ~= reason.action and M.at_most_unknown(reason.action) then
          return M.doubtful(reason, doubt), false
        end
      end
      return reason, degraded or false
    elseif answer == nil then
      doubts[#doubts + 1] = compiled
    end
  end
  return nil, doubts
end

---A reason in whose place nothing is known, because a rule may or may not apply.
---@param reason table what it is about; changed
---@param doubt table the rule
---@return riskscreen.Reason
function M.doubtful(reason, doubt)
  reason.action, reason.rule = "unknown", nil
  reason.message = "it is not known whether " .. M.label(doubt) .. " applies"
  return reason
end

---The reason of a failure: a rule about such failures, or that nothing is known.
---@param rules table[]
---@param err riskscreen.Error
---@return riskscreen.Reason reason
---@return boolean degraded
function M.judge_error(rules, err)
  for _, compiled in ipairs(rules) do
    if compiled:handles_error(err) then
      local message = M.label(compiled) .. ": " .. err.kind
      return { action = compiled.action, message = message, rule = compiled.rule, error = err }, true
    end
  end
  return { action = "unknown", message = tostring(err), error = err }, false
end

---Reasons with the worst first, and in the order given among equals.
---@param reasons riskscreen.Reason[]
---@return riskscreen.Reason[]
function M.ordered(reasons)
  local result = {}
  for _, action in ipairs { "block", "unknown", "review", "allow" } do
    for _, reason in ipairs(reasons) do
      if reason.action == action then
        result[#result + 1] = reason
      end
    end
  end
  return result
end

return M
