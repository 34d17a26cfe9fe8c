-- Short times that a slow machine cannot break: a test is repeated with twice the time until it passes. So it waits no
-- longer than the machine needs.

local FIRST = 0.15 -- seconds
local LAST = 20 -- seconds

---@param attempt fun(seconds: number): boolean, ... whether the machine was fast enough, and what came of it
---@return ... what came of the last attempt
return function(attempt)
  local function try(seconds, reached, ...)
    if reached or seconds * 2 > LAST then
      return ...
    end
    return try(seconds * 2, attempt(seconds * 2))
  end
  return try(FIRST, attempt(FIRST))
end
