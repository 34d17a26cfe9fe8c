-- Watches sandbox addresses once with the store at arg[1], and prints "change ID ADDRESS ACTION" for each change. The
-- addresses are numbered: their verdicts depend on arg[2], the round.

local riskscreen = require "riskscreen"
local sandbox = riskscreen.sandbox

io.stdout:setvbuf "no"
local store = require "spec.support.any_store"(arg[1])
local clean, risky = sandbox.scenario("clean-eth").address, sandbox.scenario("type-hack").address
local client = sandbox.client()
local screen = client.screen
-- Item n is risky in its round of three.
rawset(client, "screen", function(self, request)
  local number = tonumber(request.address:sub(-4), 16)
  return screen(self, { network = "eth", address = (number + tonumber(arg[2])) % 3 == 0 and risky or clean })
end)

local addresses = {}
for index = 1, 60 do
  addresses[index] = ("0x%040x"):format(index)
end
local watch = riskscreen.watch(client, {
  source = addresses,
  network = "eth",
  store = store,
  rate = 1000,
  on_change = function(change)
    print(("change %s %s %s"):format(change.id, change.address, change.action))
  end,
})
local summary, err
repeat -- in Redis the lock outlives a killed program for a moment
  summary, err = watch:once()
until summary or err.reason ~= "locked"
assert(summary, err)
print(("done %d %s"):format(summary.waiting, tostring(summary.finished)))
