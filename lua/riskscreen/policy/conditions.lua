-- The conditions of a rule: the values that each accepts, the lookup that it needs, and how it is evaluated. Pure.
-- A condition evaluates to true, false, or nil when a field that it needs is not known.

local build = require "riskscreen.options.build"
local enums = require "riskscreen.interface.enums"
local logic = require "riskscreen.policy.logic"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local SMALLEST_SHARE = 1e-6
local CATEGORY_FIELDS = { "entityCategory", "entityCategoryCode" }
-- A source never seen may be the service's own name, so it leaves the condition undetermined.
local UNSEEN_SOURCE = "riskSource %s is not known; set `provider` if it is the service's own name"
local NOT_KNOWN = "the %s %s is not known; extend = { %s = … } adds it"

---@class riskscreen.Condition
---@field name string
---@field lookup? riskscreen.LookupName by default the risk assessment
---@field part? integer of a transaction's result
---@field option fun(settings: riskscreen.PolicySettings): riskscreen.Option checks and compiles the condition's value
---@field matches fun(wanted: any, case: riskscreen.Case): boolean|nil, string? the cause, when it is undetermined

local M = {}

local function is_text(value)
  return type(value) == "string"
end

---A new list of texts, from a text or a list of texts.
---@param value any
---@return string[]|nil
---@return string|nil message
function M.texts(value)
  return build.list_of(value, "texts", is_text)
end

---A name without its case, spaces, hyphens and underscores; nil if nothing is left or it is not a text.
---@param value any
---@return string|nil
function M.plain(value)
  local plain = type(value) == "string" and text.lower(value):gsub("[%s_-]", "") or ""
  return plain ~= "" and plain or nil
end

---A text as it is; nil if it is empty or no text.
---@param value any
---@return string|nil
function M.exact(value)
  return type(value) == "string" and value ~= "" and value or nil
end

---The set of texts in the form in which they are compared.
---@param list? string[]
---@param form fun(value: string): string|nil
---@return table<string, true>
function M.set(list, form)
  local set = {}
  for _, one in ipairs(list or {}) do
    set[form(one) or one] = true
  end
  return set
end

---The set of a text or a list of texts, at least one.
---@param value any
---@param allowed? string[] the only texts that the set may hold
---@param form? fun(value: string): string|nil in which the texts are compared
---@return table<string, true>|nil
---@return string|nil message
function M.text_set(value, allowed, form)
  local list, message = M.texts(value)
  if not list then
    return nil, message
  elseif not list[1] then
    return nil, "must hold at least one text"
  end
  local is_allowed = allowed and tables.set(allowed)
  for _, one in ipairs(list) do
    if is_allowed and not is_allowed[one] then
      local names, hint = table.concat(allowed, ", "), text.did_you_mean(one, allowed)
      return nil, ("must be one of %s (got %s%s)"):format(names, text.show(one), hint)
    end
  end
  return M.set(list, form or M.exact)
end

---Whether a value is one of a set. The interface lists no such values: one that no rule and no option names may be any.
---@param name string the condition
---@param set table<string, true>
---@param value any
---@param key string|nil the value as it is compared; nil when there is none
---@param recognised table<string, table<string, true>>
---@return boolean|nil
---@return string|nil cause when it is not known
function M.is_named(name, set, value, key, recognised)
  if key and recognised[name][key] then
    return set[key] == true
  end
  return nil, key and NOT_KNOWN:format(name, text.show(value), name)
end

---The condition that matches every case.
---@param part? integer of a transaction's result
---@return riskscreen.Condition
function M.any(part)
  return {
    name = "any",
    part = part,
    option = function()
      return { name = "any", type = "boolean", values = { true } }
    end,
    matches = function()
      return true
    end,
  }
end

---The entry of an option that takes a text or a list of texts and becomes their set.
---@param name string
---@param allowed? string[]
---@param form? fun(value: string): string|nil
---@return riskscreen.Option
function M.set_option(name, allowed, form)
  return build.checked(name, "string|table", function(value)
    return M.text_set(value, allowed, form)
  end)
end

---The entry of an option that takes a list of texts.
---@param name string
---@return riskscreen.Option
function M.texts_option(name)
  return build.checked(name, "table", M.texts)
end

-- Stands for the service's own name, which is on the wire in its place.
local PROVIDER = "Provider"

---The values that a condition may name: the interface's and those that the operator added.
---@param name "level"|"type"|"source"
---@param settings riskscreen.PolicySettings
---@return string[]
function M.recognised(name, settings)
  return tables.concat(enums.values["risk_" .. name], settings.extend[name] or {})
end

---The values of riskSource that may occur on the wire. The interface does not print the service's own name.
---@param settings riskscreen.PolicySettings
---@return string[]
function M.sources(settings)
  local sources = tables.concat({ settings.provider }, settings.extend.source or {})
  for _, source in ipairs(enums.values.risk_source) do
    sources[#sources + 1] = source ~= PROVIDER and source or nil
  end
  return sources
end

-- A condition on a field of the risk.
local function risk_field(name, field, option, is_open)
  return {
    name = name,
    option = option or function(settings)
      return M.set_option(name, M.recognised(name, settings))
    end,
    matches = function(set, case)
      if not case.risk then
        return false
      end
      local value = case.risk[field]
      if type(value) ~= "string" then
        return nil, "the risk has no " .. field
      elseif is_open and not case.policy.recognised[name][value] then
        return nil, UNSEEN_SOURCE:format(text.show(value))
      end
      return set[value] == true
    end,
  }
end

-- A condition on a boolean that a function finds. Its module is loaded with the first rule that needs it: later the
-- program may have no descriptor left.
local function flag(name, lookup, find, module)
  return {
    name = name,
    lookup = lookup,
    option = function()
      return build.checked(name, "boolean", function(wanted)
        return (not module or require(module)) and wanted
      end)
    end,
    matches = function(wanted, case)
      local value = find(case)
      if type(value) ~= "boolean" then
        return nil
      end
      return value == wanted
    end,
  }
end

-- A condition on a boolean field of a record.
local function record_flag(name, lookup)
  return flag(name, lookup, function(case)
    local record = case.results[lookup]
    if type(record) == "table" then
      return record[name]
    end
  end)
end

local function category_matches(set, case)
  local record = case.results.entity
  if type(record) ~= "table" then
    return nil
  end
  local entity = record.entity
  if logic.is_absent(entity) and case.policy.settings.absent_entity == "none" then
    return false
  elseif type(entity) ~= "table" then
    return nil
  end
  local cause
  local answer = logic.any(CATEGORY_FIELDS, function(field)
    local value, recognised = entity[field], case.policy.recognised
    local is_wanted, own_cause = M.is_named("category", set, value, M.plain(value), recognised)
    cause = cause or is_wanted == nil and (own_cause or "the entity has no " .. field) or nil
    return is_wanted
  end)
  return answer, cause
end

local function source_option(settings)
  local allowed = tables.concat(M.recognised("source", settings), { settings.provider })
  return build.checked("source", "string|table", function(value)
    local set, message = M.text_set(value, allowed)
    if set and set[PROVIDER] then
      if not settings.provider then
        return nil,
          "names 'Provider', which stands for the service's own name; "
            .. "set the policy's option `provider` to that name, as riskSource has it"
      end
      set[PROVIDER] = nil
      set[settings.provider] = true
    end
    return set, message
  end)
end

local function counterparty_option(settings)
  local option = build.group("counterparty", {
    build.choice("direction", enums.values.direction),
    M.set_option("level", M.recognised("level", settings)),
    M.set_option("type", M.recognised("type", settings)),
    build.number("share", "of the amounts", nil, SMALLEST_SHARE, 1),
  })
  function option.check(wanted)
    require "riskscreen.policy.counterparties" -- likewise
    return (wanted.level or wanted.type) and wanted or nil, "must name a level or a type of the counterparties' risks"
  end
  return option
end

---@type riskscreen.Condition[]
M.list = {
  risk_field("level", "riskLevel"),
  risk_field("type", "riskType"),
  M.any(),
  risk_field("source", "riskSource", source_option, true),
  flag("no_risk", nil, function(case)
    return case.no_risk or false
  end),
  flag("unrecognised", nil, function(case)
    return case.unrecognised ~= nil
  end),
  record_flag("whitelist", "risk"),
  record_flag("contract", "entity"),
  {
    name = "category",
    lookup = "entity",
    option = function()
      return M.set_option("category", nil, M.plain)
    end,
    matches = category_matches,
  },
  flag("frozen", "freeze_events", function(case)
    return require("riskscreen.policy.freeze").in_force(case.results.freeze_events, case.policy.settings.lifting)
  end, "riskscreen.policy.freeze"),
  {
    name = "counterparty",
    lookup = "counterparties",
    option = counterparty_option,
    matches = function(wanted, case)
      local counterparties = require "riskscreen.policy.counterparties"
      return counterparties.matches(wanted, case.results.counterparties, case.policy)
    end,
  },
}

return M
