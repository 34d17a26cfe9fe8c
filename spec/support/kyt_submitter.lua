-- Submits transactions to the service at arg[2] with the store at arg[1]. It begins with the first that is not done,
-- and prints each that is done. It goes on for ever; a transaction whose submission is uncertain is printed, and not
-- sent again.

local riskscreen = require "riskscreen"

io.stdout:setvbuf "no"
local store = require "spec.support.any_store"(arg[1])
local done = store:space "done"
local client = riskscreen.new {
  base_url = arg[2],
  access_key = riskscreen.sandbox.default_key,
  endpoints = riskscreen.sandbox.endpoints,
  polling = { first = 0.001, growth = 1, ceiling = 0.001 },
  retry = false,
  store = store,
  account = "specs",
}

local number = done:count() + 1
print("begins " .. number)
while true do
  local hash = ("0x%064x"):format(number)
  local transaction, err = client.kyt:submit { network = "eth", hash = hash, direction = "received" }
  if transaction then
    assert(transaction:await { timeout = 10 })
    assert(done:put(("%08d"):format(number), "result"))
    assert(transaction:forget())
  else
    assert(err.uncertain, err)
    assert(done:put(("%08d"):format(number), "uncertain"))
  end
  print("done " .. number)
  number = number + 1
end
