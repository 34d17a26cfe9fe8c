-- A shared dict as the space of an inbox's claims, and as the place of its events. Nothing that was accepted is pushed
-- out: where the dict is full, expired values and the oldest handled events go, or the write fails.

local claims = require "riskscreen.webhook.claims"

local LONGEST_LIST = 16 -- events of one requestId; of more, the oldest are removed
local EXPIRED_AT_ONCE = 256 -- values that are removed at once
local FORGOTTEN_AT_ONCE = 64 -- handled events that are forgotten at once
local ROUNDS = 16 -- attempts to make room for one value
local QUEUE = "claims" -- the keys of claims, the oldest first
local SEQUENCE = "sequence" -- counts the events that were kept

---@class riskscreen.nginx.InboxDict: riskscreen.webhook.Place
---@field private dict table an ngx.shared dict with no other user
---@field private settings { limit: integer, ttl: number, poll: number, time: fun(): number }
local Dict = { by_custom_id = false }
Dict.__index = Dict

-- Forgets the oldest event if it is handled. Returns whether that made room.
local function forget_oldest(self)
  local key = self.dict:lpop(QUEUE)
  local value = key and self.dict:get(key)
  if value and claims.is_done(value) then
    self.dict:delete(key)
  elseif value then
    -- It is being handled now, so it stays.
    self.dict:rpush(QUEUE, key)
    return false
  end
  return key ~= nil
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
  return (self.dict:get(key))
end

function Dict:add(key, value, ttl)
  local added, message = write(self, "safe_add", key, value, ttl)
  if not added then
    return added, message
  end
  -- Queued now, because there may be no room once the event is handled.
  local length
  length, message = write(self, "rpush", QUEUE, key)
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
  return write(self, "safe_set", key, value, ttl)
end

function Dict:replace(key, expected, value, ttl)
  return self.dict:get(key) == expected and self:put(key, value, ttl)
end

function Dict:delete(key, expected)
  if self.dict:get(key) == expected then
    self.dict:delete(key)
  end
end

-- Adds 1 to a counter.
local function count(self, key, ttl)
  local number, message
  repeat
    local added
    added, message = write(self, "safe_add", key, 0, ttl)
    -- The counter may expire in between.
    number = added ~= nil and self.dict:incr(key, 1)
  until number or added == nil
  return number or nil, message
end

local function entry_key(key, number)
  return ("entry:%d:%s"):format(number, key)
end

-- Iterates over the entries of a list: their keys and values.
local function entries(self, key)
  local last = self:get("count:" .. key) or 0
  local number = math.max(0, last - LONGEST_LIST)
  return function()
    while number < last do
      number = number + 1
      local value = self:get(entry_key(key, number))
      if value then
        return entry_key(key, number), value
      end
    end
  end
end

-- Appends an event to the list of its requestId. One that is there already, because its handler failed, takes its own
-- place.
function Dict:keep(keys, id, content)
  local key, ttl = keys[1] and keys[1]:find "^r" and keys[1], self.settings.ttl
  local value, place = id .. "\n" .. content, nil
  if key then
    for its_key, other in entries(self, key) do
      place = other:sub(1, #id + 1) == id .. "\n" and its_key or place
    end
    if not place then
      local number, message = count(self, "count:" .. key, ttl)
      if not number then
        return nil, message
      end
      self.dict:delete(entry_key(key, number - LONGEST_LIST))
      place = entry_key(key, number)
    end
    self.dict:expire("count:" .. key, ttl)
    local made, message = self:put(place, value, ttl)
    if not made then
      return nil, message
    end
  end
  return count(self, SEQUENCE, 0)
end

function Dict:find(key)
  local contents = {}
  for _, value in entries(self, key) do
    contents[#contents + 1] = value:match "\n(.*)$"
  end
  return contents
end

function Dict:sequence()
  return self:get(SEQUENCE) or 0
end

function Dict:time()
  return self.settings.time()
end

local M = {}

---@param dict table an ngx.shared dict with no other user
---@param settings { limit: integer, ttl: number, poll: number, time: fun(): number } `limit` of handled events, `ttl`
---of kept ones, `poll`: seconds between two looks
---@return riskscreen.nginx.InboxDict
function M.new(dict, settings)
  return setmetatable({ dict = dict, settings = settings, pauses = { settings.poll, settings.poll } }, Dict)
end

return M
