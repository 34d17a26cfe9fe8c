-- The shared dict of all workers: texts of entries and of verdicts, locks of fetches, and a random mark for each bucket
-- of addresses. The mark is part of the keys of entries and locks. A purge deletes it, and the next mark is a new one.
-- So nothing from before is found again. A worker reads a mark once, and again after a purge. The dict may be absent or
-- full, and may lose anything.
local leases = require "riskscreen.nginx.lease"
local random = require "riskscreen.util.random"
local tables = require "riskscreen.util.tables"

local byte = string.byte

-- Prefixes of the keys: the dict may have other users.
local ENTRY, VERDICT = "riskscreen:entry:", "riskscreen:verdict:"
local LOCK, MARK = "riskscreen:lock:", "riskscreen:mark:"
local EPOCH = "riskscreen:epoch" -- a mark that changes with each purge: all workers then read the others again
local BUCKETS = 256 -- of addresses
local MARK_SIZE = 6 -- random bytes
local LOOKS_PER_MARK = 8 -- looks into the dict until another mark is read again

local mark_keys = {} -- by bucket
for bucket = 0, BUCKETS - 1 do
  mark_keys[bucket] = MARK .. bucket
end

---@class riskscreen.nginx.CacheDict
---@field private shared? table an ngx.shared dict
---@field private holder fun(): string|number unique to this worker
---@field private is_alone fun(): boolean
---@field verdicts string the prefix of the keys of verdicts
---@field private entries string the prefix of the keys of entries
---@field private epoch? string as this worker knows it
---@field private marks table<integer, string> of buckets of addresses, as this worker knows them
---@field private looks integer into the dict, since the marks had their last turn
local Dict = {}

local function bucket_of(address)
  local a, b, c = byte(address, -3, -1)
  return ((a or 0) * 49 + (b or 0) * 7 + (c or 0)) % BUCKETS
end

local function new_mark()
  return random.token(MARK_SIZE)
end

-- The mark under a key, which is made where there is none; nil where the dict has no room, or a purge comes meanwhile.
local function mark_of(shared, key)
  local mark = shared:get(key)
  if type(mark) == "string" then
    return mark
  elseif mark ~= nil then
    shared:delete(key) -- another program wrote it
  end
  mark = new_mark()
  local ok, message = shared:add(key, mark)
  if ok then
    return mark
  end
  mark = message == "exists" and shared:get(key)
  return type(mark) == "string" and mark or nil, message
end

---Learns of purges: the marks of before count no more. Where the dict has no room, each call may be a purge.
function Dict:learn()
  local epoch = self.shared and (mark_of(self.shared, EPOCH) or new_mark())
  if epoch ~= self.epoch then
    self.epoch, self.marks = epoch, {}
  end
end

local function look_up(self, bucket)
  local mark = self.shared and mark_of(self.shared, mark_keys[bucket]) or self.marks[bucket] or new_mark()
  self.marks[bucket] = mark
  return mark
end

---The key of a subject in LRU and dict. It is another one after a purge.
---@param network string canonical
---@param address string canonical
---@return string
function Dict:key(network, address)
  local bucket = bucket_of(address)
  return self.entries .. (self.marks[bucket] or look_up(self, bucket)) .. ":" .. network .. ":" .. address
end

---Looks up the marks in turn, too. So they stay in a full dict, which drops decisions first. If it has dropped a mark,
---all workers have the same new one soon.
---@param key string
---@return any text
function Dict:get(key)
  local shared = self.shared
  if not shared then
    return nil
  end
  local looks = (self.looks + 1) % (BUCKETS * LOOKS_PER_MARK)
  self.looks = looks
  if looks % LOOKS_PER_MARK == 0 then
    look_up(self, looks / LOOKS_PER_MARK)
  end
  return (shared:get(key))
end

---@param key string
---@param lifetime number seconds, more than 0
---@param text string
function Dict:set(key, lifetime, text)
  self.shared:set(key, text, lifetime)
end

---Forgets addresses, or all, in all workers and all versions. This worker learns of it at once.
---@param spellings? string[] of the addresses
---@return boolean|nil ok
---@return string|nil message
function Dict:forget(spellings)
  local shared = self.shared
  if not shared then
    self.marks = {}
    return self.is_alone() or nil, "there is no shared dict"
  end
  for index = 1, spellings and #spellings or BUCKETS do
    shared:delete(mark_keys[spellings and bucket_of(spellings[index]) or index - 1])
  end
  -- The last step: a worker reads the marks after it.
  shared:delete(EPOCH)
  local epoch, message = mark_of(shared, EPOCH)
  self.epoch, self.marks = epoch, {}
  return (epoch or message == "exists") and true, message
end

---Locks a fetch for this worker.
---@param key string
---@param now number seconds
---@param seconds number after which the lock ends by itself
---@return string|boolean|nil lock false if another worker has it, true if none is needed; nil without a dict, or room
function Dict:lock(key, now, seconds)
  local shared = self.shared
  if not shared then
    return nil
  elseif self.is_alone() then
    return true
  end
  return (leases.take(shared, LOCK .. key, self.holder(), now, seconds))
end

---Whether a lock is still this worker's. Where it was lost, another worker may have fetched meanwhile.
---@param key string
---@param lock string|boolean|nil
---@return boolean
function Dict:holds(key, lock)
  return type(lock) ~= "string" or self.shared:get(LOCK .. key) == lock
end

---@param key string
---@param lock string|boolean|nil
function Dict:unlock(key, lock)
  if type(lock) == "string" then
    leases.release(self.shared, LOCK .. key, lock)
  end
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
    is_alone = is_alone,
    holder = holder,
    verdicts = VERDICT .. version .. ":",
    entries = ENTRY .. version .. ":",
    marks = {},
    looks = 0,
  })
end

return M
