-- Tells whether an address deals with the counterparties that a rule's `counterparty` condition describes. Pure.
-- The answer is true, false, or nil when it is not known.
-- Shares are computed for each token symbol, because amounts of different tokens cannot be added.

local enums = require "riskscreen.interface.enums"
local json = require "riskscreen.json"
local logic = require "riskscreen.policy.logic"
local tables = require "riskscreen.util.tables"

local is_direction = tables.set(enums.values.direction)

local M = {}

---@class riskscreen.CounterpartyCondition the checked condition
---@field direction? "in"|"out"
---@field level? table<string, true>
---@field type? table<string, true>
---@field share? number of the amounts, 0 < share <= 1

---@class riskscreen.RecognisedValues those of the interface and those that the operator added
---@field level table<string, true>
---@field type table<string, true>
---@field source table<string, true>
---@field category table<string, true> as conditions.plain makes them

local function is_wanted(wanted, recognised, value)
  if not wanted then
    return true
  elseif type(value) ~= "string" or not recognised[value] then
    return nil
  end
  return wanted[value] == true
end

-- Whether the counterparty has a risk of the wanted level and type. An absent list of risks is not an empty one, unless
-- the operator says so.
local function is_risky(wanted, opponent, policy)
  local risks, recognised = opponent.risks, policy.recognised
  if (risks == nil or risks == json.null) and policy.settings.absent_risks == "none" then
    return false
  elseif type(risks) ~= "table" or not tables.sequence_length(risks) then
    return nil
  end
  return logic.any(risks, function(risk)
    if type(risk) ~= "table" then
      return nil
    end
    return logic.both(
      is_wanted(wanted.level, recognised.level, risk.riskLevel),
      is_wanted(wanted.type, recognised.type, risk.riskType)
    )
  end)
end

local function add(sums, amount, in_direction, risky)
  if in_direction and risky then
    sums.least = sums.least + amount
  end
  if risky ~= false then
    sums.may_match = true
    sums.most = sums.most + amount
  end
  if risky ~= true then
    sums.others_most = sums.others_most + amount
  end
  if in_direction and risky == false then
    sums.others_least = sums.others_least + amount
  end
end

-- The sums of the amounts of each token symbol, or nil where an amount or a symbol is missing. `least` and `most` are
-- the bounds of the amounts that match, `others_least` and `others_most` of those that do not.
local function sums_of(relevant)
  local by_symbol, sums = {}, {}
  for _, one in ipairs(relevant) do
    local symbol, amount = one.opponent.symbol, one.opponent.amount
    if type(symbol) ~= "string" or symbol == "" or type(amount) ~= "number" then
      return nil
    elseif not (amount >= 0 and amount < math.huge) then
      return nil
    elseif not by_symbol[symbol] then
      by_symbol[symbol] = { least = 0, most = 0, others_least = 0, others_most = 0 }
      sums[#sums + 1] = by_symbol[symbol]
    end
    add(by_symbol[symbol], amount, one.in_direction, one.risky)
  end
  return sums
end

local function share_reaches(share, sums)
  if not sums.may_match then
    return false
  end
  local lower = sums.least / (sums.least + sums.others_most)
  local upper = sums.most / (sums.most + sums.others_least)
  -- Both sums may be zero. The quotient is NaN then, both comparisons fail, and the answer is not known.
  if lower >= share then
    return true
  elseif upper < share then
    return false
  end
  return nil
end

---Whether the counterparties match the condition.
---@param wanted riskscreen.CounterpartyCondition
---@param counterparties any as the service sent them
---@param policy { recognised: riskscreen.RecognisedValues, settings: riskscreen.PolicySettings }
---@return boolean|nil
function M.matches(wanted, counterparties, policy)
  local opponents = type(counterparties) == "table" and counterparties.opponents
  if (opponents == nil or opponents == json.null) and policy.settings.absent_opponents == "none" then
    return false
  elseif type(opponents) ~= "table" or not tables.sequence_length(opponents) then
    return nil
  end
  local relevant = {}
  for _, opponent in ipairs(opponents) do
    if type(opponent) ~= "table" then
      return nil
    end
    local in_direction = is_wanted(wanted.direction and { [wanted.direction] = true }, is_direction, opponent.dir)
    if in_direction ~= false then
      local risky = is_risky(wanted, opponent, policy)
      relevant[#relevant + 1] = { opponent = opponent, in_direction = in_direction, risky = risky }
    end
  end
  local answer = logic.any(relevant, function(one)
    return logic.both(one.in_direction, one.risky)
  end)
  -- Without a match the share is zero, whatever the amounts.
  if answer == false or not wanted.share then
    return answer
  end
  local sums = sums_of(relevant)
  return sums and logic.any(sums, function(one)
    return share_reaches(wanted.share, one)
  end)
end

return M
