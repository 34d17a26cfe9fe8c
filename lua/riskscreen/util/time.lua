-- Seconds since 1970, with fractions. Somebody may set this clock, also back: use it for moments that outlast the
-- program, and the runtime's `now` for waits.
local core = require "riskscreen.util.core"
local optional = require "riskscreen.util.optional"

local TICK = 1e-6 -- seconds

local ffi = not core and rawget(_G, "jit") and optional "ffi"
if ffi then
  -- A name of our own: other modules may have declared the function with another type.
  ffi.cdef [[int riskscreen_time(long *seconds_and_micros, void *zone) __asm__("gettimeofday");]]
  local moment = ffi.new "long[2]"
  return function()
    ffi.C.riskscreen_time(moment, nil)
    return tonumber(moment[0]) + tonumber(moment[1]) * TICK
  end
end

-- Lua knows whole seconds alone. A moment of this program must not be before an earlier one of the same second.
local last = 0
return core and core.time
  or function()
    local second = os.time() -- takes no argument, also where it is called as a method
    last = second == math.floor(last) and last + TICK or second
    return last
  end
