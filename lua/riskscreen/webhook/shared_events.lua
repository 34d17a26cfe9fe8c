-- The events of an inbox in a store that programs on several machines share. Any of them may receive an event, and any
-- may await it. A program that waits looks for new events in the store.

local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local runtime = require "riskscreen.runtime"
local ttl_queue = require "riskscreen.util.ttl_queue"
local waiters = require "riskscreen.webhook.waiters"

local EVENTS = "webhook:events" -- contents by requestId or customId, and webhookId
local END = "\1" -- ends the requestId or customId in a key
local LONGEST_ID = 400 -- bytes of an identifier that anyone can await
local FIRST_POLL, GROWTH, LONGEST_POLL = 0.2, 1.5, 2 -- seconds between two looks at the store

-- A policy must see null strategies.
local decoder = json.decoder { null = "keep" }

---@class riskscreen.webhook.SharedWaiters
---@field by_custom_id boolean
---@field private live riskscreen.webhook.Waiters of this program
---@field private store riskscreen.Store
---@field private space riskscreen.StoreSpace
---@field private ttl number seconds
---@field private brought riskscreen.TtlQueue the webhookIds of events that `live` has
local Waiters = {}
Waiters.__index = Waiters

local function keys_of(request_id, custom_id)
  local keys = {}
  for _, key in pairs { waiters.keys_of(request_id, custom_id) } do
    if #key <= LONGEST_ID and not key:find "[%z\1]" then
      keys[#keys + 1] = key .. END
    end
  end
  return keys
end

---A mark of this moment, for `expect`: by the clock of the store, which is the same for all programs.
---@return { live: any, time: number }
function Waiters:mark()
  return { live = self.live:mark(), time = self.store:time() or os.time() }
end

function Waiters:add(event)
  local id, changes = event.webhookId, {}
  local now, err = self.store:time()
  if not now then
    return nil, err
  end
  local content, message = json.encode { at = now, event = event }
  if not content then
    return nil, errors.new("storage", "the event cannot be kept: " .. message, { reason = "other" })
  end
  for index, key in ipairs(keys_of(event.data.requestId, event.data.customId)) do
    changes[index] = { kind = "put", space = EVENTS, key = key .. id, value = content, ttl = self.ttl }
  end
  local kept
  kept, err = self.store:batch(changes)
  if not kept then
    return nil, err
  end
  self.brought:put(id, true)
  self.live:take(event)
  return true
end

-- Takes events of the store that are new here and about what somebody awaits.
local function bring(self, awaited, since)
  for _, key in ipairs(keys_of(awaited.request_id, awaited.custom_id)) do
    for _, content in self.space:each { prefix = key } do
      local kept = decoder:decode(content)
      local event = type(kept) == "table" and kept.event
      local is_event = type(event) == "table" and type(event.data) == "table" and type(event.webhookId) == "string"
      if is_event and type(kept.at) == "number" and kept.at >= since and not self.brought:get(event.webhookId) then
        self.brought:put(event.webhookId, true)
        self.live:take(event)
      end
    end
  end
end

-- The same, where the store may fail: the next look finds what this one has missed.
local function try_to_bring(self, awaited, since)
  local ok, failure = pcall(runtime.tasks.iterator(function()
    bring(self, awaited, since)
    return true
  end))
  if not ok and not (errors.is(failure) and failure.kind == "storage") then
    error(failure, 0)
  end
end

---Offers `awaited` the events of the store, and the events that this program receives.
---@param awaited riskscreen.Awaited
---@param since? { live: any, time: number } a mark: earlier events are about earlier transactions
---@return table hold
function Waiters:expect(awaited, since)
  self.since[awaited] = since and since.time
  local hold = self.live:expect(awaited, since and since.live)
  try_to_bring(self, awaited, since and since.time or 0)
  return hold
end

-- Looks for events until they are no longer awaited.
local function poll(self, waiting)
  local pause = FIRST_POLL
  while true do
    runtime.sleep(math.min(pause, math.max(waiting.ends - runtime.now(), 0)))
    if waiting.left or runtime.now() >= waiting.ends then
      return
    end
    try_to_bring(self, waiting.awaited, waiting.since)
    pause = math.min(pause * GROWTH, LONGEST_POLL)
  end
end

---Offers `awaited` the events that any program keeps from now on, until `leave`, or for so long at most.
---@param awaited riskscreen.Awaited
---@param seconds number
---@return table waiting
function Waiters:attend(awaited, seconds)
  local waiting = { awaited = awaited, ends = runtime.now() + seconds, since = self.since[awaited] or 0 }
  runtime.defer(poll, self, waiting)
  return waiting
end

---Ends `attend`.
---@param waiting table
function Waiters:leave(waiting) -- luacheck: ignore 212
  waiting.left = true
end

local M = {}

---@param store riskscreen.Store
---@param early { limit: integer, ttl: number }
---@param clock fun(): number
---@return riskscreen.webhook.SharedWaiters
function M.new(store, early, clock)
  return setmetatable({
    by_custom_id = true,
    live = waiters.new(early.limit, early.ttl, clock),
    store = store,
    space = store:space(EVENTS),
    ttl = early.ttl,
    brought = ttl_queue.new(early.limit, early.ttl, clock),
    since = setmetatable({}, { __mode = "k" }),
  }, Waiters)
end

return M
