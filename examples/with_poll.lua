-- Drives the library from a loop of your own around poll(2), which lua-posix has. Debian has no lua-posix for Lua 5.4:
-- there select(2) of LuaSocket does the same for one descriptor.
-- Asks the service that RISKSCREEN_BASE_URL and RISKSCREEN_ACCESS_KEY name, or the sandbox.

local riskscreen = require "riskscreen"

-- Returns a function that waits until the descriptor is readable or the seconds are over. nil means without a limit.
local function new_wait(fd)
  local has_poll, poll = pcall(require, "posix.poll")
  if has_poll then
    return function(seconds)
      poll.rpoll(fd, seconds and math.ceil(seconds * 1000) or -1)
    end
  end
  local socket = require "socket"
  local readable = {
    getfd = function()
      return fd
    end,
    dirty = function()
      return false
    end,
  }
  return function(seconds)
    socket.select({ readable }, nil, seconds)
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

for _, name in ipairs(names) do
  riskscreen.spawn(function()
    local scenario = riskscreen.sandbox.scenario(name)
    local decision = client:screen { address = scenario.address, network = scenario.network }
    print(name, decision.action)
    pending = pending - 1
  end)
end

local loop = riskscreen.loop
local wait = new_wait(loop:pollfd())
while pending > 0 do
  wait(loop:timeout())
  loop:step(0)
end
print "done"
