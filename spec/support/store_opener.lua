-- Opens and closes the stores PATH1 to PATHn, and prints why one cannot be opened: store_opener.lua PATH N
local riskscreen = require "riskscreen"

for number = 1, tonumber(arg[2]) do
  local store, err = riskscreen.store.sqlite(arg[1] .. number)
  if store then
    store:close()
  else
    print(err.message)
  end
end
