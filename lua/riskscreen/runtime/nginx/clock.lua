-- The monotonic clock inside nginx: seconds since the machine has started, the same in all workers. No date that is set
-- changes it. So it may stand in a shared dict, which ends with nginx.
local ffi = require "ffi"

local ngx = _G.ngx
local tonumber = tonumber

local MONOTONIC = { Linux = 1, OSX = 6 } -- the number of CLOCK_MONOTONIC
local MOST_LAG = 60 -- seconds that nginx's own reading of the clock may be late while it starts

-- The names are the library's own, because another library may declare these differently.
ffi.cdef [[
int riskscreen_clock_gettime(int clock, void *time) __asm__("clock_gettime");
extern uintptr_t riskscreen_current_msec __asm__("ngx_current_msec");
]]

local C = ffi.C

-- Reads the clock. It costs three times as much as nginx's own reading.
local function new_reader()
  local clock = ffi.abi "64bit" and MONOTONIC[ffi.os]
  if not clock then
    return ngx.now
  end
  local time = ffi.new "int64_t[2]" -- seconds, nanoseconds
  local clock_gettime = C.riskscreen_clock_gettime
  return function()
    clock_gettime(clock, time)
    return tonumber(time[0]) + tonumber(time[1]) * 1e-9
  end
end

local M = { precise = new_reader() }

-- The time that nginx has read, once for all events that it handles in a row.
local function cached()
  return tonumber(C.riskscreen_current_msec) / 1000
end

-- nginx before 1.13.10 counts milliseconds by the date.
local function is_monotonic()
  local ok, seconds = pcall(cached)
  return ok and math.abs(seconds - M.precise()) < MOST_LAG
end

---Seconds. The time stands still while nginx handles events.
---@type fun(): number
M.now = is_monotonic() and cached or M.precise

return M
