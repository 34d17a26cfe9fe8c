-- Policies for addresses: lookup results → decision. Pure: no client, no clock, no transport. The first matching rule
-- decides a risk, and the worst action of all risks decides. A risk that no rule covers, a missing field and an
-- unrecognised value are `unknown`.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local conditions = require "riskscreen.policy.conditions"
local decision = require "riskscreen.policy.decision"
local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local evaluate = require "riskscreen.policy.evaluate"
local json = require "riskscreen.json"
local lookups = require "riskscreen.policy.lookups"
local rule = require "riskscreen.policy.rule"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local NONE = {}

local default_rules = {
  { name = "never at any level", type = { "sanction", "terrorist", "csam" }, action = "block" },
  { name = "high risk", level = "high", action = "block" },
  { name = "elevated risk", level = "generally-high", action = "review" },
  { name = "low risk or whitelisted", level = { "low", "whitelist" }, action = "allow" },
  { name = "no risk", no_risk = true, action = "allow" },
}

local texts = conditions.texts_option

local function lower_case_set(value)
  local list, message = conditions.texts(value)
  return list and conditions.form_set(list, string.lower), message
end

local function absent(name, situation)
  return build.choice(name, { "unknown", "none" }, "unknown", "The meaning of " .. situation .. ".")
end

---@class riskscreen.PolicySettings the checked options
---@field rules riskscreen.Rule[]
---@field extend { level?: string[], type?: string[], source?: string[], category?: string[] }
---@field provider? string
---@field absent_entity "unknown"|"none"
---@field absent_risks "unknown"|"none"
---@field absent_opponents "unknown"|"none"
---@field absent_freeze_events "unknown"|"none"
---@field not_offered? "unknown"|"skip"
---@field lifting table<string, true> lower case

---@type riskscreen.Option[]
local policy_options = {
  rule.option(default_rules, "The rules, in the order in which they are tried."),
  build.group(
    "extend",
    { texts "level", texts "type", texts "source", texts "category" },
    "Values that the service has added to its enumerations, and categories that no rule names.",
    {}
  ),
  {
    name = "provider",
    type = "string",
    doc = "The service's own name, as riskSource has it; a rule about the source 'Provider' needs it.",
  },
  absent("absent_entity", "an entity record without an entity"),
  absent("absent_risks", "a risk assessment or a counterparty without `risks`"),
  absent("absent_opponents", "an answer about counterparties without `opponents`"),
  absent("absent_freeze_events", "an answer about freeze events without `data`"),
  build.choice(
    "not_offered",
    { "unknown", "skip" },
    nil,
    "The meaning of a rule where the service does not offer a lookup that it needs: it is undetermined, or skipped. "
      .. "A rule's own `not_offered` goes before. Without either, such a rule is refused."
  ),
  build.checked(
    "lifting",
    "string|table",
    lower_case_set,
    "Values of a freeze event's `type` or `event` that lift earlier freezes of the same token.",
    {}
  ),
}

---@class riskscreen.Policy
---@field settings riskscreen.PolicySettings
---@field rules riskscreen.CompiledRule[]
---@field recognised riskscreen.RecognisedValues
---@field other_lookups table<riskscreen.LookupName, true> the lookups that the rules need besides the risk assessment
---@field cache table
local Policy = {}
Policy.__index = Policy
Policy.__name = "riskscreen.Policy"

local function is_absent(value)
  return value == nil or value == json.null
end

-- An absent list of risks is not an empty one, unless the operator says so.
local function missing_risks(record, settings)
  if type(record) ~= "table" then
    return errors.new("protocol", "there is no risk assessment")
  elseif type(record.risks) == "table" then
    return not tables.sequence_length(record.risks)
        and errors.new("protocol", "the risks of the assessment are not a list")
      or nil
  elseif not is_absent(record.risks) or settings.absent_risks ~= "none" then
    return errors.new("protocol", "the risk assessment has no list of risks (see the policy's option absent_risks)")
  end
end

local function unrecognised_value(field, value, recognised)
  if value == nil then
    return "a risk has no " .. field
  elseif type(value) ~= "string" or not recognised[value] then
    return field .. " " .. text.show(value) .. " is not a value this library knows"
  end
end

-- The message about a risk whose level or type is absent or not known; nil when both are known.
local function unrecognised(recognised, risk)
  if type(risk) ~= "table" then
    return "a risk is not an object"
  end
  return unrecognised_value("riskLevel", risk.riskLevel, recognised.level)
    or unrecognised_value("riskType", risk.riskType, recognised.type)
end

local function describe(case)
  local risk = case.risk
  if not risk then
    return "an address without risks"
  end
  local level, kind = risk.riskLevel, risk.riskType
  return (type(level) == "string" and text.printable(level) or "absent")
    .. " / "
    .. (type(kind) == "string" and text.printable(kind) or "absent")
end

local function new_case(self, results)
  return {
    describe = describe,
    no_risk = false,
    results = results,
    failures = results.errors or NONE,
    not_offered = results.not_offered or NONE,
    policy = self,
  }
end

local function reason_of(self, results, risk)
  local case = new_case(self, results)
  case.unrecognised = unrecognised(self.recognised, risk)
  case.risk = type(risk) == "table" and risk or {}
  return evaluate.case(self.rules, case)
end

-- The reasons found so far, by whitelist flag, source, level and type. Only the interface's own values are kept, so
-- that their number is bounded.
local function new_cache(settings)
  local cache = {}
  for _, whitelist in ipairs { true, false } do
    cache[whitelist] = {}
    for _, source in ipairs(conditions.sources(settings)) do
      cache[whitelist][source] = {}
      for _, level in ipairs(enums.values.risk_level) do
        cache[whitelist][source][level] = {}
      end
    end
  end
  return cache
end

-- The cached reasons by source; nil when a reason may depend on more than the risk and the whitelist flag.
local function cached_by_source(self, results)
  if self.cache and not results.errors and not results.not_offered then
    return self.cache[results.risk.whitelist]
  end
end

-- Finds the reason of a risk in the cache or evaluates the rules. With the cache `client:screen` takes 15.8 us and
-- without it 19.8 us (`./dev bench layers`, Lua 5.4).
local function cached_reason_of(self, results, risk, by_source)
  local by_level = by_source and type(risk) == "table" and by_source[risk.riskSource]
  local by_type = by_level and by_level[risk.riskLevel]
  local cached = by_type and by_type[risk.riskType]
  if cached then
    return { action = cached.action, message = cached.message, rule = cached.rule, risk = risk }, cached.degraded
  end
  local reason, degraded = reason_of(self, results, risk)
  if by_type and enums.has("risk_type", risk.riskType) and not reason.error then
    by_type[risk.riskType] =
      { action = reason.action, message = reason.message, rule = reason.rule, degraded = degraded }
  end
  return reason, degraded
end

-- The reasons of a decision, the worst first, and whether it is degraded.
local function reasons_for(self, results)
  local risks = results.risk.risks
  if is_absent(risks) or #risks == 0 then
    local case = new_case(self, results)
    case.no_risk = true
    local reason, degraded = evaluate.case(self.rules, case)
    return { reason }, degraded
  end
  local by_source = cached_by_source(self, results)
  local reasons, degraded = {}, false
  for index = 1, #risks do
    local reason, is_degraded = cached_reason_of(self, results, risks[index], by_source)
    reasons[index] = reason
    degraded = degraded or is_degraded
  end
  return decision.worst_first(reasons), degraded
end

local function first_error(reasons)
  for index = 1, #reasons do
    if reasons[index].error then
      return reasons[index].error
    end
  end
end

local function sorted_names(set)
  local list = {}
  for _, name in ipairs(lookups.names) do
    if set[name] then
      list[#list + 1] = name
    end
  end
  return list[1] and list or nil
end

-- The lookups whose answer may leave out its list, and the setting that gives this a meaning.
local ABSENT = { freeze_events = "absent_freeze_events", counterparties = "absent_opponents" }

-- The results with an empty list in place of one that was left out, if the operator says so.
local function with_absent_lists(settings, results)
  for lookup, setting in pairs(ABSENT) do
    local err = results.errors and results.errors[lookup]
    if err and err.absent and settings[setting] == "none" then
      local empty = json.empty_array()
      local answer = lookup == "freeze_events" and empty or { opponents = empty }
      results = tables.merge(results, { [lookup] = answer, errors = tables.copy(results.errors) })
      results.errors[lookup] = nil
    end
  end
  return results
end

-- The reason of a transaction's result that has scores besides its risks; nil without them.
local function score_reason(result)
  if not is_absent(result.maxScore) or not is_absent(result.dirData) then
    local err =
      errors.new("protocol", "the result has scores: riskscreen.score_policy makes a policy that decides them")
    return { action = "unknown", message = tostring(err), error = err }
  end
end

---Decides from the results of the lookups, or from a transaction's result that has risks.
---@param results riskscreen.LookupResults|table|nil
---@param other? riskscreen.Error|riskscreen.Response
---@return riskscreen.Decision
function Policy:decide(results, other)
  local about_scores
  if results == nil and errors.is(other) and other.decision then
    return other.decision
  elseif results == nil then
    results = { errors = { risk = errors.is(other) and other or nil } }
  elseif results.risks ~= nil then
    about_scores, results = score_reason(results), { risk = results }
  end
  if results.errors then
    results = with_absent_lists(self.settings, results)
  end
  local failures = results.errors or NONE
  local err = failures.risk or missing_risks(results.risk, self.settings)
  local reasons, degraded
  if err then
    local case = new_case(self, results)
    case.failures, reasons = tables.merge(failures, { risk = err }), {}
    reasons[1], degraded = evaluate.case(self.rules, case, err)
  else
    reasons, degraded = reasons_for(self, results)
  end
  if about_scores then
    reasons = decision.worst_first(tables.concat(reasons, { about_scores }))
  end
  return decision.new {
    action = reasons[1].action,
    reasons = reasons,
    record = results.risk,
    entity = results.entity,
    freeze_events = results.freeze_events,
    counterparties = results.counterparties,
    error = err or first_error(reasons),
    errors = results.errors and next(failures) and failures or nil,
    not_offered = results.not_offered and sorted_names(results.not_offered),
    degraded = degraded,
  }
end

---Decides from a risk assessment alone, as `decide { risk = record }` does. Most assessments have one risk whose reason
---is cached: then this takes half the time (`./dev bench layers`, Lua 5.4).
---@param record table as the call gave it
---@param address? any for the decision, which may also get it later
---@param network? any likewise
---@return riskscreen.Decision
function Policy:decide_record(record, address, network)
  local risks, by_source = record.risks, self.cache and self.cache[record.whitelist]
  if by_source and type(risks) == "table" and #risks == 1 then
    local risk = risks[1]
    local by_level = by_source[risk.riskSource]
    local by_type = by_level and by_level[risk.riskLevel]
    local cached = by_type and by_type[risk.riskType]
    if cached then
      local reason = { action = cached.action, message = cached.message, rule = cached.rule, risk = risk }
      return decision.of_record(reason, record, cached.degraded, address, network)
    end
  end
  return self:decide { risk = record }
end

---Whether a rule needs a lookup besides the risk assessment.
---@param lookup riskscreen.LookupName
---@return boolean
function Policy:needs(lookup)
  return self.other_lookups[lookup] == true
end

local M = { options = policy_options }

---The same policy with more recognised values.
---@param policy riskscreen.Policy
---@param extend table<"risk_level"|"risk_type"|"risk_source", table<string, true>>
---@return riskscreen.Policy
function M.extended(policy, extend)
  local recognised = {}
  for name, values in pairs(policy.recognised) do
    recognised[name] = tables.merge(values, extend["risk_" .. name])
  end
  -- The cache holds reasons about the interface's own values alone, which stay the same.
  return setmetatable(tables.merge(policy, { recognised = recognised }), Policy)
end

---@class riskscreen.PolicyOptions
---@field rules? riskscreen.Rule[] the default rules
---@field extend? { level?: string[], type?: string[], source?: string[], category?: string[] } values the service has
---added, and categories that no rule names
---@field provider? string the service's own name, as riskSource has it
---@field absent_entity? "unknown"|"none" the meaning of an entity record without an entity
---@field absent_risks? "unknown"|"none" the meaning of a risk assessment or a counterparty without `risks`
---@field absent_opponents? "unknown"|"none" the meaning of an answer about counterparties without `opponents`
---@field absent_freeze_events? "unknown"|"none" the meaning of an answer about freeze events without `data`
---@field not_offered? "unknown"|"skip" the meaning of a rule where the service has no such lookup for the network
---@field lifting? string|string[] values of a freeze event's `type` or `event` that lift earlier freezes

-- The lookup of a rule that the service does not offer on every network, and what the rule must say; nil without one.
local function not_everywhere(needed)
  for _, lookup in ipairs(lookups.list) do
    local missing = {}
    for _, network in ipairs(needed[lookup.name] and enums.values.network or NONE) do
      missing[#missing + 1] = not lookups.applies(lookup, network) and network or nil
    end
    if missing[1] then
      return (
        "%s, which the service does not offer on %s. Say in the rule or the policy what it means there: not_offered "
        .. "= 'unknown' (the condition is not known, so the rule never helps) or 'skip' (the rule is skipped)"
      ):format(lookup.name, table.concat(missing, ", "))
    end
  end
end

---Makes a policy. The default one blocks high risks and any sanction, terrorist or csam risk. It reviews generally-high
---risks and allows low and whitelist risks and an address without risks. Everything else is unknown.
---@param options? riskscreen.PolicyOptions
---@return riskscreen.Policy
function M.new(options)
  local settings = check.arguments("policy", policy_options, options == nil and {} or options)
  local rules, message = rule.compile_all(settings, conditions.list)
  if not rules then
    error("policy: " .. message, 2)
  end
  local other_lookups = {}
  for index, compiled in ipairs(rules) do
    message = not compiled.not_offered and not_everywhere(compiled.lookups)
    if message then
      error(("policy: rules[%d] needs %s"):format(index, message), 2)
    end
    for lookup in pairs(compiled.lookups) do
      other_lookups[lookup] = lookup ~= "risk" or nil
    end
  end
  local policy = {
    settings = settings,
    rules = rules,
    recognised = {
      level = tables.set(conditions.recognised("level", settings)),
      type = tables.set(conditions.recognised("type", settings)),
      source = tables.set(conditions.sources(settings)),
      category = rule.named(rules, "category", conditions.form_set(settings.extend.category, conditions.plain)),
    },
    other_lookups = other_lookups,
    cache = next(other_lookups) == nil and new_cache(settings) or nil,
  }
  return setmetatable(policy, Policy)
end

return M
