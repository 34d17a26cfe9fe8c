-- Passes events to the transactions that await them, by requestId or by customId. An event may come before its waiter:
-- events are kept for a time, up to a limit.

local tables = require "riskscreen.util.tables"
local ttl_queue = require "riskscreen.util.ttl_queue"

local MAX_EVENTS_OF_KEY = 16 -- events kept for one requestId or customId

---@class riskscreen.Awaited an awaited result
---@field request_id? string
---@field custom_id? string
---@field offer fun(self, event: riskscreen.WebhookEvent) takes the event if it belongs to the result

local UNKNOWN = {} -- the owner of an event that was offered to a waiter without a requestId
local NOBODY = {} -- the owner of an event that several waiters could claim

---@class riskscreen.webhook.Waiters
---@field by_custom_id boolean true: an event may be matched by its customId alone
---@field private keep_durably? fun(event: riskscreen.WebhookEvent): boolean|nil, riskscreen.Error|nil
---@field private owners table<riskscreen.WebhookEvent, any> weak: the requestId that an event belongs to
---@field private numbers table<riskscreen.WebhookEvent, integer> weak: the order in which events came
---@field private count integer of the events that came
---@field private kept riskscreen.TtlQueue lists of events by key
---@field private slots table<string, table<riskscreen.Awaited, true>> the waiters by key; weak, as are the sets: a set
---lives as long as one of its waiters
local Waiters = {}
Waiters.__index = Waiters

-- A prefix keeps the two kinds of identifier apart.
local function keys_of(request_id, custom_id)
  local function key(prefix, id)
    return type(id) == "string" and id ~= "" and prefix .. id or nil
  end
  return key("r:", request_id), key("c:", custom_id)
end

function Waiters:slot(key)
  local slot = self.slots[key]
  if not slot then
    slot = setmetatable({}, { __mode = "k" })
    self.slots[key] = slot
  end
  return slot
end

---A mark of this moment, for `expect`.
---@return integer
function Waiters:mark()
  return self.count
end

function Waiters:keep(key, event)
  local list = tables.copy(self.kept:get(key) or {})
  if #list == MAX_EVENTS_OF_KEY then
    table.remove(list, 1)
  end
  list[#list + 1] = event
  self.kept:put(key, list)
end

-- The waiters of a customId that an event may belong to.
local function candidates(slot, event)
  local found = {}
  for awaited in pairs(slot or {}) do
    if not awaited.request_id or not event.data.requestId or awaited.request_id == event.data.requestId then
      found[#found + 1] = awaited
    end
  end
  return found
end

-- The caller chooses customIds: when several transactions have the same one, the event is ambiguous and nobody gets it.
-- An event that once had an owner is never offered to another transaction.
function Waiters:offer_by_custom_id(slot, event, to)
  local found = candidates(slot, event)
  local one = #found == 1 and found[1]
  local owner = one and (one.request_id or UNKNOWN) or #found > 1 and NOBODY or nil
  self.owners[event] = self.owners[event] or owner
  if one and self.owners[event] == owner and (not to or to == one) then
    one:offer(event)
  end
end

---Offers an event to its waiters and keeps it for later ones, in memory alone.
---@param event riskscreen.WebhookEvent
function Waiters:take(event)
  self.count = self.count + 1
  self.numbers[event] = self.count
  local by_request, by_custom = keys_of(event.data.requestId, event.data.customId)
  for _, key in pairs { by_request, by_custom } do
    self:keep(key, event)
  end
  local slot = by_request and self.slots[by_request]
  for awaited in pairs(slot or {}) do
    awaited:offer(event)
    self.owners[event] = event.data.requestId
  end
  if not self.owners[event] and by_custom then
    self:offer_by_custom_id(self.slots[by_custom], event)
  end
end

---The same, after the event is where it lasts, too.
---@param event riskscreen.WebhookEvent
---@return boolean|nil kept
---@return riskscreen.Error|nil err
function Waiters:add(event)
  if self.keep_durably then
    local kept, err = self.keep_durably(event)
    if not kept then
      return nil, err
    end
  end
  self:take(event)
  return true
end

---Offers `awaited` the kept events at once, and later ones for as long as the caller keeps the returned value.
---@param awaited riskscreen.Awaited
---@param since? integer a mark: events that were kept before it are about earlier transactions
---@return table hold
function Waiters:expect(awaited, since)
  local by_request, by_custom = keys_of(awaited.request_id, awaited.custom_id)
  local hold = {}
  for _, key in pairs { by_request, by_custom } do
    local slot = self:slot(key)
    slot[awaited] = true
    hold[#hold + 1] = slot
  end
  for _, event in ipairs(by_request and self.kept:get(by_request) or {}) do
    if self.numbers[event] > (since or 0) then
      awaited:offer(event)
    end
  end
  for _, event in ipairs(by_custom and self.kept:get(by_custom) or {}) do
    if self.numbers[event] > (since or 0) then
      self:offer_by_custom_id(self.slots[by_custom], event, awaited)
    end
  end
  return hold
end

---Nothing to do in one process: events are offered as they come. An inbox that several processes share polls here.
function Waiters:attend() -- luacheck: ignore 212
  return nil
end

local M = { keys_of = keys_of }

---No events yet.
---@param limit integer
---@param ttl number seconds
---@param now fun(): number
---@param keep_durably? fun(event: riskscreen.WebhookEvent): boolean|nil, riskscreen.Error|nil
---@return riskscreen.webhook.Waiters
function M.new(limit, ttl, now, keep_durably)
  return setmetatable({
    by_custom_id = true,
    keep_durably = keep_durably,
    kept = ttl_queue.new(limit, ttl, now),
    slots = setmetatable({}, { __mode = "v" }),
    owners = setmetatable({}, { __mode = "k" }),
    numbers = setmetatable({}, { __mode = "k" }),
    count = 0,
  }, Waiters)
end

return M
