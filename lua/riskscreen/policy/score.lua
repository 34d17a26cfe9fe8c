-- Result of a transaction's screening → decision, and nothing else: no client, no clock, no transport. Scores are
-- decimal texts and are compared as such. A rule is about the transaction, or about a strategy or a detail in it: the
-- parts can make a decision worse, but only a rule about the transaction can allow it.

local check = require "riskscreen.options.check"
local conditions = require "riskscreen.policy.conditions"
local decimal = require "riskscreen.util.decimal"
local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local options = require "riskscreen.options.kyt"
local records = require "riskscreen.interface.records"
local rule = require "riskscreen.policy.rule"
local shape = require "riskscreen.interface.shape"
local text = require "riskscreen.util.text"
local verdict = require "riskscreen.policy.verdict"

---@class riskscreen.ScoreRule
---@field action "allow"|"review"|"block"
---@field name? string for people: it is repeated in the reasons
---@field score_at_least? string a decimal text
---@field score_below? string a decimal text
---@field direction? "in"|"out" a strategy's direction
---@field strategy? string|string[] a strategy's number
---@field strategy_name? string|string[]
---@field detail? string|string[] a detail's code
---@field detail_name? string|string[]
---@field error? boolean|string|string[] true or error kinds: only a result that failed

---@class riskscreen.ScoreCase what a rule is matched against; a field that is nil is not known
---@field score? string
---@field direction? string
---@field strategy? string
---@field strategy_name? string
---@field detail? string
---@field detail_name? string

-- What a rule is about, from its conditions: the narrowest of them.
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
    -- A number would be a float by now: it is refused with the words of decimal.lua.
    type = "any",
    about = TRANSACTION,
    check = decimal_text,
    match = function(wanted, case)
      local order = decimal.compare(case.score, wanted)
      return order and holds(order)
    end,
  }
end

local function one_of(name, about)
  return {
    name = name,
    type = "string|table",
    about = about,
    check = function(value)
      return conditions.set_from(value)
    end,
    match = function(set, case)
      if case[name] == nil then
        return nil
      end
      return set[case[name]] == true
    end,
  }
end

local score_conditions = {
  threshold("score_at_least", function(order)
    return order >= 0
  end),
  threshold("score_below", function(order)
    return order < 0
  end),
  {
    name = "direction",
    type = "string",
    values = enums.values.direction,
    about = STRATEGY,
    match = function(wanted, case)
      return case.direction == wanted
    end,
  },
  one_of("strategy", STRATEGY),
  one_of("strategy_name", STRATEGY),
  one_of("detail", DETAIL),
  one_of("detail_name", DETAIL),
}

---@type riskscreen.Option[]
local policy_options = {
  {
    name = "rules",
    type = "table",
    required = true,
    check = function(rules)
      if #rules == 0 then
        return nil, "must hold at least one rule"
      end
      return rules
    end,
    doc = "The rules, in the order in which they are tried. There are none by default: no scale is published.",
  },
  options.final_statuses,
}

local ScorePolicy = {}
ScorePolicy.__index = ScorePolicy
ScorePolicy.__name = "riskscreen.ScorePolicy"

-- A member of an object; one that is null counts as absent.
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

-- A result is one answer: nothing in it was looked up apart, so that no lookup can have failed or be missing.
local nothing = {}

local function case_of(fields)
  fields.failures, fields.not_offered = nothing, nothing
  return fields
end

-- What in a direction contradicts the rest of the result.
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
  end
end

-- Why a result cannot be used, whatever the rules are.
local function unusable(self, result)
  local message = shape.check(records.transaction_result, result, "result")
  if message then
    return message
  end
  local status, max_score = member(result, "status"), member(result, "maxScore")
  if not status then
    return "result.status is missing"
  elseif not self.final[status] then
    return ("result.status is %s, which is not known to be final"):format(tostring(status))
  elseif not max_score then
    return "result.maxScore is missing"
  end
  for _, direction in ipairs(enums.values.direction) do
    local strategies = strategies_of(result, direction)
    message = strategies and contradiction(strategies, "result.dirData." .. direction, max_score)
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

local function reason_of(case, action, message, compiled)
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

local function doubtful(case, doubt)
  return reason_of(case, "unknown", "it is not known whether " .. verdict.label(doubt.rule) .. " applies")
end

-- The reason that the first matching rule gives, unless one before it might match and change that; and the doubts.
local function judge(rules, case)
  local match, doubts = verdict.first_match(rules, case)
  local relevant = match and verdict.relevant(doubts, match.action) or {}
  if relevant[1] then
    return doubtful(case, relevant[1]), doubts
  end
  return match and reason_of(case, match.action, verdict.label(match) .. ": " .. describe(case), match), doubts
end

-- A rule about a part makes things worse or leaves them: only one that would make them worse leaves a doubt.
local function doubt_of(case, doubts)
  for _, doubt in ipairs(doubts) do
    if doubt.rule.action ~= "allow" then
      return doubtful(case, doubt)
    end
  end
end

local function judge_part(rules, case, reasons)
  local reason, doubts = judge(rules, case)
  reasons[#reasons + 1] = reason or doubt_of(case, doubts)
end

-- Parts of which nothing is known, not even whether there are any: every rule that is not about others leaves a doubt.
local function judge_absent(rules, case, reasons)
  local possible = {}
  for _, compiled in ipairs(rules) do
    if compiled:matches(case) ~= false then
      possible[#possible + 1] = { rule = compiled }
    end
  end
  reasons[#reasons + 1] = doubt_of(case, possible)
end

local function judge_strategy(self, direction, number, strategy, reasons)
  local function case(detail)
    return case_of {
      direction = direction,
      strategy = number,
      strategy_name = member(strategy, "strategyName"),
      score = member(detail or strategy, "score"),
      detail = detail and member(detail, "code"),
      detail_name = detail and member(detail, "name"),
    }
  end
  judge_part(self.rules[STRATEGY], case(), reasons)
  local details = member(strategy, "details")
  for _, detail in ipairs(details or {}) do
    judge_part(self.rules[DETAIL], case(detail), reasons)
  end
  if not details then
    judge_absent(self.rules[DETAIL], case {}, reasons)
  end
end

local function judge_result(self, result, reasons)
  local whole = case_of { score = result.maxScore }
  reasons[1] = judge(self.rules[TRANSACTION], whole)
    or reason_of(whole, "unknown", "no rule covers a transaction of score " .. result.maxScore)
  for _, direction in ipairs(enums.values.direction) do
    local strategies = strategies_of(result, direction)
    for _, number in ipairs(strategies and sorted_numbers(strategies) or {}) do
      judge_strategy(self, direction, number, strategies[number], reasons)
    end
    if not strategies then
      judge_absent(self.rules[STRATEGY], case_of { direction = direction }, reasons)
      judge_absent(self.rules[DETAIL], case_of { direction = direction }, reasons)
    end
  end
end

---Decides from what awaiting a transaction gave: `policy:decide(client.kyt:screen { … })`.
---@param result table|nil
---@param other? riskscreen.Response|riskscreen.Error
---@return riskscreen.Decision
function ScorePolicy:decide(result, other)
  local err
  if result == nil then
    err = errors.is(other) and other or errors.new("protocol", "there is no result")
  else
    local message = unusable(self, result)
    err = message and errors.new("protocol", message)
  end
  local reasons, degraded = {}, false
  if err then
    local handler = verdict.handler_of(self.compiled, err)
    local message = handler and verdict.label(handler) .. ": " .. err.kind or tostring(err)
    reasons[1] = { action = handler and handler.action or "unknown", message = message, error = err }
    reasons[1].rule, degraded = handler and handler.rule, handler ~= nil
  else
    judge_result(self, result, reasons)
  end
  reasons = verdict.ordered(reasons)
  return {
    action = reasons[1].action,
    reasons = reasons,
    record = result,
    error = err,
    degraded = degraded,
    cached = false,
    stale = false,
    elapsed = type(other) == "table" and other.elapsed or 0,
  }
end

local function about(compiled_rule)
  local narrowest = TRANSACTION
  for _, condition in ipairs(score_conditions) do
    if compiled_rule.rule[condition.name] ~= nil then
      narrowest = math.max(narrowest, condition.about)
    end
  end
  return narrowest
end

local function new(given)
  if type(given) ~= "table" then
    return nil, "expected a table of options (got " .. text.kind(given) .. ")"
  end
  local settings, problem = check.options(policy_options, given)
  if not settings then
    return nil, problem.message
  end
  local policy = { compiled = {}, rules = { {}, {}, {} }, final = {} }
  local specs = rule.specs_of(score_conditions)
  for index, entry in ipairs(settings.rules) do
    local compiled, message = rule.compile(entry, "rules[" .. index .. "]", specs, score_conditions)
    if not compiled then
      return nil, message
    end
    compiled.index = index
    policy.compiled[index] = compiled
    table.insert(policy.rules[about(compiled)], compiled)
  end
  for _, status in ipairs(settings.final_statuses) do
    policy.final[status] = true
  end
  return setmetatable(policy, ScorePolicy)
end

local M = {}

---@class riskscreen.ScorePolicyOptions
---@field rules riskscreen.ScoreRule[]
---@field final_statuses? integer[] the values of `status` under which a result is believed; by default 1003

---A policy for transactions. A result that is malformed, is not final or contradicts itself is unknown.
---@param given riskscreen.ScorePolicyOptions
---@return riskscreen.ScorePolicy
function M.new(given)
  local policy, problem = new(given)
  if not policy then
    error("score_policy: " .. problem, 2)
  end
  return policy
end

return M
