-- Any bytes as an entry of the dict: none, or a verdict that adds up and is the same when it is written and read again.
local entries = require "riskscreen.nginx.entry"
local verdict = require "riskscreen.verdict"

local KEY, ADDRESS, NETWORK = "eth:0xab", "0xab", "eth"

local is_action = { allow = true, review = true, block = true, unknown = true }

local function is_finite(number)
  return type(number) == "number" and number - number == 0
end

local function same(left, right)
  if type(left) ~= "table" or type(right) ~= "table" then
    return left == right
  end
  for name, value in pairs(left) do
    if not same(value, right[name]) then
      return false
    end
  end
  for name in pairs(right) do
    if left[name] == nil then
      return false
    end
  end
  return true
end

return function(text)
  local entry = entries.decode(text, KEY, ADDRESS, NETWORK)
  if not entry then
    return
  end
  local decision = entry.decision
  assert(is_finite(entry.at) and (entry.patience == nil or is_finite(entry.patience)), "a time is no number")
  assert(is_action[decision.action] and decision.reasons[1].action == decision.action, "the first reason is another's")
  assert(decision.address == ADDRESS and decision.network == NETWORK, "it is about something else")
  for _, reason in ipairs(decision.reasons) do
    assert(verdict.worst(decision.action, reason.action) == decision.action, "a reason is worse than the action")
    assert(type(reason.message) == "string", "a reason says nothing")
  end
  local again = assert(entries.encode(KEY, decision, entry.at, entry.patience), "it cannot be written")
  assert(same(entry, entries.decode(again, KEY, ADDRESS, NETWORK)), "it is another when it is read again")
end
