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
local logic = require "riskscreen.policy.logic"
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
  return list and conditions.set(list, text.lower), message
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

local EXTEND = "Values that the service has added to its enumerations, and categories that no rule names."
local NOT_OFFERED = "The meaning of a rule where the service does not offer a lookup that it needs: it is "
  .. "undetermined, or skipped. A rule's own `not_offered` goes before. Without either, such a rule is refused."
local LIFTING = "Values of a freeze event's `type` or `event` that lift earlier freezes of the same token."

---@type riskscreen.Option[]
local policy_options = {
  rule.option(default_rules, "The rules, in the order in which they are tried."),
  build.group("extend", { texts "level", texts "type", texts "source", texts "category" }, EXTEND, {}),
  {
    name = "provider",
    type = "string",
    doc = "The service's own name, as riskSource has it; a rule about the source 'Provider' needs it.",
  },
  absent("absent_entity", "an entity record without an entity"),
  absent("absent_risks", "a risk assessment or a counterparty without `risks`"),
  absent("absent_opponents", "an answer about counterparties without `opponents`"),
  absent("absent_freeze_events", "an answer about freeze events without `data`"),
  build.choice("not_offered", { "unknown", "skip" }, nil, NOT_OFFERED),
  build.checked("lifting", "string|table", lower_case_set, LIFTING, {}),
}

---@class riskscreen.Policy
---@field settings riskscreen.PolicySettings
---@field rules riskscreen.CompiledRule[]
---@field recognised riskscreen.RecognisedValues
---@field other_lookups table<riskscreen.LookupName, true> the lookups that the rules need besides the risk assessment
---@field asks_source boolean a rule names a source
---@field cache? table<string, table> reasons without their risk
local Policy = {}
Policy.__index = Policy
Policy.__name = "riskscreen.Policy"

local is_absent = logic.is_absent

local function missing_risks(record, settings)
  if type(record) ~= "table" then
    return errors.new("protocol", "there is no risk assessment")
  end
  if not logic.list(record.risks, settings.absent_risks) then
    return errors.new("protocol", "the risk assessment has no list of risks (see the policy's option absent_risks)")
  end
end

local RECOGNISED = { { "riskLevel", "level" }, { "riskType", "type" } }

-- The message about a risk whose level or type is absent or not known; nil when both are known.
local function unrecognised(recognised, risk)
  if type(risk) ~= "table" then
    return "a risk is not an object"
  end
  for _, entry in ipairs(RECOGNISED) do
    local field, value = entry[1], risk[entry[1]]
    if value == nil then
      return "a risk has no " .. field
    elseif type(value) ~= "string" or not recognised[entry[2]][value] then
      return field .. " " .. text.show(value) .. " is not a value this library knows"
    end
  end
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

local function new_case(self, results, failures)
  return {
    describe = describe,
    no_risk = false,
    results = results,
    failures = failures,
    not_offered = results.not_offered or NONE,
    policy = self,
  }
end

local function case_of_risk(self, results, risk)
  local case = new_case(self, results, results.errors or NONE)
  case.unrecognised = unrecognised(self.recognised, risk)
  case.risk = type(risk) == "table" and risk or {}
  return case
end

-- The case of an address without risks, or without a risk assessment.
local function case_without_risks(self, results, failures, err)
  local case = new_case(self, results, err and tables.merge(failures, { risk = err }) or failures)
  case.no_risk = not err
  return case
end

-- Where the reason of a risk is cached, beside its level, its type and the whitelist flag. The interface does not print
-- the service's own name as a source, so a policy without a rule about sources leaves the source out.
local function place_of(self, risk)
  return not self.asks_source or risk.riskSource
end

-- The cached reason of a risk, and whether it is degraded.
local function cached_reason(self, whitelist, risk)
  local types = type(risk) == "table" and self.cache[risk.riskLevel]
  local flags = types and types[risk.riskType]
  local places = flags and flags[whitelist]
  local cached = places and places[place_of(self, risk)]
  if cached then
    return { action = cached.action, message = cached.message, rule = cached.rule, risk = risk }, cached.degraded
  end
  return nil, false
end

-- Caches a reason about values of the interface and the policy's own, whose number is bounded. A missing source is none
-- of the policy's, also where the policy knows the empty text.
local function cache_reason(self, whitelist, risk, reason, degraded)
  local level, kind, source = risk.riskLevel, risk.riskType, risk.riskSource
  local is_known = enums.has("risk_level", level) and enums.has("risk_type", kind)
  if is_known and (not self.asks_source or self.recognised.source[source]) and type(whitelist) == "boolean" then
    local types = self.cache[level] or {}
    local flags = types[kind] or {}
    local places = flags[whitelist] or {}
    self.cache[level], types[kind], flags[whitelist] = types, flags, places
    places[place_of(self, risk)] =
      { action = reason.action, message = reason.message, rule = reason.rule, degraded = degraded }
  end
end

-- The reason of a risk, and whether it is degraded: cached, or evaluated by the rules. With the cache `client:screen`
-- takes 15.8 us and without it 19.8 us (`./dev bench layers`, Lua 5.4).
local function reason_of(self, results, risk, is_cacheable)
  local reason, degraded
  if is_cacheable then
    reason, degraded = cached_reason(self, results.risk.whitelist, risk)
  end
  if not reason then
    reason, degraded = evaluate.case(self.rules, case_of_risk(self, results, risk))
    if is_cacheable and type(risk) == "table" then
      cache_reason(self, results.risk.whitelist, risk, reason, degraded)
    end
  end
  return reason, degraded
end

-- The risks of an address; nil if it has none, or if they are not known.
local function risks_of(results, err)
  local risks = not err and results.risk.risks
  return risks and not is_absent(risks) and risks[1] ~= nil and risks or nil
end

-- The reasons of a decision, and whether it is degraded. `err` is the failure to get the risk assessment.
local function reasons_for(self, results, failures, err)
  local risks, reasons, degraded = risks_of(results, err), {}, false
  if not risks then
    reasons[1], degraded = evaluate.case(self.rules, case_without_risks(self, results, failures, err), err)
    return reasons, degraded
  end
  -- A reason may depend on more than the risk and the whitelist flag: then it is not cached.
  local is_cacheable = self.cache and not results.errors and not results.not_offered
  for index = 1, #risks do
    local reason, is_degraded = reason_of(self, results, risks[index], is_cacheable)
    reasons[index], degraded = reason, degraded or is_degraded
  end
  return reasons, degraded
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

-- The reason why a transaction's result is not decided by its risks alone; or nil. Scores that are null are missing
-- knowledge, and risks that are empty or null do not replace it.
local function score_reason(result)
  local score, directions, risks, message = result.maxScore, result.dirData, result.risks, nil
  if not is_absent(score) or not is_absent(directions) then
    message = "the result has scores: riskscreen.score_policy makes a policy that decides them"
  elseif (score ~= nil or directions ~= nil) and (is_absent(risks) or type(risks) == "table" and risks[1] == nil) then
    message = "the result has neither risks nor scores: maxScore and dirData are null"
  end
  local err = message and errors.new("protocol", message)
  return err and { action = "unknown", message = tostring(err), error = err }
end

-- The results without those failures that the operator gave a meaning, the other ones, and the failure to get the risk
-- assessment.
local function read(self, results)
  if results.errors then
    results = with_absent_lists(self.settings, results)
  end
  local failures = results.errors or NONE
  local scores = results.risk == nil and score_reason(results)
  return results, failures, failures.risk or scores and scores.error or missing_risks(results.risk, self.settings)
end

---Decides from the results of the lookups, or from a transaction's result that has risks.
---@param results riskscreen.LookupResults|table|nil
---@param other? riskscreen.Error|riskscreen.Response
---@return riskscreen.Decision
function Policy:decide(results, other)
  text.expect("decide: results", results, "table", true)
  local about_scores
  if results == nil and errors.is(other) and other.decision then
    return other.decision
  elseif results == nil then
    results = { errors = { risk = errors.is(other) and other or nil } }
  elseif results.risks ~= nil and not (type(results.errors) == "table" and errors.is(results.errors.risk)) then
    about_scores, results = score_reason(results), { risk = results }
  end
  for _, name in ipairs { "errors", "not_offered" } do
    text.expect("decide: results." .. name, results[name], "table", true)
  end
  local failures, err
  results, failures, err = read(self, results)
  local reasons, degraded = reasons_for(self, results, failures, err)
  reasons[#reasons + 1] = about_scores
  return decision.of_reasons(reasons, {
    record = results.risk,
    entity = results.entity,
    freeze_events = results.freeze_events,
    counterparties = results.counterparties,
    error = err,
    errors = results.errors and next(failures) and failures or nil,
    not_offered = results.not_offered and next(results.not_offered) and tables.sorted_keys(results.not_offered),
    degraded = degraded,
  }, other)
end

---Decides from a risk assessment alone, as `decide { risk = record }` does. Most assessments have one risk whose reason
---is cached: then this saves a fifth of `client:screen` (`./dev bench instructions`).
---@param record table as the call gave it
---@param address? any for the decision, which may also get it later
---@param network? any likewise
---@return riskscreen.Decision
function Policy:decide_record(record, address, network)
  local risks = record.risks
  if self.cache and type(risks) == "table" and #risks == 1 then
    local reason, degraded = cached_reason(self, record.whitelist, risks[1])
    if reason then
      return decision.new {
        action = reason.action,
        reasons = { reason },
        address = address,
        network = network,
        record = record,
        degraded = degraded,
        cached = false,
        stale = false,
        elapsed = 0,
      }
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

---The case of one risk, or of an address without risks; and the failure to get the risk assessment.
---@param self riskscreen.Policy
---@param results riskscreen.LookupResults
---@param index integer of the risk
---@return riskscreen.Case
---@return riskscreen.Error|nil
function M.case_of(self, results, index)
  local failures, err
  results, failures, err = read(self, results)
  local risks = risks_of(results, err)
  return risks and case_of_risk(self, results, risks[index]) or case_without_risks(self, results, failures, err), err
end

-- The facts that a proof needs about policies for addresses.
local domain = {
  conditions = conditions.list,
  named = { "category" },
  fields = "risks level type source whitelist contract entity category category_code opponents freeze_events",
  space = function(...)
    return require("riskscreen.policy.candidates").space(M.case_of, ...)
  end,
  concrete = function(...)
    return require("riskscreen.policy.candidates").with_amounts(...)
  end,
  decide = Policy.decide,
  -- There is one list of freeze events for each outcome, and none that only one of two meanings of `lifting` ends.
  is_comparable = function(old, new)
    return tables.fingerprint(old.settings.lifting) == tables.fingerprint(new.settings.lifting)
      or not (old:needs "freeze_events" and new:needs "freeze_events")
  end,
  with_rules = function(policy, rules, recognised)
    return setmetatable(tables.merge(policy, { rules = rules, recognised = recognised, cache = false }), Policy)
  end,
}

---Whether a claim holds for all evidence, such as "never allow where type = sanction". See docs/policy-proofs.md.
---@param claim string|riskscreen.PolicyClaim
---@return riskscreen.Proof
function Policy:prove(claim)
  return require("riskscreen.policy.prove").prove(domain, self, claim)
end

---The kinds of evidence whose action another policy changes, the worst change first. See docs/policy-proofs.md.
---@param other riskscreen.Policy
---@return riskscreen.PolicyDiff
function Policy:diff(other)
  if getmetatable(other) ~= Policy then
    error("diff: expected a policy for addresses", 2)
  end
  return require("riskscreen.policy.diff").diff(domain, self, other)
end

---Finds rules that never decide, and says what the policy does where a lookup is not offered or a value is not known.
---@return riskscreen.PolicyFinding[]
function Policy:check()
  return require("riskscreen.policy.lint").findings(domain, self)
end

---The same policy with more recognised values.
---@param policy riskscreen.Policy
---@param extend table<"risk_level"|"risk_type"|"risk_source", table<string, true>>
---@return riskscreen.Policy
function M.extended(policy, extend)
  local recognised = {}
  for name, values in pairs(policy.recognised) do
    recognised[name] = tables.merge(values, extend["risk_" .. name])
  end
  -- A cached reason is one about values that the policy recognises itself.
  local cache = policy.cache and {}
  return setmetatable(tables.merge(policy, { recognised = recognised, cache = cache }), Policy)
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
      category = rule.named(rules, "category", conditions.set(settings.extend.category, conditions.plain)),
    },
    other_lookups = other_lookups,
    asks_source = next(rule.named(rules, "source", {})) ~= nil,
    cache = next(other_lookups) == nil and {} or nil,
  }
  return setmetatable(policy, Policy)
end

return M
