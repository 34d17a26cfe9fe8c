-- The rules of policies for addresses once more, from docs/screening-and-policy.md alone. Nothing of riskscreen.policy
-- is used. Comments name the heading on the page that a part comes from. rules_reference.lua has what both kinds of
-- policy share.
local enums = require "riskscreen.interface.enums"
local normalize = require("riskscreen.address").normalize
local rules = require "spec.support.rules_reference"

local NO, MAYBE, YES, NONE, RANK = rules.NO, rules.MAYBE, rules.YES, rules.NONE, rules.RANK
local among, any, filled, known = rules.among, rules.any, rules.filled, rules.known
local list, object, one_of = rules.list, rules.object, rules.one_of
local min, max, lower = math.min, math.max, string.lower
local NO_RISK = {}
local FIELDS = { level = "riskLevel", type = "riskType", source = "riskSource" }
local LOOKUPS = { contract = "entity", category = "entity", frozen = "freeze_events", counterparty = "counterparties" }
local NO_CONDITIONS = { action = true, name = true, error = true, not_offered = true }
local DEFAULT = { -- "Your own policy"
  { type = { "sanction", "terrorist", "csam" }, action = "block" },
  { level = "high", action = "block" },
  { level = "generally-high", action = "review" },
  { level = { "low", "whitelist" }, action = "allow" },
  { no_risk = true, action = "allow" },
}

local function recognised(policy, name, value)
  return enums.has("risk_" .. name, value) or among(object(policy.extend)[name], value)
end

local function frozen(policy, events) -- "Freezes"
  local function lifts(event)
    local kind, name, wanted = filled(event.type), filled(event.event), policy.lifting
    return wanted and max(one_of(wanted, kind, kind, lower), one_of(wanted, name, name, lower)) or NO
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
  local parts, is_complete = {}, true
  for index, one in ipairs(opponents) do
    one = object(one)
    local counts = one_of(wanted.direction, one.dir, enums.has("direction", one.dir))
    local risks, is_amount = list(one.risks, policy.absent_risks), type(one.amount) == "number" and one.amount >= 0
    local risky = risks
      and any(risks, function(risk)
        local level, kind = risk.riskLevel, risk.riskType
        local is_level = one_of(wanted.level, level, recognised(policy, "level", level))
        return min(is_level, one_of(wanted.type, kind, recognised(policy, "type", kind)))
      end)
    parts[index] = { counts = counts, risky = risky or MAYBE, amount = one.amount, symbol = one.symbol }
    is_complete = is_complete and (counts == NO or is_amount and filled(one.symbol))
  end
  local function share(symbol, doubt) -- with what is undetermined for the share (YES), or against it
    local sums = { [NO] = 0, [YES] = 0 }
    for _, one in ipairs(parts) do
      local risky = one.risky == MAYBE and doubt or one.risky
      local counts = one.symbol == symbol and (one.counts == YES or one.counts == MAYBE and risky == doubt)
      sums[risky] = sums[risky] + (counts and one.amount or 0)
    end
    return sums[YES] / (sums[YES] + sums[NO])
  end
  return any(parts, function(one)
    local found, least = min(one.counts, one.risky), wanted.share
    if found == NO or not (least and is_complete) then
      return least and min(found, MAYBE) or found
    end
    return share(one.symbol, NO) >= least and YES or known(share(one.symbol, YES) < least * (1 - 1e-9), false)
  end)
end

local function holds(policy, case, rule, name) -- "Conditions"
  local wanted, entity, risk = rule[name], object(case.entity), object(case.risk)
  local text, owner, is_risk = risk[FIELDS[name]], object(entity.entity), case.risk ~= NO_RISK
  if name == "counterparty" then
    return case.opponents and counterparty(policy, wanted, case.opponents) or MAYBE
  elseif name == "frozen" then
    local result = case.events and frozen(policy, case.events) or MAYBE
    return wanted and result or YES - result
  elseif name == "category" then
    local is_nobody = case.entity == entity and list(entity.entity, policy.absent_entity) == NONE
    local category = rules.named(policy, rule, name, owner.entityCategory, rules.loose)
    return is_nobody and NO or max(category, rules.named(policy, rule, name, owner.entityCategoryCode, rules.loose))
  elseif FIELDS[name] then
    local is_known = name ~= "source" or among({ "Community", "User-Defined", policy.provider }, text)
    local own = name == "source" and text == policy.provider and among(wanted, "Provider") and { text } or wanted
    return is_risk and one_of(own, text, is_known or among(object(policy.extend)[name], text)) or NO
  end
  local flags = { any = true, no_risk = not is_risk, unrecognised = case.is_unclear, contract = entity.contract }
  flags.whitelist = object(case.record).whitelist
  return known(type(flags[name]) == "boolean", flags[name] == wanted)
end

return function(policy, evidence) -- "Networks without a lookup"
  policy = policy.rules and policy or { rules = DEFAULT }
  local failed, found = {}, {}
  for lookup, option in pairs { risk = "", entity = "", freeze_events = "events", counterparties = "opponents" } do
    local err = object(evidence.errors)[lookup]
    local is_empty = err and err.absent and policy["absent_" .. (option == "events" and lookup or option)] == "none"
    found[lookup], failed[lookup] = is_empty and NONE or evidence[lookup], not is_empty and err or nil
  end
  local case = { record = found.risk, entity = found.entity, events = list(found.freeze_events) }
  local answer = found.counterparties
  case.opponents = type(answer) == "table" and list(answer.opponents, policy.absent_opponents) or nil
  local risks = type(found.risk) == "table" and list(found.risk.risks, policy.absent_risks)
  failed.risk = failed.risk or not risks and { kind = "protocol" } or nil
  local function try(rule)
    local result, causes = rule.error and NO or YES, {}
    for name in pairs(rule) do
      local lookup, one = LOOKUPS[name] or "risk", YES
      if object(evidence.not_offered)[lookup] and not failed[lookup] then
        one = (rule.not_offered or policy.not_offered) == "skip" and NO or MAYBE
      elseif not NO_CONDITIONS[name] then
        one = failed[lookup] and MAYBE or holds(policy, case, rule, name)
      end
      result, causes[#causes + 1] = min(result, one), one == MAYBE and (failed[lookup] or NONE) or nil
    end
    return result, causes
  end
  local start, worst = failed.risk and rules.handler(policy, failed.risk) or RANK.unknown, RANK.allow
  for _, risk in ipairs(failed.risk and { NONE } or risks[1] and risks or { NO_RISK }) do
    local level, kind = object(risk).riskLevel, object(risk).riskType
    case.risk = risk
    case.is_unclear = risk ~= NO_RISK and not (recognised(policy, "level", level) and recognised(policy, "type", kind))
    worst = max(worst, rules.decide(policy, try, start, failed.risk, case.is_unclear))
  end
  return RANK[worst]
end
