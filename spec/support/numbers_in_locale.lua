-- Prints what depends on numbers in texts, once in each locale; or "no locale". PUC Lua 5.1 reads the locale's decimal
-- point.
local riskscreen = require "riskscreen"

for _, locale in ipairs { "C", "de_DE.ISO-8859-1" } do
  if not os.setlocale(locale) then
    print "no locale"
    return
  end
  local client = riskscreen.sandbox.client { kyt_results = "at_once", kyt_delay = 0 }
  local address = riskscreen.sandbox.scenario("type-hack").address
  local score = client.kyt:screen_custom_score { network = "eth", hash = "0x5f16", outputAddress = address }
  local rule = { counterparty = { level = "high", share = 0.5 }, action = "block" }
  local policy = riskscreen.policy { rules = { rule }, not_offered = "unknown" }
  local claim = "never allow where counterparty.level = high and counterparty.share = 0.5"
  print(score and score.maxScore, policy:prove(claim).holds)
end
