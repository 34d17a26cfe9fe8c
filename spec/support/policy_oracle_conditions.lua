-- The conditions of policy_oracle.lua, written from docs/screening-and-policy.md alone. Each is true, false or MAYBE.

local enums = require "riskscreen.interface.enums"
local json = require "riskscreen.json"

local MAYBE = "maybe"
local function both(a, b)
  return a ~= false and b ~= false and (a == MAYBE and a or b)
end

local function either(a, b)
  return a == true or b == true or (a == MAYBE and a or b)
end

local function each(value) -- the values of a text or list; nothing for nil
  return ipairs(type(value) == "table" and value or { value })
end

local function contains(values, wanted, form)
  for _, one in each(values) do
    if one == wanted or form and form(one) == form(wanted) then
      return true
    end
  end
  return false
end

local function known(options, name, value)
  return contains(enums.values["risk_" .. name], value) or contains((options.extend or {})[name], value)
end

local function object(value)
  return type(value) == "table" and value ~= json.null and value or {}
end

local function list(value, absent) -- nil if it is no list; {} where absence means that
  if value == nil or value == json.null then
    return absent == "none" and {} or nil
  end
  local count = 0
  for _ in pairs(object(value)) do
    count = count + 1
  end
  return type(value) == "table" and count == #value and value or nil
end

local function flag(value, wanted)
  return type(value) ~= "boolean" and MAYBE or value == wanted
end

local function plain(value) -- without case, spaces, hyphens and underscores
  return type(value) == "string" and (value:lower():gsub("[%s_-]", "")) or value
end

local function category(options, wanted, record)
  local entity = object(record).entity
  if type(record) == "table" and (entity == nil or entity == json.null) and options.absent_entity == "none" then
    return false
  end
  local function one(value)
    local seen = type(value) == "string" and contains((options.extend or {}).category, value, plain)
    for _, rule in ipairs(options.rules) do
      seen = seen or type(value) == "string" and contains(rule.category, value, plain)
    end
    return not seen and MAYBE or contains(wanted, value, plain)
  end
  return either(one(object(entity).entityCategory), one(object(entity).entityCategoryCode))
end

local function lower(value)
  return type(value) == "string" and value:lower() or value
end

local function positive(amount) -- a decimal text above zero
  return type(amount) == "string" and amount:find "^%d+%.?%d*$" and tonumber(amount) > 0
end

local function text(value) -- a text that is not empty
  return type(value) == "string" and value ~= "" and value or nil
end

local function negate(value)
  return value == MAYBE and MAYBE or not value
end

local function frozen(options, events)
  events = events ~= json.null and list(events, options.absent_freeze_events) or nil
  local function lifts(event)
    local result = false
    for _, value in ipairs { text(event.type) or MAYBE, text(event.event) or MAYBE } do
      result = either(result, contains(options.lifting, value, lower) or value == MAYBE and MAYBE)
    end
    return options.lifting ~= nil and result
  end
  local function lifted_by(event, later)
    local token, time = MAYBE, MAYBE
    if text(event.chain) and text(event.contractAddress) and text(later.chain) and text(later.contractAddress) then
      token = event.chain == later.chain and lower(event.contractAddress) == lower(later.contractAddress)
    end
    if type(event.txTime) == "number" and type(later.txTime) == "number" then
      time = event.txTime < later.txTime
    end
    return both(lifts(later), both(token, time))
  end
  local result = events == nil and MAYBE
  for _, event in ipairs(events or {}) do
    event = object(event)
    local over = lifts(event)
    for _, later in ipairs(events) do
      over = either(over, lifted_by(event, object(later)))
    end
    local has_amount = positive(event.frozenBalance) or positive(event.destroyedBalance) or MAYBE
    result = either(result, both(has_amount, negate(over)))
  end
  return result
end

local function counterparty(options, wanted, answer)
  local opponents = list(object(answer).opponents, type(answer) == "table" and options.absent_opponents)
  for _, one in ipairs(opponents or {}) do
    opponents = type(one) == "table" and opponents or nil
  end
  local function among(name, value)
    return wanted[name] == nil or contains(wanted[name], value) or not known(options, name, value) and MAYBE
  end
  local function risky(opponent)
    local risks = list(opponent.risks, options.absent_risks)
    local result = risks == nil and MAYBE
    for _, risk in ipairs(risks or {}) do
      result = either(result, both(among("level", object(risk).riskLevel), among("type", object(risk).riskType)))
    end
    return result
  end
  local function goes(opponent, direction)
    return direction == nil or opponent.dir == direction or opponent.dir ~= "in" and opponent.dir ~= "out" and MAYBE
  end
  local function reached(symbol) -- the share, among the amounts of one token
    local least, most, others_least, others_most, any = 0, 0, 0, 0, false
    for _, one in ipairs(opponents) do
      local member, is_risky, amount = goes(one, wanted.direction), risky(one), one.amount
      if member ~= false and one.symbol == symbol then
        any = either(any, is_risky)
        least = least + (both(member, is_risky) == true and amount or 0)
        most = most + (is_risky ~= false and amount or 0)
        others_least = others_least + (member == true and is_risky == false and amount or 0)
        others_most = others_most + (is_risky ~= true and amount or 0)
      end
    end
    local always = least > 0 and least >= wanted.share * (least + others_most)
    local never = any == false or most + others_least > 0 and most < wanted.share * (most + others_least)
    return always or not never and MAYBE
  end
  local result, share, is_complete = opponents == nil and MAYBE, false, true
  for _, one in ipairs(opponents or {}) do
    local direction, amount = goes(one, wanted.direction), one.amount
    result = either(result, both(risky(one), direction))
    local has_amount = type(amount) == "number" and amount >= 0 and type(one.symbol) == "string" and one.symbol ~= ""
    is_complete = is_complete and (has_amount or direction == false)
  end
  if not wanted.share or result == false or opponents == nil then
    return result
  end
  for _, one in ipairs(is_complete and opponents or {}) do
    share = either(share, goes(one, wanted.direction) ~= false and reached(one.symbol))
  end
  return not is_complete and MAYBE or share
end

local function unrecognised(options, risk)
  return not (known(options, "level", object(risk).riskLevel) and known(options, "type", object(risk).riskType))
end

return {
  MAYBE = MAYBE,
  unrecognised = unrecognised,
  both = both,
  either = either,
  contains = contains,
  known = known,
  object = object,
  list = list,
  plain = plain,
  flag = flag,
  category = category,
  frozen = frozen,
  counterparty = counterparty,
}
