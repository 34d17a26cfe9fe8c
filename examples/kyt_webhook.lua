-- Screens a transaction whose result comes by webhook.
-- The sandbox is served over HTTP and delivers to an inbox of this process. It delivers twice; the inbox ignores the
-- second delivery.

local USAGE = "usage: lua examples/kyt_webhook.lua [HASH]\n"

local riskscreen = require "riskscreen"

if arg[1] == "--help" or arg[1] == "-h" then
  io.write(USAGE)
  os.exit(0)
elseif #arg > 1 or (arg[1] or ""):find "^%-" then
  io.stderr:write(USAGE)
  os.exit(2)
end

local secret = "change this secret of the example"

local inbox = riskscreen.webhook.inbox {
  secret = { value = secret, header = "X-Webhook-Secret" },
  allow = { "127.0.0.1" },
  handlers = {
    getTxHashCustomRiskScore = function(event)
      print("received", event.webhookId, event.data.requestId, event.data.maxScore)
    end,
  },
}
local listener = assert(inbox:listen { path = "/webhooks" })

local server = assert(riskscreen.sandbox.serve {
  kyt_delay = 0.2,
  webhook = { url = listener.url, headers = { ["X-Webhook-Secret"] = secret } },
})
server.service:deliver { copies = 2 }

local client = riskscreen.new { base_url = server.url, access_key = server.access_key, inbox = inbox }
local policy = riskscreen.score_policy {
  rules = {
    { detail = { "sanction", "terrorist" }, action = "block" },
    { score_at_least = "80", action = "block" },
    { score_at_least = "30", action = "review" },
    { score_below = "30", action = "allow" },
  },
  -- The codes about which the score decides. One that nobody has named yet makes a transaction `unknown`.
  extend = { detail = { "scam", "hack", "launder-money", "online-gambling" } },
}

local transaction, err = client.kyt:submit {
  network = "eth",
  hash = arg[1] or "0x5f16ca1b3b1b6b3d6c9b4b0a4c1bb9e1ae77e42a4f6a6bd9f8b6a4a5b2f5d3c1",
  outputAddress = riskscreen.sandbox.scenario("type-sanction").address,
  direction = "received",
  customId = "deposit-17",
}
if not transaction then
  io.stderr:write(tostring(err), err.uncertain and " (it may have been submitted)\n" or "\n")
  os.exit(1)
end
print("submitted", transaction.requestId, transaction:ticket())

local decision = policy:decide(transaction:await { timeout = 10 })
print(decision.action, decision.reasons[1].message)

server:close()
listener:close()
os.exit(decision.action == "allow" and 0 or 1)
