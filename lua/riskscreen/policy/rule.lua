-- One rule of a policy: compiled once from the operator's table, then matched against a case. Pure.
-- A match has three answers: true, false, and nil when the field a condition needs is not known.

local check = require "riskscreen.options.check"
local conditions = require "riskscreen.policy.conditions"
local errors = require "riskscreen.errors"
local text = require "riskscreen.util.text"

local M = { actions = { "allow", "review", "block" } }

---@class riskscreen.Rule
---@field action "allow"|"review"|"block"
---@field name? string for people: it is repeated in the reasons
---@field level? string|string[] riskLevel
---@field type? string|string[] riskType
---@field source? string|string[] riskSource
---@field no_risk? boolean true: only an address without any risk
---@field unrecognised? boolean true: only a risk whose level or type is absent or was never seen
---@field whitelist? boolean the record's flag
---@field contract? boolean the entity record's flag
---@field category? string|string[] the entity's category or its code, compared without case
---@field frozen? boolean whether a freeze is in force
---@field counterparty? riskscreen.CounterpartyRule a risky counterparty
---@field error? boolean|string|string[] true or error kinds: only a lookup that failed

---@class riskscreen.CounterpartyRule `level`, `type` or both; the counterparties that have such a risk
---@field direction? "in"|"out" absent: both
---@field level? string|string[] riskLevel
---@field type? string|string[] riskType
---@field share? number of the amounts in the direction, in any one token, at least; absent: any amount

local error_kinds = {}
for _, entry in ipairs(errors.kinds) do
  error_kinds[#error_kinds + 1] = entry.kind
end

local function error_set(value)
  if value == true then
    return conditions.set_of(error_kinds)
  elseif value == false then
    return nil, "must be true or error kinds"
  end
  return conditions.set_from(value, error_kinds)
end

---The entries by which check.lua checks and compiles rules with conditions of some kind.
---@param of_conditions riskscreen.Option[]
---@return riskscreen.Option[]
function M.specs_of(of_conditions)
  local specs = {
    { name = "action", type = "string", required = true, values = M.actions },
    { name = "name", type = "string" },
    { name = "error", type = "boolean|string|table", check = error_set },
  }
  for _, spec in ipairs(of_conditions) do
    specs[#specs + 1] = spec
  end
  return specs
end

---The same for the rules of one policy for addresses.
---@param settings riskscreen.PolicySettings
---@return riskscreen.Option[]
function M.specs(settings)
  return M.specs_of(conditions.specs(settings))
end

local Rule = {}
Rule.__index = Rule

---Compiles an operator's rule.
---@param rule riskscreen.Rule
---@param what string how messages call it, such as "rules[3]"
---@param specs riskscreen.Option[] from `specs`, or from `specs_of`
---@param own? table[] the conditions of those, where they are not those for addresses
---@return table|nil compiled
---@return string|nil message what is wrong with the rule
function M.compile(rule, what, specs, own)
  if type(rule) ~= "table" then
    return nil, what .. " must be a table (got " .. text.kind(rule) .. ")"
  end
  local checked, problem = check.options(specs, rule, what .. ".")
  if not checked then
    return nil, problem.message
  end
  local compiled = { rule = rule, action = checked.action, errors = checked.error, conditions = {}, facets = {} }
  compiled.handles_unrecognised = checked.unrecognised == true
  for _, condition in ipairs(own or conditions.list) do
    local wanted = checked[condition.name]
    if wanted ~= nil then
      local facet = condition.facet or "risk"
      compiled.conditions[#compiled.conditions + 1] = { match = condition.match, wanted = wanted, facet = facet }
      compiled.facets[facet] = true
    end
  end
  if compiled.errors and #compiled.conditions > 0 then
    return nil, what .. " mixes `error` with other conditions: a lookup that failed has nothing else to match"
  end
  return setmetatable(compiled, Rule)
end

-- Where the service has no such lookup for the network nothing is known to hold, or the operator wants the doubt.
local function answer_of(condition, case)
  if not case.not_offered[condition.facet] then
    return condition.match(condition.wanted, case)
  elseif case.settings.not_offered == "unknown" then
    return nil
  end
  return false
end

---Whether the rule applies: true, false, or nil when that cannot be known.
---@param case riskscreen.Case
---@return boolean|nil answer
---@return riskscreen.Error[]|nil failures the failed lookups, when they alone are why it cannot be known
function Rule:matches(case)
  if self.errors then
    return false
  end
  local all, failures, other_doubt = self.conditions, nil, false
  for index = 1, #all do
    local condition = all[index]
    local answer = answer_of(condition, case)
    if answer == false then
      return false
    elseif answer == nil then
      failures = failures or {}
      failures[#failures + 1] = case.failures[condition.facet]
      other_doubt = other_doubt or not case.failures[condition.facet]
    end
  end
  if other_doubt then
    return nil
  elseif failures then
    return nil, failures
  end
  return true
end

---Whether it has conditions, and none of them is on the risk assessment.
---@return boolean
function Rule:is_about_other_facets()
  return #self.conditions > 0 and not self.facets.risk
end

---Whether the rule is about this failure.
---@param err riskscreen.Error
---@return boolean
function Rule:handles_error(err)
  return self.errors ~= nil and self.errors[err.kind] == true
end

return M
