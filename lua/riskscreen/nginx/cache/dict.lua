-- The shared dict of all workers: values of entries, texts to which they refer, locks, and marks of purged addresses.
-- It may be absent or full, and it may lose any of them.
local epochs = require "riskscreen.nginx.cache.epoch"
local tables = require "riskscreen.util.tables"

-- Prefixes of the keys: the dict may have other users.
local ENTRY, REASONS = "riskscreen:entry:", "riskscreen:reasons:"
local LOCK, MARK = "riskscreen:lock:", "riskscreen:purged:"
local MARK_OF_ALL = MARK .. "*"
local LOCKED = "locked" -- the value of a lock: it is no entry
local SHORTEST_MARK = 600 -- seconds
local KEPT = 60 -- seconds after which a worker makes sure that the dict has not lost the reasons

---@class riskscreen.nginx.CacheDict
---@field private shared? table an ngx.shared dict
---@field private own_epoch integer without a dict: the number of purges in this worker
---@field private mark_lifetime number seconds
---@field private is_alone fun(): boolean
---@field prefix string of the keys of entries
local Dict = {}

local function text_or_nil(value)
  return type(value) == "string" and value or nil
end

---A number that is greater after each purge.
---@return number
function Dict:epoch()
  return self.shared and epochs.current(self.shared) or self.own_epoch
end

---@param key string
---@param value string|number
---@param lifetime number seconds, more than 0
---@param flags integer
---@return boolean is_written false without a dict, or without room
function Dict:set(key, value, lifetime, flags)
  return self.shared ~= nil and self.shared:set(key, value, lifetime, flags) == true
end

---Keeps the text of a reference for the entries whose flags refer to it.
---@param reference riskscreen.nginx.Reference
---@param now number Unix seconds
---@return boolean kept false without room, or if another text has these flags
function Dict:keep_reference(reference, now)
  if now < reference.kept_until then
    return true
  elseif not self.shared then
    return false
  end
  local key = REASONS .. reference.flags
  local added = self.shared:add(key, reference.text)
  if added or self.shared:get(key) == reference.text then
    reference.kept_until = now + KEPT
    return true
  end
  return false
end

---The text to which flags refer: an epoch, and reasons as JSON.
---@param flags integer
---@return string|nil
function Dict:reasons(flags)
  return self.shared and text_or_nil(self.shared:get(REASONS .. flags))
end

---Whether an address was purged in a later epoch.
---@param address string canonical
---@param epoch number
---@return boolean
function Dict:was_purged(address, epoch)
  local shared = self.shared
  if not shared then
    return self.own_epoch > epoch
  end
  local mark, mark_of_all = shared:get(MARK .. address), shared:get(MARK_OF_ALL)
  return (type(mark) == "number" and mark > epoch) or (type(mark_of_all) == "number" and mark_of_all > epoch)
end

---Forgets all addresses, in all workers and all versions.
---@param now number Unix seconds
function Dict:forget_all(now)
  local shared = self.shared
  if not shared then
    self.own_epoch = self.own_epoch + 1
    return
  end
  local epoch = epochs.advance(shared, now)
  if epoch then
    shared:set(MARK_OF_ALL, epoch, self.mark_lifetime)
  end
end

---Forgets an address in all workers and all versions. A fetch that began before has an older epoch than the mark, so
---its entry is not used. The second step of the epoch empties an LRU that was filled before the mark was there.
---@param spellings string[] the canonical address; another one on a network where it is spelled in another way
---@param keys string[] of the address on each network, without the prefix
---@param now number Unix seconds
---@return boolean|nil ok
---@return string|nil message
function Dict:purge(spellings, keys, now)
  local shared = self.shared
  if not shared then
    self.own_epoch = self.own_epoch + 1
    return self.is_alone() or nil, "there is no shared dict"
  end
  local marked, message, told, why_not
  repeat
    marked, message = true, nil
    local epoch = epochs.advance(shared, now)
    for _, address in ipairs(spellings) do
      local ok, problem = shared:set(MARK .. address, epoch or 0, self.mark_lifetime)
      marked, message = marked and ok, message or problem
    end
    for _, key in ipairs(keys) do
      shared:delete(self.prefix .. key)
    end
    told, why_not = epochs.advance(shared, now)
  -- Another purge at the same time may have written an older mark.
  until not told or told == epoch + 1
  return (marked and told) and true or nil, message or why_not
end

---@alias riskscreen.nginx.Lock string the key in the dict that is locked

---Locks the key of an entry for this worker. While there is no entry, its own key is the lock: the entry replaces it.
---@param key string
---@param seconds number after which the lock ends by itself
---@return riskscreen.nginx.Lock|false|nil lock false if another worker has it; nil if there is nothing to lock
function Dict:lock(key, seconds)
  local shared = self.shared
  if not shared or self.is_alone() then
    return nil
  end
  local lock = key
  local ok, message = shared:add(lock, LOCKED, seconds)
  if not ok and message == "exists" and shared:get(key) ~= LOCKED then
    lock = LOCK .. key
    ok, message = shared:add(lock, LOCKED, seconds)
  end
  if ok then
    return lock
  elseif message == "exists" then
    return false
  end
  -- The dict has no room.
  return nil
end

---@param lock riskscreen.nginx.Lock
function Dict:unlock(lock)
  self.shared:delete(lock)
end

local M = {}

---@param shared table|nil an ngx.shared dict
---@param version string entries of other versions are not found
---@param longest number seconds that any entry lives
---@param is_alone fun(): boolean whether there is one worker
---@return riskscreen.nginx.CacheDict
function M.new(shared, version, longest, is_alone)
  return tables.object(Dict, {
    shared = shared,
    own_epoch = 0,
    mark_lifetime = math.max(SHORTEST_MARK, longest),
    is_alone = is_alone,
    prefix = ENTRY .. version .. ":",
  })
end

return M
