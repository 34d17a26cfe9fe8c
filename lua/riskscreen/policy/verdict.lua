-- What every policy shares: which action is worse, which rule comes first, and which doubts matter. Not here: what a
-- case is and what a reason says (judgement.lua, score_policy.lua).

local NONE = {}

local severity = { allow = 1, review = 2, unknown = 3, block = 4 }

local M = {}

---The worse of two actions.
function M.worst(a, b)
  return severity[a] >= severity[b] and a or b
end

---What messages call a rule.
---@param compiled table
---@return string
function M.label(compiled)
  return compiled.rule.name or "rule " .. compiled.index
end

---The first rule that matches, and those before it of which that is not known.
---@param rules table[] compiled, in order
---@param case table what they are matched against
---@return table|nil compiled
---@return { rule: table, failures?: riskscreen.Error[] }[] doubts
function M.first_match(rules, case)
  local doubts = NONE
  for index = 1, #rules do
    local compiled = rules[index]
    local answer, failures = compiled:matches(case)
    if answer then
      return compiled, doubts
    elseif answer == nil then
      doubts = doubts == NONE and {} or doubts
      doubts[#doubts + 1] = { rule = compiled, failures = failures }
    end
  end
  return nil, doubts
end

---Of the rules that might have matched first, those with which the outcome could have been worse or otherwise.
---@param doubts { rule: table }[]
---@param action "allow"|"review"|"block"|"unknown"
---@return { rule: table }[]
function M.relevant(doubts, action)
  if not doubts[1] then
    return doubts
  end
  local list = {}
  for _, doubt in ipairs(doubts) do
    if doubt.rule.action ~= action and M.worst(action, "unknown") == "unknown" then
      list[#list + 1] = doubt
    end
  end
  return list
end

---The rule about a failure, or nil.
---@param rules table[]
---@param err riskscreen.Error
---@return table|nil compiled
function M.handler_of(rules, err)
  for _, compiled in ipairs(rules) do
    if compiled:handles_error(err) then
      return compiled
    end
  end
end

---Reasons with the worst first, and in the order given among equals.
---@param reasons riskscreen.Reason[]
---@return riskscreen.Reason[]
function M.ordered(reasons)
  if not reasons[2] then
    return reasons
  end
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
