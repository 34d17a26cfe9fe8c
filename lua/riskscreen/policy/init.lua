-- What was looked up → decision, and nothing else: no client, no clock, no transport.
-- Rules are tried in order for each risk and the first that matches decides it; the worst of the risks is the action.
-- What no rule covers, what is missing and what was never seen is `unknown`.

local check = require "riskscreen.options.check"
local tables = require "riskscreen.util.tables"
local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local facet_table = require "riskscreen.policy.lookups"
local judgement = require "riskscreen.policy.evaluate"
local rule = require "riskscreen.policy.rule"
local text = require "riskscreen.util.text"
local verdict = require "riskscreen.policy.verdict"

---@class riskscreen.Reason
---@field action "allow"|"review"|"block"|"unknown"
---@field message string for a person
---@field rule? riskscreen.Rule the operator's rule that decided
---@field risk? table the risk that it decided, as the service sent it
---@field error? riskscreen.Error the failure that it decided

---@class riskscreen.Decision
---@field action "allow"|"review"|"block"|"unknown"
---@field reasons riskscreen.Reason[] the worst first
---@field address? any as the caller gave it
---@field network? any as the caller gave it
---@field record? table the risk assessment
---@field entity? table the entity record, where it was looked up; likewise the next two
---@field freeze_events? table[]
---@field counterparties? table
---@field error? riskscreen.Error the failure that decided or left a doubt
---@field errors? table<riskscreen.FacetName, riskscreen.Error> every lookup that failed
---@field not_offered? riskscreen.FacetName[] lookups that the service does not offer for the network
---@field degraded boolean a rule turned a failure or an unrecognised value into the action
---@field cached boolean
---@field stale boolean
---@field elapsed number seconds

local NONE = {}

local default_rules = {
  { name = "never at any level", type = { "sanction", "terrorist", "csam" }, action = "block" },
  { name = "high risk", level = "high", action = "block" },
  { name = "elevated risk", level = "generally-high", action = "review" },
  { name = "low risk or whitelisted", level = { "low", "whitelist" }, action = "allow" },
  { name = "no risk", no_risk = true, action = "allow" },
}

local function list_of_texts(value)
  if not tables.sequence_length(value) then
    return nil, "must be a list of texts"
  end
  for _, one in ipairs(value) do
    if type(one) ~= "string" then
      return nil, "must be a list of texts"
    end
  end
  return value
end

local function lower_case_set(value)
  local list, message = list_of_texts(type(value) == "string" and { value } or value)
  local set = {}
  for _, one in ipairs(list or {}) do
    set[one:lower()] = true
  end
  return list and set, message
end

---@class riskscreen.PolicySettings the checked options
---@field rules riskscreen.Rule[]
---@field extend { level?: string[], type?: string[], source?: string[] }
---@field provider string
---@field absent_entity "unknown"|"none"
---@field not_offered "none"|"unknown"
---@field lifting table<string, boolean> lower case

---@type riskscreen.Option[]
local policy_options = {
  {
    name = "rules",
    type = "table",
    default = default_rules,
    check = function(rules)
      local count = tables.sequence_length(rules)
      if not count then
        return nil, "must be a list without a gap: the rules behind one would never be tried"
      elseif count == 0 then
        return nil, "must hold at least one rule"
      end
      return rules
    end,
    doc = "The rules, in the order in which they are tried.",
  },
  {
    name = "extend",
    type = "table",
    default = {},
    fields = {
      { name = "level", type = "table", check = list_of_texts },
      { name = "type", type = "table", check = list_of_texts },
      { name = "source", type = "table", check = list_of_texts },
    },
    doc = "Values that the service has added to its enumerations.",
  },
  { name = "provider", type = "string", default = "Provider", doc = "The service's own name, as riskSource has it." },
  {
    name = "absent_entity",
    type = "string",
    default = "unknown",
    values = { "unknown", "none" },
    doc = "What an entity record without an entity means.",
  },
  {
    name = "not_offered",
    type = "string",
    default = "none",
    values = { "none", "unknown" },
    doc = "What a condition means where the service offers no such lookup for the network.",
  },
  {
    name = "lifting",
    type = "string|table",
    default = {},
    check = lower_case_set,
    doc = "Values of a freeze event's `type` or `event` that lift earlier freezes of the same token.",
  },
}

local Policy = {}
Policy.__index = Policy
Policy.__name = "riskscreen.Policy"

-- A record without a proper list of risks says nothing: an absent list is not an empty one.
local function missing_risks(record)
  if type(record) ~= "table" then
    return errors.new("protocol", "there is no risk assessment")
  end
  if type(record.risks) ~= "table" then
    return errors.new("protocol", "the risk assessment has no list of risks")
  end
  if not tables.sequence_length(record.risks) then
    return errors.new("protocol", "the risks of the assessment are not a list")
  end
end

local function new_case(self, facets, risk, unrecognised)
  return {
    risk = risk,
    no_risk = false,
    unrecognised = unrecognised,
    record = facets.risk,
    entity = facets.entity,
    freeze_events = facets.freeze_events,
    counterparties = facets.counterparties,
    failures = facets.errors or NONE,
    not_offered = facets.not_offered or NONE,
    settings = self.settings,
  }
end

-- The reason of one risk.
local function reason_of(self, facets, risk)
  local unrecognised = judgement.unrecognised(risk, self.extended)
  local case = new_case(self, facets, type(risk) == "table" and risk or {}, unrecognised)
  return judgement.of_case(self.compiled, case)
end

-- What risks come to that differ in nothing a rule may ask about, where no rule asks about other lookups. Kept as long
-- as there can be no more of them than the enumerations have values.
local function known_reasons(self, record, risk)
  local whitelist, source = record.whitelist, risk.riskSource
  if type(whitelist) ~= "boolean" or not (enums.has("risk_source", source) or source == self.settings.provider) then
    return nil
  end
  local by_source = self.known[whitelist][source]
  if not by_source then
    by_source = {}
    self.known[whitelist][source] = by_source
  end
  local level = risk.riskLevel
  local by_level = by_source[level]
  if not by_level and enums.has("risk_level", level) then
    by_level = {}
    by_source[level] = by_level
  end
  return by_level
end

-- The same, found without trying the rules where that was done before.
local function quick_reason_of(self, facets, risk)
  local known = self.asks_only_of_risk
    and type(risk) == "table"
    and not facets.errors
    and not facets.not_offered
    and known_reasons(self, facets.risk, risk)
  if not known then
    return reason_of(self, facets, risk)
  end
  local kind = risk.riskType
  local found = known[kind]
  if found then
    return { action = found.action, message = found.message, rule = found.rule, risk = risk }, found.degraded
  end
  local reason, degraded = reason_of(self, facets, risk)
  if enums.has("risk_type", kind) and not reason.error then
    known[kind] = { action = reason.action, message = reason.message, rule = reason.rule, degraded = degraded }
  end
  return reason, degraded
end

local function names_in(set)
  if not set then
    return nil
  end
  local list = {}
  for _, name in ipairs(facet_table.names) do
    if set[name] then
      list[#list + 1] = name
    end
  end
  return list[1] and list or nil
end

local function first_error(reasons)
  local err = reasons[1].error
  for index = 2, #reasons do
    err = err or reasons[index].error
  end
  return err
end

-- The reasons of a decision, the worst first, and whether it is degraded.
local function reasons_for(self, facets, err)
  if err then
    local reason, degraded = judgement.of_failure(self.compiled, new_case(self, facets), err)
    return { reason }, degraded
  end
  local risks = facets.risk.risks
  if #risks == 0 then
    local case = new_case(self, facets)
    case.no_risk = true
    local reason, degraded = judgement.of_case(self.compiled, case)
    return { reason }, degraded
  end
  local reason, degraded = quick_reason_of(self, facets, risks[1])
  local reasons = { reason }
  for index = 2, #risks do
    local was_degraded
    reasons[index], was_degraded = quick_reason_of(self, facets, risks[index])
    degraded = degraded or was_degraded
  end
  return verdict.ordered(reasons), degraded
end

---@class riskscreen.Facets what was looked up; a lookup that failed is in `errors` under its name
---@field risk? table
---@field entity? table
---@field freeze_events? table[]
---@field counterparties? table
---@field errors? table<riskscreen.FacetName, riskscreen.Error>
---@field not_offered? table<riskscreen.FacetName, boolean> what the service does not offer for the network

---Decides from what was looked up.
---@param facets riskscreen.Facets
---@return riskscreen.Decision
function Policy:decide(facets)
  local failures = facets.errors or NONE
  local err = failures.risk or missing_risks(facets.risk)
  local reasons, degraded = reasons_for(self, facets, err)
  return {
    action = reasons[1].action,
    reasons = reasons,
    record = facets.risk,
    entity = facets.entity,
    freeze_events = facets.freeze_events,
    counterparties = facets.counterparties,
    error = err or first_error(reasons),
    errors = next(failures) and failures or nil,
    not_offered = names_in(facets.not_offered),
    degraded = degraded,
    cached = false,
    stale = false,
    elapsed = 0,
  }
end

---Whether a rule needs a lookup besides the risk assessment.
---@param facet riskscreen.FacetName
---@return boolean
function Policy:needs(facet)
  return self.facets[facet] == true
end

local function set_of(values)
  local set = {}
  for _, value in ipairs(values or {}) do
    set[value] = true
  end
  return set
end

local function compile(settings)
  local specs = rule.specs(settings)
  local compiled, facets = {}, {}
  for index, entry in ipairs(settings.rules) do
    local one, message = rule.compile(entry, "rules[" .. index .. "]", specs)
    if not one then
      return nil, message
    end
    one.index = index
    compiled[index] = one
    for facet in pairs(one.facets) do
      facets[facet] = true
    end
  end
  return compiled, facets
end

local function new(options)
  if type(options) ~= "table" then
    return nil, "expected a table of options (got " .. text.kind(options) .. ")"
  end
  local settings, problem = check.options(policy_options, options)
  if not settings then
    return nil, problem.message
  end
  local compiled, facets = compile(settings)
  if not compiled then
    return nil, facets
  end
  ---@class riskscreen.Policy
  local policy = {
    compiled = compiled,
    facets = facets,
    settings = settings,
    asks_only_of_risk = next(facets) == nil or (facets.risk and next(facets, (next(facets))) == nil),
    known = { [true] = {}, [false] = {} },
    extended = { level = set_of(settings.extend.level), type = set_of(settings.extend.type) },
  }
  return setmetatable(policy, Policy)
end

local M = {}

---The entry of an option that takes a policy.
---@type riskscreen.Option
M.option = {
  name = "policy",
  type = "table",
  check = function(value)
    if not M.is(value) then
      return nil, "must be made by riskscreen.policy"
    end
    return value
  end,
  doc = "What `screen` decides by; without it, the default policy.",
}

---@class riskscreen.PolicyOptions
---@field rules? riskscreen.Rule[] the default rules
---@field extend? { level?: string[], type?: string[], source?: string[] } values the service has added
---@field provider? string the service's own name, as riskSource has it
---@field absent_entity? "unknown"|"none" what an entity record without an entity means
---@field not_offered? "none"|"unknown" what a condition means where the service has no such lookup for the network
---@field lifting? string|string[] values of a freeze event's `type` or `event` that lift earlier freezes

---A policy. Without options, the default one: block high and any sanction, terrorist or csam risk, review
---generally-high, allow low, whitelist and no risk; everything else is unknown.
---@param options? riskscreen.PolicyOptions
---@return riskscreen.Policy
function M.new(options)
  local policy, problem = new(options == nil and {} or options)
  if not policy then
    error("policy: " .. problem, 2)
  end
  return policy
end

---Whether a value is a policy.
---@param value any
---@return boolean
function M.is(value)
  return getmetatable(value) == Policy
end

return M
