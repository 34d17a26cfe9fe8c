-- Brings events to the transactions that await them, by requestId or by customId, whichever comes first: the event or
-- the one who awaits it. Events are kept for a time and no more than so many.

local shelf = require "riskscreen.util.ttl_queue"

local MAX_EVENTS_OF_KEY = 16 -- events kept for one requestId or customId

---@class riskscreen.Awaited what awaits a result
---@field request_id? string
---@field custom_id? string
---@field offer fun(self, event: riskscreen.WebhookEvent) takes the event if it is its own

---@class riskscreen.inbox.Slot whoever awaits one requestId or one customId
---@field awaited table<riskscreen.Awaited, true> weak: nobody is kept from being collected

local UNKNOWN = {} -- the owner of an event that was offered to one without a requestId
local NOBODY = {} -- of one that several could have meant

---@class riskscreen.inbox.Events
---@field private owners table<riskscreen.WebhookEvent, any> weak: whose those are that were offered by customId
---@field private shelf riskscreen.inbox.Shelf lists of events by key
---@field private slots table<string, riskscreen.inbox.Slot> weak: a slot lives as long as one of those in it
local Events = {}
Events.__index = Events

-- A prefix keeps the two kinds of identifier apart.
local function keys_of(request_id, custom_id)
  local function key(prefix, id)
    return type(id) == "string" and id ~= "" and prefix .. id or nil
  end
  return key("r:", request_id), key("c:", custom_id)
end

local function event_keys(event)
  return keys_of(event.data.requestId, event.data.customId)
end

function Events:slot(key)
  local slot = self.slots[key]
  if not slot then
    slot = { awaited = setmetatable({}, { __mode = "k" }) }
    self.slots[key] = slot
  end
  return slot
end

function Events:keep(key, event)
  local list = {}
  for _, earlier in ipairs(self.shelf:get(key) or {}) do
    list[#list + 1] = earlier
  end
  if #list == MAX_EVENTS_OF_KEY then
    table.remove(list, 1)
  end
  list[#list + 1] = event
  self.shelf:put(key, list)
end

local function others(slot, event)
  local found = {}
  for awaited in pairs(slot and slot.awaited or {}) do
    if not awaited.request_id or not event.data.requestId or awaited.request_id == event.data.requestId then
      found[#found + 1] = awaited
    end
  end
  return found
end

-- A customId is the caller's own: where several transactions carry it, the event may be any one's and is nobody's.
-- Once somebody was there to own an event it is nobody else's, whoever comes later.
function Events:offer_by_custom_id(slot, event, to)
  local found = others(slot, event)
  local one = #found == 1 and found[1]
  local owner = one and (one.request_id or UNKNOWN) or #found > 1 and NOBODY or nil
  self.owners[event] = self.owners[event] or owner
  if one and self.owners[event] == owner and (not to or to == one) then
    one:offer(event)
  end
end

---Brings an event to whoever awaits it now, and keeps it for those who will.
---@param event riskscreen.WebhookEvent
---@return boolean kept
function Events:add(event)
  local by_request, by_custom = event_keys(event)
  for _, key in pairs { by_request, by_custom } do
    self:keep(key, event)
  end
  local slot = by_request and self.slots[by_request]
  for awaited in pairs(slot and slot.awaited or {}) do
    awaited:offer(event)
    self.owners[event] = event.data.requestId
  end
  if not self.owners[event] and by_custom then
    self:offer_by_custom_id(self.slots[by_custom], event)
  end
  return true
end

---From now on, for as long as the returned value is kept, events are offered to `awaited`; at once those kept.
---@param awaited riskscreen.Awaited
---@return table hold
function Events:expect(awaited)
  local by_request, by_custom = keys_of(awaited.request_id, awaited.custom_id)
  local hold = {}
  for _, key in pairs { by_request, by_custom } do
    local slot = self:slot(key)
    slot.awaited[awaited] = true
    hold[#hold + 1] = slot
  end
  for _, event in ipairs(by_request and self.shelf:get(by_request) or {}) do
    awaited:offer(event)
  end
  for _, event in ipairs(by_custom and self.shelf:get(by_custom) or {}) do
    self:offer_by_custom_id(self.slots[by_custom], event, awaited)
  end
  return hold
end

---Somebody waits: events are offered as they come, whether or not one does.
function Events:attend() -- luacheck: ignore 212
  return nil
end

local M = {}

---No events yet.
---@param limit integer
---@param ttl number seconds
---@param now fun(): number
---@return riskscreen.inbox.Events
function M.new(limit, ttl, now)
  return setmetatable({
    shelf = shelf.new(limit, ttl, now),
    slots = setmetatable({}, { __mode = "v" }),
    owners = setmetatable({}, { __mode = "k" }),
  }, Events)
end

return M
