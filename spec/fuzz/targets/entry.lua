-- Any bytes as an entry of the dict: none, or a verdict that adds up and is the same when it is written and read again.
local entries = require "riskscreen.nginx.entry"
local verdict = require "riskscreen.verdict"

local ADDRESS, NETWORK = "0xab", "eth"

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
  local decision, at, patience = entries.decode(text, NETWORK, ADDRESS)
  if not decision then
    return
  end
  assert(is_finite(at) and (patience == nil or is_finite(patience)), "a time is no number")
  assert(is_action[decision.action] and decision.reasons[1].action == decision.action, "the first reason is another's")
  assert(decision.address == ADDRESS and decision.network == NETWORK, "it is about something else")
  for _, reason in ipairs(decision.reasons) do
    assert(verdict.worst(decision.action, reason.action) == decision.action, "a reason is worse than the action")
    assert(type(reason.message) == "string", "a reason says nothing")
  end
  local text_again = assert(entries.encode(NETWORK, ADDRESS, decision, at, patience), "it cannot be written")
  local again, at_again, patience_again = entries.decode(text_again, NETWORK, ADDRESS)
  assert(same(decision, again) and at == at_again and patience == patience_again, "it is another when it is read again")
end
