-- The events of an inbox in a store: which were handled, and those whose transaction is not awaited yet. So neither is
-- lost when the program starts again.

local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local shared = require "riskscreen.webhook.shared_events"
local waiters = require "riskscreen.webhook.waiters"

local HANDLED = "webhook:handled"
local EARLY = "webhook:early"
local DONE = "done"
local LEASE = 300 -- seconds after which another program may handle an event that one has begun

---@class riskscreen.webhook.DurableStore: riskscreen.WebhookStore
---@field private space riskscreen.StoreSpace
---@field private ttl number seconds
---@field private token string of this program
local Store = {}
Store.__index = Store

local function key_of(id)
  return "id " .. id
end

local function message_of(err)
  return "the store cannot say whether the event was handled: " .. tostring(err)
end

function Store:claim(id)
  local added, err = self.space:add(key_of(id), self.token, LEASE)
  if added then
    return "new"
  elseif err then
    return nil, message_of(err)
  end
  local value
  value, err = self.space:get(key_of(id))
  if err then
    return nil, message_of(err)
  elseif not value then
    return self:claim(id) -- it was forgotten in between
  end
  return value == DONE and "done" or "busy"
end

function Store:complete(id)
  local kept, err = self.space:put(key_of(id), DONE, self.ttl)
  if not kept then
    io.stderr:write("riskscreen: a handled webhook cannot be remembered: ", tostring(err), "\n")
  end
end

function Store:release(id)
  self.space:delete(key_of(id), self.token)
end

-- Waiters whose events are in a store, too. They begin with the events that an earlier program has kept.
local function new_waiters(store, early, clock)
  local space = store:space(EARLY)
  local awaited = waiters.new(early.limit, early.ttl, clock, function(event)
    local content, message = json.encode(event)
    if not content then
      return nil, errors.new("storage", "the event cannot be kept: " .. message, { reason = "other" })
    end
    return space:put(key_of(event.webhookId), content, early.ttl)
  end)
  for _, content in space:each() do
    local event = json.decode(content)
    if type(event) == "table" and type(event.data) == "table" then
      awaited:take(event)
    end
  end
  return awaited
end

local M = {}

---@param store riskscreen.Store
---@param remember { ttl: number }
---@param early { limit: integer, ttl: number }
---@param clock fun(): number
---@return riskscreen.WebhookStore
---@return riskscreen.webhook.Waiters|riskscreen.webhook.SharedWaiters
function M.new(store, remember, early, clock)
  local handled = setmetatable({
    space = store:space(HANDLED),
    ttl = remember.ttl,
    token = ("claim %s %d"):format(tostring({}), os.time()),
  }, Store)
  local make_waiters = store:is_shared() and shared.new or new_waiters
  return handled, make_waiters(store, early, clock)
end

return M
