-- The things that are under way, such as calls. One that an error has left behind is collected, and then no longer
-- counted. Each has a slot: with the things as keys, 64 of them fill a table. Lua then rebuilds it for each further one
-- (`./dev bench nginx`).

local tables = require "riskscreen.util.tables"

---@class riskscreen.OpenSet
---@field private open table<integer, table|false> by slot
---@field private slots integer number of slots
---@field private free integer[] slots without a thing
---@field private free_count integer
local OpenSet = {}

---@param thing table
---@return integer slot for `remove`
function OpenSet:add(thing)
  local count = self.free_count
  local slot
  if count > 0 then
    slot, self.free_count = self.free[count], count - 1
  else
    slot = self.slots + 1
    self.slots = slot
  end
  self.open[slot] = thing
  return slot
end

---Does nothing for a thing that was removed before.
---@param thing table
---@param slot integer
function OpenSet:remove(thing, slot)
  if self.open[slot] == thing then
    local count = self.free_count + 1
    self.open[slot], self.free[count], self.free_count = false, slot, count
  end
end

---The number of things. The slot of a collected one becomes free.
---@return integer
function OpenSet:count()
  local count, open = 0, self.open
  for slot = 1, self.slots do
    if open[slot] then
      count = count + 1
    elseif open[slot] == nil then
      self.free_count = self.free_count + 1
      open[slot], self.free[self.free_count] = false, slot
    end
  end
  return count
end

local M = {}

---@return riskscreen.OpenSet
function M.new()
  return tables.object(OpenSet, { open = setmetatable({}, { __mode = "v" }), slots = 0, free = {}, free_count = 0 })
end

return M
