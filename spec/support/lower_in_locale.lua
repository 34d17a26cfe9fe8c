-- Prints what depends on the case of names, once in each locale; or "no locale". The small letter of "I" is another one
-- in Turkish.
local calls = require "riskscreen.call"
local riskscreen = require "riskscreen"

for _, locale in ipairs { "C", "tr_TR.ISO-8859-9" } do
  if not os.setlocale(locale) then
    print "no locale"
    return
  end
  local client = riskscreen.new { base_url = "HTTPS://API.Example", access_key = "test-key", account = "a" }
  local inbox = riskscreen.webhook.inbox { secret = { value = "sixteen bytes it is", header = "X-API-ID" } }
  local policy = riskscreen.score_policy { rules = { { detail = "SANCTIONED IP", action = "block" } } }
  local details = { { code = "sanctioned-ip", score = "1" } }
  local strategies = { ["1"] = { strategyNo = "1", score = "1", details = details } }
  local result = { status = 1003, maxScore = "1", dirData = { ["in"] = strategies, out = {} } }
  print(table.concat({
    calls.identity.account(calls.state_of(client)),
    (inbox:deliver("POST", { ["x-api-id"] = "sixteen bytes it is" }, "{}")),
    policy:decide(result).action,
  }, " "))
end
