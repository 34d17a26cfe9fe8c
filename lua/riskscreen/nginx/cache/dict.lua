-- The shared dict of all workers: texts of entries, locks, and floors of purged addresses.
-- It may be absent or full, and it may lose any of them.
local leases = require "riskscreen.nginx.lease"
local tables = require "riskscreen.util.tables"

local byte = string.byte

-- Prefixes of the keys: the dict may have other users.
local ENTRY = "riskscreen:entry:"
local LOCK, FLOOR = "riskscreen:lock:", "riskscreen:floor:"
local FLOOR_OF_ALL = FLOOR .. "*"
local BUCKETS = 256 -- of addresses
local RESTORE_INTERVAL = 1 -- seconds
local ROUNDS = 100 -- of a purge, while other workers purge; a dict that is too small drops the epoch in each of them
local EPOCH = "riskscreen:epoch" -- a counter: all workers empty their LRU when it changes

---@class riskscreen.nginx.CacheDict
---@field private shared? table an ngx.shared dict
---@field private restored_at number seconds when this worker has last written missing floors
---@field private own_epoch integer without a dict: the number of purges in this worker
---@field private holder fun(): string|number unique to this worker
---@field private is_alone fun(): boolean
---@field prefix string of the keys of entries
local Dict = {}

-- The floor of the addresses in a bucket: their entries of an earlier epoch do not count. It has no end, because the
-- dict's expiry follows the date. Where a full dict has dropped a floor, only entries of this epoch count.
local function bucket_of(address)
  local a, b, c = byte(address, -3, -1)
  return ((a or 0) * 49 + (b or 0) * 7 + (c or 0)) % BUCKETS
end

-- Raises the epoch. If the dict has lost the counter, it goes on above every earlier number.
local function advance(shared, now, steps)
  local epoch, message = shared:incr(EPOCH, steps, math.floor(now * 1000))
  return epoch, message
end

---A number that is greater after each purge.
---@param now number seconds
---@return number
function Dict:epoch(now)
  local shared = self.shared
  local epoch = shared and shared:get(EPOCH)
  if type(epoch) == "number" then
    return epoch
  end
  return shared and (advance(shared, now, 0)) or self.own_epoch
end

---@param key string
---@param lifetime number seconds, more than 0
---@param text string
---@param flags number
---@return boolean is_written false without a dict, or without room
function Dict:set(key, lifetime, text, flags)
  return self.shared ~= nil and self.shared:set(key, text, lifetime, flags) == true
end

---Whether an address may have been purged in a later epoch.
---@param address string canonical
---@param epoch number
---@return boolean
function Dict:was_purged(address, epoch)
  local shared = self.shared
  if not shared then
    return self.own_epoch > epoch
  end
  local floor, floor_of_all = shared:get(FLOOR .. bucket_of(address)), shared:get(FLOOR_OF_ALL)
  if type(floor) == "number" and type(floor_of_all) == "number" then
    return floor > epoch or floor_of_all > epoch
  end
  return shared:get(EPOCH) ~= epoch
end

-- Writes the floors that the dict has dropped, or never had: the entries since the last purge outlive them. That takes
-- 0.16 ms, five times as long as a purge, so it is not done at each one of many.
local function restore_floors(self, epoch, now)
  if now < self.restored_at + RESTORE_INTERVAL then
    return
  end
  self.restored_at = now
  self.shared:add(FLOOR_OF_ALL, epoch - 1)
  for bucket = 0, BUCKETS - 1 do
    self.shared:add(FLOOR .. bucket, epoch - 1)
  end
end

-- Raises floors. A fetch that began before has an older epoch than the floor, so its entry is not used. The second step
-- of the epoch empties an LRU that was filled before the floor was there.
local function raise(self, floors, now)
  local shared = self.shared
  for _ = 1, ROUNDS do
    local epoch, message = advance(shared, now, 1)
    if not epoch then
      return nil, message
    end
    restore_floors(self, epoch, now)
    for _, floor in ipairs(floors) do
      local ok, problem = shared:set(floor, epoch)
      message = message or not ok and problem or nil
    end
    local told, why_not = advance(shared, now, 1)
    -- Another purge at the same time may have written an older floor.
    if not told or told == epoch + 1 then
      return (told and not message) or nil, message or why_not
    end
  end
  return nil, "it has no room for the marks of purges"
end

---Forgets an address, or all of them, in all workers and all versions.
---@param now number seconds
---@param spellings? string[] the canonical address; another one on a network where it is spelled in another way
---@param keys? string[] of the address on each network, without the prefix
---@return boolean|nil ok
---@return string|nil message
function Dict:forget(now, spellings, keys)
  local shared, floors = self.shared, { not spellings and FLOOR_OF_ALL or nil }
  if not shared then
    self.own_epoch = self.own_epoch + 1
    return self.is_alone() or nil, "there is no shared dict"
  end
  for index, address in ipairs(spellings or {}) do
    floors[index] = FLOOR .. bucket_of(address)
  end
  for _, key in ipairs(keys or {}) do
    shared:delete(self.prefix .. key)
  end
  return raise(self, floors, now)
end

-- A fetch that hangs since before a purge does not hold up those that began after it.
local function lock_of(request)
  return LOCK .. request.epoch .. ":" .. request.key
end

---Locks a fetch for this worker.
---@param request riskscreen.nginx.CacheRequest
---@param now number seconds
---@param seconds number after which the lock ends by itself
---@return string|false|nil lock false if another worker has it; nil if there is nothing to lock
function Dict:lock(request, now, seconds)
  local shared = self.shared
  if not shared or self.is_alone() then
    return nil
  end
  local lock = leases.take(shared, lock_of(request), self.holder(), now, seconds)
  return lock
end

---@param request riskscreen.nginx.CacheRequest
---@param lock string
function Dict:unlock(request, lock)
  leases.release(self.shared, lock_of(request), lock)
end

local M = { BUCKETS = BUCKETS, bucket_of = bucket_of }

---@param shared table|nil an ngx.shared dict
---@param version string entries of other versions are not found
---@param is_alone fun(): boolean whether there is one worker
---@param holder fun(): string|number unique to this worker
---@return riskscreen.nginx.CacheDict
function M.new(shared, version, is_alone, holder)
  return tables.object(Dict, {
    shared = shared,
    own_epoch = 0,
    restored_at = -math.huge,
    is_alone = is_alone,
    holder = holder,
    prefix = ENTRY .. version .. ":",
  })
end

return M
