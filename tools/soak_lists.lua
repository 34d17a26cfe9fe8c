-- Builds a deny list of many addresses, and blocks by it while the network is down: every address on the list, and no
-- other. Usage: soak_lists.lua COUNT, with riskscreen on the path.
local riskscreen = require "riskscreen"

local count = assert(tonumber(arg[1]), "COUNT must be a number")
local STEP = 997 -- every so many addresses are screened

local directory = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir " .. directory))

local function address(number)
  return ("0x%040x"):format(number)
end

local function run()
  local file = assert(io.open(directory .. "/deny.csv", "w"))
  file:write "address,note\n"
  for number = 1, count do
    file:write(address(number), ",n", number, "\n")
  end
  assert(file:close())
  local started = os.clock()
  local path = directory .. "/deny.rsl"
  local report = assert(riskscreen.lists.build { output = path, inputs = directory .. "/deny.csv", buffer = 2 ^ 23 })
  assert(report.entries == count and report.invalid == 0)
  io.write(("built %d entries in %.1f s of CPU time\n"):format(count, os.clock() - started))

  local sent = 0
  local client = riskscreen.new {
    access_key = "key-of-the-soak",
    retry = false,
    transport = function()
      sent = sent + 1
      return nil, { kind = "network", message = "the network is down" }
    end,
    lists = { deny = path },
  }
  local blocked = 0
  for number = 1, count, STEP do
    local decision = client:screen { address = address(number), network = "eth" }
    assert(decision.action == "block" and decision.reasons[1].note == "n" .. number, tostring(decision))
    blocked = blocked + 1
  end
  assert(sent == 0, "an address on the list was asked for")
  local decision = client:screen { address = address(count + 1), network = "eth" }
  assert(decision.action == "unknown" and sent == 1, tostring(decision))
  io.write(("blocked %d addresses while the network was down; every other is unknown\n"):format(blocked))
end

local ok, failure = pcall(run)
os.execute("rm -rf " .. directory)
assert(ok, failure)
