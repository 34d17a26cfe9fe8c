-- Keeps values by key for a time, up to a limit: the oldest are dropped first. The clock is an argument.

---@class riskscreen.TtlQueue
---@field private limit integer
---@field private ttl number seconds
---@field private now fun(): number
---@field private nodes table<string, { key: string, value: any, expires: number }>
---@field private queue table<integer, table> the nodes in the order of their insertion, replaced ones included
---@field private head integer
---@field private tail integer
local TtlQueue = {}
TtlQueue.__index = TtlQueue

function TtlQueue:drop_oldest()
  local node = self.queue[self.head]
  self.queue[self.head] = nil
  self.head = self.head + 1
  if self.nodes[node.key] == node then
    self.nodes[node.key] = nil
  end
end

function TtlQueue:drop_expired()
  local now = self.now()
  while self.head <= self.tail and self.queue[self.head].expires <= now do
    self:drop_oldest()
  end
end

---The value of a key, or nil.
---@param key string
---@return any
function TtlQueue:get(key)
  self:drop_expired()
  local node = self.nodes[key]
  return node and node.value
end

---Sets the value of a key.
---@param key string
---@param value any
function TtlQueue:put(key, value)
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

---An empty queue.
---@param limit integer values
---@param ttl number seconds
---@param now fun(): number seconds
---@return riskscreen.TtlQueue
function M.new(limit, ttl, now)
  return setmetatable({ limit = limit, ttl = ttl, now = now, nodes = {}, queue = {}, head = 1, tail = 0 }, TtlQueue)
end

return M
