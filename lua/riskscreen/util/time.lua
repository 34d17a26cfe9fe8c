-- The date, and the one rule for moments that are written down. A date may be set, also back. So it is used for what
-- outlives the program alone, and the runtime's `now` for waits. A written moment that lies in the future ends a
-- permission (an allow, a delay); submissions and denials stay. A wait is never longer than its period.
local core = require "riskscreen.util.core"

local M = { LAG = 1 } -- seconds that nginx's reading of the clock may be ahead in another worker

---Seconds since 1970, with fractions where the core is compiled.
---@type fun(): number
M.now = core and core.time
  or function()
    return os.time() -- takes no argument, also where it is called as a method
  end

---The age of a moment that was written down, or nil: what it permits has ended, because it lies in the future or is
---none.
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

---The wait until a moment that was written down.
---@param written number
---@param now number by the same clock
---@param period number the longest wait
---@return number seconds
function M.wait(written, now, period)
  return math.min(math.max(0, written - now), period)
end

return M
