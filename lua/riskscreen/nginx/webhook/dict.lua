-- A shared dict as the space of an inbox's claims, and as the place of its events. A full dict drops
-- expired values and the oldest handled events. It never drops events that wait; then the write fails.

local claims = require "riskscreen.webhook.claims"
local time = require "riskscreen.util.time"

local LONGEST_LIST = 16 -- events of one requestId; of more, the oldest are removed
local EXPIRED_AT_ONCE = 256 -- values that are removed at once
local FORGOTTEN_AT_ONCE = 64 -- handled events that are forgotten at once
local ROUNDS = 16 -- attempts to make room for one value
local QUEUE = "claims" -- the marks and the keys of claims, the oldest first
local MARK_SIZE = 8 -- bytes: the end of a claim, also when it is done. A later claim of the event has another one
local END_SIZE = 14 -- bytes: the moment at which a claim that is not done ends
local TAKEN = "taken:" -- and a claim that has ended: one worker has taken it over, or removes it
local REMOVAL = 1 -- second for which a worker that removes a claim keeps others from it
local SEQUENCE = "sequence" -- counts the events that were kept
local LATEST = "latest" -- the latest moment of an event or a submission

---@class riskscreen.nginx.InboxDict: riskscreen.webhook.Place
---@field private dict table an ngx.shared dict with no other user
---@field private settings { limit: integer, ttl: number, poll: number, time: fun(): number,
---now: fun(): number }
local Dict = { by_custom_id = false }
Dict.__index = Dict

-- A claim as it is kept. Its end is in the text, by the monotonic clock: the dict's own expiry follows the date.
local function with_end(self, value, seconds)
  return value .. ("%014.3f"):format(self.settings.now() + seconds)
end

-- The claim in a text, and whether it counts: the event was handled, or the claim has not ended.
local function claim_in(self, content)
  local value = content:sub(1, -END_SIZE - 1)
  return value, claims.is_done(value) or self.settings.now() < (tonumber(content:sub(-END_SIZE)) or math.huge)
end

-- Whether this worker, and no other one, may take over or remove a claim that has ended.
local function may_take_over(self, key, content, seconds)
  return not select(2, claim_in(self, content))
    and self.dict:safe_add(TAKEN .. content, true, seconds)
    and self.dict:get(key) == content
end

-- Forgets the oldest event if it is handled, or its worker has died. Returns whether that made room.
local function forget_oldest(self)
  local entry = self.dict:lpop(QUEUE)
  local key = entry and entry:sub(MARK_SIZE + 1)
  local content = key and self.dict:get(key)
  local value = claim_in(self, content or "")
  local is_its_claim = content and value:sub(-MARK_SIZE) == entry:sub(1, MARK_SIZE)
  if is_its_claim and (claims.is_done(value) or may_take_over(self, key, content, REMOVAL)) then
    self.dict:delete(key)
  elseif is_its_claim then
    -- It is being handled now, so it stays.
    self.dict:rpush(QUEUE, entry)
    return false
  end
  return entry ~= nil
end

local function make_room(self)
  local made = self.dict:flush_expired(EXPIRED_AT_ONCE) > 0
  for _ = 1, made and 0 or FORGOTTEN_AT_ONCE do
    made = forget_oldest(self) or made
  end
  return made
end

-- Writes by a method of the dict that pushes nothing out.
local function write(self, method, key, ...)
  local dict = self.dict
  local result, message = dict[method](dict, key, ...)
  for _ = 1, ROUNDS do
    if result or message ~= "no memory" or not make_room(self) then
      break
    end
    result, message = dict[method](dict, key, ...)
  end
  if not result and message ~= "exists" then
    return nil, "the shared dict cannot keep the event: " .. message
  end
  return result or false
end

function Dict:get(key)
  local content = self.dict:get(key)
  return content and content:sub(1, -END_SIZE - 1)
end

function Dict:add(key, value, ttl)
  local content = with_end(self, value, ttl)
  local added, message = write(self, "safe_add", key, content, 0)
  local old = added == false and self.dict:get(key)
  if old and may_take_over(self, key, old, ttl) then
    added, message = write(self, "safe_set", key, content, 0)
  end
  if not added then
    return added, message
  end
  -- Queued now, because there may be no room once the event is handled.
  local length
  length, message = write(self, "rpush", QUEUE, value:sub(-MARK_SIZE) .. key)
  if not length then
    self.dict:delete(key)
    return nil, message
  end
  for _ = 1, math.min(length - self.settings.limit, FORGOTTEN_AT_ONCE) do
    forget_oldest(self)
  end
  return true
end

function Dict:put(key, value, ttl)
  return write(self, "safe_set", key, with_end(self, value, ttl), claims.is_done(value) and ttl or 0)
end

-- Another worker may be taking over a claim that has ended.
function Dict:replace(key, expected, value, ttl)
  local content = self.dict:get(key) or ""
  local held, counts = claim_in(self, content)
  return held == expected and (counts or may_take_over(self, key, content, ttl)) and self:put(key, value, ttl)
end

function Dict:delete(key, expected)
  local held, counts = claim_in(self, self.dict:get(key) or "")
  if counts and held == expected then
    self.dict:delete(key)
  end
end

local function slot_key(key, slot)
  return ("event:%d:%s"):format(slot, key)
end

-- Keeps an event of a requestId: in the slot of the same event, if its handler failed before, or in a free slot, or in
-- that of the oldest event. A value begins with the number of events before it, so that values sort by their age.
local function keep_in_slot(self, key, id, content)
  local head = ("%016d"):format(self:sequence())
  local value, ttl, oldest, place = head .. id .. "\n" .. content, self.settings.ttl, nil, nil
  for slot = 1, LONGEST_LIST do
    local added, message = write(self, "safe_add", slot_key(key, slot), value, ttl)
    if added ~= false then
      return added, message
    end
    local other = self.dict:get(slot_key(key, slot))
    if other and other:sub(#head + 1, #head + #id + 1) == id .. "\n" then
      return write(self, "safe_set", slot_key(key, slot), value, ttl)
    elseif other and (not oldest or other < oldest) then
      oldest, place = other, slot_key(key, slot)
    end
  end
  return write(self, "safe_set", place or slot_key(key, 1), value, ttl)
end

function Dict:keep(keys, id, content, at)
  local key = keys[1] and keys[1]:find "^r" and keys[1]
  if key then
    local made, message = keep_in_slot(self, key, id, content)
    if not made then
      return nil, message
    end
  end
  local counted, message = write(self, "safe_add", SEQUENCE, 0, 0)
  if counted ~= nil then
    counted, message = write(self, "safe_set", LATEST, at)
  end
  return counted and self.dict:incr(SEQUENCE, 1), message
end

function Dict:find(key)
  local values, contents = {}, {}
  for slot = 1, LONGEST_LIST do
    values[#values + 1] = self.dict:get(slot_key(key, slot))
  end
  table.sort(values)
  for index, value in ipairs(values) do
    contents[index] = value:match "\n(.*)$"
  end
  return contents
end

-- Where the dict has no room, each worker knows its own names alone: an event that is kept must not be lost.
function Dict:name(key, name, replaces)
  local made = write(self, replaces and "safe_set" or "safe_add", key, name, self.settings.ttl)
  return made == false and self.dict:get(key) or name
end

function Dict:sequence()
  return self.dict:get(SEQUENCE) or 0
end

function Dict:time()
  return time.after(self.settings.time(), (self.dict:get(LATEST)))
end

local M = {}

---@param dict table an ngx.shared dict with no other user
---@param settings { limit: integer, ttl: number, poll: number, time: fun(): number, now: fun(): number } `limit` of
---handled events, `ttl` of kept ones, `poll`: seconds between two looks, `time`: the date, `now`: monotonic seconds
---@return riskscreen.nginx.InboxDict
function M.new(dict, settings)
  return setmetatable({ dict = dict, settings = settings, pauses = { settings.poll, settings.poll } }, Dict)
end

return M
