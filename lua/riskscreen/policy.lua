-- Risk record → decision, and nothing else: no client, no clock, no transport.
-- Rules are tried in order for each risk and the first that matches decides it; the worst of the risks is the action.
-- What no rule covers, what is missing and what was never seen is `unknown`.

local check = require "riskscreen.check"
local enums = require "riskscreen.enums"
local errors = require "riskscreen.errors"
local rule = require "riskscreen.rule"
local text = require "riskscreen.text"

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
---@field entity? table the entity record, when a rule needed it
---@field error? riskscreen.Error why something is not known
---@field degraded boolean a rule turned a failure or an unrecognised value into the action
---@field cached boolean
---@field stale boolean
---@field elapsed number seconds

local severity = { allow = 1, review = 2, unknown = 3, block = 4 }

local function worst(a, b)
  return severity[a] >= severity[b] and a or b
end

local default_rules = {
  { name = "never at any level", type = { "sanction", "terrorist", "csam" }, action = "block" },
  { name = "high risk", level = "high", action = "block" },
  { name = "elevated risk", level = "generally-high", action = "review" },
  { name = "low risk or whitelisted", level = { "low", "whitelist" }, action = "allow" },
  { name = "no risk", no_risk = true, action = "allow" },
}

local function list_of_texts(value)
  for _, one in ipairs(value) do
    if type(one) ~= "string" then
      return nil, "must be a list of texts"
    end
  end
  return value
end

---@type riskscreen.Option[]
local policy_options = {
  {
    name = "rules",
    type = "table",
    default = default_rules,
    check = function(rules)
      if #rules == 0 then
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
}

local extendable = { level = "risk_level", type = "risk_type" }

local Policy = {}
Policy.__index = Policy
Policy.__name = "riskscreen.Policy"

local function describe(risk)
  local function word(value)
    return type(value) == "string" and text.printable(value) or "absent"
  end
  return word(risk.riskLevel) .. " / " .. word(risk.riskType)
end

local function recognised(self, risk, field, condition)
  local value = risk[field]
  return type(value) == "string"
    and (enums.has(extendable[condition], value) or self.extended[condition][value] == true)
end

local function unrecognised_message(self, risk)
  if type(risk) ~= "table" then
    return "a risk is not an object"
  end
  for _, pair in ipairs { { "riskLevel", "level" }, { "riskType", "type" } } do
    local field, condition = pair[1], pair[2]
    if risk[field] == nil then
      return "a risk has no " .. field
    end
    if not recognised(self, risk, field, condition) then
      return field .. " " .. text.show(risk[field]) .. " is not a value this library knows"
    end
  end
end

local function label(compiled)
  return compiled.rule.name or "rule " .. compiled.index
end

-- The reason why a rule decided a case. An unrecognised risk is at least unknown, unless the rule is about such risks.
local function settle(case, compiled, message)
  local action, degraded = compiled.action, false
  if case.unrecognised then
    if compiled.handles_unrecognised then
      degraded = true
    elseif worst(action, "unknown") == "unknown" then
      return { action = "unknown", message = message, risk = case.risk }, false
    end
  end
  local what = case.risk and describe(case.risk) or "no risk"
  return { action = action, message = label(compiled) .. ": " .. what, rule = compiled.rule, risk = case.risk },
    degraded
end

-- The first rule that matches decides. A rule that might match leaves a doubt, unless the outcome is the same anyway.
local function judge(self, case, message)
  local doubts = {}
  for _, compiled in ipairs(self.compiled) do
    local answer = compiled:matches(case)
    if answer then
      local reason, degraded = settle(case, compiled, message)
      for _, doubt in ipairs(doubts) do
        if doubt.action ~= reason.action and worst(reason.action, "unknown") == "unknown" then
          message = "it is not known whether " .. label(doubt) .. " applies"
          return { action = "unknown", message = message, risk = case.risk }, false
        end
      end
      return reason, degraded
    elseif answer == nil then
      doubts[#doubts + 1] = compiled
    end
  end
  message = message
    or (case.risk and "no rule covers " .. describe(case.risk) or "no rule covers an address without risk")
  return { action = "unknown", message = message, risk = case.risk }, false
end

local function judge_error(self, err)
  for _, compiled in ipairs(self.compiled) do
    if compiled:handles_error(err) then
      return {
        action = compiled.action,
        message = label(compiled) .. ": " .. err.kind,
        rule = compiled.rule,
        error = err,
      },
        true
    end
  end
  return { action = "unknown", message = tostring(err), error = err }, false
end

-- A record without a proper list of risks says nothing: an absent list is not an empty one.
local function missing_risks(record)
  if type(record) ~= "table" then
    return errors.new("protocol", "there is no risk assessment")
  end
  if type(record.risks) ~= "table" then
    return errors.new("protocol", "the risk assessment has no list of risks")
  end
  local count = 0
  for _ in pairs(record.risks) do
    count = count + 1
  end
  if count ~= #record.risks then
    return errors.new("protocol", "the risks of the assessment are not a list")
  end
end

local function cases_of(self, facets)
  local base = { record = facets.risk, entity = facets.entity, absent_entity = self.absent_entity }
  if #facets.risk.risks == 0 then
    base.no_risk = true
    return { base }, {}
  end
  local cases, messages = {}, {}
  for index, risk in ipairs(facets.risk.risks) do
    local message = unrecognised_message(self, risk)
    messages[index] = message
    cases[index] = {
      risk = type(risk) == "table" and risk or {},
      unrecognised = message ~= nil,
      record = base.record,
      entity = base.entity,
      absent_entity = base.absent_entity,
    }
  end
  return cases, messages
end

-- Worst first, and in the service's order among equals.
local function ordered(reasons)
  local result = {}
  for _, action in ipairs { "block", "unknown", "review", "allow" } do
    for _, reason in ipairs(reasons) do
      if reason.action == action then
        result[#result + 1] = reason
      end
    end
  end
  return result
end

---Decides from what was looked up. A failed lookup is given in `errors` under the same name.
---@param facets { risk?: table, entity?: table, errors?: table<string, riskscreen.Error> }
---@return riskscreen.Decision
function Policy:decide(facets)
  local failures = facets.errors or {}
  local err = failures.risk or missing_risks(facets.risk)
  local reasons, degraded = {}, false
  local function add(reason, was_degraded)
    reasons[#reasons + 1] = reason
    degraded = degraded or was_degraded
  end
  if err then
    add(judge_error(self, err))
  else
    local cases, messages = cases_of(self, facets)
    for index, case in ipairs(cases) do
      add(judge(self, case, messages[index]))
    end
  end
  reasons = ordered(reasons)
  return {
    action = reasons[1].action,
    reasons = reasons,
    record = facets.risk,
    entity = facets.entity,
    error = err or failures.entity,
    degraded = degraded,
    cached = false,
    stale = false,
    elapsed = 0,
  }
end

---Whether a rule needs a lookup besides the risk assessment.
---@param facet "entity"
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
    absent_entity = settings.absent_entity,
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
