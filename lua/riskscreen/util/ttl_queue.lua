-- Keeps values by key for a time, and no more than so many: the oldest go first. Time is given to it.

---@class riskscreen.inbox.Shelf
---@field private limit integer
---@field private ttl number seconds
---@field private now fun(): number
---@field private nodes table<string, { key: string, value: any, expires: number }>
---@field private queue table<integer, table> the nodes in the order in which they were put, replaced ones included
---@field private head integer
---@field private tail integer
local Shelf = {}
Shelf.__index = Shelf

function Shelf:drop_oldest()
  local node = self.queue[self.head]
  self.queue[self.head] = nil
  self.head = self.head + 1
  if self.nodes[node.key] == node then
    self.nodes[node.key] = nil
  end
end

function Shelf:drop_expired()
  local now = self.now()
  while self.head <= self.tail and self.queue[self.head].expires <= now do
    self:drop_oldest()
  end
end

---The value of a key, or nil.
---@param key string
---@return any
function Shelf:get(key)
  self:drop_expired()
  local node = self.nodes[key]
  return node and node.value
end

---Keeps a value from now on, in place of the one before.
---@param key string
---@param value any
function Shelf:put(key, value)
  self:drop_expired()
  local node = { key = key, value = value, expires = self.now() + self.ttl }
  self.nodes[key] = node
  self.tail = self.tail + 1
  self.queue[self.tail] = node
  while self.tail - self.head + 1 > self.limit do
    self:drop_oldest()
  end
end

local M = {}

---An empty shelf.
---@param limit integer values
---@param ttl number seconds
---@param now fun(): number seconds
---@return riskscreen.inbox.Shelf
function M.new(limit, ttl, now)
  return setmetatable({ limit = limit, ttl = ttl, now = now, nodes = {}, queue = {}, head = 1, tail = 0 }, Shelf)
end

return M
