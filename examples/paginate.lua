-- Reads the account's lists in three ways: item by item, page by page, and all at once.
-- Asks the service that RISKSCREEN_BASE_URL and RISKSCREEN_ACCESS_KEY name, or the sandbox.

local riskscreen = require "riskscreen"

local sandbox = riskscreen.sandbox
local base_url = os.getenv "RISKSCREEN_BASE_URL"
local client = base_url and riskscreen.new { base_url = base_url, access_key = os.getenv "RISKSCREEN_ACCESS_KEY" }
  or sandbox.client { access_key = sandbox.lists_key }

-- The next two pages are fetched while this one is printed.
for item in client.blacklist:each { pageSize = 5, prefetch = 2 } do
  print(item.address, item.network or "-")
end

for items, response in client.blacklist:pages { page = 2, pageSize = 5 } do
  local pagination = response.pagination
  print(("page %d of %d: %d items"):format(pagination.current_page, pagination.total_pages, #items))
end

local latest, err = client.whitelist:all { limit = 3 }
if not latest then
  io.stderr:write("could not list: ", tostring(err), "\n")
  os.exit(1)
end
print(#latest .. " of the whitelist")
