-- Tells from an address's freeze events whether a freeze is in force: true, false, or nil when it is not known. Pure.
-- The meaning of the events' `type` and `event` is not published. No event lifts a freeze unless the operator names it.

local canonical_address = require("riskscreen.address").normalize
local logic = require "riskscreen.policy.logic"
local tables = require "riskscreen.util.tables"

local M = {}

-- Whether a decimal text is more than zero; nil when the amount is absent or not a decimal text.
local function is_positive(amount)
  if type(amount) ~= "string" or not (amount:find "^%d+%.?%d*$" or amount:find "^%.%d+$") then
    return nil
  end
  return amount:find "[1-9]" ~= nil
end

local function word(value)
  return type(value) == "string" and value:lower() or nil
end

local function lifts(event, lifting)
  return lifting[word(event.type) or false] or lifting[word(event.event) or false] or false
end

-- The token contract of an event, or nil when the event does not name one.
local function token_of(event)
  if type(event.contractAddress) ~= "string" or event.contractAddress == "" then
    return nil
  end
  return tostring(event.chain) .. "\0" .. canonical_address(event.contractAddress, event.chain)
end

-- When the last freeze of each token was lifted.
local function liftings(events, lifting)
  local at = {}
  for _, event in ipairs(events) do
    local token = type(event) == "table" and lifts(event, lifting) and token_of(event)
    if token and type(event.txTime) == "number" then
      at[token] = math.max(at[token] or event.txTime, event.txTime)
    end
  end
  return at
end

local function is_lifted(event, lifted_at)
  local at = lifted_at[token_of(event) or false]
  return at ~= nil and type(event.txTime) == "number" and event.txTime < at
end

---Whether a freeze is in force.
---@param events any the freeze events, as the service sent them
---@param lifting table<string, boolean> lower-case values of `type` or `event` that lift earlier freezes of their token
---@return boolean|nil
function M.in_force(events, lifting)
  if type(events) ~= "table" or not tables.sequence_length(events) then
    return nil
  end
  local lifted_at = liftings(events, lifting)
  return logic.any(events, function(event)
    if type(event) ~= "table" then
      return nil
    elseif lifts(event, lifting) or is_lifted(event, lifted_at) then
      return false
    end
    -- An event without an amount may mean anything, also a lifting.
    return is_positive(event.frozenBalance) or is_positive(event.destroyedBalance) or nil
  end)
end

return M
