-- Prints the keys with the prefix "b:" of a store, twice, in a locale that orders texts by words; or "no locale". The
-- store is in memory, or in Redis: store_in_locale.lua [URL]
local riskscreen = require "riskscreen"

if not os.setlocale "en_US.ISO-8859-1" then
  print "no locale"
  return
end
local store = arg[1] and assert(riskscreen.store.redis { redis = arg[1] }) or riskscreen.store.memory()
local space = store:space "a"
for _, key in ipairs { "b:1", "B:1", "b-1", "b:2", "B:2", "b1", "a" } do
  assert(space:put(key, "value"))
end
for _, after in ipairs { "", "C" } do
  for key in space:each { prefix = "b:", after = after } do
    print(key)
  end
end
