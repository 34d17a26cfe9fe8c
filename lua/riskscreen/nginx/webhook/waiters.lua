-- Brings events to the transactions that await them, in any worker. Events are kept in a shared dict, under their
-- requestId; a worker in which somebody waits polls the dict. The inbox of one process has webhook/waiters.lua.

local json = require "riskscreen.json"

local LONGEST_ID = 1024 -- bytes of a requestId that anyone can await
local SEQUENCE = "sequence" -- counts the events that were kept
local LATE = 15 -- seconds without a poll after which the poller is taken for dead

-- A policy must see null strategies.
local decoder = json.decoder { null = "keep" }

---@class riskscreen.nginx.Waiter
---@field awaited riskscreen.Awaited
---@field ends number Unix seconds

---@class riskscreen.nginx.Waiters
---@field private dict riskscreen.nginx.DurableDict
---@field private ttl number seconds for which an event is kept
---@field private worker table
---@field private waiting table<riskscreen.nginx.Waiter, true> weak: the waiter of an aborted request is collected
---@field private since table<riskscreen.Awaited, number> weak: the marks
---@field private seen? number the last value of the sequence that this worker has looked at
---@field private poller? table the poller under way
---@field private polled_at? number Unix seconds of its last poll
local Waiters = {}
Waiters.__index = Waiters

local function list_name(request_id)
  local is_proper = type(request_id) == "string" and request_id ~= "" and #request_id <= LONGEST_ID
  return is_proper and "request:" .. request_id or nil
end

---A mark of this moment, for `expect`.
---@return number Unix seconds
function Waiters:mark()
  return self.worker.now()
end

---Keeps an event for the transaction that awaits it, now or later.
---@param event riskscreen.WebhookEvent
---@return boolean|nil ok
---@return string|nil message why it is not kept
function Waiters:add(event)
  local id, dict = event.webhookId, self.dict
  local ok, message = dict:put("event:" .. id, json.encode { at = self.worker.now(), event = event }, self.ttl)
  local list = list_name(event.data.requestId)
  if ok and list then
    ok, message = dict:append(list, id, self.ttl)
  end
  if ok then
    ok, message = dict:count(SEQUENCE)
  end
  if not ok then
    return nil, "the shared dict cannot keep the event: " .. message
  end
  self:poll()
  return true
end

-- Offers the kept events of one requestId, without those from before the transaction's submission.
local function offer_kept(self, awaited)
  local list = list_name(awaited.request_id)
  for _, id in ipairs(list and self.dict:list(list) or {}) do
    local text = self.dict:get("event:" .. id)
    local kept = type(text) == "string" and decoder:decode(text)
    if type(kept) == "table" and kept.at >= (self.since[awaited] or 0) then
      awaited:offer(kept.event)
    end
  end
end

---Offers the events that were kept before. Later ones are offered between `attend` and `leave`.
---@param awaited riskscreen.Awaited
---@param since? number a mark: events that were kept before it are about earlier transactions
---@return table hold
function Waiters:expect(awaited, since)
  self.since[awaited] = since
  offer_kept(self, awaited)
  return awaited
end

local function live_waiters(self)
  local now, list = self.worker.now(), {}
  for waiter in pairs(self.waiting) do
    if waiter.ends <= now then
      self.waiting[waiter] = nil
    else
      list[#list + 1] = waiter
    end
  end
  return list
end

---Offers every waiter of this worker the events that any worker has kept since the last poll.
function Waiters:poll()
  local count = self.dict:get(SEQUENCE)
  if self.poller and count ~= self.seen then
    self.seen = count
    for _, waiter in ipairs(live_waiters(self)) do
      offer_kept(self, waiter.awaited)
    end
  end
end

-- Polls until nobody waits any more. When nginx has too many timers it drops due ones silently: a poller that has not
-- polled for a while is replaced.
local function start_polling(self)
  local now = self.worker.now()
  if self.poller and math.abs(now - self.polled_at) < LATE then
    return
  end
  local poller = {}
  self.poller, self.polled_at, self.seen = poller, now, nil
  self.worker.watch(function()
    if self.poller ~= poller then
      return false
    end
    self.polled_at = self.worker.now()
    self:poll()
    return #live_waiters(self) > 0
  end, function()
    if self.poller == poller then
      self.poller = nil
    end
  end)
end

---Offers `awaited` the events that any worker keeps from now on, until `leave`, or for so long at most.
---@param awaited riskscreen.Awaited
---@param seconds number
---@return riskscreen.nginx.Waiter
function Waiters:attend(awaited, seconds)
  local waiter = { awaited = awaited, ends = self.worker.now() + seconds }
  self.waiting[waiter] = true
  offer_kept(self, awaited)
  start_polling(self)
  return waiter
end

---Ends `attend`.
---@param waiter riskscreen.nginx.Waiter
function Waiters:leave(waiter)
  self.waiting[waiter] = nil
end

local M = {}

---@class riskscreen.nginx.WaitersSettings
---@field dict riskscreen.nginx.DurableDict
---@field ttl number seconds for which an event is kept
---@field worker table `now()` and `watch(poll, ended)`, which calls poll now and then for as long as it returns true

---@param settings riskscreen.nginx.WaitersSettings
---@return riskscreen.nginx.Waiters
function M.new(settings)
  return setmetatable({
    dict = settings.dict,
    ttl = settings.ttl,
    worker = settings.worker,
    waiting = setmetatable({}, { __mode = "k" }),
    since = setmetatable({}, { __mode = "k" }),
  }, Waiters)
end

return M
