-- Screens one address and prints why. The exit status is 0 for `allow`, 1 for any other decision and 2 for misuse.
-- Asks the service that RISKSCREEN_BASE_URL and RISKSCREEN_ACCESS_KEY name, or the sandbox, whose `allow` is no yes.

local USAGE = "usage: lua examples/screen_address.lua [ADDRESS [NETWORK]]\n"

local riskscreen = require "riskscreen"

if arg[1] == "--help" or arg[1] == "-h" then
  io.write(USAGE)
  os.exit(0)
elseif #arg > 2 or (arg[1] or ""):find "^%-" then
  io.stderr:write(USAGE)
  os.exit(2)
end

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

-- Only `allow` of the service is a yes.
if not base_url then
  io.stderr:write "RISKSCREEN_BASE_URL is not set: the sandbox answers, and the exit status is 1\n"
end
os.exit(base_url and decision.action == "allow" and 0 or 1)
