-- A second implementation of the policies of scores, written from docs/transactions.md alone; see policy_oracle.lua.
-- Scores are texts that a double holds exactly.

local json = require "riskscreen.json"
local policy_oracle = require "spec.support.policy_oracle"

local MAYBE, both, contains, object =
  policy_oracle.MAYBE, policy_oracle.both, policy_oracle.contains, policy_oracle.object
local worse = policy_oracle.worse

local function is_absent(value)
  return value == nil or value == json.null
end

local function score(value)
  return type(value) == "string" and value ~= "" and tonumber(value) or -1
end

-- Whether fields of an object are texts or absent.
local function texts(value, ...)
  for _, name in ipairs { ... } do
    if type(value) ~= "table" or not is_absent(value[name]) and type(value[name]) ~= "string" then
      return false
    end
  end
  return true
end

-- What a rule is about.
local function about(rule)
  if rule.detail or rule.detail_name then
    return "detail"
  end
  return (rule.strategy or rule.strategy_name or rule.direction) and "strategy" or "transaction"
end

-- A part has the fields of its strategy, its direction, its own score, and for a detail its code and name. A whole
-- group that is missing is one part without fields: everything about it is MAYBE.
local function matches(options, rule, part)
  local result = not part.may_exist or MAYBE
  -- A value that no rule and no option names is not known.
  local function text(name, value, form)
    if rule[name] ~= nil then
      local is_known = name == "direction" or contains((options.extend or {})[name], value, form)
      for _, one in ipairs(options.rules) do
        is_known = is_known or contains(one[name], value, form)
      end
      is_known = is_known and not is_absent(value)
      result = both(result, not is_known and MAYBE or contains(rule[name], value, form))
    end
  end
  text("direction", part.direction)
  text("strategy", part.strategy)
  text("strategy_name", part.strategy_name, policy_oracle.plain)
  text("detail", part.code, policy_oracle.plain)
  text("detail_name", part.name, policy_oracle.plain)
  for _, limit in ipairs { "score_at_least", "score_below" } do
    if rule[limit] then
      local known = not is_absent(part.score)
      local is_below = known and score(part.score) < tonumber(rule[limit])
      result = both(result, not known and MAYBE or is_below == (limit == "score_below"))
    end
  end
  return result
end

-- The parts of a result: the transaction, strategies, details. Nil for a malformed result.
local function parts_of(options, result)
  local highest, parts = score(result.maxScore), {}
  local function add(kind, part)
    part.kind = kind
    parts[#parts + 1] = part
    return is_absent(part.score) or score(part.score) >= 0 and (kind ~= "strategy" or score(part.score) <= highest)
  end
  local directions = { "in", "out" }
  for _, name in ipairs((options.extend or {}).direction or {}) do
    directions[#directions + 1] = name
  end
  local has_risks_alone = is_absent(result.maxScore) and is_absent(result.dirData) and not is_absent(result.risks)
  local is_unscored = has_risks_alone and options.absent_score == "none"
  if highest < 0 and not is_unscored or not contains(options.final_statuses or { 1003 }, result.status) then
    return nil
  end
  for _, risk in ipairs(is_absent(result.risks) and {} or policy_oracle.list(result.risks) or { "malformed" }) do
    if not texts(risk, "riskLevel", "riskType", "riskSource") then
      return nil
    end
  end
  if is_unscored then
    return {}
  end
  add("transaction", { score = result.maxScore })
  if not is_absent(result.dirData) and type(result.dirData) ~= "table" then
    return nil
  end
  for name, value in pairs(object(result.dirData)) do
    if not is_absent(value) and not contains(directions, name) then
      return nil
    end
  end
  for _, direction in ipairs(directions) do
    local strategies = object(result.dirData)[direction]
    if is_absent(strategies) then
      add("strategy", { direction = direction, may_exist = true })
      add("detail", { direction = direction, may_exist = true })
    elseif type(strategies) ~= "table" then
      return nil
    end
    for number, one in pairs(object(strategies)) do
      local is_well = type(one) == "table" and one.strategyNo == number
      local strategy = { direction = direction, strategy = number }
      strategy.strategy_name, strategy.score = object(one).strategyName, object(one).score
      if not is_well or not add("strategy", strategy) then
        return nil
      end
      local details = not is_absent(one.details) and policy_oracle.list(one.details)
      if details == nil then
        return nil
      end
      for _, detail in ipairs(details or { {} }) do
        local part =
          { may_exist = not details, direction = direction, strategy = number, strategy_name = one.strategyName }
        part.code, part.name, part.score = object(detail).code, object(detail).name, object(detail).score
        if not texts(detail, "code", "name") or not add("detail", part) then
          return nil
        end
      end
    end
  end
  return parts
end

---The action of a policy of scores. A result with `risks` is also decided by the policy `risks`.
---@param options table of the policy
---@param risks table options of the policy for addresses
---@param result any
return function(options, risks, result)
  local parts = parts_of(options, object(result))
  local action = parts and "allow" or policy_oracle.handled(options.rules, { kind = "protocol" }) or "unknown"
  for _, part in ipairs(parts or {}) do
    local decided = part.kind == "transaction" and "unknown" or "allow"
    local possible = {}
    for _, rule in ipairs(options.rules) do
      local found = not rule.error and about(rule) == part.kind and matches(options, rule, part)
      if found == MAYBE then
        possible[#possible + 1] = rule.action
      elseif found then
        decided = rule.action
        break
      end
    end
    for _, other in ipairs(possible) do
      local matters = decided ~= "block" and other ~= decided and not (part.may_exist and other == "allow")
      action = worse(action, matters and "unknown" or nil)
    end
    action = worse(action, decided)
  end
  if not is_absent(object(result).risks) then
    action = worse(action, policy_oracle.address(risks, { risk = result }))
  end
  return action
end
