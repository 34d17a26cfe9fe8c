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

---@class riskscreen.ScoreCase one part of a result; a field that is nil is not known
---@field score? string
---@field direction? string
---@field strategy? string
---@field strategy_name? string
---@field detail? string
---@field detail_name? string

-- The parts of a result. A rule is about the narrowest part that its conditions name.
local TRANSACTION, STRATEGY, DETAIL = 1, 2, 3

local function decimal_text(value)
  local ok, message = decimal.check(value)
  if not ok then
    return nil, message
  end
  return value
end

local function threshold(name, holds)
  return {
    name = name,
    lookup = "risk",
    part = TRANSACTION,
    -- Any type: decimal.check has the message about a number, which would be a float.
    option = function()
      return build.checked(name, "any", decimal_text)
    end,
    matches = function(wanted, case)
      local order = decimal.compare(case.score, wanted)
      return order and holds(order)
    end,
  }
end

local function one_of(name, part, is_number)
  return {
    name = name,
    lookup = "risk",
    part = part,
    option = function()
      return is_number and conditions.set_option(name) or conditions.name_option(name)
    end,
    matches = function(set, case)
      local value = conditions.plain(case[name])
      return value and set[is_number and case[name] or value] == true
    end,
  }
end

-- The directions of a result: the interface's and those that the operator added.
local function directions_of(settings)
  return tables.concat(enums.values.direction, settings.extend and settings.extend.direction or {})
end

-- The result of a transaction takes the place of the risk assessment.
local score_conditions = {
  conditions.any(TRANSACTION),
  threshold("score_at_least", function(order)
    return order >= 0
  end),
  threshold("score_below", function(order)
    return order < 0
  end),
  {
    name = "direction",
    lookup = "risk",
    part = STRATEGY,
    option = function(settings)
      return build.choice("direction", directions_of(settings))
    end,
    matches = function(wanted, case)
      return case.direction == wanted
    end,
  },
  one_of("strategy", STRATEGY, true),
  one_of("strategy_name", STRATEGY),
  one_of("detail", DETAIL),
  one_of("detail_name", DETAIL),
}

---@type riskscreen.Option[]
local policy_options = {
  rule.option(
    nil,
    "The rules, in the order in which they are tried. There are none by default: no scale is published."
  ),
  options.final_statuses,
  build.group(
    "extend",
    { build.checked("direction", "table", conditions.texts) },
    "Directions that the service has added to `dirData`: { direction = { … } }."
  ),
  build.choice(
    "absent_score",
    { "unknown", "none" },
    "unknown",
    "'none': a result with `risks` and without `maxScore` and `dirData` is decided by its risks alone."
  ),
  build.object(
    "risks",
    "riskscreen.Policy",
    "riskscreen.policy",
    "Decides about the risks of a result that has some; by default the default policy for addresses."
  ),
}

---@class riskscreen.ScorePolicy
---@field rules riskscreen.CompiledRule[]
---@field rules_about riskscreen.CompiledRule[][] the same by the part that they are about
---@field is_final table<integer, true>
---@field directions string[]
---@field is_direction table<string, true>
---@field absent_score "unknown"|"none"
---@field risks riskscreen.Policy
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

-- The strategies of a direction by number, or nil when they are not known.
local function strategies_of(result, direction)
  local directions = member(result, "dirData")
  return directions and member(directions, direction)
end

-- The numbers of strategies in a fixed order.
local function sorted_numbers(strategies)
  local numbers = {}
  for number in pairs(strategies) do
    numbers[#numbers + 1] = number
  end
  table.sort(numbers, function(a, b)
    return tostring(a) < tostring(b)
  end)
  return numbers
end

-- A result is one response: no lookup beside it can have failed or be missing.
local NONE = {}

local function new_case(fields)
  fields.failures, fields.not_offered = NONE, NONE
  return fields
end

local function is_negative(score)
  return decimal.compare(score, "0") == -1
end

-- The message about a score below zero in a strategy.
local function negative_score(strategy, place)
  local score = member(strategy, "score")
  if score and is_negative(score) then
    return ("%s.score is negative: %s"):format(place, score)
  end
  for index, detail in ipairs(member(strategy, "details") or {}) do
    score = member(detail, "score")
    if score and is_negative(score) then
      return ("%s.details[%d].score is negative: %s"):format(place, index, score)
    end
  end
end

-- The message about a direction that no rule could have named. It may hold strategies of any score.
local function unseen_direction(self, result)
  for direction, strategies in pairs(member(result, "dirData") or {}) do
    if strategies ~= json.null and not self.is_direction[direction] then
      return "result.dirData holds a direction that is not known: " .. text.show(direction)
    end
  end
end

-- The first contradiction between a direction and the rest of the result.
local function contradiction(strategies, path, max_score)
  for _, number in ipairs(sorted_numbers(strategies)) do
    local strategy = member(strategies, number)
    local place = path .. "." .. text.printable(tostring(number))
    if not strategy then
      return place .. " is null"
    end
    local own_number, score = member(strategy, "strategyNo"), member(strategy, "score")
    if own_number and own_number ~= number then
      return ("%s contradicts itself: its strategyNo is %s"):format(place, text.show(own_number))
    elseif score and decimal.compare(score, max_score) == 1 then
      return ("%s.score is %s, more than maxScore, which is %s"):format(place, score, max_score)
    end
    local message = negative_score(strategy, place)
    if message then
      return message
    end
  end
end

-- The message about a result that no rule may decide.
local function unusable(self, result)
  local message = shape.check(records.transaction_result, result, "result")
  if message then
    return message
  end
  local status, max_score = member(result, "status"), member(result, "maxScore")
  if not self.is_final[status or false] then
    return ("result.status is %s, which is not known to be final"):format(status and tostring(status) or "missing")
  elseif not max_score then
    local has_risks_alone = member(result, "risks") and not member(result, "dirData") and self.absent_score == "none"
    return not has_risks_alone and "result.maxScore is missing (see the policy's option absent_score)" or nil
  elseif is_negative(max_score) then
    return "result.maxScore is negative: " .. max_score
  end
  message = unseen_direction(self, result)
  if message then
    return message
  end
  for _, direction in ipairs(self.directions) do
    local strategies, path = strategies_of(result, direction), "result.dirData." .. direction
    message = strategies
      and (shape.check(records.strategies, strategies, path) or contradiction(strategies, path, max_score))
    if message then
      return message
    end
  end
end

local function describe(case)
  local words = {}
  for _, field in ipairs { "direction", "strategy", "detail" } do
    if case[field] then
      words[#words + 1] = field .. " " .. text.printable(case[field])
    end
  end
  words[#words + 1] = "score " .. (case.score or "absent")
  return table.concat(words, ", ")
end

local function new_reason(case, action, message, compiled)
  return {
    action = action,
    message = message,
    rule = compiled and compiled.rule,
    score = case.score,
    direction = case.direction,
    strategy = case.strategy,
    detail = case.detail,
  }
end

local function matched_reason(case, match)
  return new_reason(case, match.action, match.label .. " matches " .. describe(case), match)
end

local function undetermined_reason(case, compiled)
  return new_reason(case, "unknown", evaluate.undetermined_message(compiled))
end

-- The reason of a part; nil when no rule matches it. No match counts as `allow`: rules that allow cannot change it.
local function reason_of(rules, case)
  local match, undetermined = evaluate.first_match(rules, case)
  local relevant = evaluate.relevant(undetermined, match and match.action or "allow")
  if relevant[1] then
    return undetermined_reason(case, relevant[1].rule)
  end
  return match and matched_reason(case, match)
end

-- The reason of parts that are absent: any rule that could match one of them is undetermined.
local function absent_reason(rules, case)
  for _, compiled in ipairs(rules) do
    if compiled.action ~= "allow" and compiled:matches(case) ~= false then
      return undetermined_reason(case, compiled)
    end
  end
end

local function add_strategy(reasons, self, direction, number, strategy)
  local function case(detail)
    return new_case {
      direction = direction,
      strategy = number,
      strategy_name = member(strategy, "strategyName"),
      score = member(detail or strategy, "score"),
      detail = detail and member(detail, "code"),
      detail_name = detail and member(detail, "name"),
    }
  end
  local about_details = self.rules_about[DETAIL]
  reasons[#reasons + 1] = reason_of(self.rules_about[STRATEGY], case())
  local details = member(strategy, "details")
  for _, detail in ipairs(details or {}) do
    reasons[#reasons + 1] = reason_of(about_details, case(detail))
  end
  if not details then
    -- The details of a strategy have its direction, number and name.
    reasons[#reasons + 1] = absent_reason(about_details, case {})
  end
end

local function score_reasons(self, result)
  local transaction = new_case { score = result.maxScore }
  local reasons = { reason_of(self.rules_about[TRANSACTION], transaction) }
  reasons[1] = reasons[1]
    or new_reason(transaction, "unknown", "no rule covers a transaction of score " .. result.maxScore)
  for _, direction in ipairs(self.directions) do
    local strategies = strategies_of(result, direction)
    for _, number in ipairs(strategies and sorted_numbers(strategies) or {}) do
      add_strategy(reasons, self, direction, number, strategies[number])
    end
    if not strategies then
      reasons[#reasons + 1] = absent_reason(self.rules_about[STRATEGY], new_case { direction = direction })
      reasons[#reasons + 1] = absent_reason(self.rules_about[DETAIL], new_case { direction = direction })
    end
  end
  return reasons
end

-- The reasons about the scores or the failure, and about the risks of a result, the worst first; and whether they are
-- degraded.
local function reasons_for(self, result, err)
  local reasons, degraded = {}, false
  if err then
    local case = new_case {}
    case.failures = { risk = err }
    reasons[1], degraded = evaluate.failure(self.rules, case, err)
  elseif member(result, "maxScore") then
    reasons = score_reasons(self, result)
  end
  if type(result) == "table" and member(result, "risks") ~= nil then
    local about_risks = self.risks:decide { risk = result }
    reasons, degraded = tables.concat(reasons, about_risks.reasons), degraded or about_risks.degraded
  end
  return decision.worst_first(reasons), degraded
end

---Decides from the result of a transaction: `policy:decide(client.kyt:screen { … })`.
---@param result table|nil
---@param other? riskscreen.Response|riskscreen.Error
---@return riskscreen.Decision
function ScorePolicy:decide(result, other)
  local err
  if result == nil and errors.is(other) and other.decision then
    return other.decision
  elseif result == nil then
    err = errors.is(other) and other or errors.new("protocol", "there is no result")
  else
    local message = unusable(self, result)
    err = message and errors.new("protocol", message)
  end
  local reasons, degraded = reasons_for(self, result, err)
  return decision.new {
    action = reasons[1].action,
    reasons = reasons,
    record = result,
    error = err or reasons[1].error,
    degraded = degraded,
    elapsed = type(other) == "table" and other.elapsed,
  }
end

local function part_of(compiled)
  local part = TRANSACTION
  for _, entry in ipairs(compiled.conditions) do
    part = math.max(part, entry.condition.part)
  end
  return part
end

local M = {}

---@class riskscreen.ScorePolicyOptions
---@field rules riskscreen.ScoreRule[]
---@field final_statuses? integer[] the values of `status` of a final result; by default 1003
---@field extend? { direction?: string[] } directions that the service has added
---@field absent_score? "unknown"|"none" the meaning of a result with `risks` and without `maxScore` and `dirData`
---@field risks? riskscreen.Policy decides about the risks of a result that has some; by default the default policy

---Makes a policy for transactions. A result that is malformed, not final or in contradiction with itself is unknown.
---@param given riskscreen.ScorePolicyOptions
---@return riskscreen.ScorePolicy
function M.new(given)
  local settings = check.arguments("score_policy", policy_options, given)
  local rules, message = rule.compile_all(settings, score_conditions)
  if not rules then
    error("score_policy: " .. message, 2)
  end
  local rules_about = { {}, {}, {} }
  for _, compiled in ipairs(rules) do
    table.insert(rules_about[part_of(compiled)], compiled)
  end
  return setmetatable({
    rules = rules,
    rules_about = rules_about,
    is_final = tables.set(settings.final_statuses),
    directions = directions_of(settings),
    is_direction = tables.set(directions_of(settings)),
    absent_score = settings.absent_score,
    risks = settings.risks or policies.new(),
  }, ScorePolicy)
end

return M
