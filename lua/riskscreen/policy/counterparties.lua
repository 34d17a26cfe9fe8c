-- Whether an address deals with risky counterparties, as a rule's `counterparty` condition asks: true, false, or nil
-- where the counterparties do not tell. Pure.
-- A share is of the amounts of one token symbol at a time: amounts of different tokens cannot be added.

local tables = require "riskscreen.util.tables"

local M = {}

-- Three-valued: false if either is, true if both are, else not known.
local function both(left, right)
  if left == false or right == false then
    return false
  end
  return left and right or nil
end

---@class riskscreen.Exposure
---@field direction? "in"|"out"
---@field level? table<string, boolean> the wanted values
---@field type? table<string, boolean>
---@field share? number of the amounts, 0 < share <= 1
---@field known { level: table<string, boolean>, type: table<string, boolean> } values that are recognised
---@field directions table<string, boolean> those that exist

local function is_wanted(wanted, known, value)
  if not wanted then
    return true
  elseif type(value) ~= "string" or not known[value] then
    return nil
  end
  return wanted[value] == true
end

local function risk_matches(exposure, risk)
  if type(risk) ~= "table" then
    return nil
  end
  return both(
    is_wanted(exposure.level, exposure.known.level, risk.riskLevel),
    is_wanted(exposure.type, exposure.known.type, risk.riskType)
  )
end

-- Whether one of the counterparty's risks is of the wanted kind. Absent risks are not the same as none.
local function is_risky(exposure, opponent)
  local risks = opponent.risks
  if type(risks) ~= "table" or not tables.sequence_length(risks) then
    return nil
  end
  local answer = false
  for _, risk in ipairs(risks) do
    local matches = risk_matches(exposure, risk)
    if matches then
      return true
    elseif matches == nil then
      answer = nil
    end
  end
  return answer
end

local function is_in_direction(exposure, opponent)
  if not exposure.direction then
    return true
  elseif not exposure.directions[opponent.dir or false] then
    return nil
  end
  return opponent.dir == exposure.direction
end

local function is_amount(value)
  return type(value) == "number" and value >= 0 and value < math.huge
end

-- Between which shares the truth lies: `least` and `most` are of amounts that surely or possibly match, `others_most`
-- and `others_least` of those that possibly or surely do not.
local function share_reaches(share, sums)
  if not sums.may_match then
    return false
  end
  local lower = sums.least / (sums.least + sums.others_most)
  local upper = sums.most / (sums.most + sums.others_least)
  -- Both sums may be zero: no number is below or above the quotient then, and nothing is known.
  if lower >= share then
    return true
  elseif upper < share then
    return false
  end
  return nil
end

local function add(sums, in_direction, risky, amount)
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

-- The amounts by token symbol; nil where an amount or a symbol is missing.
local function sums_by_symbol(relevant)
  local by_symbol = {}
  for _, one in ipairs(relevant) do
    local symbol, amount = one.opponent.symbol, one.opponent.amount
    if type(symbol) ~= "string" or symbol == "" or not is_amount(amount) then
      return nil
    end
    by_symbol[symbol] = by_symbol[symbol] or { least = 0, most = 0, others_least = 0, others_most = 0 }
    add(by_symbol[symbol], one.in_direction, one.risky, amount)
  end
  return by_symbol
end

local function any_share_reaches(share, relevant)
  local by_symbol = sums_by_symbol(relevant)
  if not by_symbol then
    return nil
  end
  local answer = false
  for _, sums in pairs(by_symbol) do
    local reaches = share_reaches(share, sums)
    if reaches then
      return true
    elseif reaches == nil then
      answer = nil
    end
  end
  return answer
end

---Whether the counterparties are as the condition says.
---@param exposure riskscreen.Exposure
---@param counterparties any as the service sent them
---@return boolean|nil
function M.matches(exposure, counterparties)
  local opponents = type(counterparties) == "table" and counterparties.opponents
  if type(opponents) ~= "table" or not tables.sequence_length(opponents) then
    return nil
  end
  local relevant, answer = {}, false
  for _, opponent in ipairs(opponents) do
    if type(opponent) ~= "table" then
      return nil
    end
    local in_direction, risky = is_in_direction(exposure, opponent), is_risky(exposure, opponent)
    if in_direction ~= false then
      relevant[#relevant + 1] = { opponent = opponent, in_direction = in_direction, risky = risky }
    end
    local matches = both(in_direction, risky)
    if matches and answer ~= true then
      answer = true
    elseif matches == nil and answer == false then
      answer = nil
    end
  end
  -- None that matches has no share of anything, whatever the amounts.
  if answer == false or not exposure.share then
    return answer
  end
  return any_share_reaches(exposure.share, relevant)
end

return M
