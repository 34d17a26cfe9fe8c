-- The events that were handled, over all workers: the store of an inbox, in a shared dict. A claim expires with the
-- worker that took it. When the store is full, the oldest handled event is forgotten first.

local tables = require "riskscreen.util.tables"

local FORGOTTEN_AT_ONCE = 64 -- events that are forgotten at once
local TOKEN = "%010d%014d%012d" -- worker, time, serial number
-- As long as a token: marking an event as handled must not need more room.
local DONE = "done" .. ("-"):rep(#TOKEN:format(0, 0, 0) - #"done")
local QUEUE = "queue" -- the ids of events that were or are being handled, the oldest first
local RENEWALS = 3 -- within a lease

---@class riskscreen.nginx.WebhookStore: riskscreen.WebhookStore
---@field private dict riskscreen.nginx.DurableDict
---@field private limit integer
---@field private ttl number seconds
---@field private lease number seconds
---@field private worker table pid, now, beside, warn
---@field private claims table<string, { token: string, stop: fun() }> of this worker, by id
---@field private serial integer
local Store = {}
Store.__index = Store

local function key_of(id)
  return "claim:" .. id
end

local function new_token(self)
  self.serial = self.serial + 1
  return TOKEN:format(self.worker.pid(), self.worker.now() * 1000, self.serial)
end

-- Renews the claim for as long as its worker handles the event.
local function hold(self, id, token)
  local key = key_of(id)
  self.claims[id] = {
    token = token,
    stop = self.worker.beside(self.lease / RENEWALS, function()
      if self.dict:get(key) == token then
        self.dict:renew(key, self.lease)
      end
    end),
  }
end

-- Ends this worker's claim.
local function end_claim(self, id)
  local claim = self.claims[id]
  self.claims[id] = nil
  if claim then
    claim.stop()
    return claim.token
  end
end

-- Forgets the oldest event if it is handled. Returns whether that made room.
local function forget_oldest(self)
  local id = self.dict:dequeue(QUEUE)
  local state = id and self.dict:get(key_of(id))
  if state == DONE then
    self.dict:forget(key_of(id))
  elseif state then
    -- It is being handled now, so it stays.
    self.dict:enqueue(QUEUE, id)
    return false
  end
  return id ~= nil
end

local function forget_some(self)
  local forgotten = false
  for _ = 1, FORGOTTEN_AT_ONCE do
    forgotten = forget_oldest(self) or forgotten
  end
  return forgotten
end

---@param id string
---@return "new"|"busy"|"done"|nil state
---@return string|nil message
function Store:claim(id)
  local key, token = key_of(id), new_token(self)
  local ok, message = self.dict:add(key, token, self.lease)
  if not ok and message == "exists" then
    return self.dict:get(key) == DONE and "done" or "busy"
  end
  local length
  if ok then
    -- Queued now, because there may be no room once the event is handled.
    length, message = self.dict:enqueue(QUEUE, id)
  end
  if not length then
    self.dict:forget(key)
    return nil, "the shared dict cannot take the event: " .. message
  end
  for _ = 1, math.min(length - self.limit, FORGOTTEN_AT_ONCE) do
    forget_oldest(self)
  end
  hold(self, id, token)
  return "new"
end

---@param id string
function Store:complete(id)
  end_claim(self, id)
  local ok, message = self.dict:put(key_of(id), DONE, self.ttl)
  if not ok then
    self.worker.warn("a handled webhook cannot be remembered: " .. message)
  end
end

---@param id string
function Store:release(id)
  local token = end_claim(self, id)
  if token and self.dict:get(key_of(id)) == token then
    self.dict:forget(key_of(id))
  end
end

local M = {}

---@class riskscreen.nginx.WebhookStoreSettings
---@field dict riskscreen.nginx.DurableDict
---@field limit integer events remembered
---@field ttl number seconds for which an event is remembered
---@field lease number seconds after which the claim of a worker that has ended expires
---@field worker table `pid()`, `now()`, `warn(message)`, and `beside(seconds, fn)`, which calls fn at that interval and
---returns the function that stops it

---@param settings riskscreen.nginx.WebhookStoreSettings
---@return riskscreen.nginx.WebhookStore
function M.new(settings)
  local store = tables.merge(settings, { claims = {}, serial = 0 })
  store.dict.give_up = function()
    return forget_some(store)
  end
  return setmetatable(store, Store)
end

return M
