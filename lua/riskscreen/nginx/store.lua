-- What all workers remember: decisions in the shared dict, and what tells them that something was purged. The dict may
-- be full, or absent, and anybody may write to it: whatever fails here is a miss, and what does not add up as well.
local entries = require "riskscreen.nginx.entry"
local epochs = require "riskscreen.nginx.epoch"

local PREFIX = "riskscreen:" -- of all keys: the dict may have other users
local PURGE_MEMORY = 600 -- seconds, at least, for which a look-up that was under way is told of a purge
local STEP = 0.001 -- seconds that a purge is later than the one before, whatever the clock says
local SKEW = 60 -- seconds that an entry may seem to come from the future, after a clock was set back
local CHECKSUMS = 2 ^ 31 -- the flags of an entry are not negative and hold its checksum

---@class riskscreen.nginx.Store
---@field lock_prefix string of the keys of locks
---@field private dict? table an ngx.shared dict
---@field private purges integer of this worker, where there is no dict
---@field private last_purge number Unix seconds of any address, as far as this worker knows; nothing newer was purged
---@field private purge_memory number seconds
---@field private is_alone fun(): boolean
---@field private checksum fun(text: string): number
---@field private prefixes table<string, string>
---@field private salts table<string, number> by which an entry of one kind or version is none of another
local Store = {}
Store.__index = Store

local function flags_of(self, kind, text)
  return (self.checksum(text) + self.salts[kind]) % CHECKSUMS
end

local function time_of(self, key)
  local time = self.dict:get(key)
  return type(time) == "number" and time or 0
end

---What is remembered of an address.
---@param subject riskscreen.nginx.Subject
---@param kind "verdict"|"failure"
---@param now number Unix seconds
---@return riskscreen.nginx.Entry|nil
function Store:get(subject, kind, now)
  if not self.dict then
    return nil
  end
  local text, flags = self.dict:get(self.prefixes[kind] .. subject.key)
  if type(text) ~= "string" or (flags or 0) ~= flags_of(self, kind, text) then
    return nil
  end
  local entry = entries.decode(text, subject.key, subject.address, subject.network)
  if not entry or entry.at > now + SKEW then
    return nil
  elseif entry.at >= self.last_purge or entry.at >= self:purged_at(subject.address) then
    return entry
  end
end

---Remembers a text that `entries.encode` made.
---@param key string of the subject
---@param kind "verdict"|"failure"
---@param text string
---@param lifetime number seconds
function Store:set(key, kind, text, lifetime)
  if self.dict and lifetime > 0 then
    self.dict:set(self.prefixes[kind] .. key, text, lifetime, flags_of(self, kind, text))
  end
end

---@param key string of the subject
---@param kind "verdict"|"failure"
function Store:forget(key, kind)
  if self.dict then
    self.dict:delete(self.prefixes[kind] .. key)
  end
end

---When an address was purged, if that was not long ago: what is older may have been kept under another version.
---@param address string of the subject
---@return number Unix seconds
function Store:purged_at(address)
  return time_of(self, self.prefixes.mark .. address)
end

---What changes when an address is purged: a look-up that began before must not be remembered.
---@param address string of the subject
---@return any
function Store:mark(address)
  if not self.dict then
    return self.purges
  end
  return self.dict:get(self.prefixes.mark .. address)
end

---What changes when anything is purged: what a worker remembers by itself may be out of date.
---@return any
function Store:epoch()
  if not self.dict then
    return nil
  end
  self.last_purge = time_of(self, self.prefixes.last)
  return epochs.current(self.dict)
end

---Tells all workers to forget what each of them remembers by itself.
---@param now number Unix seconds: an epoch that the dict has lost is not used again
---@return boolean|nil ok
---@return string|nil message
function Store:next_epoch(now)
  if not self.dict then
    return self.is_alone() or nil, "there is no shared dict"
  end
  return epochs.advance(self.dict, now)
end

---Forgets an address for all workers, but for what each of them remembers by itself. The order matters: a worker that
---remembers something between the mark and the deletion sees the mark and takes it back.
---@param subjects riskscreen.nginx.Subject[] the address, on each of its networks
---@param now number Unix seconds
---@return boolean|nil ok
---@return string|nil message
function Store:purge(subjects, now)
  if not self.dict then
    self.purges = self.purges + 1
    return true
  end
  local address = subjects[1].address
  local mark = math.max(now, self:purged_at(address) + STEP)
  local marked, message = self.dict:set(self.prefixes.mark .. address, mark, self.purge_memory)
  local noted, why_not = self.dict:set(self.prefixes.last, math.max(mark, time_of(self, self.prefixes.last)))
  for _, subject in ipairs(subjects) do
    self:forget(subject.key, "verdict")
    self:forget(subject.key, "failure")
  end
  return (marked and noted) or nil, message or why_not
end

local M = {}

---@class riskscreen.nginx.StoreSettings
---@field dict? table
---@field version string entries of another version are not found
---@field checksum fun(text: string): number
---@field is_alone fun(): boolean whether there is one worker
---@field longest number seconds that any entry lives

---@param settings riskscreen.nginx.StoreSettings
---@return riskscreen.nginx.Store
function M.new(settings)
  local function prefix(kind, version)
    return PREFIX .. kind .. ":" .. (version and version .. ":" or "")
  end
  local verdict, failure = prefix("verdict", settings.version), prefix("failure", settings.version)
  return setmetatable({
    dict = settings.dict,
    checksum = settings.checksum,
    is_alone = settings.is_alone,
    purges = 0,
    last_purge = math.huge,
    purge_memory = math.max(PURGE_MEMORY, settings.longest),
    lock_prefix = prefix("lock", settings.version),
    salts = { verdict = settings.checksum(verdict), failure = settings.checksum(failure) },
    prefixes = {
      verdict = verdict,
      failure = failure,
      mark = prefix "mark",
      last = PREFIX .. "purged",
    },
  }, Store)
end

return M
