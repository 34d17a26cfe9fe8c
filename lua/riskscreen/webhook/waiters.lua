-- Brings events to the transactions that await them. An event may come before its transaction is awaited, so events are
-- kept for a time in a place of the inbox (places.lua, nginx/webhook/dict.lua). If other programs or workers add events
-- to the place, a wait looks there again and again.

local digest = require "riskscreen.address.digest"
local errors = require "riskscreen.errors"
local kept = require "riskscreen.json.kept"
local runtime = require "riskscreen.runtime"
local submissions = require "riskscreen.kyt.submission"
local text = require "riskscreen.util.text"
local time = require "riskscreen.util.time"
local ttl_queue = require "riskscreen.util.ttl_queue"

local LONGEST_ID = 200 -- bytes of an identifier in a key; of a longer one the key has a digest
local MAX_OWNERS = 10000 -- events whose owner is remembered
local GROWTH = 1.5 -- from one pause between two looks to the next

---@class riskscreen.Awaited an awaited result
---@field submission riskscreen.Submission
---@field offer fun(self, event: riskscreen.WebhookEvent) takes the event if it belongs to the submission

---@class riskscreen.webhook.Place where events are kept
---@field by_custom_id boolean whether an event may be found by its customId alone
---@field pauses? number[] the first and the longest pause between two looks, where others add events, too
---@field keep fun(self, keys: string[], id: string, content: string, at?: number): boolean|nil, any adds an event of a
---moment, or replaces it
---@field find fun(self, key: string, is_first: boolean): string[] what was kept under a key, the oldest first
---@field time fun(self): number|nil, any the next moment in Unix seconds, for all that share the place
---@field latest? number the latest moment, where all moments of the place are this program's
---@field sequence? fun(self): any another value after each event
---@field name? fun(self, key: string, name: string, replaces?: boolean): string|nil the name of a key, which is the
---first one that it was given; where others add events

local NOBODY = "nobody" -- the owner of an event that several submissions could claim

---@class riskscreen.webhook.Waiters
---@field by_custom_id boolean
---@field private place riskscreen.webhook.Place
---@field private owners riskscreen.TtlQueue names of submissions by the id of the event that belongs to them
---@field private slots table<string, table<riskscreen.Awaited, true>> the waiters by key; weak, as are the sets: a set
---lives as long as one of its waiters
---@field private seen table<riskscreen.Awaited, table<string, true>> weak: the events that were offered
local Waiters = {}
Waiters.__index = Waiters

-- A prefix keeps the kinds of identifier apart.
local function key_of(prefix, id)
  local is_short = #id <= LONGEST_ID and not id:find "[%z\1]"
  return prefix .. (is_short and ":" .. id or "#" .. text.hex(digest.sha256(id)))
end

-- The keys of an event or of a submission, the requestId's first.
local function keys_of(ids)
  local keys = {}
  for _, name in ipairs { "requestId", "customId" } do
    local id = ids[name]
    if type(id) == "string" and id ~= "" then
      keys[#keys + 1] = key_of(name:sub(1, 1), id)
    end
  end
  return keys
end

---The moment of a submission, by the clock of the events: a date that is set back later hides none of them.
---@return number
function Waiters:mark()
  local at = self.place:time() or time.now()
  self.place:keep({}, "", "", at)
  return at
end

-- Those who may claim an event: by its requestId, or where nobody has it, by its customId. Returns also the key.
local function claimants_of(self, event)
  for _, key in ipairs(keys_of(event.data)) do
    local found = {}
    for awaited in pairs(self.slots[key] or {}) do
      if submissions.matches(awaited.submission, event.data, "webhook") ~= false then
        found[#found + 1] = awaited
      end
    end
    if found[1] then
      return found, key
    end
  end
  return {}
end

-- Tells other programs which submission awaits events of a key. Returns its name, or NOBODY where submissions of two
-- names do; nil where the place fails.
local function claim(self, key, name)
  local known = self.place:name("awaits " .. key, name)
  if known and known ~= name then
    known = self.place:name("awaits " .. key, NOBODY, true)
  end
  return known
end

-- The name of the submission that an event belongs to. Nobody gets an event that several submissions could claim: the
-- caller chooses customIds, and may choose one twice. An event that once had an owner goes to no other submission.
local function owner_of(self, id, claimants, key)
  local owner = self.owners:get(id)
  if owner ~= nil then
    return owner
  end
  owner = submissions.name(claimants[1].submission)
  for _, awaited in ipairs(claimants) do
    owner = owner == submissions.name(awaited.submission) and owner or NOBODY
  end
  if self.place.name then
    owner = claim(self, key, owner)
    owner = owner and self.place:name(key_of("owner ", id), owner)
  end
  if owner then
    self.owners:put(id, owner)
  end
  return owner
end

-- Offers an event to its waiters, or to one of them. Where the place fails, a later look does so.
local function deliver(self, event, id, to)
  local claimants, key = claimants_of(self, event)
  local owner = key and owner_of(self, id, claimants, key)
  for _, awaited in ipairs(claimants) do
    local seen = self.seen[awaited]
    if not seen[id] and (not to or to == awaited) and owner == submissions.name(awaited.submission) then
      seen[id] = true
      awaited:offer(event)
    end
  end
end

---Keeps an event and offers it to its waiters.
---@param event riskscreen.WebhookEvent
---@param id string of the event
---@return boolean|nil kept
---@return any err
function Waiters:add(event, id)
  local at, err = self.place:time()
  if not at then
    return nil, err
  end
  local content, message = kept.encode { at = at, id = id, event = event }
  if not content then
    return nil, errors.new("storage", "the event cannot be kept: " .. message, { reason = "other" })
  end
  local added
  added, err = self.place:keep(keys_of(event.data), id, content, at)
  if not added then
    return nil, err
  end
  deliver(self, event, id)
  return true
end

-- Whether a kept event is not about an earlier transaction. A moment that this place has not reached is one of another
-- program, whose clock is ahead: it hides nothing.
local function is_later(self, entry, submission)
  local at, latest = submission.at, self.place.latest
  return not at or latest and at > latest or type(entry.at) == "number" and entry.at >= at
end

local function look(self, awaited, is_first, is_new)
  for _, key in ipairs(keys_of(awaited.submission)) do
    if is_new and self.place.name then
      claim(self, key, submissions.name(awaited.submission))
    end
    for _, content in ipairs(self.place:find(key, is_first)) do
      local entry = kept.decode(content)
      local event = type(entry) == "table" and entry.event
      if type(event) == "table" and type(event.data) == "table" and is_later(self, entry, awaited.submission) then
        deliver(self, event, entry.id or event.webhookId, awaited)
      end
    end
  end
end

---Offers `awaited` the kept events at once, and later ones for as long as the caller keeps the returned value.
---@param awaited riskscreen.Awaited
---@return table hold
function Waiters:expect(awaited)
  local hold = {}
  self.seen[awaited] = {}
  for _, key in ipairs(keys_of(awaited.submission)) do
    local slot = self.slots[key] or setmetatable({}, { __mode = "k" })
    self.slots[key], slot[awaited] = slot, true
    hold[#hold + 1] = slot
  end
  look(self, awaited, true, true)
  return hold
end

---@class riskscreen.webhook.Looking how an awaited result is looked for
---@field awaited riskscreen.Awaited
---@field waits boolean whether a look may wait for the store
---@field pause number seconds until the next look
---@field at? number when it is due, by the clock of who looks
---@field failure? any what the last look has raised
---@field private sequence? any of the place at the last look

---Begins to look for events that other programs or workers keep.
---@param awaited riskscreen.Awaited
---@return riskscreen.webhook.Looking|nil nil where all events come to this program
function Waiters:attend(awaited)
  local place = self.place
  if place.pauses then
    look(self, awaited, false, true)
    return { awaited = awaited, pause = place.pauses[1], waits = not place.sequence }
  end
end

---Offers the events that others have kept since the last look.
---@param looking riskscreen.webhook.Looking
function Waiters:look(looking)
  local sequence = self.place.sequence and self.place:sequence()
  if sequence == nil or sequence ~= looking.sequence then
    looking.sequence = sequence
    look(self, looking.awaited, false)
  end
  looking.pause = math.min(looking.pause * GROWTH, self.place.pauses[2])
end

local M = { keys_of = keys_of }

---@param place riskscreen.webhook.Place
---@param ttl number seconds for which the place keeps events
---@return riskscreen.webhook.Waiters
function M.new(place, ttl)
  return setmetatable({
    by_custom_id = place.by_custom_id,
    place = place,
    owners = ttl_queue.new(MAX_OWNERS, ttl, runtime.now),
    slots = setmetatable({}, { __mode = "v" }),
    seen = setmetatable({}, { __mode = "k" }),
  }, Waiters)
end

return M
