-- Decides by rules of its own. The rules are tried in order for each risk, and the first that matches decides about it.
-- The worst decision of all risks counts.
-- Asks the service that RISKSCREEN_BASE_URL and RISKSCREEN_ACCESS_KEY name, or the sandbox.

local riskscreen = require "riskscreen"

local policy = riskscreen.policy {
  provider = "Provider", -- the service's own name in riskSource, as the sandbox writes it
  rules = {
    { name = "never", type = { "sanction", "terrorist", "csam" }, action = "block" },
    {
      name = "gambling",
      type = "online-gambling",
      level = { "low", "generally-high" },
      action = "review",
    },
    { name = "high", level = "high", action = "block" },
    { name = "elevated", level = "generally-high", action = "review" },
    { name = "reported by our users", source = "User-Defined", action = "review" },
    { name = "contract", contract = true, action = "review" },
    { name = "low", level = { "low", "whitelist" }, action = "allow" },
    { name = "clean", no_risk = true, action = "allow" },
    { name = "slow service", error = "timeout", action = "review" },
  },
}

local base_url = os.getenv "RISKSCREEN_BASE_URL"
local client = base_url and riskscreen.new { base_url = base_url, access_key = os.getenv "RISKSCREEN_ACCESS_KEY" }
  or riskscreen.sandbox.client {}

for _, name in ipairs { "clean-eth", "type-sanction", "entity-gambling", "contract" } do
  local scenario = riskscreen.sandbox.scenario(name)
  local decision = client:screen { address = scenario.address, network = scenario.network, policy = policy }
  print(("%-16s %-8s %s"):format(name, decision.action, decision.reasons[1].message))
end
