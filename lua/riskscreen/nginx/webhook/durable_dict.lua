-- Values in a shared dict that are never pushed out. When the dict is full, adding fails with a message, after expired
-- values and those that the owner gives up were removed.

local LONGEST_LIST = 16 -- values; of more, the oldest are removed
local LONGEST_KEY = 4096 -- bytes
local NO_MEMORY = "no memory"
local EXPIRED_AT_ONCE = 256 -- values that are removed at once
local ROUNDS = 16 -- attempts to make room for one value

---@class riskscreen.nginx.DurableDict
---@field private dict table an ngx.shared dict with no other user
---@field give_up fun(): boolean removes values that may go; returns whether it removed any. Set by the owner
local DurableDict = {}
DurableDict.__index = DurableDict

local function make_room(self)
  return self.dict:flush_expired(EXPIRED_AT_ONCE) > 0 or self.give_up()
end

-- Writes by a method of the dict that pushes nothing out.
local function write(self, method, key, ...)
  if #key > LONGEST_KEY then
    return nil, "the key is too long"
  end
  local dict = self.dict
  local ok, message = dict[method](dict, key, ...)
  for _ = 1, ROUNDS do
    if ok or message ~= NO_MEMORY or not make_room(self) then
      break
    end
    ok, message = dict[method](dict, key, ...)
  end
  return ok, message
end

---@param key string
---@return string|number|nil
function DurableDict:get(key)
  return (self.dict:get(key))
end

---Adds a value unless the key has one.
---@param key string
---@param value string|number
---@param ttl number seconds; 0: for ever
---@return boolean|nil ok
---@return string|nil message "exists", or why it cannot be kept
function DurableDict:add(key, value, ttl)
  return write(self, "safe_add", key, value, ttl)
end

---Sets a value. It cannot fail where the key has a text of the same length.
---@param key string
---@param value string
---@param ttl number seconds
---@return boolean|nil ok
---@return string|nil message
function DurableDict:put(key, value, ttl)
  return write(self, "safe_set", key, value, ttl)
end

---@param key string
function DurableDict:forget(key)
  self.dict:delete(key)
end

---@param key string
---@param ttl number seconds from now
function DurableDict:renew(key, ttl)
  self.dict:expire(key, ttl)
end

---Adds 1 to a counter.
---@param key string
---@param ttl? number seconds for which a new counter is kept; for ever without
---@return number|nil count
---@return string|nil message
function DurableDict:count(key, ttl)
  for _ = 1, 2 do
    local ok, message = self:add(key, 0, ttl or 0)
    if not ok and message ~= "exists" then
      return nil, message
    end
    -- The counter may expire in between.
    local count = self.dict:incr(key, 1)
    if count then
      return count
    end
  end
  return nil, "the counter expires at once"
end

local function count_key(name)
  return "count:" .. name
end

local function entry_key(name, number)
  return ("entry:%d:%s"):format(number, name)
end

-- Iterates over the positions of a list that may hold a value.
local function positions(self, name)
  local count = self:get(count_key(name)) or 0
  local number = math.max(0, count - LONGEST_LIST)
  return function()
    number = number + 1
    return number <= count and number or nil
  end
end

---Appends a value to a list, unless the list has it: then the value is kept for longer.
---@param name string of the list
---@param value string
---@param ttl number seconds
---@return boolean|nil ok
---@return string|nil message
function DurableDict:append(name, value, ttl)
  for number in positions(self, name) do
    if self:get(entry_key(name, number)) == value then
      self:renew(entry_key(name, number), ttl)
      self:renew(count_key(name), ttl)
      return true
    end
  end
  local number, message = self:count(count_key(name), ttl)
  if not number then
    return nil, message
  end
  self:renew(count_key(name), ttl)
  self:forget(entry_key(name, number - LONGEST_LIST))
  return self:put(entry_key(name, number), value, ttl)
end

---The values of a list, the oldest first.
---@param name string
---@return string[]
function DurableDict:list(name)
  local values = {}
  for number in positions(self, name) do
    values[#values + 1] = self:get(entry_key(name, number))
  end
  return values
end

---Puts a text at the end of a queue.
---@param name string
---@param value string
---@return number|nil length
---@return string|nil message
function DurableDict:enqueue(name, value)
  return write(self, "rpush", name, value)
end

---Takes the oldest text of a queue.
---@param name string
---@return string|nil
function DurableDict:dequeue(name)
  return (self.dict:lpop(name))
end

local M = {}

---@param dict table an ngx.shared dict with no other user
---@return riskscreen.nginx.DurableDict
function M.new(dict)
  return setmetatable({
    dict = dict,
    give_up = function()
      return false
    end,
  }, DurableDict)
end

return M
