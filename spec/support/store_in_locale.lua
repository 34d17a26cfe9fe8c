-- Prints the keys with the prefix "b:" of a store in memory, in a locale that orders texts by words; or "no locale".
local riskscreen = require "riskscreen"

if not os.setlocale "en_US.UTF-8" then
  print "no locale"
  return
end
local space = riskscreen.store.memory():space "a"
for _, key in ipairs { "b:1", "B:1", "b-1", "b:2", "B:2", "b1", "a" } do
  assert(space:put(key, "value"))
end
for key in space:each { prefix = "b:" } do
  print(key)
end
