-- The date in seconds since 1970, and the one rule for moments that are written down. A date may be set, also back. So
-- it is used for what outlives the program alone, and the runtime's `now` for waits. A written moment that lies in the
-- future ends a permission (an allow, a delay); submissions and denials stay. A wait is never longer than its period.
local core = require "riskscreen.util.core"
local optional = require "riskscreen.util.optional"

local TICK = 1e-6 -- seconds

local M = { LAG = 1 } -- seconds that nginx's reading of the clock may be ahead in another worker

---Makes the clock where the core is not compiled. It takes no argument, also where it is called as a method.
local function portable_clock()
  local ffi = rawget(_G, "jit") and optional "ffi"
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
  return function()
    local second = os.time()
    last = second == math.floor(last) and last + TICK or second
    return last
  end
end

---Seconds since 1970, with fractions.
---@type fun(): number
M.now = core and core.time or portable_clock()

---The age of a moment that was written down. It is nil for a moment in the future: its permission has ended.
---@param written any
---@param now number by the same clock
---@param ahead? number by how much the clock that wrote it may be ahead
---@return number|nil seconds
function M.age(written, now, ahead)
  if type(written) ~= "number" or written ~= written or written > now + (ahead or 0) then
    return nil
  end
  return math.max(0, now - written)
end

---The next moment of a clock that several programs may share. It never goes back, though a date does.
---@param date number Unix seconds
---@param latest? number the clock's latest moment
---@return number
function M.after(date, latest)
  return latest and date <= latest and latest + TICK or date
end

---The wait until a moment that was written down.
---@param written number
---@param now number by the same clock
---@param period number the longest wait
---@return number seconds
function M.wait(written, now, period)
  return math.min(math.max(0, written - now), period)
end

return M
