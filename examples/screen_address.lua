-- Screens one address and says why: screen_address.lua [ADDRESS [NETWORK]]
-- Against the sandbox, or the service that RISKSCREEN_BASE_URL and RISKSCREEN_ACCESS_KEY name.

local riskscreen = require "riskscreen"

local base_url = os.getenv "RISKSCREEN_BASE_URL"
local client = base_url and riskscreen.new { base_url = base_url, access_key = os.getenv "RISKSCREEN_ACCESS_KEY" }
  or riskscreen.sandbox.client {}

local address = arg[1] or riskscreen.sandbox.scenario("type-sanction").address
local network = arg[2] or "eth"

local decision = client:screen { address = address, network = network }
print(decision.action, address)
for _, reason in ipairs(decision.reasons) do
  print("", reason.message)
end

-- Only `allow` is a yes: whatever else comes back, and whatever went wrong, is not.
os.exit(decision.action == "allow" and 0 or 1)
