-- A dict as nginx shares it between its workers, in this process: entries expire by a clock that the test has, the dict
-- can be made to lose entries and to have no room.

local M = {}

---@class riskscreen.spec.SharedDict
---@field entries table<string, { value: any, flags?: integer, expires?: number }>
---@field full boolean nothing new gets in
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

local function put(self, key, value, exptime, flags)
  local kind = type(value)
  assert(kind == "number" or kind == "string" or kind == "boolean", "no such value can be shared")
  assert(not exptime or exptime >= 0, "a lifetime must not be negative")
  if self.full and not self.entries[key] then
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
