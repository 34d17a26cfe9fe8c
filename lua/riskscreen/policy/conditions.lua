-- The conditions of a rule, each once: what its value may be, which lookup it needs, and how it is matched. Pure.
-- A match has three answers: true, false, and nil when the field a condition needs is not known.

local check = require "riskscreen.options.check"
local tables = require "riskscreen.util.tables"
local enums = require "riskscreen.interface.enums"
local exposure = require "riskscreen.policy.counterparties"
local freeze = require "riskscreen.policy.freeze"
local text = require "riskscreen.util.text"

local SMALLEST_SHARE = 1e-6

---What a rule is matched against: one risk of a record (or none), and the facets around it.
---@class riskscreen.Case
---@field risk? table
---@field no_risk? boolean the record has an empty list of risks
---@field unrecognised? string how the risk's level or type is absent or was never seen
---@field record? table the risk assessment
---@field entity? table the entity lookup record
---@field freeze_events? table[]
---@field counterparties? table
---@field failures table<riskscreen.FacetName, riskscreen.Error> lookups that failed
---@field not_offered table<riskscreen.FacetName, boolean> lookups that the service does not offer for the network
---@field settings riskscreen.PolicySettings

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

-- A record's flag; nil where there is no record, whatever is in its place.
local function flag_of(record, name)
  if type(record) == "table" then
    return record[name]
  end
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
    if entity == nil and case.settings.absent_entity == "none" then
      return false
    end
    return nil
  end
  local answer -- an entity of neither category nor code may be in any
  for _, field in ipairs { "entityCategory", "entityCategoryCode" } do
    local value = entity[field]
    if type(value) == "string" and value ~= "" then
      if set[value:lower()] then
        return true
      end
      answer = false
    end
  end
  return answer
end

---@class riskscreen.Condition
---@field name string
---@field facet? riskscreen.FacetName the lookup it needs besides the risk assessment
---@field flag? boolean its value is true or false
---@field enum? string its values are those of this enumeration
---@field match fun(wanted: any, case: riskscreen.Case): boolean|nil

---@type riskscreen.Condition[]
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
      return (case.unrecognised ~= nil) == wanted
    end,
  },
  {
    name = "whitelist",
    flag = true,
    match = function(wanted, case)
      return same(wanted, flag_of(case.record, "whitelist"))
    end,
  },
  {
    name = "contract",
    flag = true,
    facet = "entity",
    match = function(wanted, case)
      return same(wanted, flag_of(case.entity, "contract"))
    end,
  },
  { name = "category", facet = "entity", match = categories },
  {
    name = "frozen",
    flag = true,
    facet = "freeze_events",
    match = function(wanted, case)
      return same(wanted, freeze.in_force(case.freeze_events, case.settings.lifting))
    end,
  },
  {
    name = "counterparty",
    facet = "counterparties",
    match = function(wanted, case)
      return exposure.matches(wanted, case.counterparties)
    end,
  },
}

-- The set of a text or a list of texts, each one of `allowed` when that is given.
local function set_from(value, allowed)
  local list = type(value) == "string" and { value } or value
  if type(list) ~= "table" or (tables.sequence_length(list) or 0) == 0 then
    return nil, "must be a text or a list of texts"
  end
  local known = allowed and set_of(allowed)
  for _, one in ipairs(list) do
    if type(one) ~= "string" then
      return nil, "must be a text or a list of texts (it holds " .. text.kind(one) .. ")"
    elseif known and not known[one] then
      local names = table.concat(allowed, ", ")
      return nil, ("must be one of %s (got %s%s)"):format(names, text.show(one), text.did_you_mean(one, allowed))
    end
  end
  return set_of(list)
end

local function lower_keys(set)
  local lowered = {}
  for word in pairs(set or {}) do
    lowered[word:lower()] = true
  end
  return set and lowered
end

-- The values that a condition may name: the interface's and those that the operator has added.
local function allowed_values(enum, name, settings)
  local allowed = {}
  for _, values in ipairs { enums.values[enum], settings.extend[name] or {} } do
    for _, value in ipairs(values) do
      allowed[#allowed + 1] = value
    end
  end
  return allowed
end

local function set_option(enum, name, settings)
  local allowed = allowed_values(enum, name, settings)
  return {
    name = name,
    type = "string|table",
    check = function(value)
      return set_from(value, allowed)
    end,
  }
end

-- How the value of a condition is checked and compiled, where that is not the same for all.
local special = {}

function special.category()
  return {
    name = "category",
    type = "string|table",
    check = function(value)
      local set, message = set_from(value)
      return lower_keys(set), message
    end,
  }
end

function special.source(settings)
  local option = set_option("risk_source", "source", settings)
  local plain = option.check
  function option.check(value)
    local set, message = plain(value)
    if set and set.Provider then
      set[settings.provider] = true
    end
    return set, message
  end
  return option
end

function special.counterparty(settings)
  local fields = {
    { name = "direction", type = "string", values = enums.values.direction },
    set_option("risk_level", "level", settings),
    set_option("risk_type", "type", settings),
    { name = "share", type = "number", minimum = SMALLEST_SHARE, maximum = 1, unit = "of the amounts" },
  }
  local known = {
    level = set_of(allowed_values("risk_level", "level", settings)),
    type = set_of(allowed_values("risk_type", "type", settings)),
  }
  return {
    name = "counterparty",
    type = "table",
    check = function(value)
      local checked, wrong = check.options(fields, value)
      if not checked then
        return nil, "is wrong: " .. wrong.message
      elseif not (checked.level or checked.type) then
        return nil, "must name a level or a type: which counterparties it is about"
      end
      checked.known, checked.directions = known, set_of(enums.values.direction)
      return checked
    end,
  }
end

local M = { list = conditions, set_from = set_from, set_of = set_of }

---The entries by which check.lua checks and compiles the conditions of one policy's rules.
---@param settings riskscreen.PolicySettings
---@return riskscreen.Option[]
function M.specs(settings)
  local specs = {}
  for index, condition in ipairs(conditions) do
    local name = condition.name
    specs[index] = condition.flag and { name = name, type = "boolean" }
      or special[name] and special[name](settings)
      or set_option(condition.enum, name, settings)
  end
  return specs
end

return M
