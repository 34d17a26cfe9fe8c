-- Seconds since 1970, with fractions where the core is compiled. Somebody may set this clock, also back: use it for
-- moments that outlast the program, and the runtime's `now` for waits.
local core = require "riskscreen.util.core"

return core and core.time or function()
  return os.time() -- takes no argument, also where it is called as a method
end
