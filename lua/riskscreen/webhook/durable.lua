-- The events of an inbox in a store: which were handled, and those whose transaction is not awaited yet. So neither is
-- lost when the program starts again.

local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local shared = require "riskscreen.webhook.shared"
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

---Waiters whose events are in a store, too.
---@class riskscreen.webhook.DurableWaiters
---@field by_custom_id boolean
---@field private live riskscreen.webhook.Waiters of this program
---@field private space riskscreen.StoreSpace
---@field private ttl number seconds
local Waiters = {}
Waiters.__index = Waiters

function Waiters:mark()
  return self.live:mark()
end

function Waiters:add(event)
  local content, message = json.encode(event)
  if not content then
    return nil, errors.new("storage", "the event cannot be kept: " .. message, { reason = "other" })
  end
  local kept, err = self.space:put(key_of(event.webhookId), content, self.ttl)
  if not kept then
    return nil, err
  end
  return self.live:add(event)
end

function Waiters:expect(awaited, since)
  return self.live:expect(awaited, since)
end

function Waiters:attend(...)
  return self.live:attend(...)
end

-- Offers what an earlier program has kept.
local function restore(self)
  for _, content in self.space:each() do
    local event = json.decode(content)
    if type(event) == "table" and type(event.data) == "table" then
      self.live:add(event)
    end
  end
end

local M = {}

---@param store riskscreen.Store
---@param remember { ttl: number }
---@param early { limit: integer, ttl: number }
---@param clock fun(): number
---@return riskscreen.WebhookStore
---@return riskscreen.webhook.DurableWaiters|riskscreen.webhook.SharedWaiters
function M.new(store, remember, early, clock)
  local handled = setmetatable({
    space = store:space(HANDLED),
    ttl = remember.ttl,
    token = ("claim %s %d"):format(tostring({}), os.time()),
  }, Store)
  if store:is_shared() then
    return handled, shared.new(store, early, clock)
  end
  local awaited = setmetatable({
    by_custom_id = true,
    live = waiters.new(early.limit, early.ttl, clock),
    space = store:space(EARLY),
    ttl = early.ttl,
  }, Waiters)
  restore(awaited)
  return handled, awaited
end

return M
