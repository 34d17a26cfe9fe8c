-- Shares the inbox of a store in Redis, whose URL is arg[1], with other programs. arg[2]: "await" prints the result of
-- the transaction arg[3]; "deliver" takes the event arg[3] about the transaction arg[4], and prints each event that it
-- handles and the status.

local json = require "riskscreen.json"
local riskscreen = require "riskscreen"

io.stdout:setvbuf "no"
local store = assert(riskscreen.store.redis(arg[1]))
local inbox = riskscreen.webhook.inbox {
  accept_unauthenticated = true,
  store = store,
  account = "specs",
  handlers = {
    ["*"] = function(event)
      print("handled " .. event.webhookId)
    end,
  },
}
if arg[2] == "await" then
  local client = riskscreen.new {
    transport = function()
      error "nothing is to be sent"
    end,
    access_key = "key-of-the-inbox-program",
    inbox = inbox,
  }
  print "waits"
  local result, response = client.kyt:await(arg[3], { timeout = 60 })
  print(result and result.maxScore .. " " .. response.source or response)
else
  local status = inbox:deliver(
    "POST",
    {},
    json.encode {
      webhookId = arg[3],
      eventType = "getTxHashCustomRiskScore",
      timestamp = "2026-01-01 00:00:00",
      data = { requestId = arg[4], maxScore = "42", status = 1003 },
    }
  )
  print(status)
end
store:close()
