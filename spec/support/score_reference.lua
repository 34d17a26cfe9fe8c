-- The rules of policies for scores once more, from docs/transactions.md alone. Nothing of riskscreen.policy is used.
local decide_address = require "spec.support.policy_reference"
local records = require "riskscreen.interface.records"
local rules = require "spec.support.rules_reference"
local shape = require "riskscreen.interface.shape"
local tables = require "riskscreen.util.tables"

local MAYBE, NO, NONE, RANK, YES = rules.MAYBE, rules.NO, rules.NONE, rules.RANK, rules.YES
local absent, among, known, loose = rules.absent, rules.among, rules.known, rules.loose
local decide, named, object, one_of = rules.decide, rules.named, rules.object, rules.one_of

-- "Decide by scores"
return function(policy, risk_policy, result)
  local is_scored_alone = absent(result.risks) and not risk_policy
  local by_risks = is_scored_alone and RANK.allow or RANK[decide_address(risk_policy or NONE, { risk = result })]
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
        return math.min(
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
    worst = math.max(worst, rank)
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
  return RANK[bad and math.max(by_risks, rules.handler(policy, { kind = "protocol" }) or RANK.unknown) or worst]
end
