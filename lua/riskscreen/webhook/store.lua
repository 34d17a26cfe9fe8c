-- The events that have been handled, so that none is handled twice: the store of an inbox in one process. A store that
-- several processes share has the same three methods.

local ttl_queue = require "riskscreen.util.ttl_queue"

---@class riskscreen.WebhookStore
---@field claim fun(self, id: string): "new"|"busy"|"done"|nil, any claims the event; or nil and the reason
---@field complete fun(self, id: string) marks the event as handled
---@field release fun(self, id: string) gives up the claim: the event may come again
local Store = {}
Store.__index = Store

function Store:claim(id)
  if self.done:get(id) then
    return "done"
  elseif self.claimed[id] then
    return "busy"
  end
  self.claimed[id] = true
  return "new"
end

function Store:complete(id)
  self.claimed[id] = nil
  self.done:put(id, true)
end

function Store:release(id)
  self.claimed[id] = nil
end

local M = {}

---A store in memory.
---@param limit integer the most events that are remembered; the oldest are dropped first
---@param ttl number seconds for which an event is remembered
---@param now fun(): number seconds
---@return riskscreen.WebhookStore
function M.new(limit, ttl, now)
  return setmetatable({ done = ttl_queue.new(limit, ttl, now), claimed = {} }, Store)
end

return M
