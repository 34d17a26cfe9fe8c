-- Run by tools/rocks.sh: screens an address with what is installed under arg[1], and nothing else.

local tree = arg[1]

local function assert_installed(name, path)
  local found = assert(package.searchpath(name, path)) -- luacheck: ignore 143
  assert(found:sub(1, #tree) == tree, name .. " comes from " .. found)
end

if package.searchpath then -- luacheck: ignore 143
  assert_installed("riskscreen", package.path)
  assert_installed("riskscreen.core", package.cpath)
  assert_installed("riskscreen.server", package.cpath)
end

local riskscreen = require "riskscreen"
local server = assert(riskscreen.sandbox.serve {})
local client = riskscreen.new { base_url = server.url, access_key = server.access_key }
local scenario = riskscreen.sandbox.scenario "type-sanction"
local decision = client:screen { address = scenario.address, network = scenario.network }
assert(decision.action == "block", decision.action)
print(_VERSION .. ": " .. decision.reasons[1].message)
