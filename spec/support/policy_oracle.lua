-- A second implementation of the policies for addresses, written from docs/screening-and-policy.md alone.
-- spec/unit/policy/oracle_spec.lua compares it. A condition is true, false or MAYBE.
local enums, json = require "riskscreen.interface.enums", require "riskscreen.json"

local MAYBE = "maybe"
local ORDER = { allow = 1, review = 2, unknown = 3, block = 4 }
local LOOKUP = { contract = "entity", category = "entity", frozen = "freeze_events", counterparty = "counterparties" }
local NAMES = { "level", "type", "source", "no_risk", "whitelist", "unrecognised", "any" }
for name in pairs(LOOKUP) do
  NAMES[#NAMES + 1] = name
end
local M = { MAYBE = MAYBE }

function M.both(a, b)
  return a ~= false and b ~= false and (a == MAYBE and a or b)
end
function M.either(a, b)
  return a == true or b == true or (a == MAYBE and a or b)
end
function M.worse(a, b)
  return b and ORDER[b] > ORDER[a] and b or a
end
function M.object(value)
  return type(value) == "table" and value or {}
end
function M.plain(value) -- without case, spaces, hyphens and underscores
  return type(value) == "string" and (value:lower():gsub("[%s_-]", "")) or value
end
function M.list(value, absent) -- nil if it is no list; {} where absence means that
  local count = 0
  for _ in pairs(M.object(value)) do
    count = count + 1
  end
  local is_absent = value == nil or value == json.null
  return is_absent and absent == "none" and {} or type(value) == "table" and count == #value and value or nil
end
function M.contains(values, wanted, form) -- a text or a list of texts
  for _, one in ipairs(type(values) == "table" and values or { values }) do
    if one == wanted or form and form(one) == form(wanted) then
      return true
    end
  end
  return false
end
function M.handled(rules, err) -- the action of the first `error` rule for a failure
  for _, rule in ipairs(rules) do
    if rule.error == true or M.contains(rule.error, err.kind) then
      return rule.action
    end
  end
end
local both, either, worse, object, list, contains = M.both, M.either, M.worse, M.object, M.list, M.contains

local function known(options, name, value)
  return contains(enums.values["risk_" .. name], value) or contains((options.extend or {})[name], value)
end
local function unrecognised(options, risk)
  return not (known(options, "level", object(risk).riskLevel) and known(options, "type", object(risk).riskType))
end
local function text(value)
  return type(value) == "string" and value ~= "" and value:lower() or MAYBE
end
-- Whether a test holds for one element; MAYBE without a list.
local function any(values, test)
  local result = values == nil and MAYBE
  for _, one in ipairs(values or {}) do
    result = either(result, test(object(one)))
  end
  return result
end

local function category(options, wanted, value)
  local is_known = contains((options.extend or {}).category, value, M.plain)
  for _, rule in ipairs(options.rules) do
    is_known = is_known or contains(rule.category, value, M.plain)
  end
  return not (is_known and type(value) == "string") and MAYBE or contains(wanted, value, M.plain)
end

local function frozen(options, events)
  local function lifts(event)
    local one, other = text(event.type), text(event.event)
    local found = contains(options.lifting, one) or contains(options.lifting, other)
    return options.lifting ~= nil and (found or (one == MAYBE or other == MAYBE) and MAYBE)
  end
  local function token(event)
    local chain, contract = text(event.chain), text(event.contractAddress)
    return chain ~= MAYBE and contract ~= MAYBE and chain .. contract or MAYBE
  end
  local function is_lifted(event, later)
    local same, earlier = token(event) == token(later), MAYBE
    same = (token(event) == MAYBE or token(later) == MAYBE) and MAYBE or same
    if type(event.txTime) == "number" and type(later.txTime) == "number" then
      earlier = event.txTime < later.txTime
    end
    return both(lifts(later), both(same, earlier))
  end
  local function positive(amount)
    return type(amount) == "string" and amount:find "^%d+%.?%d*$" and tonumber(amount) > 0
  end
  return any(events, function(event)
    local is_over = either(
      lifts(event),
      any(events, function(later)
        return is_lifted(event, later)
      end)
    )
    local freezes = positive(event.frozenBalance) or positive(event.destroyedBalance)
    return both(freezes or MAYBE, is_over == MAYBE and MAYBE or not is_over)
  end)
end

-- A share is found in every way to fill in what is not known: MAYBE if the ways differ.
local function counterparty(options, wanted, opponents)
  local relevant, is_complete = {}, true
  local function among(name, value)
    return wanted[name] == nil or contains(wanted[name], value) or not known(options, name, value) and MAYBE
  end
  local result = any(opponents, function(one)
    local is_known = one.dir == "in" or one.dir == "out"
    local direction = wanted.direction == nil or one.dir == wanted.direction or not is_known and MAYBE
    local risky = any(list(one.risks, options.absent_risks), function(risk)
      return both(among("level", risk.riskLevel), among("type", risk.riskType))
    end)
    relevant[#relevant + 1] = direction ~= false and { direction, risky, one.amount, one.symbol } or nil
    is_complete = is_complete
      and (direction == false or type(one.amount) == "number" and one.amount >= 0 and text(one.symbol) ~= MAYBE)
    return both(direction, risky)
  end)
  local function filled(index, sums)
    local one, outcome = relevant[index], nil
    if not one then
      outcome = false
      for _, sum in pairs(sums) do
        local share = sum.all > 0 and sum.risky / sum.all >= wanted.share
        outcome = either(outcome, sum.any and (sum.all == 0 and MAYBE or share))
      end
      return outcome
    end
    for direction = one[1] == true and 1 or 0, 1 do
      for risky = one[2] == true and 1 or 0, one[2] == false and 0 or 1 do
        local before = sums[one[4]] or { risky = 0, all = 0 }
        local after =
          { risky = before.risky + risky * one[3], all = before.all + one[3], any = before.any or risky == 1 }
        local more = {}
        for symbol, sum in pairs(sums) do
          more[symbol] = sum
        end
        more[one[4]] = direction == 1 and after or sums[one[4]]
        local way = filled(index + 1, more)
        if outcome == nil then
          outcome = way
        end
        outcome = outcome ~= way and MAYBE or outcome
      end
    end
    return outcome
  end
  if not wanted.share or result == false or opponents == nil then
    return result
  end
  return is_complete and filled(1, {}) or not is_complete and MAYBE or false
end

-- A condition of a rule; `risk` is nil for an address without risks.
local function holds(options, name, wanted, evidence, risk)
  local record = object(evidence[LOOKUP[name] or "risk"])
  if name == "any" or name == "no_risk" then
    return name == "any" or (risk == nil) == wanted
  elseif name == "unrecognised" then
    return (risk ~= nil and unrecognised(options, risk)) == wanted
  elseif name == "counterparty" then
    local opponents = list(record.opponents, evidence.counterparties == record and options.absent_opponents)
    for _, one in ipairs(opponents or {}) do
      opponents = type(one) == "table" and opponents or nil
    end
    return counterparty(options, wanted, opponents)
  elseif name == "category" then
    local is_absent = record == evidence.entity and (record.entity == nil or record.entity == json.null)
    local entity = object(record.entity)
    local one =
      either(category(options, wanted, entity.entityCategory), category(options, wanted, entity.entityCategoryCode))
    return not (is_absent and options.absent_entity == "none") and one
  elseif name == "whitelist" or name == "contract" or name == "frozen" then
    local value = record[name]
    if name == "frozen" then
      value = frozen(options, list(evidence.freeze_events))
    end
    return type(value) ~= "boolean" and MAYBE or value == wanted
  elseif risk == nil or name ~= "source" then
    local value = object(risk)[name == "level" and "riskLevel" or "riskType"]
    return risk ~= nil and (type(value) ~= "string" and MAYBE or contains(wanted, value))
  end
  local value = object(risk).riskSource
  local provider, sources = options.provider or "Provider", (options.extend or {}).source
  local is_known = contains({ provider, "Community", "User-Defined" }, value) or contains(sources, value)
  return not is_known and MAYBE or contains(wanted, value) or value == provider and contains(wanted, "Provider")
end

-- Whether a rule matches. If that is MAYBE because of handled failures alone, also their action.
local function matches(options, rule, evidence, failures, risk)
  local result, excuse = not rule.error, "allow"
  for _, name in ipairs(NAMES) do
    local lookup, value = LOOKUP[name] or "risk", true
    if rule[name] ~= nil and object(evidence.not_offered)[lookup] then
      value = (rule.not_offered or options.not_offered) == "unknown" and MAYBE
    elseif rule[name] ~= nil then
      value = failures[lookup] and MAYBE or holds(options, name, rule[name], evidence, risk)
    end
    result = both(result, value)
    if value == MAYBE then
      local action = failures[lookup] and M.handled(options.rules, failures[lookup])
      excuse = excuse and action and worse(excuse, action)
    end
  end
  return result, result == MAYBE and excuse or nil
end

-- The action for one risk, or without the risk assessment, whose failure has the action `base`.
local function one_action(options, evidence, failures, risk, base)
  local doubtful, decided = {}, nil
  for _, rule in ipairs(options.rules) do
    local result, excuse = matches(options, rule, evidence, failures, risk)
    doubtful[#doubtful + 1] = result == MAYBE and { action = rule.action, excuse = excuse } or nil
    if result == true then
      decided = rule
      break
    end
  end
  local action = base and worse(base, decided and decided.action) or decided and decided.action or "unknown"
  if risk ~= nil and unrecognised(options, risk) and not (decided and decided.unrecognised) then
    action = worse(action, "unknown")
  end
  local result = action
  for _, one in ipairs(action == "block" and {} or doubtful) do
    if one.action ~= action and not (base and worse(action, one.action) == action) then
      result = worse(result, one.excuse or "unknown")
    end
  end
  return result
end

---The action of a policy for addresses.
---@param options table of the policy
---@param evidence riskscreen.LookupResults|table
function M.address(options, evidence)
  local failures, action, copy = {}, "allow", {}
  for name, value in pairs(evidence) do
    copy[name] = value
  end
  for name, err in pairs(object(evidence.errors)) do
    local list_of = { freeze_events = "absent_freeze_events", counterparties = "absent_opponents" }
    local is_empty = err.absent and options[list_of[name]] == "none"
    failures[name] = not is_empty and err or nil
    copy[name] = is_empty and (name == "freeze_events" and {} or { opponents = {} }) or copy[name]
  end
  local risks = type(copy.risk) == "table" and list(copy.risk.risks, options.absent_risks)
  failures.risk = failures.risk or not risks and { kind = "protocol" } or nil
  if failures.risk then
    return one_action(options, copy, failures, nil, M.handled(options.rules, failures.risk) or "unknown")
  end
  for _, risk in ipairs(risks) do
    action = worse(action, one_action(options, copy, failures, risk))
  end
  return risks[1] == nil and one_action(options, copy, failures) or action
end

return M
