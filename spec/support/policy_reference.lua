-- The rules of both kinds of policy once more, from docs/screening-and-policy.md and docs/transactions.md alone.
-- Nothing of riskscreen.policy is used. Comments name the heading on the page that a part comes from.
local enums = require "riskscreen.interface.enums"
local json = require "riskscreen.json"
local normalize = require("riskscreen.address").normalize
local records = require "riskscreen.interface.records"
local shape = require "riskscreen.interface.shape"
local tables = require "riskscreen.util.tables"

-- Whether a condition holds; MAYBE is undetermined. The least of several holds if all do, the greatest if one does.
local NO, MAYBE, YES = 0, 1, 2
local min, max = math.min, math.max
local RANK = { allow = 1, review = 2, unknown = 3, block = 4, "allow", "review", "unknown", "block" }
local NONE, NO_RISK = {}, {}
local ABSENT = { freeze_events = "absent_freeze_events", counterparties = "absent_opponents" }
local FIELDS = { level = "riskLevel", type = "riskType", source = "riskSource" }
local LOOKUPS = { contract = "entity", category = "entity", frozen = "freeze_events", counterparty = "counterparties" }
for name in ("level type source any no_risk whitelist unrecognised"):gmatch "%S+" do
  LOOKUPS[name] = "risk"
end
local DEFAULT = { -- "Your own policy"
  rules = {
    { type = { "sanction", "terrorist", "csam" }, action = "block" },
    { level = "high", action = "block" },
    { level = "generally-high", action = "review" },
    { level = { "low", "whitelist" }, action = "allow" },
    { no_risk = true, action = "allow" },
  },
}

local function known(is_known, holds)
  return not is_known and MAYBE or holds and YES or NO
end

local function object(value)
  return type(value) == "table" and value or NONE
end

local function absent(value)
  return value == nil or value == json.null
end

local function any(values, holds)
  local result = NO
  for _, value in pairs(values) do
    result = max(result, holds(object(value)))
  end
  return result
end

local function list(value, meaning) -- nil if it is no list; `meaning` is an option absent_…
  value = absent(value) and meaning == "none" and NONE or value
  return type(value) == "table" and (value[1] ~= nil or next(value) == nil) and value or nil
end

local function filled(text)
  return type(text) == "string" and text ~= "" and text or nil
end

local function loose(text)
  return (text:lower():gsub("[%s_-]", ""))
end

local function among(values, text, form)
  for _, value in ipairs(type(values) == "table" and values or { values }) do
    if value == text or form and filled(text) and form(value) == form(text) then
      return true
    end
  end
  return false
end

local function extended(policy, name, text, form)
  return among(object(policy.extend)[name] or NONE, text, form)
end

local function one_of(wanted, text, is_known, form)
  return wanted == nil and YES or known(type(text) == "string" and is_known, among(wanted, text, form))
end

local function recognised(policy, name, value)
  return enums.has("risk_" .. name, value) or extended(policy, name, value)
end

local function named(policy, rule, name, text, form) -- one of the values that rules and `extend` name
  local is_named = extended(policy, name, text, form)
  for _, other in ipairs(policy.rules) do
    is_named = is_named or among(other[name], text, form)
  end
  return one_of(rule[name], text, is_named, form)
end

local function handler(policy, failure) -- the first `error` rule that names its kind
  for _, rule in ipairs(policy.rules) do
    if failure.kind and (rule.error == true or among(rule.error, failure.kind)) then
      return RANK[rule.action]
    end
  end
end

local function frozen(policy, events) -- "Freezes"
  local function lifts(event)
    local by_type = one_of(policy.lifting or NONE, event.type, filled(event.type), string.lower)
    return policy.lifting and max(by_type, one_of(policy.lifting, event.event, filled(event.event), string.lower)) or NO
  end
  local function token(event)
    local chain, contract = filled(event.chain), filled(event.contractAddress)
    return chain and contract and chain .. " " .. normalize(contract, chain)
  end
  local function positive(amount)
    return filled(amount) and amount:match "^[%d.]+$" and (tonumber(amount) or 0) > 0
  end
  return any(events, function(event)
    local over = any(events, function(other)
      local has_times = type(event.txTime) == "number" and type(other.txTime) == "number"
      local is_later = known(has_times, has_times and event.txTime < other.txTime)
      return min(lifts(other), is_later, known(token(event) and token(other), token(event) == token(other)))
    end)
    local is_positive = positive(event.frozenBalance) or positive(event.destroyedBalance)
    return min(is_positive and YES or MAYBE, YES - max(over, lifts(event)))
  end)
end

local function counterparty(policy, wanted, opponents) -- "Counterparties"
  local function counts(one)
    return one_of(wanted.direction, one.dir, enums.has("direction", one.dir))
  end
  local function has_risk(one)
    local risks = list(one.risks, policy.absent_risks)
    return risks
        and any(risks, function(risk)
          local level, kind = risk.riskLevel, risk.riskType
          local is_level = one_of(wanted.level, level, recognised(policy, "level", level))
          return min(is_level, one_of(wanted.type, kind, recognised(policy, "type", kind)))
        end)
      or MAYBE
  end
  local function share(symbol, doubt) -- with what is undetermined for the share (YES), or against it
    local risky, all = 0, 0
    for _, one in ipairs(opponents) do
      local counted, has = counts(object(one)), has_risk(object(one))
      has = has == MAYBE and doubt or has
      if object(one).symbol == symbol and (counted == YES or counted == MAYBE and has == doubt) then
        risky, all = risky + (has == YES and one.amount or 0), all + one.amount
      end
    end
    return risky / all
  end
  local needed = any(opponents, function(one)
    local is_complete = type(one.amount) == "number" and one.amount >= 0 and filled(one.symbol)
    return (is_complete or counts(one) == NO) and NO or YES
  end)
  return any(opponents, function(one)
    local found = min(counts(one), has_risk(one))
    if found == NO or not wanted.share then
      return found
    elseif needed == YES then
      return MAYBE
    end
    local is_reached = share(one.symbol, NO) >= wanted.share
    return is_reached and YES or known(share(one.symbol, YES) < wanted.share * (1 - 1e-9), false)
  end)
end

-- "Conditions"
local function holds(policy, case, rule, name)
  local wanted, record, entity = rule[name], object(case.risk), object(case.entity)
  local risk = object(case.one_risk)
  local text, owner = risk[FIELDS[name]], object(entity.entity)
  local is_risk = case.one_risk ~= NO_RISK
  if name == "any" then
    return YES
  elseif FIELDS[name] then
    local is_known = name ~= "source" or among({ "Community", "User-Defined", policy.provider }, text)
    local own = name == "source" and text == policy.provider and among(wanted, "Provider") and { text } or wanted
    return is_risk and one_of(own, text, is_known or extended(policy, name, text)) or NO
  elseif name == "category" then
    local is_nobody = case.entity == entity and list(entity.entity, policy.absent_entity) == NONE
    local category = named(policy, rule, name, owner.entityCategory, loose)
    return is_nobody and NO or max(category, named(policy, rule, name, owner.entityCategoryCode, loose))
  elseif name == "counterparty" then
    return case.opponents and counterparty(policy, wanted, case.opponents) or MAYBE
  elseif name == "frozen" then
    local result = case.events and frozen(policy, case.events) or MAYBE
    return wanted and result or YES - result
  end
  local value = (name == "whitelist" and record or entity)[name]
  if name == "no_risk" or name == "unrecognised" then
    value = name == "no_risk" and not is_risk or name ~= "no_risk" and case.is_unclear
  end
  return known(type(value) == "boolean", value == wanted)
end

-- "Missing values never help an address". `try` gives a rule's result, and the causes of what is undetermined in it.
local function decide(policy, try, start, is_failed, is_unclear)
  local decider, undetermined = NONE, {}
  for _, rule in ipairs(policy.rules) do
    local result, causes = try(rule)
    if result == YES then
      decider = rule
      break
    end
    undetermined[rule] = result == MAYBE and causes or nil
  end
  local least = is_failed and start or is_unclear and not decider.unrecognised and RANK.unknown or RANK.allow
  local action = max(least, RANK[decider.action] or start)
  local result = action
  for rule, causes in pairs(undetermined) do
    local own, handled = RANK[rule.action], RANK.allow
    for _, failure in ipairs(causes) do
      handled = handled and handler(policy, failure) and max(handled, handler(policy, failure))
    end
    local matters = action ~= RANK.block and own ~= action and (own > action or not is_failed)
    result = max(result, matters and (handled or RANK.unknown) or action)
  end
  return result
end

local M = {}

-- "Your own policy" and "Networks without a lookup"
function M.address(policy, evidence)
  policy = policy.rules and policy or DEFAULT
  local case, failed = {}, {}
  for _, lookup in pairs(LOOKUPS) do
    local err = object(evidence.errors)[lookup]
    local is_empty = err and err.absent and policy[ABSENT[lookup]] == "none"
    case[lookup], failed[lookup] = is_empty and NONE or evidence[lookup], not is_empty and err or nil
  end
  local record, answer = object(case.risk), object(case.counterparties)
  local risks = record == case.risk and list(record.risks, policy.absent_risks)
  failed.risk = failed.risk or not risks and { kind = "protocol" } or nil
  case.events = list(case.freeze_events)
  case.opponents = answer == case.counterparties and list(answer.opponents, policy.absent_opponents)
  local function try(rule)
    local result, causes = rule.error and NO or YES, {}
    for name, lookup in pairs(LOOKUPS) do
      local one = YES
      if rule[name] ~= nil and not failed[lookup] and object(evidence.not_offered)[lookup] then
        one = (rule.not_offered or policy.not_offered) == "skip" and NO or MAYBE
      elseif rule[name] ~= nil then
        one = failed[lookup] and MAYBE or holds(policy, case, rule, name)
      end
      result, causes[#causes + 1] = min(result, one), one == MAYBE and (failed[lookup] or NONE) or nil
    end
    return result, causes
  end
  local start, worst = failed.risk and handler(policy, failed.risk) or RANK.unknown, RANK.allow
  for _, risk in ipairs(failed.risk and { NONE } or risks[1] and risks or { NO_RISK }) do
    local level, kind = object(risk).riskLevel, object(risk).riskType
    case.one_risk = risk
    case.is_unclear = risk ~= NO_RISK and not (recognised(policy, "level", level) and recognised(policy, "type", kind))
    worst = max(worst, decide(policy, try, start, failed.risk, case.is_unclear))
  end
  return RANK[worst]
end

-- "Decide by scores"
function M.score(policy, risk_policy, result)
  local is_scored_alone = absent(result.risks) and not risk_policy
  local by_risks = is_scored_alone and RANK.allow or RANK[M.address(risk_policy or NONE, { risk = result })]
  local has_scores = not (absent(result.maxScore) and absent(result.dirData))
  local bad = shape.check(records.transaction_result, result, "")
    or not among(policy.final_statuses or { 1003 }, result.status)
  if not bad and not has_scores and not absent(result.risks) and policy.absent_score == "none" then
    return RANK[by_risks]
  end
  local directions, worst = tables.concat({ "in", "out" }, object(policy.extend).direction or NONE), by_risks
  local max_score = tonumber(result.maxScore)
  local function add(about, one, direction, number, strategy)
    local score = tonumber(object(one)[about == "transaction" and "maxScore" or "score"])
    bad = bad or score and score < 0
    local rank = bad and RANK.allow
      or decide(policy, function(rule)
        local is_about = (rule.detail or rule.detail_name) and "detail"
          or (rule.strategy or rule.strategy_name or rule.direction) and "strategy"
          or "transaction"
        local least, below = tonumber(rule.score_at_least), tonumber(rule.score_below)
        return min(
          is_about == about and not rule.error and YES or NO,
          one and YES or MAYBE,
          one_of(rule.direction, direction, true),
          named(policy, rule, "strategy", number),
          named(policy, rule, "strategy_name", object(strategy).strategyName, loose),
          named(policy, rule, "detail", object(one).code, loose),
          named(policy, rule, "detail_name", object(one).name, loose),
          least and known(score, score and score >= least) or YES,
          below and known(score, score and score < below) or YES
        ),
          { NONE }
      end, about == "transaction" and RANK.unknown or RANK.allow)
    worst = max(worst, rank)
  end
  add("transaction", result)
  for direction, strategies in pairs(bad and NONE or object(result.dirData)) do
    local is_named = among(directions, direction)
    bad = bad or not absent(strategies) and (not is_named or shape.check(records.strategies, strategies, ""))
  end
  for _, direction in ipairs(directions) do
    local strategies = object(result.dirData)[direction]
    if absent(strategies) then
      add("strategy", nil, direction)
      add("detail", nil, direction)
    end
    for number, one in pairs(object(strategies)) do
      local own, score = object(one).strategyNo, tonumber(object(one).score)
      bad = bad or not max_score or absent(one) or not absent(own) and own ~= number or score and score > max_score
      add("strategy", one, direction, number, one)
      if absent(object(one).details) then
        add("detail", nil, direction, number, one)
      end
      for _, detail in ipairs(object(object(one).details)) do
        add("detail", detail, direction, number, one)
      end
    end
  end
  bad = bad or not max_score
  return RANK[bad and max(by_risks, handler(policy, { kind = "protocol" }) or RANK.unknown) or worst]
end

return M
