-- Counts the descriptors, loop objects and memory that are in use, so that a test can compare before and after.

local jit = rawget(_G, "jit")
local native = require "riskscreen.runtime.native"
local raw_http = require "spec.support.raw_http"
local scheduler = require "riskscreen.runtime.native.scheduler"

local M = {}

---Collects all garbage. LuaJIT's traces are flushed too: their number depends on chance, and they keep objects alive.
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
