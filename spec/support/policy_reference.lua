-- The rules of policies once more, from the pages alone: nothing of riskscreen.policy is used. Comments name the
-- headings of docs/screening-and-policy.md and docs/transactions.md. Truths are numbers: the least of several is "and",
-- the greatest "or", and MAYBE is undetermined. The worst action has the greatest rank.
local address = require "riskscreen.address"
local enums = require("riskscreen.interface.enums").values
local json = require "riskscreen.json"
local records = require "riskscreen.interface.records"
local shape = require "riskscreen.interface.shape"
local tables = require "riskscreen.util.tables"

local max, min, NONE, NO, MAYBE, YES = math.max, math.min, {}, 0, 1, 2
local RANK = { allow = 1, review = 2, unknown = 3, block = 4, "allow", "review", "unknown", "block" }
local FIELDS = { level = "riskLevel", type = "riskType" }
local LOOKUPS = { contract = "entity", category = "entity", frozen = "freeze_events", counterparty = "counterparties" }
local ABSENT_ANSWERS = { freeze_events = "absent_freeze_events", counterparties = "absent_opponents" }
local NO_CONDITION = { action = YES, name = YES, not_offered = YES, error = NO }
local OF_SCORES = { "direction", "strategy", "strategy_name", "detail", "detail_name" }
local DEFAULT = { -- "Your own policy"
  { type = { "sanction", "terrorist", "csam" }, action = "block" },
  { level = "high", action = "block" },
  { level = "generally-high", action = "review" },
  { level = { "low", "whitelist" }, action = "allow" },
  { no_risk = true, action = "allow" },
}
local M = {}

local function known(is_known, holds)
  return not is_known and MAYBE or holds and YES or NO
end

local function object(value)
  return type(value) == "table" and value or NONE
end

local function present(value)
  if value ~= json.null then
    return value
  end
end

local function list(owner, name, meaning) -- nil if it is no list; NONE if it is absent, and that has a meaning
  local value = object(owner)[name]
  local is_none = meaning == "none" and type(owner) == "table" and present(value) == nil
  return is_none and NONE or type(value) == "table" and (value[1] ~= nil or next(value) == nil) and value or nil
end

local function greatest(values, of)
  local result = NO
  for _, value in ipairs(values) do
    result = max(result, of(value))
  end
  return result
end

local function filled(text)
  return type(text) == "string" and text ~= ""
end

local function loose(text)
  return (text:lower():gsub("[%s_-]", ""))
end

local function among(values, text, form) -- whether a text is this value, or one in a list of values and lists
  for _, value in pairs(type(values) == "table" and values or { values }) do
    local is_found = type(value) == "table" and among(value, text, form)
    if is_found or value == text or form and type(value) == "string" and form(value) == form(text) then
      return true
    end
  end
end

local function one_of(wanted, text, values, form) -- whether a text is wanted; it is known if it is one of the values
  local is_known = filled(text) and among(values, text, form)
  return wanted == nil and YES or known(is_known, is_known and among(wanted, text, form))
end

local function known_values(policy, name) -- of the interface or of the rules, and those that the operator has added
  local values = { enums["risk_" .. name] or enums[name], object(policy.extend)[name] }
  for _, rule in ipairs(values[1] and NONE or policy.rules) do
    values[rule] = rule[name]
  end
  return values
end

local function handler(policy, failure) -- the rank of the first `error` rule that names its kind
  for _, rule in ipairs(policy.rules) do
    if failure.kind and (rule.error == true or among(rule.error, failure.kind)) then
      return RANK[rule.action]
    end
  end
end

-- "Missing values never help an address". `try` gives a rule's truth, and the failures and other causes for which it is
-- undetermined. `start` counts if no rule matches. If one does, at least `least` counts.
local function decide(policy, try, start, least, is_failed)
  local action, undetermined = start, {}
  for _, rule in ipairs(policy.rules) do
    local result, causes = try(rule)
    if result == YES then
      action = max(RANK[rule.action], rule.unrecognised and RANK.allow or least)
      break
    end
    undetermined[rule] = result == MAYBE and causes or nil
  end
  local worst = action
  for rule, causes in pairs(undetermined) do
    local own, handled = RANK[rule.action], RANK.allow
    for _, cause in ipairs(causes) do
      handled = handled and handler(policy, cause) and max(handled, handler(policy, cause))
    end
    local matters = own > action or own < action and not is_failed
    worst = max(worst, matters and (handled or RANK.unknown) or worst)
  end
  return worst
end

local function frozen(policy, events) -- "Freezes"
  local function lifts(event)
    local by_type = one_of(policy.lifting, event.type, event.type, string.lower)
    return policy.lifting and max(by_type, one_of(policy.lifting, event.event, event.event, string.lower)) or NO
  end
  local function token_of(event)
    local chain, contract = address.canonical_network(event.chain), event.contractAddress
    return filled(chain) and filled(contract) and chain .. " " .. address.normalize(contract, chain)
  end
  local function is_positive(amount)
    return filled(amount) and amount:match "^[%d.]+$" and (tonumber(amount) or 0) > 0
  end
  return greatest(events, function(event)
    event = object(event)
    local token, time = token_of(event), tonumber(event.txTime)
    local is_over = greatest(events, function(later)
      later = object(later)
      local its_token, its_time = token_of(later), tonumber(later.txTime)
      local is_later = known(time and its_time, (time or 0) < (its_time or 0))
      return min(lifts(later), is_later, known(token and its_token, token == its_token))
    end)
    local has_amount = is_positive(event.frozenBalance) or is_positive(event.destroyedBalance)
    return min(has_amount and YES or MAYBE, YES - max(is_over, lifts(event)))
  end)
end

local function counterparty(policy, wanted, opponents) -- "Counterparties"
  local levels, types = known_values(policy, "level"), known_values(policy, "type")
  local parts, is_complete = {}, true
  for index, one in ipairs(opponents) do
    local part = { amount = object(one).amount, symbol = object(one).symbol }
    local risks = list(one, "risks", policy.absent_risks)
    part.counts = one_of(wanted.direction, object(one).dir, enums.direction)
    part.is_risky = not risks and MAYBE
      or greatest(risks, function(risk)
        local level, kind = object(risk).riskLevel, object(risk).riskType
        return min(one_of(wanted.level, level, levels), one_of(wanted.type, kind, types))
      end)
    local has_amount = type(part.amount) == "number" and part.amount >= 0 and filled(part.symbol)
    parts[index], is_complete = part, is_complete and (has_amount or part.counts == NO)
  end
  local function share(symbol, doubt) -- with everything undetermined for the share (YES), or against it (NO)
    local sums = { [NO] = 0, [YES] = 0 }
    for _, part in ipairs(parts) do
      local is_risky = part.is_risky == MAYBE and doubt or part.is_risky
      local counts = part.counts == YES or part.counts == MAYBE and is_risky == doubt
      sums[is_risky] = sums[is_risky] + (counts and part.symbol == symbol and part.amount or 0)
    end
    return sums[YES] / (sums[YES] + sums[NO]) -- not a number without amounts
  end
  return greatest(parts, function(part)
    local found, least = min(part.counts, part.is_risky), wanted.share
    if found == NO or not (least and is_complete) then
      return least and min(found, MAYBE) or found
    end
    return share(part.symbol, NO) >= least and YES or known(share(part.symbol, YES) < least * (1 - 1e-9), false)
  end)
end

function M.address(policy, evidence) -- "Conditions", "Networks without a lookup"
  policy = object(policy).rules and policy or { rules = DEFAULT }
  local found, failed = {}, {}
  for _, lookup in ipairs { "risk", "entity", "freeze_events", "counterparties" } do
    local err = object(evidence.errors)[lookup]
    local is_none = err and err.absent and policy[ABSENT_ANSWERS[lookup] or ""] == "none"
    found[lookup], failed[lookup] = is_none and NONE or evidence[lookup], not is_none and err or nil
  end
  local risks, events = list(found.risk, "risks", policy.absent_risks), list(found, "freeze_events")
  local opponents = list(found.counterparties, "opponents", policy.absent_opponents)
  failed.risk = failed.risk or not risks and { kind = "protocol" } or nil
  local function holds(rule, name, risk, is_unclear)
    local wanted, entity = rule[name], object(found.entity)
    if name == "counterparty" then
      return opponents and counterparty(policy, wanted, opponents) or MAYBE
    elseif name == "frozen" then
      local is_frozen = events and frozen(policy, events) or MAYBE
      return wanted and is_frozen or YES - is_frozen
    elseif name == "category" then
      local owner, values = object(entity.entity), known_values(policy, name)
      local by_name = one_of(wanted, owner.entityCategory, values, loose)
      local is_nobody = list(found.entity, "entity", policy.absent_entity) == NONE
      return is_nobody and NO or max(by_name, one_of(wanted, owner.entityCategoryCode, values, loose))
    elseif name == "source" then
      local values = { "Community", "User-Defined", object(policy.extend).source, provider = policy.provider }
      wanted = { wanted, among(wanted, "Provider") and policy.provider }
      return risk and one_of(wanted, object(risk).riskSource, values) or NO
    elseif FIELDS[name] then
      local text = object(risk)[FIELDS[name]]
      return risk and one_of(wanted, text, text) or NO
    end
    local flags = { any = true, no_risk = not risk, unrecognised = is_unclear, contract = entity.contract }
    flags.whitelist = object(found.risk).whitelist
    return known(type(flags[name]) == "boolean", flags[name] == wanted)
  end
  local start = failed.risk and handler(policy, failed.risk) or RANK.unknown
  local worst = greatest(failed.risk and { NONE } or risks[1] and risks or { false }, function(risk)
    local has_level = among(known_values(policy, "level"), object(risk).riskLevel)
    local is_unclear = risk and not (has_level and among(known_values(policy, "type"), object(risk).riskType))
    return decide(policy, function(rule)
      local result, causes = YES, {}
      for name in pairs(rule) do
        local lookup, is_skipped = LOOKUPS[name] or "risk", (rule.not_offered or policy.not_offered) == "skip"
        local missing = object(evidence.not_offered)[lookup] and (is_skipped and NO or MAYBE)
        local one = NO_CONDITION[name] or failed[lookup] and MAYBE or missing or holds(rule, name, risk, is_unclear)
        result, causes[#causes + 1] = min(result, one), one == MAYBE and (failed[lookup] or NONE) or nil
      end
      return result, causes
    end, start, failed.risk and start or is_unclear and RANK.unknown or RANK.allow, failed.risk)
  end)
  return RANK[worst]
end

-- "Decide by scores". A part is the transaction, a strategy or a detail.
function M.scores(policy, risk_policy, result)
  local data, max_score, parts = object(result.dirData), tonumber(result.maxScore), {}
  local directions = tables.concat(enums.direction, object(policy.extend).direction or NONE)
  local has_scores, has_risks = present(result.maxScore) or present(result.dirData), present(result.risks) ~= nil
  local by_risks = (has_risks or risk_policy) and RANK[M.address(risk_policy, { risk = result })] or RANK.allow
  local bad = shape.check(records.transaction_result, result, "")
    or not among(policy.final_statuses or 1003, result.status)
  if has_risks and not has_scores and not bad and policy.absent_score == "none" then
    return RANK[by_risks]
  end
  local function add(about, one, direction, number, strategy)
    local part = { about = about, is_missing = not present(one), direction = direction, strategy = number }
    part.score = tonumber(object(one)[about == "transaction" and "maxScore" or "score"])
    part.strategy_name = object(strategy).strategyName
    part.detail, part.detail_name = object(one).code, object(one).name
    parts[#parts + 1], bad = part, bad or part.score and part.score < 0
  end
  for direction, strategies in pairs(data) do
    local is_named = among(directions, direction)
    bad = bad or present(strategies) and (not is_named or shape.check(records.strategies, strategies, ""))
  end
  add("transaction", result)
  for _, direction in ipairs(bad and NONE or directions) do
    for number, strategy in pairs(present(data[direction]) or { false }) do
      local own, score = present(object(strategy).strategyNo), tonumber(object(strategy).score)
      bad = bad or strategy == json.null or own and own ~= number or score and score > (max_score or -1)
      add("strategy", strategy, direction, number, strategy)
      for _, detail in ipairs(present(object(strategy).details) or { false }) do
        add("detail", detail, direction, number, strategy)
      end
    end
  end
  if bad or not max_score then
    return RANK[max(by_risks, handler(policy, { kind = "protocol" }) or RANK.unknown)]
  end
  local function decide_part(part)
    return decide(policy, function(rule)
      local about = (rule.detail or rule.detail_name) and "detail"
        or (rule.strategy or rule.strategy_name or rule.direction) and "strategy"
        or "transaction"
      local least, below, score = tonumber(rule.score_at_least), tonumber(rule.score_below), part.score
      local truth =
        min(known(not least or score, not least or score and score >= least), known(not part.is_missing, true))
      truth = min(truth, known(not below or score, not below or score and score < below))
      for _, name in ipairs(OF_SCORES) do
        truth = min(truth, one_of(rule[name], part[name], known_values(policy, name), loose))
      end
      return (rule.error or about ~= part.about) and NO or truth, { NONE }
    end, part.about == "transaction" and RANK.unknown or RANK.allow, RANK.allow)
  end
  return RANK[max(by_risks, greatest(parts, decide_part))]
end

return M
