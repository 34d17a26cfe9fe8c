-- Which events have been handled, so that none is handled twice: the store of an inbox in one process. One that several
-- processes share has the same three methods.

local shelf = require "riskscreen.util.ttl_queue"

---@class riskscreen.WebhookStore
---@field claim fun(self, id: string): "new"|"busy"|"done"|nil, any takes the event if nobody has; or nil, why
---@field complete fun(self, id: string) the event is handled
---@field release fun(self, id: string) it is not, and may come again
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
---@param limit integer events remembered; of more, the oldest are forgotten
---@param ttl number seconds for which an event is remembered
---@param now fun(): number seconds
---@return riskscreen.WebhookStore
function M.new(limit, ttl, now)
  return setmetatable({ done = shelf.new(limit, ttl, now), claimed = {} }, Store)
end

return M
