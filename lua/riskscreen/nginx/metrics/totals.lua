-- Counters over all workers: each worker counts in plain numbers and adds them to the shared dict now and then. A total
-- never decreases while nginx runs, reloads included. Without a dict a total is the worker's own.

---@class riskscreen.nginx.Counter
---@field value number of this worker; the code that counts adds to it
---@field private key string
---@field private flushed number the part of `value` that was added to the dict
---@field private seen number the last known total

---@class riskscreen.nginx.Totals
---@field private dict? table
---@field private prefix string
---@field private counters riskscreen.nginx.Counter[]
local Totals = {}
Totals.__index = Totals

-- When the dict has lost the counter, it continues from the total that this worker saw last.
local function flush(dict, counter)
  local counted = counter.value - counter.flushed
  local total = dict:incr(counter.key, counted, counter.seen)
  if not total then
    return
  end
  local known = counter.seen + counted
  if total < known then
    -- Another worker has restored it from an older total.
    total = dict:incr(counter.key, known - total) or total
  end
  counter.flushed, counter.seen = counter.value, total
end

---@param key string unique among those of these totals
---@return riskscreen.nginx.Counter
function Totals:counter(key)
  local counter = { key = self.prefix .. key, value = 0, flushed = 0, seen = 0 }
  self.counters[#self.counters + 1] = counter
  return counter
end

---Adds the new counts to the dict. Counts for which the dict has no room are kept for the next time.
---@param all boolean touches every counter, so that a full dict pushes out other entries first
function Totals:flush(all)
  local dict = self.dict
  if not dict then
    return
  end
  for _, counter in ipairs(self.counters) do
    if all or counter.value ~= counter.flushed then
      flush(dict, counter)
    end
  end
end

---The total at the last flush, plus the counts since then.
---@param counter riskscreen.nginx.Counter
---@return number
function Totals:of(counter)
  return counter.seen + counter.value - counter.flushed
end

local M = {}

---@param dict table|nil an ngx.shared dict
---@param prefix string of the keys
---@return riskscreen.nginx.Totals
function M.new(dict, prefix)
  return setmetatable({ dict = dict, prefix = prefix, counters = {} }, Totals)
end

return M
