-- Tells from an address's freeze events whether a freeze is in force: true, false, or nil when it is not known. Pure.
-- The meaning of the events' `type` and `event` is not published. No event lifts a freeze unless the operator names it.

local addresses = require "riskscreen.address"
local logic = require "riskscreen.policy.logic"
local text = require "riskscreen.util.text"

local MEANINGS = { "type", "event" }
local UNKNOWN, ANY = {}, {} -- keys beside those of tokens: of liftings whose token is not known, and of all liftings
local NEVER, FOREVER = -math.huge, math.huge

local M = {}

-- Whether a decimal text is more than zero; nil when the amount is absent or not a decimal text.
local function is_positive(amount)
  if type(amount) ~= "string" or not (amount:find "^%d+%.?%d*$" or amount:find "^%.%d+$") then
    return nil
  end
  return amount:find "[1-9]" ~= nil
end

local function text_of(event, name)
  local value = event[name]
  return type(value) == "string" and value ~= "" and value or nil
end

-- Whether an event lifts freezes. One that lacks its `type` or `event` may do so.
local function lifts(event, lifting)
  return next(lifting) ~= nil
    and logic.any(MEANINGS, function(name)
      local meaning = text_of(event, name)
      if meaning then
        return lifting[text.lower(meaning)] or false
      end
    end)
end

-- The token contract of an event and its time, each nil when the event does not tell.
local function token_and_time(event)
  local chain, contract = text_of(event, "chain"), text_of(event, "contractAddress")
  local network = addresses.canonical_network(chain)
  local token = chain and contract and network .. "\0" .. addresses.normalize(contract, chain)
  return token, type(event.txTime) == "number" and event.txTime or nil
end

-- The times of the last liftings by token: those that are certain, and all that are possible.
local function liftings(events, lifting)
  local certain, possible = {}, {}
  local function note(times, token, time)
    times[token] = math.max(times[token] or NEVER, time)
  end
  for _, event in ipairs(events) do
    event = type(event) == "table" and event or {}
    local does_lift = lifts(event, lifting)
    if does_lift ~= false then
      local token, time = token_and_time(event)
      note(possible, token or UNKNOWN, time or FOREVER)
      note(possible, ANY, time or FOREVER)
      if does_lift and token and time then
        note(certain, token, time)
      end
    end
  end
  return certain, possible
end

-- Whether an event freezes nothing any more: it is a lifting, or a later one lifts it.
local function is_over(event, lifting, certain, possible)
  local token, time = token_and_time(event)
  local does_lift = lifts(event, lifting)
  if does_lift or (certain[token or UNKNOWN] or NEVER) > (time or FOREVER) then
    return true
  end
  local last = math.max(possible[token or ANY] or NEVER, possible[UNKNOWN] or NEVER)
  if last > (time or NEVER) then
    return nil
  end
  return does_lift
end

---Whether a freeze is in force. An event that lacks a field on which that depends leaves it not known.
---@param events any the freeze events, as the service sent them
---@param lifting table<string, boolean> lower-case values of `type` or `event` that lift earlier freezes of their token
---@return boolean|nil
function M.in_force(events, lifting)
  events = logic.list(events)
  if not events then
    return nil
  end
  local certain, possible = liftings(events, lifting)
  return logic.any(events, function(event)
    if type(event) ~= "table" then
      return nil
    end
    -- An event without an amount may mean anything, also a lifting.
    local freezes = is_positive(event.frozenBalance) or is_positive(event.destroyedBalance) or nil
    local over = is_over(event, lifting, certain, possible)
    return not over and (over == false and freezes or nil)
  end)
end

return M
