-- A policy of one's own: rules are tried in order for each risk, the first that matches decides it, the worst wins.

local riskscreen = require "riskscreen"

local policy = riskscreen.policy {
  rules = {
    { name = "never", type = { "sanction", "terrorist", "csam" }, action = "block" },
    {
      name = "gambling is a matter of taste",
      type = "online-gambling",
      level = { "low", "generally-high" },
      action = "review",
    },
    { name = "high", level = "high", action = "block" },
    { name = "elevated", level = "generally-high", action = "review" },
    { name = "our users' own reports", source = "User-Defined", action = "review" },
    { name = "contracts need a look", contract = true, action = "review" },
    { name = "fine", level = { "low", "whitelist" }, action = "allow" },
    { name = "clean", no_risk = true, action = "allow" },
    { name = "too slow to wait for", error = "timeout", action = "review" },
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
