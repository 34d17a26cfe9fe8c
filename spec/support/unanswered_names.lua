-- A program of its own, for which no name is ever resolved: says how a call ended. Its argument: the call's timeout.
local riskscreen = require "riskscreen"

local client = riskscreen.new {
  base_url = "https://service.example",
  access_key = "test-key",
  timeout = tonumber(arg[1]),
  connect_timeout = 60,
}
local _, err = client.kya:risk { address = "0x52908400098527886e0f7030069857d2e4169ee7", network = "eth" }
print(err.kind, err.phase, tostring(err.sent), err.attempts)
