-- Values by key in two generations. A full young one becomes the old one, and nothing is ever deleted singly: Lua
-- rebuilds a nearly full table at nearly every insertion (spec/c/tables_test.c). A value that is used becomes young
-- again, and one that is not used for a whole generation is dropped.
local optional = require "riskscreen.util.optional"
local tables = require "riskscreen.util.tables"

local new_table = optional "table.new" or function()
  return {}
end

local NONE = {}

---@class riskscreen.Generations
---@field private half integer values of a generation
---@field private count integer values of the young one
---@field private young table<string, any>
---@field private old table<string, any>
local Generations = {}

---@param key string
---@return any value nil if there is none
function Generations:get(key)
  local value = self.young[key]
  if value == nil then
    value = self.old[key]
    if value ~= nil then
      self:set(key, value)
    end
  end
  return value
end

---@param key string
---@param value any
function Generations:set(key, value)
  if self.young[key] == nil then
    if self.count >= self.half then
      self.old, self.young, self.count = self.young, new_table(0, self.half), 0
    end
    self.count = self.count + 1
  end
  self.young[key] = value
end

function Generations:clear()
  self.young, self.old, self.count = {}, NONE, 0
end

local M = {}

---@param half integer values of a generation: so many are kept for certain, and twice as many at most
---@return riskscreen.Generations
function M.new(half)
  local self = tables.object(Generations, { half = half })
  self:clear()
  return self
end

return M
