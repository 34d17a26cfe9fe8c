-- Prints the fingerprint of a table in several locales, one a line; or "no locale".
local tables = require "riskscreen.util.tables"

for _, locale in ipairs { "C", "en_US.ISO-8859-1", "de_DE.ISO-8859-1" } do
  if not os.setlocale(locale) then
    print "no locale"
    return
  end
  print(tables.fingerprint { network = "eth", Hash = 1, ["a-b"] = 0.1, ab = 2, _x = -2.5, B = 1e300, a = 2 ^ 60 })
end
