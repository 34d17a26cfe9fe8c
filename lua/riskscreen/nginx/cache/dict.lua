-- What all workers remember: decisions in the shared dict, and what tells them that something was purged. The dict may
-- be full, or absent, and anybody may write to it: whatever fails here is a miss, and what does not add up as well.
local entries = require "riskscreen.nginx.cache.entry"
local epochs = require "riskscreen.nginx.cache.epoch"
local verdicts = require "riskscreen.nginx.cache.verdicts"

local PREFIX = "riskscreen:" -- of all keys: the dict may have other users
local PURGE_MEMORY = 600 -- seconds, at least, for which a look-up that was under way is told of a purge
local STEP = 0.001 -- seconds that a purge is later than the one before, whatever the clock says
local SKEW = 60 -- seconds that an entry may seem to come from the future, after a clock was set back
local CHECKSUMS = 2 ^ 31 -- the flags of an entry are not negative and hold its checksum

---@class riskscreen.nginx.Store
---@field lock_prefix string of the keys of locks
---@field epoch any what changes when anything is purged, when that was last looked at
---@field private dict? table an ngx.shared dict
---@field private last_purge number Unix seconds of any address, as far as this worker knows; nothing newer was purged
---@field private has_failures boolean whether there may be any in the dict
---@field private purge_memory number seconds
---@field private is_alone fun(): boolean
---@field private checksum fun(text: string): number
---@field private prefixes table<string, string>
---@field private verdicts riskscreen.nginx.Verdicts
local Store = {}
Store.__index = Store

-- An entry under any other key is none.
local function flags_of(self, key, bytes)
  return (self.checksum(key) + self.checksum(bytes)) % CHECKSUMS
end

local function time_of(self, key)
  local time = self.dict:get(key)
  return type(time) == "number" and time or 0
end

-- When an address was purged, if that was not long ago: what is older may have been kept under another version.
local function purged_at(self, address)
  return time_of(self, self.prefixes.mark .. address)
end

---Looks what the other workers have told all; for a worker that knows nothing yet, and every new time.
---@return boolean changed whether anything was purged
function Store:catch_up()
  local dict = self.dict
  if not dict then
    return false
  end
  -- The epoch first: of a purge that comes in between, this worker is told the next time.
  local before = self.epoch
  self.epoch = epochs.current(dict)
  self.last_purge = time_of(self, self.prefixes.last)
  self.has_failures = dict:get(self.prefixes.failed) ~= nil
  return self.epoch ~= before
end

---What is remembered of an address.
---@param kind "verdict"|"failure"
---@param network string canonical
---@param address string canonical
---@param now number Unix seconds
---@return riskscreen.Decision|nil decision
---@return number at
---@return number|nil patience
---@return integer|nil checksum of the entry
function Store:get(kind, network, address, now)
  if not self.dict then
    return nil, 0
  end
  local key = self.prefixes[kind] .. network .. ":" .. address
  local bytes, flags = self.dict:get(key)
  if type(bytes) ~= "string" or (flags or 0) ~= flags_of(self, key, bytes) then
    return nil, 0
  end
  local digest, at, patience = entries.unpack(bytes)
  local verdict = digest and self.verdicts:find(digest)
  if verdict and at <= now + SKEW and (at >= self.last_purge or at >= purged_at(self, address)) then
    return verdicts.decision(verdict, network, address), at, patience, flags
  end
  return nil, 0
end

---What is remembered of an address, as one entry. Where nobody has kept a failure lately, none is looked for.
---@param kind "verdict"|"failure"
---@param subject riskscreen.nginx.Subject
---@param now number Unix seconds
---@return riskscreen.nginx.Entry|nil
function Store:entry(kind, subject, now)
  if kind == "failure" and not self.has_failures then
    return nil
  end
  local decision, at, patience = self:get(kind, subject.network, subject.address, now)
  return decision and { decision = decision, at = at, patience = patience }
end

---A decision as all workers have it, and the bytes of its entry.
---@param subject riskscreen.nginx.Subject
---@param decision riskscreen.Decision
---@param at number Unix seconds
---@param patience? number seconds
---@return string|nil bytes nil where it cannot be written, or not be read again
---@return riskscreen.Decision|nil decision
function Store:encode(subject, decision, at, patience)
  local digest, verdict = self.verdicts:name(decision, at)
  local bytes = digest and entries.pack(at, digest, patience)
  if bytes then
    return bytes, verdicts.decision(verdict, subject.network, subject.address)
  end
end

---Remembers what `encode` made.
---@param kind "verdict"|"failure"
---@param key string of the subject
---@param bytes string
---@param lifetime number seconds
---@return integer|nil checksum of the entry
function Store:set(kind, key, bytes, lifetime)
  if not self.dict or lifetime <= 0 then
    return nil
  end
  local full_key = self.prefixes[kind] .. key
  local flags = flags_of(self, full_key, bytes)
  self.dict:set(full_key, bytes, lifetime, flags)
  if kind == "failure" then
    self.has_failures = true
    self.dict:set(self.prefixes.failed, true, lifetime)
  end
  return flags
end

---@param kind "verdict"|"failure"
---@param key string of the subject
function Store:forget(kind, key)
  if self.dict then
    self.dict:delete(self.prefixes[kind] .. key)
  end
end

---Whether an address was purged after a look-up had begun: what that brings must not be remembered.
---@param address string of the subject
---@param epoch any as it was then
---@param at number Unix seconds when it began
---@return boolean
function Store:was_purged(address, epoch, at)
  if not self.dict then
    return self.epoch ~= epoch
  end
  return epochs.current(self.dict) ~= epoch and purged_at(self, address) >= at
end

---Forgets an address for all workers, which are told to forget what each remembers by itself. The order matters. A
---worker that remembers something after the deletion finds another epoch than the one with which it began, looks at the
---mark, and takes it back; what a worker has from the dict before the deletion it forgets with the last epoch.
---@param subjects riskscreen.nginx.Subject[] the address, on each of its networks
---@param now number Unix seconds, not behind any worker's clock
---@return boolean|nil ok
---@return string|nil message
function Store:purge(subjects, now)
  local dict = self.dict
  if not dict then
    self.epoch = self.epoch + 1
    return self.is_alone() or nil, "there is no shared dict"
  end
  local address = subjects[1].address
  local mark = math.max(now, purged_at(self, address) + STEP)
  local marked, message = dict:set(self.prefixes.mark .. address, mark, self.purge_memory)
  local noted, why_not = dict:set(self.prefixes.last, math.max(mark, time_of(self, self.prefixes.last)))
  epochs.advance(dict, now)
  for _, subject in ipairs(subjects) do
    self:forget("verdict", subject.key)
    self:forget("failure", subject.key)
  end
  local told, why_silent = epochs.advance(dict, now)
  return (marked and noted and told) or nil, message or why_not or why_silent
end

local M = {}

---@class riskscreen.nginx.StoreSettings
---@field dict? table
---@field version string entries of another version are not found
---@field checksum fun(text: string): number
---@field digest fun(text: string): string
---@field is_alone fun(): boolean whether there is one worker
---@field longest number seconds that any entry lives

---@param settings riskscreen.nginx.StoreSettings
---@return riskscreen.nginx.Store
function M.new(settings)
  local function prefix(kind, version)
    return PREFIX .. kind .. ":" .. (version and version .. ":" or "")
  end
  return setmetatable({
    dict = settings.dict,
    checksum = settings.checksum,
    is_alone = settings.is_alone,
    epoch = 0,
    last_purge = math.huge,
    has_failures = true,
    purge_memory = math.max(PURGE_MEMORY, settings.longest),
    lock_prefix = prefix("lock", settings.version),
    verdicts = verdicts.new {
      dict = settings.dict,
      prefix = prefix("text", settings.version),
      digest = settings.digest,
      longest = settings.longest,
    },
    prefixes = {
      verdict = prefix("verdict", settings.version),
      failure = prefix("failure", settings.version),
      failed = prefix("failed", settings.version),
      mark = prefix "mark",
      last = PREFIX .. "purged",
    },
  }, Store)
end

return M
