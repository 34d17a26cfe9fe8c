-- A game that draws sixty frames a second and screens its players' addresses meanwhile. Each frame steps the library
-- for at most two milliseconds and never waits for an answer. Needs LuaSocket, which stands for the display here.
-- Asks the service that RISKSCREEN_BASE_URL and RISKSCREEN_ACCESS_KEY name, or the sandbox.

local riskscreen = require "riskscreen"
local socket = require "socket"

local FRAME = 1 / 60 -- seconds
local BUDGET = 0.002 -- seconds of a frame

-- The sandbox runs in this process and is driven by the same steps.
local server = not os.getenv "RISKSCREEN_BASE_URL" and assert(riskscreen.sandbox.serve {})
local client = riskscreen.new {
  base_url = server and server.url or os.getenv "RISKSCREEN_BASE_URL",
  access_key = server and server.access_key or os.getenv "RISKSCREEN_ACCESS_KEY",
}

local players = {
  { name = "Ada", address = riskscreen.sandbox.scenario("clean-eth").address },
  { name = "Bob", address = riskscreen.sandbox.scenario("type-sanction").address },
  { name = "Cem", address = riskscreen.sandbox.scenario("high-eth").address },
}

local function screen(player)
  player.verdict = client:screen({ address = player.address, network = "eth" }).action
end

local function all_screened()
  for _, player in ipairs(players) do
    if not player.verdict then
      return false
    end
  end
  return true
end

for _, player in ipairs(players) do
  riskscreen.spawn(screen, player)
end

local frames = 0
repeat
  local began = socket.gettime()
  riskscreen.loop:step { budget = BUDGET }
  frames = frames + 1 -- here the game moves and draws
  socket.sleep(math.max(0, FRAME - (socket.gettime() - began)))
until all_screened()

for _, player in ipairs(players) do
  print(player.name, player.verdict)
end
print("frames drawn meanwhile: " .. frames)
