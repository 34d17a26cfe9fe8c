-- Adds an address to the account's blacklist and prints the list's first page.
-- Asks the service that RISKSCREEN_BASE_URL and RISKSCREEN_ACCESS_KEY name, or the sandbox.

local riskscreen = require "riskscreen"

local base_url = os.getenv "RISKSCREEN_BASE_URL"
local client = base_url and riskscreen.new { base_url = base_url, access_key = os.getenv "RISKSCREEN_ACCESS_KEY" }
  or riskscreen.sandbox.client {}

local added, err = client.blacklist:add {
  network = "eth",
  list = {
    { address = "0x00000000000000000000000000000000000b1ac0", risks = { { riskLevel = "high", riskType = "scam" } } },
  },
}
if not added then
  io.stderr:write("could not add: ", tostring(err), "\n")
  os.exit(1)
end

local items, response = client.blacklist:list { page = 1, pageSize = 50 }
if not items then
  io.stderr:write("could not list: ", tostring(response), "\n")
  os.exit(1)
end

for _, item in ipairs(items) do
  -- Some items have no network, and some have no risks.
  local risk = item.risks and item.risks[1]
  print(item.address, item.network or "-", risk and (risk.riskLevel .. " " .. risk.riskType) or "-")
end
print(("%d of %d"):format(#items, response.pagination.total_items))
