-- One rule of a policy: compiled once from the operator's table, then matched against a case. Pure.
-- A match has three answers: true, false, and nil when the field a condition needs is not known.

local check = require "riskscreen.check"
local enums = require "riskscreen.enums"
local errors = require "riskscreen.errors"
local text = require "riskscreen.text"

local M = { actions = { "allow", "review", "block" } }

---What a rule is matched against: one risk of a record (or none), and the facets around it.
---@class riskscreen.Case
---@field risk? table
---@field no_risk? boolean the record has an empty list of risks
---@field unrecognised? boolean the risk has a level or type that is absent or was never seen
---@field record? table the risk assessment
---@field entity? table the entity lookup record
---@field absent_entity "unknown"|"none"

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
---@field error? boolean|string|string[] true or error kinds: only a lookup that failed

local function set_of(values)
  local set = {}
  for _, value in ipairs(values) do
    set[value] = true
  end
  return set
end

local function one_of(set, value)
  if type(value) ~= "string" then
    return nil
  end
  return set[value] == true
end

local function same(wanted, value)
  if type(value) ~= "boolean" then
    return nil
  end
  return value == wanted
end

local function risk_field(field)
  return function(set, case)
    if not case.risk then
      return false
    end
    return one_of(set, case.risk[field])
  end
end

local function categories(set, case)
  local record = case.entity
  if type(record) ~= "table" then
    return nil
  end
  local entity = record.entity
  if type(entity) ~= "table" then
    if entity == nil and case.absent_entity == "none" then
      return false
    end
    return nil
  end
  for _, field in ipairs { "entityCategory", "entityCategoryCode" } do
    local value = entity[field]
    if type(value) == "string" and set[value:lower()] then
      return true
    end
  end
  return false
end

-- Every condition once: what its value may be, which lookup it needs, and how it is matched.
local conditions = {
  { name = "level", enum = "risk_level", match = risk_field "riskLevel" },
  { name = "type", enum = "risk_type", match = risk_field "riskType" },
  { name = "source", enum = "risk_source", match = risk_field "riskSource" },
  {
    name = "no_risk",
    flag = true,
    match = function(wanted, case)
      return (case.no_risk or false) == wanted
    end,
  },
  {
    name = "unrecognised",
    flag = true,
    match = function(wanted, case)
      return (case.unrecognised or false) == wanted
    end,
  },
  {
    name = "whitelist",
    flag = true,
    match = function(wanted, case)
      return same(wanted, case.record and case.record.whitelist)
    end,
  },
  {
    name = "contract",
    flag = true,
    facet = "entity",
    match = function(wanted, case)
      return same(wanted, case.entity and case.entity.contract)
    end,
  },
  { name = "category", facet = "entity", match = categories },
}

local error_kinds = {}
for _, entry in ipairs(errors.kinds) do
  error_kinds[#error_kinds + 1] = entry.kind
end

-- The set of a text or a list of texts, each one of `allowed` when that is given.
local function set_from(value, allowed)
  local list = type(value) == "string" and { value } or value
  if type(list) ~= "table" or #list == 0 then
    return nil, "must be a text or a list of texts"
  end
  local known = set_of(allowed or list)
  for _, one in ipairs(list) do
    if type(one) ~= "string" then
      return nil, "must be a text or a list of texts (it holds " .. text.kind(one) .. ")"
    elseif not known[one] then
      local names = table.concat(allowed, ", ")
      return nil, ("must be one of %s (got %s%s)"):format(names, text.show(one), text.did_you_mean(one, allowed))
    end
  end
  return set_of(list)
end

local function error_set(value)
  if value == true then
    return set_of(error_kinds)
  elseif value == false then
    return nil, "must be true or error kinds"
  end
  return set_from(value, error_kinds)
end

local function lower_keys(set)
  local lowered = {}
  for word in pairs(set or {}) do
    lowered[word:lower()] = true
  end
  return set and lowered
end

-- What the values of a condition are checked and compiled by.
local function compiler(condition, settings)
  if condition.name == "category" then
    return function(value)
      local set, message = set_from(value)
      return lower_keys(set), message
    end
  end
  local allowed = {}
  for _, values in ipairs { enums.values[condition.enum], settings.extend[condition.name] or {} } do
    for _, value in ipairs(values) do
      allowed[#allowed + 1] = value
    end
  end
  return function(value)
    local set, message = set_from(value, allowed)
    if set and condition.name == "source" and set.Provider then
      set[settings.provider] = true
    end
    return set, message
  end
end

---The entries by which check.lua checks and compiles the rules of one policy.
---@param settings { extend: table<string, string[]>, provider: string }
---@return riskscreen.Option[]
function M.specs(settings)
  local specs = {
    { name = "action", type = "string", required = true, values = M.actions },
    { name = "name", type = "string" },
    { name = "error", type = "boolean|string|table", check = error_set },
  }
  for _, condition in ipairs(conditions) do
    specs[#specs + 1] = condition.flag and { name = condition.name, type = "boolean" }
      or { name = condition.name, type = "string|table", check = compiler(condition, settings) }
  end
  return specs
end

local Rule = {}
Rule.__index = Rule

---Compiles an operator's rule.
---@param rule riskscreen.Rule
---@param what string how messages call it, such as "rules[3]"
---@param specs riskscreen.Option[] from `specs`
---@return table|nil compiled
---@return string|nil message what is wrong with the rule
function M.compile(rule, what, specs)
  if type(rule) ~= "table" then
    return nil, what .. " must be a table (got " .. text.kind(rule) .. ")"
  end
  local checked, problem = check.options(specs, rule, what .. ".")
  if not checked then
    return nil, problem.message
  end
  local compiled = { rule = rule, action = checked.action, errors = checked.error, conditions = {}, facets = {} }
  compiled.handles_unrecognised = checked.unrecognised == true
  for _, condition in ipairs(conditions) do
    local wanted = checked[condition.name]
    if wanted ~= nil then
      compiled.conditions[#compiled.conditions + 1] = { match = condition.match, wanted = wanted }
      compiled.facets[condition.facet or "risk"] = true
    end
  end
  if compiled.errors and #compiled.conditions > 0 then
    return nil, what .. " mixes `error` with other conditions: a lookup that failed has nothing else to match"
  end
  return setmetatable(compiled, Rule)
end

---Whether the rule applies: true, false, or nil when that cannot be known.
---@param case riskscreen.Case
---@return boolean|nil
function Rule:matches(case)
  if self.errors then
    return false
  end
  local certain = true
  for _, condition in ipairs(self.conditions) do
    local answer = condition.match(condition.wanted, case)
    if answer == false then
      return false
    end
    certain = certain and answer
  end
  return certain
end

---Whether the rule is about this failure.
---@param err riskscreen.Error
---@return boolean
function Rule:handles_error(err)
  return self.errors ~= nil and self.errors[err.kind] == true
end

return M
