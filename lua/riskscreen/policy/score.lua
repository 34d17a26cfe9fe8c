-- Policies for transactions: result of a screening → decision. Pure: no client, no clock, no transport.
-- Scores are decimal texts from zero up and are compared as such. A rule is about the transaction, a strategy, or a
-- detail of a strategy. Rules about strategies and details can only make the decision worse.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local conditions = require "riskscreen.policy.conditions"
local decimal = require "riskscreen.util.decimal"
local decision = require "riskscreen.policy.decision"
local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local evaluate = require "riskscreen.policy.evaluate"
local json = require "riskscreen.json"
local options = require "riskscreen.options.kyt"
local policies = require "riskscreen.policy"
local records = require "riskscreen.interface.records"
local rule = require "riskscreen.policy.rule"
local shape = require "riskscreen.interface.shape"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

---@class riskscreen.ScoreRule
---@field action "allow"|"review"|"block"
---@field name? string for people: the reasons repeat it
---@field score_at_least? string a decimal text
---@field score_below? string a decimal text
---@field direction? "in"|"out" a strategy's direction
---@field strategy? string|string[] a strategy's number
---@field strategy_name? string|string[] case, spaces, hyphens and underscores are ignored, as in the next two
---@field detail? string|string[] a detail's code
---@field detail_name? string|string[]
---@field error? boolean|string|string[] true or error kinds: only a result that failed

---@class riskscreen.ScorePart a transaction, a strategy or a detail; a field that is nil is not known
---@field score? string
---@field direction? string
---@field strategy? string
---@field strategy_name? string
---@field detail? string
---@field detail_name? string

-- A rule is about the narrowest part that its conditions name.
local TRANSACTION, STRATEGY, DETAIL = 1, 2, 3
local NONE = {} -- a result is one response: no lookup beside it can have failed or be missing

local function threshold(name, is_minimum)
  return {
    name = name,
    part = TRANSACTION,
    -- Any type: decimal.check has the message about a number, which would be a float.
    option = function()
      return build.checked(name, "any", function(value)
        local ok, message = decimal.check(value)
        return ok and value or nil, message
      end)
    end,
    matches = function(wanted, case)
      local order = decimal.compare(case.part.score, wanted)
      return order and (order >= 0) == is_minimum
    end,
  }
end

-- The number of a strategy is compared as it is.
local plain = conditions.plain
local form_of = { strategy = conditions.exact, strategy_name = plain, detail = plain, detail_name = plain }

local function one_of(name, part)
  return {
    name = name,
    part = part,
    option = function()
      return conditions.set_option(name, nil, form_of[name])
    end,
    matches = function(set, case)
      local value = case.part[name]
      return conditions.is_named(name, set, value, form_of[name](value), case.policy.recognised)
    end,
  }
end

-- The directions of a result: the interface's and those that the operator added.
local function directions_of(settings)
  return tables.concat(enums.values.direction, settings.extend.direction or {})
end

-- The result of a transaction takes the place of the risk assessment.
local score_conditions = {
  conditions.any(TRANSACTION),
  threshold("score_at_least", true),
  threshold("score_below", false),
  {
    name = "direction",
    part = STRATEGY,
    option = function(settings)
      return build.choice("direction", directions_of(settings))
    end,
    matches = function(wanted, case)
      return case.part.direction == wanted
    end,
  },
  one_of("strategy", STRATEGY),
  one_of("strategy_name", STRATEGY),
  one_of("detail", DETAIL),
  one_of("detail_name", DETAIL),
}

local texts = conditions.texts_option

local ABSENT_SCORE = "'none': a result with `risks` and without `maxScore` and `dirData` is decided by its risks alone."
local RISKS = "Decides about the risks of every result. Without it the default policy for addresses decides about "
  .. "those of a result that has some."

---@type riskscreen.Option[]
local policy_options = {
  rule.option(
    nil,
    "The rules, in the order in which they are tried. There are none by default: no scale is published."
  ),
  options.final_statuses,
  build.group(
    "extend",
    { texts "direction", texts "strategy", texts "strategy_name", texts "detail", texts "detail_name" },
    "Directions that the service has added to `dirData`, and strategies and details that no rule names.",
    {}
  ),
  build.choice("absent_score", { "unknown", "none" }, "unknown", ABSENT_SCORE),
  build.object("risks", "riskscreen.Policy", "riskscreen.policy", RISKS),
}

---@class riskscreen.ScorePolicy
---@field settings table the checked options
---@field rules riskscreen.CompiledRule[]
---@field rules_about riskscreen.CompiledRule[][] the same by the part that they are about
---@field is_final table<integer, true>
---@field directions string[]
---@field recognised table<string, table<string, true>> by the condition
---@field absent_score "unknown"|"none"
---@field risks riskscreen.Policy
---@field needs_risks boolean a result without risks is decided by that policy, too
local ScorePolicy = {}
ScorePolicy.__index = ScorePolicy
ScorePolicy.__name = "riskscreen.ScorePolicy"

-- A member of an object; null counts as absent.
local function member(object, name)
  local value = object[name]
  if value ~= json.null then
    return value
  end
end

local function describe(case)
  local words = {}
  for _, field in ipairs { "direction", "strategy", "detail" } do
    if case.part[field] then
      words[#words + 1] = field .. " " .. text.printable(case.part[field])
    end
  end
  words[#words + 1] = "score " .. (case.part.score or "absent")
  return table.concat(words, ", ")
end

-- Adds a case. Where a group of parts is missing it gets one that may exist.
local function add(cases, policy, kind, part, may_exist)
  cases[#cases + 1] = {
    kind = kind,
    part = part,
    may_exist = may_exist,
    is_optional = kind ~= TRANSACTION,
    describe = describe,
    policy = policy,
    failures = NONE,
    not_offered = NONE,
  }
end

-- Adds the cases of a strategy. Returns the message about a contradiction between it and the rest of the result.
local function add_strategy(cases, policy, strategy, direction, number, max_score)
  local place = ("result.dirData.%s.%s"):format(direction, text.printable(number))
  if not strategy then
    return place .. " is null"
  end
  local own_number, score, details =
    member(strategy, "strategyNo"), member(strategy, "score"), member(strategy, "details")
  if own_number and own_number ~= number then
    return ("%s contradicts itself: its strategyNo is %s"):format(place, text.show(own_number))
  elseif score and decimal.compare(score, max_score) == 1 then
    return ("%s.score is %s, more than maxScore, which is %s"):format(place, score, max_score)
  end
  local own = { direction = direction, strategy = number, strategy_name = member(strategy, "strategyName") }
  add(cases, policy, STRATEGY, tables.merge(own, { score = score }))
  for _, detail in ipairs(details or NONE) do
    local part =
      { detail = member(detail, "code"), detail_name = member(detail, "name"), score = member(detail, "score") }
    add(cases, policy, DETAIL, tables.merge(own, part))
  end
  if not details then
    add(cases, policy, DETAIL, own, true)
  end
end

-- Adds the cases of each direction. Returns the message about the first contradiction.
local function add_directions(cases, policy, directions, max_score)
  -- A direction that no rule could have named may hold strategies of any score.
  for direction, strategies in pairs(directions) do
    if strategies ~= json.null and not policy.recognised.direction[direction] then
      return "result.dirData holds a direction that is not known: " .. text.show(direction)
    end
  end
  local message
  for _, direction in ipairs(policy.directions) do
    local strategies = member(directions, direction)
    message = message or strategies and shape.check(records.strategies, strategies, "result.dirData." .. direction)
    for _, number in ipairs(strategies and not message and tables.sorted_keys(strategies) or NONE) do
      message = message or add_strategy(cases, policy, member(strategies, number), direction, number, max_score)
    end
    for kind = strategies and DETAIL + 1 or STRATEGY, DETAIL do
      add(cases, policy, kind, { direction = direction }, true)
    end
  end
  for _, case in ipairs(cases) do
    if case.part.score and decimal.compare(case.part.score, "0") == -1 then
      return message or "the result has a negative " .. describe(case)
    end
  end
  return message
end

-- The cases of a result; with a message if no rule may decide it.
local function cases_of(policy, result)
  local cases = {}
  local message = shape.check(records.transaction_result, result, "result")
  if message then
    return cases, message
  end
  local status, max_score, directions = member(result, "status"), member(result, "maxScore"), member(result, "dirData")
  if not policy.is_final[status or false] then
    message = ("result.status is %s, which is not known to be final"):format(status and tostring(status) or "missing")
  elseif max_score then
    add(cases, policy, TRANSACTION, { score = max_score })
    message = add_directions(cases, policy, directions or NONE, max_score)
  elseif policy.absent_score ~= "none" or directions or not member(result, "risks") then
    message = "result.maxScore is missing (see the policy's option absent_score)"
  end
  return cases, message
end

-- The cases of a result, or the one of a failure.
local function read(policy, result, other)
  local cases, message = NONE, "there is no result"
  if result ~= nil then
    cases, message = cases_of(policy, result)
  end
  if not message then
    return cases
  end
  local err = result == nil and errors.is(other) and other or errors.new("protocol", message)
  local case = { kind = TRANSACTION, part = NONE, describe = describe, policy = policy }
  case.failures, case.not_offered = { risk = err }, NONE
  return { case }, err
end

local function has_risks(policy, result)
  return type(result) == "table" and (policy.needs_risks or member(result, "risks") ~= nil)
end

---Decides from the result of a transaction: `policy:decide(client.kyt:screen { … })`.
---@param result table|nil
---@param other? riskscreen.Response|riskscreen.Error
---@return riskscreen.Decision
function ScorePolicy:decide(result, other)
  if result == nil and errors.is(other) and other.decision then
    return other.decision
  end
  local cases, err = read(self, result, other)
  local reasons, degraded = {}, false
  for _, case in ipairs(cases) do
    reasons[#reasons + 1], degraded = evaluate.case(err and self.rules or self.rules_about[case.kind], case, err)
  end
  degraded = err ~= nil and degraded
  if has_risks(self, result) then
    local about_risks = self.risks:decide { risk = result }
    reasons, degraded = tables.concat(reasons, about_risks.reasons), degraded or about_risks.degraded
  end
  local elapsed = type(other) == "table" and other.elapsed
  return decision.of_reasons(reasons, { record = result, error = err, degraded = degraded, elapsed = elapsed }, other)
end

local function part_of(compiled)
  local part = TRANSACTION
  for _, entry in ipairs(compiled.conditions) do
    part = math.max(part, entry.condition.part)
  end
  return part
end

-- The rules by the part of a result that they are about.
local function by_part(rules)
  local rules_about = { {}, {}, {} }
  for _, compiled in ipairs(rules) do
    table.insert(rules_about[part_of(compiled)], compiled)
  end
  return rules_about
end

-- The facts that a proof needs about policies for transactions.
local domain = {
  conditions = score_conditions,
  named = { "strategy", "strategy_name", "detail", "detail_name" },
  fields = "status max_score score strategy strategy_name details detail detail_name detail_score",
  space = function(...)
    return require("riskscreen.policy.score_candidates").space(read, function(policy, result)
      if has_risks(policy, result) then
        return policies.case_of(policy.risks, { risk = result }, 1)
      end
    end, ...)
  end,
  concrete = function(evidence, is_wanted)
    return is_wanted(evidence) and evidence or nil
  end,
  decide = function(policy, evidence)
    return policy:decide(evidence.risk, evidence.errors and evidence.errors.risk)
  end,
  -- A list has at most one risk, and not one that is the worst for each of two policies.
  is_comparable = function(old, new)
    return tables.fingerprint(old.risks.settings) == tables.fingerprint(new.risks.settings)
  end,
  with_rules = function(policy, rules, recognised)
    local more = { rules = rules, rules_about = by_part(rules), recognised = recognised }
    return setmetatable(tables.merge(policy, more), ScorePolicy)
  end,
}

---Whether a claim holds for all results, such as "never allow where score_at_least = 50". See docs/policy-proofs.md.
---@param claim string|riskscreen.PolicyClaim
---@return riskscreen.Proof
function ScorePolicy:prove(claim)
  return require("riskscreen.policy.prove").prove(domain, self, claim)
end

---The kinds of results whose action another policy changes, the worst change first. See docs/policy-proofs.md.
---@param other riskscreen.ScorePolicy
---@return riskscreen.PolicyDiff
function ScorePolicy:diff(other)
  if getmetatable(other) ~= ScorePolicy then
    error("diff: expected a score policy", 2)
  end
  return require("riskscreen.policy.diff").diff(domain, self, other)
end

---Finds rules that never decide, and says what the policy does where a value is not known.
---@return riskscreen.PolicyFinding[]
function ScorePolicy:check()
  return require("riskscreen.policy.lint").findings(domain, self)
end

local M = {}

---@class riskscreen.ScorePolicyOptions
---@field rules riskscreen.ScoreRule[]
---@field final_statuses? integer[] the values of `status` of a final result; by default 1003
---@field extend? { direction?: string[], strategy?: string[], strategy_name?: string[], detail?: string[],
---detail_name?: string[] } directions that the service has added, and strategies and details that no rule names
---@field absent_score? "unknown"|"none" the meaning of a result with `risks` and without `maxScore` and `dirData`
---@field risks? riskscreen.Policy decides about the risks of every result; without it the default policy decides about
---those of a result that has some

---Makes a policy for transactions. A result that is malformed, not final or in contradiction with itself is unknown.
---@param given riskscreen.ScorePolicyOptions
---@return riskscreen.ScorePolicy
function M.new(given)
  local settings = check.arguments("score_policy", policy_options, given)
  local rules, message = rule.compile_all(settings, score_conditions)
  if not rules then
    error("score_policy: " .. message, 2)
  end
  local directions = directions_of(settings)
  local recognised = { direction = tables.set(directions) }
  for name, form in pairs(form_of) do
    recognised[name] = rule.named(rules, name, conditions.set(settings.extend[name], form))
  end
  return setmetatable({
    settings = settings,
    rules = rules,
    rules_about = by_part(rules),
    is_final = tables.set(settings.final_statuses),
    directions = directions,
    recognised = recognised,
    absent_score = settings.absent_score,
    risks = settings.risks or policies.new(),
    needs_risks = settings.risks ~= nil,
  }, ScorePolicy)
end

return M
