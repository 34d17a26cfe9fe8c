-- The figures of each of the last 60 minutes, in the shared dict, where all workers add to them. A minute without
-- records has no figures, which is not the same as zeros.
local definitions = require "riskscreen.nginx.metrics.definitions"
local tables = require "riskscreen.util.tables"

local SHOWN = 60 -- minutes, the one under way included
local LIFETIME = (SHOWN + 1) * 60 -- seconds

local M = { FIGURES = tables.concat(definitions.ACTIONS, { "fetches", "failed_fetches", "fetch_seconds" }) }

---@class riskscreen.nginx.Minutes
---@field private dict table
---@field private prefix string of the keys
---@field private added table<string, number> the part of each total that was added to the dict
local Minutes = {}
Minutes.__index = Minutes

local function key_of(self, minute, figure)
  return ("%s%d:%s"):format(self.prefix, minute, figure)
end

---Adds to the current minute what the totals have grown by. Zeros are written, too: they are the record of a minute
---without decisions. If the dict is full, the figures are kept for the next time.
---@param totals table<string, number> of this worker, by figure
---@param now number Unix seconds
function Minutes:add(totals, now)
  local minute = math.floor(now / 60)
  for _, figure in ipairs(M.FIGURES) do
    local total = totals[figure]
    if self.dict:incr(key_of(self, minute, figure), total - self.added[figure], 0, LIFETIME) then
      self.added[figure] = total
    end
  end
end

---@class riskscreen.nginx.Minute a figure is absent where it was not recorded
---@field time integer Unix seconds at which the minute began
---@field allow? integer decisions
---@field review? integer
---@field block? integer
---@field unknown? integer
---@field fetches? integer
---@field failed_fetches? integer
---@field fetch_seconds? number duration of all fetches

---The last 60 minutes, oldest first.
---@param now number Unix seconds
---@return riskscreen.nginx.Minute[]
function Minutes:read(now)
  local list, last = {}, math.floor(now / 60)
  for minute = last - SHOWN + 1, last do
    local entry = { time = minute * 60 }
    for _, figure in ipairs(M.FIGURES) do
      entry[figure] = tonumber((self.dict:get(key_of(self, minute, figure))))
    end
    list[#list + 1] = entry
  end
  return list
end

---@param dict table an ngx.shared dict
---@param prefix string of the keys
---@return riskscreen.nginx.Minutes
function M.new(dict, prefix)
  local added = {}
  for _, figure in ipairs(M.FIGURES) do
    added[figure] = 0
  end
  return setmetatable({ dict = dict, prefix = prefix, added = added }, Minutes)
end

return M
