-- An ngx.shared dict in this process. Entries expire by the clock of the test, and the dict can be made to lose entries
-- or to be full.

local M = {}

---@class riskscreen.spec.SharedDict
---@field entries table<string, { value: any, flags?: integer, expires?: number }>
---@field full boolean new entries are refused
---@field room? integer maximum number of entries
---@field operations integer so far
local Dict = {}
Dict.__index = Dict

---@param now fun(): number
---@return riskscreen.spec.SharedDict
function M.new(now)
  return setmetatable({ now = now, entries = {}, full = false, operations = 0 }, Dict)
end

local function live(self, key)
  assert(type(key) == "string", "a key must be a string")
  self.operations = self.operations + 1
  local entry = self.entries[key]
  if entry and entry.expires and entry.expires <= self.now() then
    self.entries[key] = nil
    return nil
  end
  return entry
end

local function has_room(self)
  local count = 0
  for _ in pairs(self.room and self.entries or {}) do
    count = count + 1
  end
  return not self.full and count < (self.room or math.huge)
end

local function put(self, key, value, exptime, flags)
  local kind = type(value)
  assert(kind == "number" or kind == "string" or kind == "boolean", "no such value can be shared")
  assert(not exptime or exptime >= 0, "a lifetime must not be negative")
  assert((flags or 0) >= 0 and (flags or 0) < 2 ^ 31, "nginx would change such flags")
  if not self.entries[key] and not has_room(self) then
    return false, "no memory", false
  end
  local expires = exptime and exptime > 0 and self.now() + exptime or nil
  self.entries[key] = { value = value, flags = flags, expires = expires }
  return true, nil, false
end

function Dict:get(key)
  local entry = live(self, key)
  if entry then
    return entry.value, entry.flags
  end
end

function Dict:set(key, value, exptime, flags)
  live(self, key)
  if value == nil then
    self.entries[key] = nil
    return true, nil, false
  end
  return put(self, key, value, exptime, flags)
end

function Dict:add(key, value, exptime, flags)
  if live(self, key) then
    return false, "exists", false
  end
  return put(self, key, value, exptime, flags)
end

-- This dict never evicts entries by itself, so these are the same.
Dict.safe_add, Dict.safe_set = Dict.add, Dict.set

function Dict:expire(key, exptime)
  local entry = live(self, key)
  if not entry then
    return nil, "not found"
  end
  entry.expires = exptime > 0 and self.now() + exptime or nil
  return true
end

function Dict:flush_expired(most)
  local count = 0
  for key, entry in pairs(self.entries) do
    if count < most and entry.expires and entry.expires <= self.now() then
      self.entries[key] = nil
      count = count + 1
    end
  end
  return count
end

function Dict:rpush(key, value)
  local entry = live(self, key)
  if not entry then
    if not has_room(self) then
      return nil, "no memory"
    end
    entry = { value = {} }
    self.entries[key] = entry
  end
  table.insert(entry.value, value)
  return #entry.value
end

function Dict:lpop(key)
  local entry = live(self, key)
  local value = entry and table.remove(entry.value, 1)
  if entry and not entry.value[1] then
    self.entries[key] = nil
  end
  return value
end

function Dict:incr(key, amount, init, init_ttl)
  local entry = live(self, key)
  if entry then
    if type(entry.value) ~= "number" then
      return nil, "not a number"
    end
    entry.value = entry.value + amount
    return entry.value, nil, false
  elseif not init then
    return nil, "not found"
  end
  local ok, message = put(self, key, init + amount, init_ttl)
  if not ok then
    return nil, message
  end
  return init + amount, nil, false
end

function Dict:delete(key)
  live(self, key)
  self.entries[key] = nil
end

function Dict:capacity() -- luacheck: ignore 212
  return 65536
end

function Dict:free_space() -- luacheck: ignore 212
  return 4096
end

---Loses the entries whose keys match a pattern, as a full dict does.
---@param pattern string
function Dict:evict(pattern)
  for key in pairs(self.entries) do
    if key:find(pattern) then
      self.entries[key] = nil
    end
  end
end

return M
