-- Drives the library from a libuv loop: one poll handle on the library's descriptor, one timer for its timeout.
-- Needs luv.
-- Asks the service that RISKSCREEN_BASE_URL and RISKSCREEN_ACCESS_KEY name, or the sandbox.

local riskscreen = require "riskscreen"
local uv = require "luv"

-- Attaches the library to the uv loop. Returns a function that detaches it again.
local function attach(loop)
  local poll, timer, prepare = uv.new_poll(loop:pollfd()), uv.new_timer(), uv.new_prepare()
  local function step()
    loop:step(0)
  end
  poll:start(loop:events(), step)
  -- Set the timer anew before each wait of libuv.
  prepare:start(function()
    local timeout = loop:timeout()
    if timeout then
      timer:start(math.ceil(timeout * 1000), 0, step)
    else
      timer:stop()
    end
  end)
  return function()
    for _, handle in ipairs { poll, timer, prepare } do
      handle:close()
    end
  end
end

-- The sandbox runs in this process and is driven by the same loop.
local server = not os.getenv "RISKSCREEN_BASE_URL" and assert(riskscreen.sandbox.serve {})
local client = riskscreen.new {
  base_url = server and server.url or os.getenv "RISKSCREEN_BASE_URL",
  access_key = server and server.access_key or os.getenv "RISKSCREEN_ACCESS_KEY",
}

local names = { "clean-eth", "high-eth", "type-sanction" }
local pending = #names
local detach = attach(riskscreen.loop)

for _, name in ipairs(names) do
  riskscreen.spawn(function()
    local scenario = riskscreen.sandbox.scenario(name)
    local decision = client:screen { address = scenario.address, network = scenario.network }
    print(name, decision.action)
    pending = pending - 1
    if pending == 0 then
      detach()
    end
  end)
end

uv.run()
print "done"
