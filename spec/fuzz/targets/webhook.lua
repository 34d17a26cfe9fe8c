-- Any bytes as a webhook's body. The parser must accept exactly the bodies that honest.lua accepts within the limits. A
-- policy for transactions must then decide, and may allow only a low score.
local core = require "riskscreen.core"
local errors = require "riskscreen.errors"
local honest = require "spec.fuzz.honest"
local score_policy = require "riskscreen.policy.score"
local webhook = require "riskscreen.webhook"

local LONGEST_MESSAGE = 1000 -- bytes

-- The limits of a body: size, depth, number of values, no name twice.
local keeping =
  core.decoder { null = "keep", duplicates = "refuse", max_size = 64 * 1024, max_depth = 32, max_values = 10000 }

local policy = score_policy.new {
  rules = {
    { strategy = "7", score_at_least = "90", action = "block" },
    { direction = "in", detail = "sanction", action = "block" },
    { strategy_name = "Sanctions", action = "review" },
    { score_below = "50", action = "allow" },
    { score_at_least = "50", score_below = "80.5", action = "review" },
    { score_at_least = "80.5", action = "block" },
  },
}

local function given(value)
  return value ~= nil and value ~= core.null
end

local function check_decision(result)
  local decision = policy:decide(result)
  assert(not decision.degraded, "the decision is degraded")
  if decision.action == "allow" then
    local score = type(result.maxScore) == "string" and tonumber(result.maxScore)
    local has_risks = given(result.risks)
    assert(has_risks or score, "allowed without a score and without risks")
    assert(not given(result.maxScore) or (score >= 0 and score <= 50), "allowed without a low score")
    assert(not has_risks or honest.allows(result), "allowed with risks that the default policy does not allow")
    local is_immediate = has_risks and not given(result.requestId)
    assert(result.status == 1003 or (is_immediate and not given(result.status)), "allowed before it is final")
    for direction, strategies in pairs(given(result.dirData) and result.dirData or {}) do
      assert(not given(strategies) or direction == "in" or direction == "out", "allowed with an unseen direction")
      for _, strategy in pairs(given(strategies) and strategies or {}) do
        assert(given(strategy), "allowed with a null strategy")
      end
    end
  end
end

return function(body)
  local decoded = keeping:decode(body)
  local event, err = webhook.parse(body, {})
  assert((event ~= nil) == (decoded ~= nil and honest.is_event(decoded)), event and "no event" or "an event is refused")
  if event == nil then
    assert(errors.is(err) and err.kind == "protocol", "not an error of kind protocol")
    local message = tostring(err)
    assert(#message <= LONGEST_MESSAGE, "a message of " .. #message .. " bytes")
    assert(not message:find "%c", "control characters in a message")
  else
    check_decision(event.data)
  end
  check_decision(decoded)
  check_decision(type(decoded) == "table" and decoded.data or nil)
end
