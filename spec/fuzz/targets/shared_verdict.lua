-- Any bytes as a gate's verdict in Redis. The first byte chooses: a whole text, or the inside of a text that is sealed
-- with the right key. Without the key nothing counts; with it, what counts is a decision within its times.
local entries = require "riskscreen.nginx.cache.entry"
local seals = require "riskscreen.nginx.fleet.seal"
local verdicts = require "riskscreen.nginx.fleet.verdict"

local KEYS, LABEL = { "a secret of the fleet's gates" }, "{riskscreen}:verdict:policy:eth:0xab"
local NOW = 1700000000 -- Unix seconds
local SKEW = 1 -- seconds
local TTL = { allow = 300, review = 300, block = 3600, unknown = 1 }
local STALE = { allow = 0, review = 0, block = 3600, unknown = 0 }

local codec, seal = verdicts.new(KEYS, SKEW), seals.new(KEYS, "verdict")
local reasons = { malformed = true, forged = true, future = true, expired = true }
local own = codec:encode(LABEL, '{"action":"allow"}', NOW, NOW + 300, 0, 1, 0)

local function check(text, is_sealed)
  local verdict, reason = codec:decode(LABEL, text, NOW, 0)
  if not verdict then
    assert(reasons[reason], "refused without a reason")
    return
  end
  assert(is_sealed or text == own, "a text counts that nobody has sealed")
  assert(verdict.at <= NOW and verdict.valid_until > NOW, "a verdict counts beyond its time")
  assert(verdict.purge >= 0 and verdict.purge - verdict.purge == 0, "the purge is no number")
  local entry = entries.new(TTL, STALE, {}):restore(verdict)
  if entry then
    local decision = entries.decision(entry, "0xab", "eth")
    assert(TTL[decision.action] and decision.reasons[1].action == decision.action, "another first reason")
    assert(entry.expires_at <= verdict.valid_until, "a decision is served beyond its time")
  end
end

return function(bytes)
  local text = bytes:sub(2)
  check(text, false)
  if bytes:sub(1, 1) == "s" then
    check(seal:close(LABEL, text), true)
  end
end
