-- The gateway of nginx.conf. nginx loads this file once, before the workers start; nothing is sent here.

local gates = require "riskscreen.nginx.gate"
local inboxes = require "riskscreen.nginx.inbox"
local json = require "riskscreen.json"
local riskscreen = require "riskscreen"
local ngx = _G.ngx

-- Receives the results of transactions. The service does not sign its deliveries, so a secret and the address count.
local inbox = inboxes.new {
  dict = "riskscreen_webhooks",
  secret = { value = os.getenv "RISKSCREEN_WEBHOOK_SECRET", path = true },
  allow = { "127.0.0.1" },
}

local client = riskscreen.new {
  base_url = os.getenv "RISKSCREEN_BASE_URL",
  access_key = os.getenv "RISKSCREEN_ACCESS_KEY",
  timeout = 3,
  attempt_timeout = 1,
  max_response_size = 1024 * 1024,
  shared_dict = "riskscreen", -- all workers see one circuit breaker
  inbox = inbox,
}

local gate = gates.new {
  client = client,
  dict = "riskscreen",
  webhook = inbox,
  on_unknown = "block", -- an unknown decision: no withdrawal
  methods = { "POST" }, -- an application may read the address of another method in another place
  address = { argument = "address" },
  network = { argument = "network" },
  variables = { action = "verdict", source = "verdict_source" },
}

-- The service publishes no scale of scores. Choose your own limits.
local deposits = riskscreen.score_policy {
  rules = {
    { detail = { "sanction", "terrorist" }, action = "block" },
    { score_at_least = "80", action = "block" },
    { score_at_least = "30", action = "review" },
    { score_below = "30", action = "allow" },
  },
  -- The codes about which the score decides. One that nobody has named yet makes a transaction `unknown`.
  extend = { detail = { "scam", "hack", "launder-money", "online-gambling" } },
}

local M = { gate = gate, withdrawals = gate }

M.transfers = gate:location {
  subjects = { { address = { json = "from" } }, { address = { json = "to" } } },
  network = { json = "network" },
}

---Answers whether a deposit may be credited. It waits for the webhook without blocking the worker.
function M.deposit()
  local arguments = ngx.req.get_uri_args()
  local transaction = { network = arguments.network, hash = arguments.hash, outputAddress = arguments.address }
  transaction.direction = "received"
  local decision = deposits:decide(client.kyt:screen(transaction, { timeout = 10 }))
  ngx.status = decision.action == "allow" and 200 or 403
  ngx.say(json.encode { deposit = decision.action })
end

---Removes an address from the cache: curl -X POST '…/purge?address=…'
function M.purge()
  local address = ngx.req.get_uri_args().address
  if ngx.req.get_method() ~= "POST" or type(address) ~= "string" then
    return ngx.exit(ngx.HTTP_BAD_REQUEST)
  end
  local ok, err = gate:purge(address)
  ngx.status = ok and 200 or 500
  ngx.say(json.encode { purged = ok == true, problem = err and tostring(err) or nil })
end

return M
