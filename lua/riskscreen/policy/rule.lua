-- The rules of a policy, compiled from the operator's tables. evaluate.lua evaluates them. Pure.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local conditions = require "riskscreen.policy.conditions"
local errors = require "riskscreen.errors"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

---@class riskscreen.Rule
---@field action "allow"|"review"|"block"
---@field name? string for people: the reasons repeat it
---@field level? string|string[] riskLevel
---@field type? string|string[] riskType
---@field source? string|string[] riskSource
---@field no_risk? boolean true: only an address without any risk
---@field unrecognised? boolean true: only a risk whose level or type is absent or not known to the library
---@field whitelist? boolean the record's flag
---@field contract? boolean the entity record's flag
---@field category? string|string[] the entity's category or its code; case, spaces, hyphens and underscores are ignored
---@field frozen? boolean whether a freeze is in force
---@field counterparty? riskscreen.CounterpartyRule a risky counterparty
---@field error? boolean|string|string[] true or error kinds: only a lookup that failed
---@field any? boolean true: every case; it stands alone, and replaces the conditions
---@field not_offered? "unknown"|"skip" the meaning where the service does not offer a lookup that the rule needs; the
---policy's, if absent

---@class riskscreen.CounterpartyRule matches counterparties by the `level`, the `type` or both of one of their risks
---@field direction? "in"|"out" absent: both
---@field level? string|string[] riskLevel
---@field type? string|string[] riskType
---@field share? number of the amounts in the direction, in any one token, at least; absent: any amount

local error_kinds = tables.pluck(errors.kinds, "kind")

local function error_set(value)
  if value == true then
    return tables.set(error_kinds)
  elseif value == false then
    return nil, "must be true or error kinds"
  end
  return conditions.text_set(value, error_kinds)
end

local common_options = {
  build.required(build.choice("action", { "allow", "review", "block" })),
  { name = "name", type = "string" },
  build.checked("error", "boolean|string|table", error_set),
  build.choice("not_offered", { "unknown", "skip" }),
}

---@class riskscreen.CompiledRule
---@field rule table as the operator gave it
---@field label string the name in messages: "rule 'high risk'" or "rule 3"
---@field action "allow"|"review"|"block"
---@field errors? table<string, true> the kinds of failures that it handles
---@field conditions { condition: riskscreen.Condition, wanted: any, lookup: riskscreen.LookupName }[]
---@field lookups table<riskscreen.LookupName, true> the lookups that its conditions need
---@field handles_unrecognised boolean
---@field not_offered? "unknown"|"skip" the meaning where the service does not offer a lookup that the rule needs

-- The message about a wrong combination of a rule's conditions. A condition whose value is nil leaves no trace. So a
-- rule without a condition may be a mistake that would match everything.
local function combination_message(compiled, any)
  local has_conditions = compiled.conditions[1] ~= nil
  if compiled.errors and has_conditions then
    return " mixes `error` with other conditions: a lookup that failed has nothing else to match"
  elseif any and compiled.conditions[2] then
    return " mixes `any` with conditions: `any = true` matches every case"
  elseif not (has_conditions or compiled.errors) then
    return " has no condition (is one of its values nil?): name one, or `any = true` to match every case"
  end
end

local function compile(rule, index, options, all_conditions, not_offered)
  local place = "rules[" .. index .. "]"
  local checked, err = check.options(options, rule, place .. ".")
  if not checked then
    return nil, err.message
  end
  local compiled = { rule = rule, action = checked.action, errors = checked.error, conditions = {}, lookups = {} }
  compiled.label = "rule " .. (checked.name and text.show(checked.name) or index)
  compiled.handles_unrecognised = checked.unrecognised == true
  compiled.not_offered = checked.not_offered or not_offered
  for _, condition in ipairs(all_conditions) do
    local wanted = checked[condition.name]
    if wanted ~= nil then
      local lookup = condition.lookup or "risk"
      compiled.conditions[#compiled.conditions + 1] = { condition = condition, wanted = wanted, lookup = lookup }
      compiled.lookups[lookup] = true
    end
  end
  local message = combination_message(compiled, checked.any)
  if message then
    return nil, place .. message
  end
  return compiled
end

local M = {}

local function check_rules(rules)
  local count = tables.sequence_length(rules)
  if not count then
    return nil, "must be a list without a gap: the rules behind one would never be tried"
  elseif count == 0 then
    return nil, "must hold at least one rule"
  end
  return rules
end

---The entry of the option `rules`. It is required where there are no default rules.
---@param default_rules? table[]
---@param doc string
---@return riskscreen.Option
function M.option(default_rules, doc)
  local option = build.checked("rules", "table", check_rules, doc, default_rules)
  return default_rules and option or build.required(option)
end

---The values that rules and the operator name for a condition, in the form in which they are compared.
---@param rules riskscreen.CompiledRule[]
---@param name string the condition
---@param extended table<string, true>
---@return table<string, true>
function M.named(rules, name, extended)
  for _, compiled in ipairs(rules) do
    for _, entry in ipairs(compiled.conditions) do
      extended = entry.condition.name == name and tables.merge(extended, entry.wanted) or extended
    end
  end
  return extended
end

---Compiles the rules of a policy. The settings get copies of them, which identify it: the program may change its own.
---@param settings { rules: table[] } the policy's checked options
---@param all_conditions riskscreen.Condition[]
---@return riskscreen.CompiledRule[]|nil
---@return string|nil message the mistake in a rule
function M.compile_all(settings, all_conditions)
  local options = tables.copy(common_options)
  for _, condition in ipairs(all_conditions) do
    options[#options + 1] = condition.option(settings)
  end
  local compiled, own = {}, {}
  for index, entry in ipairs(settings.rules) do
    local one, message = compile(entry, index, options, all_conditions, settings.not_offered)
    if not one then
      return nil, message
    end
    compiled[index], own[index] = one, tables.deep_copy(entry)
  end
  settings.rules = own
  return compiled
end

return M
