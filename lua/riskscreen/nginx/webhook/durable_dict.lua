-- Values in a shared dict that nothing pushes out: when it is full, whoever wants to add something is told. Room is
-- made by giving up what has expired and what its owner says may go. What is kept there is not known here.

local KEPT = 16 -- values of a list; of more, the oldest go
local LONGEST_KEY = 4096 -- bytes
local NO_MEMORY = "no memory"
local EXPIRED_AT_ONCE = 256 -- values that are looked for when there is no room
local ROUNDS = 16 -- attempts to make room for one value

---@class riskscreen.nginx.Ledger
---@field private dict table an ngx.shared dict that nobody else uses
---@field give_up fun(): boolean makes room; whether it could. Its user sets it
local Ledger = {}
Ledger.__index = Ledger

local function nothing()
  return false
end

local function make_room(self)
  return self.dict:flush_expired(EXPIRED_AT_ONCE) > 0 or self.give_up()
end

-- Writes by a method of the dict that does not push out anything.
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

---The value of a key, or nil.
---@param key string
---@return string|number|nil
function Ledger:get(key)
  return (self.dict:get(key))
end

---Adds what is not there yet.
---@param key string
---@param value string|number
---@param ttl number seconds; 0: for ever
---@return boolean|nil ok
---@return string|nil message "exists", or why it cannot be kept
function Ledger:add(key, value, ttl)
  return write(self, "safe_add", key, value, ttl)
end

---Keeps a value. It cannot fail where a text of the same length is there.
---@param key string
---@param value string
---@param ttl number seconds
---@return boolean|nil ok
---@return string|nil message
function Ledger:put(key, value, ttl)
  return write(self, "safe_set", key, value, ttl)
end

---@param key string
function Ledger:forget(key)
  self.dict:delete(key)
end

---Keeps what is there from now on as long as is said.
---@param key string
---@param ttl number seconds
function Ledger:renew(key, ttl)
  self.dict:expire(key, ttl)
end

---Counts.
---@param key string
---@return number|nil count
---@return string|nil message
function Ledger:count(key)
  local ok, message = self:add(key, 0, 0)
  if not ok and message ~= "exists" then
    return nil, message
  end
  return self.dict:incr(key, 1)
end

local function count_key(name)
  return "count:" .. name
end

local function entry_key(name, number)
  return ("entry:%d:%s"):format(number, name)
end

-- The position of a text in a list, or nil.
local function find(self, name, value)
  local count = self:get(count_key(name)) or 0
  for number = math.max(1, count - KEPT + 1), count do
    if self:get(entry_key(name, number)) == value then
      return number
    end
  end
end

-- The position of the next value of a list: no other worker has it.
local function next_position(self, name, ttl)
  local key = count_key(name)
  for _ = 1, 2 do
    local ok, message = self:add(key, 0, ttl)
    if not ok and message ~= "exists" then
      return nil, message
    end
    -- It may expire in between.
    local number = self.dict:incr(key, 1)
    if number then
      return number
    end
  end
  return nil, "the list is gone again and again"
end

---Has a list hold a text from now on, once.
---@param name string of the list
---@param value string
---@param ttl number seconds
---@return boolean|nil ok
---@return string|nil message
function Ledger:note(name, value, ttl)
  local known = find(self, name, value)
  if known then
    self:renew(entry_key(name, known), ttl)
    self:renew(count_key(name), ttl)
    return true
  end
  local number, message = next_position(self, name, ttl)
  if not number then
    return nil, message
  end
  self:renew(count_key(name), ttl)
  self:forget(entry_key(name, number - KEPT))
  return self:put(entry_key(name, number), value, ttl)
end

---Has a list keep from now on what it holds.
---@param name string
---@param ttl number seconds
function Ledger:keep(name, ttl)
  local key = count_key(name)
  local count = self:get(key) or 0
  self:renew(key, ttl)
  for number = math.max(1, count - KEPT + 1), count do
    self:renew(entry_key(name, number), ttl)
  end
end

---The texts of a list, in the order in which they came.
---@param name string
---@return string[]
---@return boolean complete whether it has never held more
function Ledger:list(name)
  local count = self:get(count_key(name)) or 0
  local values = {}
  for number = math.max(1, count - KEPT + 1), count do
    values[#values + 1] = self:get(entry_key(name, number))
  end
  return values, count <= KEPT
end

---Puts a text at the end of a queue.
---@param name string
---@param value string
---@return number|nil length
---@return string|nil message
function Ledger:enqueue(name, value)
  return write(self, "rpush", name, value)
end

---Takes the oldest text of a queue.
---@param name string
---@return string|nil
function Ledger:dequeue(name)
  return (self.dict:lpop(name))
end

local M = {}

---@param dict table an ngx.shared dict that nobody else uses
---@return riskscreen.nginx.Ledger
function M.new(dict)
  return setmetatable({ dict = dict, give_up = nothing }, Ledger)
end

return M
