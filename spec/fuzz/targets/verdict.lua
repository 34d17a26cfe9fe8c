-- Any bytes as an entry of the gate's dict, or as the verdict of one. They are no entry, or one whose action and
-- reasons agree. It is the same when it is written and read again.
local digest = require "riskscreen.address.digest"
local entries = require "riskscreen.nginx.cache.entry"
local worst_action = require("riskscreen.policy.decision").worst

local ADDRESS, NETWORK = "0xab", "eth"
local NOW = 1700000000 -- Unix seconds
local TIMES = ("%016d"):rep(2):format(NOW * 1000, NOW * 1000) -- of the entry of a text that is JSON only
local KEY = "the key of an entry"

local is_action = { allow = true, review = true, block = true, unknown = true }

local values = {}
local dict = {
  verdicts = "verdict:",
  get = function(_, key)
    return values[key]
  end,
}

local codec = entries.new(
  { allow = 300, review = 300, block = 3600, unknown = 1 },
  { allow = 0, review = 0, block = 3600, unknown = 0 },
  dict
)

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

local function check(text)
  values[KEY] = text
  local entry = codec:load(KEY, NOW)
  if not entry then
    return
  end
  local decision = entries.decision(entry, ADDRESS, NETWORK)
  assert(is_action[decision.action] and decision.reasons[1].action == decision.action, "another first reason")
  for _, reason in ipairs(decision.reasons) do
    assert(worst_action(decision.action, reason.action) == decision.action, "a reason is worse than the action")
    assert(type(reason.message) == "string", "a reason has no message")
  end
  assert(is_finite(entry.expires_at) and is_finite(codec:usable_until(entry)), "a time is no number")
  local again = codec:of(decision, entry.at)
  local reasons = again and again.verdict.reasons
  assert(again and same(reasons, decision.reasons), "its reasons are others when they are written again")
end

return function(text)
  local id = digest.sha256(text):sub(1, 12)
  values = { [dict.verdicts .. id] = text }
  check(text)
  check("7v" .. id .. TIMES)
end
