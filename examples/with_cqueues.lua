-- Drives the library from a cqueues loop: riskscreen.loop has the methods that cqueues polls. Needs cqueues.
-- Asks the service that RISKSCREEN_BASE_URL and RISKSCREEN_ACCESS_KEY name, or the sandbox.

local cqueues = require "cqueues"
local riskscreen = require "riskscreen"

-- The sandbox runs in this process and is driven by the same loop.
local server = not os.getenv "RISKSCREEN_BASE_URL" and assert(riskscreen.sandbox.serve {})
local client = riskscreen.new {
  base_url = server and server.url or os.getenv "RISKSCREEN_BASE_URL",
  access_key = server and server.access_key or os.getenv "RISKSCREEN_ACCESS_KEY",
}

local names = { "clean-eth", "high-eth", "type-sanction" }
local pending = #names

for _, name in ipairs(names) do
  riskscreen.spawn(function()
    local scenario = riskscreen.sandbox.scenario(name)
    local decision = client:screen { address = scenario.address, network = scenario.network }
    print(name, decision.action)
    pending = pending - 1
  end)
end

local host = cqueues.new()

host:wrap(function()
  while pending > 0 do
    cqueues.poll(riskscreen.loop)
    riskscreen.loop:step(0)
  end
end)

-- The rest of the program runs beside it.
host:wrap(function()
  while pending > 0 do
    cqueues.sleep(0.01)
  end
  print "done"
end)

assert(host:loop())
