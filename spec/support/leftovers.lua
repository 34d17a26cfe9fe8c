-- What the native runtime and this process hold, to be compared before and after.

local jit = rawget(_G, "jit")
local native = require "riskscreen.runtime.native"
local raw_http = require "spec.support.raw_http"
local scheduler = require "riskscreen.runtime.native.scheduler"

local M = {}

---Collects everything that nobody needs any more. What LuaJIT has compiled goes as well: it takes memory, as much as
---chance will have it, and holds on to the functions that it was made for, and so to one client or other.
---@return number kilobytes of Lua memory that are left
function M.collect()
  if jit then
    jit.flush()
  end
  for _ = 1, 2 do
    collectgarbage()
  end
  return collectgarbage "count"
end

---Counts once everything that nobody needs any more is gone.
---@return table<string, integer>
function M.count()
  M.collect()
  native.loop:step(0)
  local counts = scheduler.loop():stats()
  counts.descriptors = raw_http.count_descriptors()
  return counts
end

return M
