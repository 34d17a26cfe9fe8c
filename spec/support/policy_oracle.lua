-- A second implementation of the policies for addresses, written from docs/screening-and-policy.md alone. It is
-- compared in spec/unit/policy/oracle_spec.lua. The conditions are in policy_oracle_conditions.lua.

local conditions = require "spec.support.policy_oracle_conditions"

local MAYBE, both, contains, object = conditions.MAYBE, conditions.both, conditions.contains, conditions.object
local ORDER = { allow = 1, review = 2, unknown = 3, block = 4 }
local ABSENT = { freeze_events = "absent_freeze_events", counterparties = "absent_opponents" }
local ON_RISK = { "level", "type", "source", "no_risk", "whitelist", "unrecognised", "any" }
local ON_LOOKUP =
  { contract = "entity", category = "entity", frozen = "freeze_events", counterparty = "counterparties" }
local M = {}

---The worse of two actions.
function M.worse(a, b)
  return b and ORDER[b] > ORDER[a] and b or a
end

---The action of the first `error` rule for a failure.
function M.handled(rules, err)
  for _, rule in ipairs(rules) do
    if rule.error == true or contains(rule.error, err.kind) then
      return rule.action
    end
  end
end

local handled, worse = M.handled, M.worse

-- A condition on the risk assessment or one of its risks; `risk` is nil for an address without risks.
local function on_risk(options, name, wanted, record, risk)
  local function one_of(value)
    return type(value) ~= "string" and MAYBE or contains(wanted, value)
  end
  if name == "whitelist" then
    return conditions.flag(object(record).whitelist, wanted)
  elseif name == "any" or name == "no_risk" then
    return name == "any" or (risk == nil) == wanted
  elseif name == "unrecognised" then
    return (risk ~= nil and conditions.unrecognised(options, risk)) == wanted
  elseif risk == nil then
    return false
  elseif name ~= "source" then
    return one_of(object(risk)[name == "level" and "riskLevel" or "riskType"])
  end
  local value, provider = object(risk).riskSource, options.provider or "Provider"
  local is_known = contains({ provider, "Community", "User-Defined" }, value)
    or contains((options.extend or {}).source, value)
  return not is_known and MAYBE or contains(wanted, value) or value == provider and contains(wanted, "Provider")
end

-- Whether a rule matches a risk. If that is MAYBE because of handled failures alone, also their action.
local function matches(options, rule, evidence, failures, risk)
  local result, excuse = true, "allow"
  local function add(value, lookup)
    result = both(result, value)
    if value == MAYBE then
      local err = failures[lookup]
      local action = err and handled(options.rules, err)
      excuse = excuse and action and worse(excuse, action)
    end
  end
  for _, name in ipairs(ON_RISK) do
    if rule[name] ~= nil then
      local value = failures.risk and MAYBE or on_risk(options, name, rule[name], evidence.risk, risk)
      add(value, "risk")
    end
  end
  for name, lookup in pairs(ON_LOOKUP) do
    local answer = evidence[lookup]
    if rule[name] == nil then -- luacheck: ignore 542
    elseif object(evidence.not_offered)[lookup] then
      add((rule.not_offered or options.not_offered) == "unknown" and MAYBE, lookup)
    elseif failures[lookup] or answer == nil and not object(evidence.errors)[lookup] then
      add(MAYBE, lookup)
    elseif name == "contract" then
      add(conditions.flag(object(answer).contract, rule.contract), lookup)
    elseif name == "frozen" then
      local found = conditions.frozen(options, answer)
      add(found == MAYBE and MAYBE or found == rule.frozen, lookup)
    else
      add(conditions[name](options, rule[name], answer or {}), lookup)
    end
  end
  return result, result == MAYBE and excuse or nil
end

-- The action for one risk, or without the risk assessment, whose failure has the action `base`.
local function one_action(options, evidence, failures, risk, base)
  local doubtful, decided = {}, nil
  for _, rule in ipairs(options.rules) do
    local result, excuse
    if not rule.error then
      result, excuse = matches(options, rule, evidence, failures, risk)
    end
    if result == MAYBE then
      doubtful[#doubtful + 1] = { action = rule.action, excuse = excuse }
    elseif result then
      decided = rule
      break
    end
  end
  local action = base and worse(base, decided and decided.action) or decided and decided.action or "unknown"
  if risk ~= nil and conditions.unrecognised(options, risk) and not (decided and decided.unrecognised) then
    action = worse(action, "unknown")
  end
  local result = action
  for _, one in ipairs(action == "block" and {} or doubtful) do
    if one.action ~= action and not (base and worse(action, one.action) == action) then
      result = worse(result, one.excuse or "unknown")
    end
  end
  return result
end

---The action of a policy for addresses.
---@param options table of the policy
---@param evidence riskscreen.LookupResults|table
function M.address(options, evidence)
  local failures = {}
  for name, err in pairs(object(evidence.errors)) do
    failures[name] = not (err.absent and options[ABSENT[name]] == "none") and err or nil
  end
  local record, action = evidence.risk, "allow"
  local risks = type(record) == "table" and conditions.list(record.risks, options.absent_risks)
  failures.risk = object(evidence.errors).risk or not risks and { kind = "protocol" } or nil
  if failures.risk then
    return one_action(options, evidence, failures, nil, handled(options.rules, failures.risk) or "unknown")
  end
  for _, risk in ipairs(risks) do
    action = worse(action, one_action(options, evidence, failures, risk))
  end
  return risks[1] == nil and one_action(options, evidence, failures) or action
end

return M
