-- Tells whether an address deals with the counterparties that a rule's `counterparty` condition describes. Pure.
-- The answer is true, false, or nil when it is not known.
-- Shares are computed for each token symbol, because amounts of different tokens cannot be added.

local enums = require "riskscreen.interface.enums"
local logic = require "riskscreen.policy.logic"
local tables = require "riskscreen.util.tables"

local NONE = {} -- an element that is not an object tells nothing
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

-- Whether the counterparty has a risk of the wanted level and type.
local function is_risky(wanted, opponent, policy)
  local meaning = opponent ~= NONE and policy.settings.absent_risks or nil
  local risks, recognised = logic.list(opponent.risks, meaning), policy.recognised
  return risks
    and logic.any(risks, function(risk)
      risk = type(risk) == "table" and risk or NONE
      return logic.both(
        is_wanted(wanted.level, recognised.level, risk.riskLevel),
        is_wanted(wanted.type, recognised.type, risk.riskType)
      )
    end)
end

-- The bounds of the amounts of each token symbol, or nil where an amount or a symbol is missing: of those that match
-- (`least`, `most`), and of those that do not.
local function sums_of(relevant)
  local by_symbol, list = {}, {}
  for _, one in ipairs(relevant) do
    local symbol, amount, risky = one.opponent.symbol, one.opponent.amount, one.risky
    if type(symbol) ~= "string" or symbol == "" or type(amount) ~= "number" then
      return nil
    elseif not (amount >= 0 and amount < math.huge) then
      return nil
    end
    local sums = by_symbol[symbol]
    if not sums then
      sums = { least = 0, most = 0, others_least = 0, others_most = 0 }
      by_symbol[symbol], list[#list + 1] = sums, sums
    end
    sums.may_match = sums.may_match or risky ~= false
    sums.least = sums.least + (one.in_direction and risky and amount or 0)
    sums.most = sums.most + (risky ~= false and amount or 0)
    sums.others_least = sums.others_least + (one.in_direction and risky == false and amount or 0)
    sums.others_most = sums.others_most + (risky ~= true and amount or 0)
  end
  return list
end

local ROUNDING = 1e-9 -- of a share, which rounding may have lowered

local function share_reaches(share, sums)
  local lower = sums.least / (sums.least + sums.others_most)
  local upper = sums.most / (sums.most + sums.others_least)
  -- Both sums may be zero. The quotient is NaN then, both comparisons fail, and the answer is not known.
  if lower >= share then
    return true
  elseif not sums.may_match or upper < share * (1 - ROUNDING) and sums.most + sums.others_most < math.huge then
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
  local opponents = type(counterparties) == "table"
    and logic.list(counterparties.opponents, policy.settings.absent_opponents)
  if not opponents then
    return nil
  end
  local relevant = {}
  for _, opponent in ipairs(opponents) do
    opponent = type(opponent) == "table" and opponent or NONE
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
