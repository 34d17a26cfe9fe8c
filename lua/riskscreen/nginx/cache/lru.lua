-- The cache of one worker: two generations (util/generations.lua), and which entries a full one takes. For entries that
-- are used once, this is five times cheaper than resty.lrucache with its exact order (`./dev bench nginx`).
local generations = require "riskscreen.util.generations"

local TAKEN = 4 -- a full LRU takes one of so many entries that the dict has

-- Whether the LRU takes an entry that the dict has as well. A full one takes few of them. Most entries that are used
-- once are never in it, and are never made (`./dev bench nginx`). An older entry of the key is always replaced.
local function takes(lru, key)
  if not lru.has_dropped or lru:has(key) then
    return true
  end
  lru.offered = (lru.offered + 1) % TAKEN
  return lru.offered == 0
end

---@class riskscreen.nginx.Lru: riskscreen.Generations
---@field takes fun(self, key: string): boolean
---@field private offered integer entries that the dict has, modulo TAKEN

local M = {}

---@param size integer entries
---@return riskscreen.nginx.Lru
function M.new(size)
  local lru = generations.new(math.ceil(size / 2))
  lru.takes, lru.offered = takes, 0
  return lru
end

return M
