-- The places in which an inbox keeps events: this program's memory, or a store.

local errors = require "riskscreen.errors"
local kept = require "riskscreen.json.kept"
local runtime = require "riskscreen.runtime"
local take = require "riskscreen.util.take"
local time = require "riskscreen.util.time"
local ttl_queue = require "riskscreen.util.ttl_queue"

local MAX_EVENTS_OF_KEY = 16 -- events that the memory keeps for one requestId or customId
local KEYS_OF_EVENT = 2 -- a requestId and a customId
local SPACE = "webhook:events" -- of a store
local NAMES = "webhook:names" -- of the submissions that await events, and of those that had them
local OLD_SPACE = "webhook:early" -- where 0.9.0 kept events in a store of one machine
local LATEST = "latest moment" -- its key among the names
local END = "\1" -- ends the account and the requestId or customId in a key
local PAUSES = { 0.2, 2 } -- seconds between two looks at a store

---@class riskscreen.webhook.Memory: riskscreen.webhook.Place
---@field private events riskscreen.TtlQueue by their ids
---@field private ids riskscreen.TtlQueue lists of ids by requestId or customId
---@field private date fun(): number Unix seconds
local Memory = { by_custom_id = true }
Memory.__index = Memory

function Memory:time()
  return time.after(self.date(), self.latest)
end

function Memory:keep(keys, id, content, at)
  self.latest = at
  if keys[1] then
    self.events:put(id, content)
  end
  for _, key in ipairs(keys) do
    local list = {}
    for _, other in ipairs(self.ids:get(key) or {}) do
      list[#list + 1] = other ~= id and other or nil
    end
    if #list == MAX_EVENTS_OF_KEY then
      table.remove(list, 1)
    end
    list[#list + 1] = id
    self.ids:put(key, list)
  end
  return true
end

function Memory:find(key)
  local contents = {}
  for _, id in ipairs(self.ids:get(key) or {}) do
    contents[#contents + 1] = self.events:get(id)
  end
  return contents
end

---@class riskscreen.webhook.InStore: riskscreen.webhook.Place
---@field private store riskscreen.Store
---@field private prefix string of the keys
---@field private ttl number seconds
local InStore = { by_custom_id = true }
InStore.__index = InStore

function InStore:keep(keys, id, content, at)
  local changes = {}
  for index, key in ipairs(keys) do
    key = self.prefix .. key .. END .. id
    changes[index] = { kind = "put", space = SPACE, key = key, value = content, ttl = self.ttl }
  end
  changes[#changes + 1] = at and { kind = "put", space = NAMES, key = self.prefix .. LATEST, value = kept.encode(at) }
  return self.store:batch(changes)
end

-- Finds nothing where the store fails: the next look finds what this one has missed. Events of 0.9.0 have keys without
-- an account.
function InStore:find(key, is_first)
  local contents = {}
  local _, err = errors.result(runtime.tasks.pcall(function()
    for _, prefix in ipairs { self.prefix, is_first and "" or nil } do
      for _, content in self.store:space(SPACE):each { prefix = prefix .. key .. END } do
        contents[#contents + 1] = content
      end
    end
  end))
  errors.ensure(nil, err and err.kind ~= "storage" and err or nil)
  return contents
end

local function name_in_store(self, key, name, replaces)
  local space = self.store:space(NAMES)
  if replaces then
    return space:put(self.prefix .. key, name, self.ttl) and name or nil
  end
  return (take(space, self.prefix .. key, name, self.ttl))
end

function InStore:time()
  local date, err = self.store:time()
  local latest
  if date then
    latest, err = self.store:space(NAMES):get(self.prefix .. LATEST)
  end
  if err then
    return nil, err
  end
  return time.after(date, kept.decode(latest))
end

local M = {}

---@param early { limit: integer, ttl: number }
---@param clock fun(): number
---@param date? fun(): number Unix seconds
---@return riskscreen.webhook.Place
function M.memory(early, clock, date)
  return setmetatable({
    events = ttl_queue.new(early.limit, early.ttl, clock),
    ids = ttl_queue.new(KEYS_OF_EVENT * early.limit, early.ttl, clock),
    date = date or time.now,
  }, Memory)
end

---The start of an account's keys in a store.
---@param account string
---@return string
function M.prefix(account)
  return "account " .. account .. END
end

-- Moves the events that 0.9.0 has kept by their webhookId. They came at a time that is not known.
local function adopt(place, keys_of)
  local old = place.store:space(OLD_SPACE)
  for key, content in old:each() do
    local event = kept.decode(content)
    if type(event) == "table" and type(event.data) == "table" then
      place:keep(keys_of(event.data), event.webhookId, kept.encode { event = event })
    end
    old:delete(key)
  end
end

---@param store riskscreen.Store
---@param account string
---@param ttl number seconds
---@param keys_of fun(ids: table): string[] of an event's data
---@return riskscreen.webhook.Place
function M.store(store, account, ttl, keys_of)
  local place = setmetatable({ store = store, prefix = M.prefix(account), ttl = ttl }, InStore)
  if store:is_shared() then
    place.pauses, place.name = PAUSES, name_in_store
  else
    adopt(place, keys_of)
  end
  return place
end

return M
