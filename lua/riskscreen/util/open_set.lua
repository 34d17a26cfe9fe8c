-- The things that are under way, such as calls. One that an error has left behind is collected, and then no longer
-- counted. Each has a slot: with the things as keys, 64 of them fill a table. Lua then rebuilds it for each further one
-- (`./dev bench nginx`).

local tables = require "riskscreen.util.tables"

---@class riskscreen.OpenSet
---@field private open table<integer, table|integer> by slot: the thing, or the slot that is free after this one
---@field private free integer the first free slot
---@field private slots integer number of slots that were used
local OpenSet = {}

---@param thing table
---@return integer slot for `remove`
function OpenSet:add(thing)
  local open, slot = self.open, self.free
  if slot > self.slots then
    self.slots, self.free = slot, slot + 1
  else
    self.free = open[slot]
  end
  open[slot] = thing
  return slot
end

---Does nothing for a thing that was removed before.
---@param thing table|nil nil for one that was collected
---@param slot integer
---@return boolean removed
function OpenSet:remove(thing, slot)
  local open = self.open
  if open[slot] ~= thing then
    return false
  end
  open[slot], self.free = self.free, slot
  return true
end

---The number of things. The slot of a collected one becomes free.
---@return integer
function OpenSet:count()
  local count, open = 0, self.open
  for slot = 1, self.slots do
    if open[slot] == nil then
      self:remove(nil, slot)
    elseif type(open[slot]) == "table" then
      count = count + 1
    end
  end
  return count
end

local M = {}

---@return riskscreen.OpenSet
function M.new()
  return tables.object(OpenSet, { open = setmetatable({}, { __mode = "v" }), slots = 0, free = 1 })
end

return M
