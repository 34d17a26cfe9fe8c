-- Writes arg[2] decisions to the journal at arg[1] and prints each number when the line is written. arg[3]: max_size.

local riskscreen = require "riskscreen"

io.stdout:setvbuf "no"
local journal = assert(riskscreen.journal.file(arg[1], {
  max_size = tonumber(arg[3]),
  sync = false,
  on_failure = function(err)
    print("failed " .. err.reason)
    os.exit(1)
  end,
}))
local policy = riskscreen.policy()
for number = 1, tonumber(arg[2]) do
  local decision = policy:decide { risk = { whitelist = false, risks = {} } }
  decision.address, decision.network = ("0x%040x"):format(number), "eth"
  journal:append(decision, { policy = policy })
  print("made " .. number)
end
journal:close()
