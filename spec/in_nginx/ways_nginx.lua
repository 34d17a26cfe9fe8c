-- Ways agree, in real gates: the service's answer, this worker's memory, the dict and Redis give the decision that a
-- live call makes natively. The native ways are in spec/contract/ways_spec.lua.
local evidence = require "spec.support.evidence"
local fleets = require "spec.support.fleet"
local random = require "spec.support.random"
local riskscreen = require "riskscreen"

local ROUNDS = 110
-- Without the core another decoder reads the answers. It has other messages for invalid JSON.
local HAS_CORE = not os.getenv "RISKSCREEN_WITHOUT_CORE"
local NETWORK = "eth"

-- Decides with the policy of a number. A failure that ends the decision is told by its kind.
local DECIDE = [[
  local asked = ...
  local made = package.loaded
  local name = "a location of policy " .. asked.policy
  made[name] = made[name] or gate:location { policy = require("spec.support.evidence").policies()[asked.policy] }
  local place = made[name]
  local decision, source = place:decide { address = asked.address }
  local reasons = {}
  for index, reason in ipairs(decision.reasons) do
    reasons[index] = reason.message
  end
  return { action = decision.action, degraded = decision.degraded == true, reasons = reasons, source = source }
]]

describe("every way to a decision of gates", function()
  local fleet, answers, client

  before_each(function()
    fleet, answers = fleets.start(), {}
    local service = fleet.server.service
    function service.handle(_, request)
      local path, address = request.target:match "/tracker(/[^?]*)%?address=(0x%x+)"
      local answer = answers[address][path]
      return { status = answer.status, headers = { ["content-type"] = "application/json" }, body = answer.body }
    end
    client = riskscreen.new { base_url = fleet.server.url, access_key = fleet.server.access_key, retry = false }
  end)

  after_each(function()
    client:close()
    fleet:close()
  end)

  it("agrees with the call", function()
    local policies, draw = evidence.policies(), random.new(random.SEED + 1)
    local one = fleet:gate { workers = 2 }
    local other = fleet:gate()
    local sources = {}
    for number = 1, ROUNDS do
      local address = ("0x%040x"):format(number * 104729)
      answers[address] = evidence.answers(draw, address, NETWORK)
      local policy = number % #policies + 1
      local live = client:screen { address = address, network = NETWORK, policy = policies[policy] }
      local reasons = {}
      for index, reason in ipairs(live.reasons) do
        reasons[index] = reason.message
      end
      for _, gate in ipairs { one, one, one, other, other } do
        local seen = gate.run(DECIDE, { policy = policy, address = address })
        sources[seen.source] = (sources[seen.source] or 0) + 1
        seen.source = nil
        seen.reasons = HAS_CORE and seen.reasons or reasons
        assert.same({ action = live.action, degraded = live.degraded == true, reasons = reasons }, seen)
      end
    end
    for _, source in ipairs { "upstream", "lru", "redis" } do
      assert.is_true((sources[source] or 0) > 0, "no decision came from " .. source)
    end
  end)
end)
