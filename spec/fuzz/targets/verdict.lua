-- Any bytes as the text of a verdict: none, or a verdict that adds up and is the same when it is written and read anew.
-- And any bytes as an entry of the dict: none, or one that is the same when it is packed and unpacked again.
local entries = require "riskscreen.nginx.cache.entry"
local worst_action = require("riskscreen.policy.decision").worst
local verdict_json = require "riskscreen.nginx.cache.verdict_json"
local verdicts = require "riskscreen.nginx.cache.verdicts"

local ADDRESS, NETWORK = "0xab", "eth"

local is_action = { allow = true, review = true, block = true, unknown = true }

-- Of the same text, and hardly of another.
local function digest(text)
  local hash = 5381
  for index = 1, #text do
    hash = (hash * 65599 + text:byte(index)) % 4294967291
  end
  return ("%020d"):format(hash)
end

local worker = verdicts.new { prefix = "", digest = digest, longest = 1 }

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

local function check_verdict(text)
  local read = verdict_json.read(text)
  if not read then
    return
  end
  assert(is_action[read.action] and read.reasons[1].action == read.action, "the first reason is another's")
  for _, reason in ipairs(read.reasons) do
    assert(worst_action(read.action, reason.action) == read.action, "a reason is worse than the action")
    assert(type(reason.message) == "string", "a reason says nothing")
  end
  local decision = verdicts.decision(read, NETWORK, ADDRESS)
  local name, known = worker:name(decision, 0)
  assert(name, "it cannot be written")
  assert(same(decision, verdicts.decision(known, NETWORK, ADDRESS)), "it is another when it is read again")
  assert(worker:find(name) == known, "it is not found by its name")
end

local function check_entry(bytes)
  local name, at, patience = entries.unpack(bytes)
  if not name then
    return
  end
  assert(is_finite(at) and (patience == nil or is_finite(patience)), "a time is no number")
  local name_again, at_again, patience_again = entries.unpack(entries.pack(at, name, patience))
  assert(name == name_again and at == at_again and patience == patience_again, "it is another when it is packed again")
end

return function(text)
  check_verdict(text)
  check_entry(text)
end
