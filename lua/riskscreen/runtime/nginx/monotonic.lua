-- Seconds of a clock that nobody sets, inside nginx: nginx's own time follows the wall clock, and stands still while a
-- worker is busy. Where that clock is not known how to read, nginx's it is.
local ffi = require "ffi"

local CLOCKS = { Linux = 1, OSX = 6 } -- CLOCK_MONOTONIC

local clock = ffi.abi "64bit" and CLOCKS[ffi.os]
if not clock then
  return _G.ngx.now
end

-- Under a name of its own: another library may declare the function in another way.
ffi.cdef [[int riskscreen_clock_gettime(int clock, void *time) __asm__("clock_gettime");]]

local time = ffi.new "int64_t[2]" -- seconds, nanoseconds

---@return number seconds
return function()
  ffi.C.riskscreen_clock_gettime(clock, time)
  return tonumber(time[0]) + tonumber(time[1]) * 1e-9
end
