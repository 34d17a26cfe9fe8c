-- Finds rules of a policy that never decide. Says what the policy does where a lookup is not offered or a value is not
-- known.

local enums = require "riskscreen.interface.enums"
local lookups = require "riskscreen.policy.lookups"
local prove = require "riskscreen.policy.prove"
local tables = require "riskscreen.util.tables"

---@class riskscreen.PolicyFinding
---@field about string a rule, or an unknown value
---@field message string
---@field is_fault boolean the policy does not do what it says

local M = {}

-- The rules that decide about some evidence; nil if there is too much of it.
local function deciding(domain, policy)
  local elements, _, rules = prove.enumerate(domain, { policy }, { is = {} }, 1, true)
  return elements and rules
end

-- An `error` rule decides about a kind of failures that no earlier one handles, where all lookups fail so.
local function is_hidden(policy, compiled)
  local handled = {}
  for _, rule in ipairs(policy.rules) do
    if rule == compiled then
      return next(tables.without(rule.errors, tables.unpack(tables.sorted_keys(handled)))) == nil
    end
    handled = tables.merge(handled, rule.errors)
  end
end

-- The reason why a rule never decides, if it never does.
local function fault_of(domain, policy, compiled, found)
  if compiled.errors then
    return is_hidden(policy, compiled) and "earlier rules handle its errors" or nil
  elseif found and found[compiled.rule] then
    return nil
  end
  local alone = deciding(domain, domain.with_rules(policy, { compiled }, policy.recognised))
  if not found or not alone then
    return "not decided whether it ever decides"
  end
  return alone[compiled.rule] and "an earlier rule always decides in its place" or "no evidence meets its conditions"
end

local function networks_without(compiled)
  local missing = {}
  for _, lookup in ipairs(lookups.list) do
    for _, network in ipairs(compiled.lookups[lookup.name] and enums.values.network or {}) do
      missing[network] = not lookups.applies(lookup, network) or missing[network]
    end
  end
  return table.concat(tables.sorted_keys(missing), ", ")
end

-- The policy's actions for evidence with an unknown value of a field.
local function unknown_value(domain, policy, field)
  local claim, actions, allowed = { is = { [field] = "unknown" } }, {}, {}
  local elements = prove.enumerate(domain, { policy }, claim, 1)
  for _, element in ipairs(elements or {}) do
    actions[element.actions[1]] = true
    allowed[#allowed + 1] = element.actions[1] == "allow" and element or nil
  end
  local evidence = prove.example(domain, allowed, function(evidence)
    return domain.decide(policy, evidence).action == "allow"
  end)
  if evidence then
    return "allowed: " .. tostring(domain.decide(policy, evidence))
  elseif not elements or allowed[1] then
    return "not decided whether it is ever allowed"
  end
  return "never allowed: " .. table.concat(tables.sorted_keys(actions), " or ")
end

---Checks the rules of a policy. See docs/policy-proofs.md.
---@param domain riskscreen.policy.Domain
---@param policy riskscreen.Policy|riskscreen.ScorePolicy
---@return riskscreen.PolicyFinding[]
function M.findings(domain, policy)
  local findings, fields, found = {}, {}, deciding(domain, policy)
  local function add(about, message, is_fault)
    findings[#findings + 1] = { about = about, message = message, is_fault = is_fault }
  end
  for _, compiled in ipairs(policy.rules) do
    local fault, networks = fault_of(domain, policy, compiled, found), networks_without(compiled)
    if fault then
      add(compiled.label, fault, true)
    end
    if networks ~= "" then
      local effect = compiled.not_offered == "skip" and "skipped" or "undetermined"
      add(compiled.label, ("it is %s on %s, where a lookup of it is not offered"):format(effect, networks), false)
    end
  end
  local space = domain.space({ policy }, { is = {} }, 1)
  for _, part in ipairs(space and space.parts or {}) do
    fields = tables.merge(fields, part.fields)
  end
  for _, field in ipairs(tables.sorted_keys(fields)) do
    add("unknown " .. field, unknown_value(domain, policy, field), false)
  end
  return findings
end

return M
