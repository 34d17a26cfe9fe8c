-- What the second implementations of both kinds of policy share, from docs/screening-and-policy.md: values that may be
-- missing, and the steps from the rules to an action. MAYBE is undetermined. The least of several truths holds if all
-- do, the greatest if one does.
local json = require "riskscreen.json"

local NONE = {}
local NO, MAYBE, YES = 0, 1, 2
local RANK = { allow = 1, review = 2, unknown = 3, block = 4, "allow", "review", "unknown", "block" }
local M = { NO = NO, MAYBE = MAYBE, YES = YES, NONE = NONE, RANK = RANK }

function M.known(is_known, holds)
  return not is_known and MAYBE or holds and YES or NO
end

function M.absent(value)
  return value == nil or value == json.null
end

function M.object(value)
  return type(value) == "table" and value or NONE
end

function M.list(value, meaning) -- nil if it is no list; `meaning` is an option absent_…
  value = M.absent(value) and meaning == "none" and NONE or value
  return type(value) == "table" and (value[1] ~= nil or next(value) == nil) and value or nil
end

function M.any(values, holds)
  local result = NO
  for _, value in pairs(values) do
    result = math.max(result, holds(M.object(value)))
  end
  return result
end

function M.filled(text)
  return type(text) == "string" and text ~= "" and text or nil
end

function M.loose(text)
  return (text:lower():gsub("[%s_-]", ""))
end

function M.among(values, text, form) -- whether a value, or one of a list, is this text
  for _, value in ipairs(type(values) == "table" and values or { values }) do
    if value == text or form and M.filled(text) and form(value) == form(text) then
      return true
    end
  end
  return false
end

function M.one_of(wanted, text, is_known, form)
  return wanted == nil and YES or M.known(type(text) == "string" and is_known, M.among(wanted, text, form))
end

function M.named(policy, rule, name, text, form) -- one of the values that rules and `extend` name
  local is_named = M.among(M.object(policy.extend)[name], text, form)
  for _, other in ipairs(policy.rules) do
    is_named = is_named or M.among(other[name], text, form)
  end
  return M.one_of(rule[name], text, is_named, form)
end

function M.handler(policy, failure) -- the first `error` rule that names its kind
  for _, rule in ipairs(policy.rules) do
    if failure.kind and (rule.error == true or M.among(rule.error, failure.kind)) then
      return RANK[rule.action]
    end
  end
end

-- "Missing values never help an address". `try` gives a rule's result, and the causes of what is undetermined in it.
function M.decide(policy, try, start, is_failed, is_unclear)
  local decider, undetermined = NONE, {}
  for _, rule in ipairs(policy.rules) do
    local result, causes = try(rule)
    if result == YES then
      decider = rule
      break
    end
    undetermined[rule] = result == MAYBE and causes or nil
  end
  local least = is_failed and start or is_unclear and not decider.unrecognised and RANK.unknown or RANK.allow
  local action = math.max(least, RANK[decider.action] or start)
  local result = action
  for rule, causes in pairs(undetermined) do
    local own, handled = RANK[rule.action], RANK.allow
    for _, failure in ipairs(causes) do
      handled = handled and M.handler(policy, failure) and math.max(handled, M.handler(policy, failure))
    end
    local matters = action ~= RANK.block and own ~= action and (own > action or not is_failed)
    result = math.max(result, matters and (handled or RANK.unknown) or action)
  end
  return result
end

return M
