-- Uses Redis with fractions where a comma is the decimal point, and prints what comes; or "no locale". Its argument is
-- the URL.
local riskscreen = require "riskscreen"

if not os.setlocale "de_DE.ISO-8859-1" then
  print "no locale"
  return
end
local redis = riskscreen.redis.new { url = arg[1] }
redis:call("SET", "a", 0.5)
print(redis:call("GET", "a"))
local space = riskscreen.store
  .redis({
    redis = redis,
    clock = function()
      return 1e9 + 0.5
    end,
  })
  :space "s"
print(space:put("key", "value", 1.5), (space:get "key"))
local client = riskscreen.sandbox.client { rate_limit = { rate = 5.5, shared = { redis = redis } }, account = "a" }
print(client:screen({ address = ("0x%040x"):format(1), network = "eth" }).action)
