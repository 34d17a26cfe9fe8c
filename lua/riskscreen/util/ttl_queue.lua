-- Keeps values by key for a time, up to a limit: the oldest are dropped first. The clock is an argument. Values are
-- dropped by the generation, because single removals are slow in a nearly full table: Lua rebuilds the table at nearly
-- every insertion (spec/c/tables_test.c).

local GENERATIONS = 4 -- parts of the limit, and of the time

---@class riskscreen.TtlGeneration
---@field entries table<string, { value: any, number: integer, expires: number }>
---@field first integer the number of its first entry
---@field last integer
---@field ends number when a younger generation begins
---@field expires number the last of its entries

---@class riskscreen.TtlQueue
---@field private limit integer
---@field private ttl number seconds
---@field private now fun(): number
---@field private size integer entries of a generation
---@field private generations riskscreen.TtlGeneration[] the youngest first
---@field private count integer number of all insertions
local TtlQueue = {}
TtlQueue.__index = TtlQueue

-- Drops the generations whose entries have all expired or are beyond the limit.
local function drop(queue, now)
  local generations = queue.generations
  local oldest = generations[#generations]
  while oldest and (oldest.expires <= now or queue.count - oldest.last >= queue.limit) do
    generations[#generations] = nil
    oldest = generations[#generations]
  end
end

---The value of a key, or nil.
---@param key string
---@return any
function TtlQueue:get(key)
  local now, generations = self.now(), self.generations
  drop(self, now)
  for index = 1, #generations do
    local entry = generations[index].entries[key]
    if entry then
      local is_kept = entry.expires > now and self.count - entry.number < self.limit
      return is_kept and entry.value or nil
    end
  end
end

---Sets the value of a key.
---@param key string
---@param value any
function TtlQueue:put(key, value)
  local now = self.now()
  local young, number = self.generations[1], self.count + 1
  if not young or number - young.first >= self.size or young.ends <= now then
    young = { entries = {}, first = number, ends = now + self.ttl / GENERATIONS }
    table.insert(self.generations, 1, young)
  end
  self.count, young.last, young.expires = number, number, now + self.ttl
  young.entries[key] = { value = value, number = number, expires = young.expires }
  drop(self, now)
end

local M = {}

---An empty queue.
---@param limit integer values
---@param ttl number seconds
---@param now fun(): number seconds
---@return riskscreen.TtlQueue
function M.new(limit, ttl, now)
  local size = math.max(1, math.ceil(limit / GENERATIONS))
  return setmetatable({ limit = limit, ttl = ttl, now = now, size = size, generations = {}, count = 0 }, TtlQueue)
end

return M
