-- The entries of a store in this program's memory. The same rules as in sqlite.lua.

local tables = require "riskscreen.util.tables"

local SWEEP_INTERVAL = 60 -- seconds between two removals of expired entries

---@class riskscreen.store.Memory: riskscreen.StoreBackend
---@field private spaces table<string, { entries: table<string, { value: string, expires?: number }>, order?: string[],
---swept?: number }>
---@field private locks table<string, table> the holders by name
local Memory = {}
Memory.__index = Memory

local function space_of(self, name)
  local space = self.spaces[name]
  if not space then
    space = { entries = {} }
    self.spaces[name] = space
  end
  return space
end

local function is_live(entry, now)
  return entry ~= nil and (not entry.expires or entry.expires > now)
end

local function set(space, key, entry)
  if (space.entries[key] == nil) ~= (entry == nil) then
    space.order = nil
  end
  space.entries[key] = entry
end

function Memory:get(name, key, now)
  local entry = space_of(self, name).entries[key]
  return is_live(entry, now) and entry.value or nil
end

-- Whether the condition of a change holds.
local function holds(change, entry)
  if change.kind == "add" then
    return entry == nil
  elseif change.kind == "replace" or change.expected then
    return entry ~= nil and entry.value == change.expected
  end
  return change.kind == "put" or entry ~= nil
end

-- Removes the expired entries of a space.
local function remove_expired(space, now)
  for key, entry in pairs(space.entries) do
    if not is_live(entry, now) then
      space.entries[key], space.order = nil, nil
    end
  end
  space.swept = now
end

function Memory:apply(changes, now)
  local undo = {}
  for _, change in ipairs(changes) do
    local space = space_of(self, change.space)
    local old = space.entries[change.key]
    if not holds(change, is_live(old, now) and old or nil) then
      for index = #undo, 1, -1 do
        set(undo[index].space, undo[index].key, undo[index].entry)
      end
      return false
    end
    undo[#undo + 1] = { space = space, key = change.key, entry = old }
    local entry = { value = change.value, expires = change.ttl and now + change.ttl }
    set(space, change.key, change.kind ~= "delete" and entry or nil)
    if change.ttl and now >= (space.swept or now) + SWEEP_INTERVAL then
      remove_expired(space, now)
    end
    space.swept = space.swept or now
  end
  return true
end

-- The position of the first key that is not less than a text, by bisection.
local function position_of(order, bound)
  local low, high = 1, #order + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if tables.precedes(order[middle], bound) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

function Memory:page(name, from, to, limit, now)
  local space, found = space_of(self, name), {}
  remove_expired(space, now)
  space.order = space.order or tables.sorted_keys(space.entries)
  for position = position_of(space.order, from), #space.order do
    local key = space.order[position]
    if #found == 2 * limit or not tables.precedes(key, to) then
      break
    end
    found[#found + 1], found[#found + 2] = key, space.entries[key].value
  end
  return found
end

function Memory:lock(name)
  if self.locks[name] then
    return nil
  end
  local holder = {}
  self.locks[name] = holder
  return function()
    if self.locks[name] == holder then
      self.locks[name] = nil
    end
  end
end

function Memory:close() -- luacheck: ignore 212
end

local M = {}

---@return riskscreen.store.Memory
function M.new()
  return setmetatable({ spaces = {}, locks = {} }, Memory)
end

return M
