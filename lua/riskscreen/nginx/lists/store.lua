-- The lists in the shared dict: an entry for each address with its generation, and the number of the last complete
-- generation. The dict may lose any of these; then the service is asked.
local epochs = require "riskscreen.nginx.cache.epoch"
local json = require "riskscreen.json"

local KEPT = 30 * 86400 -- seconds for which the blacklist holds while the service is unreachable
local SKEW = 60 -- seconds that a refresh may seem to come from the future, after a clock was set back
local CHECKSUMS = 2 ^ 31 -- the flags of an entry are not negative and hold its checksum
local DIGITS = 16 -- of a generation
local FORMAT = "%s%016.0f%s"
local STATE = "%.0f %.3f %d %d"

local letters = { blacklist = "b", whitelist = "w" }
local lists = { b = "blacklist", w = "whitelist" }

---@class riskscreen.nginx.ListState
---@field generation integer
---@field refreshed_at number Unix seconds when the service was asked
---@field blacklist integer entries
---@field whitelist integer entries

---@class riskscreen.nginx.ListStore
---@field private dict table an ngx.shared dict
---@field private prefix string
---@field private checksum fun(text: string): number
---@field private state_text? string the text of `known_state`
---@field private known_state? riskscreen.nginx.ListState
local Store = {}
Store.__index = Store

local function read(self, key)
  local text, flags = self.dict:get(self.prefix .. key)
  if type(text) == "string" and flags == self.checksum(key .. text) % CHECKSUMS then
    return text
  end
end

-- May push out verdicts, which can be fetched again.
local function write(self, key, text, lifetime)
  local ok, message = self.dict:set(self.prefix .. key, text, lifetime, self.checksum(key .. text) % CHECKSUMS)
  return ok, message
end

local function parsed_state(text)
  local generation, at, black, white = text:match "^(%d+) ([%d.]+) (%d+) (%d+)$"
  generation, at = tonumber(generation), tonumber(at)
  return generation
    and at
    and { generation = generation, refreshed_at = at, blacklist = tonumber(black), whitelist = tonumber(white) }
end

---The last complete generation; nil where none is known.
---@return riskscreen.nginx.ListState|nil
function Store:state()
  local text = read(self, "state")
  if text ~= self.state_text then
    self.state_text, self.known_state = text, text and parsed_state(text) or nil
  end
  return self.known_state
end

---The last entry of a key, in any generation.
---@param key string
---@return riskscreen.nginx.ListEntry|nil
---@return integer|nil generation
function Store:get(key)
  local text = read(self, key)
  local list = text and lists[text:sub(1, 1)]
  local generation = list and tonumber((text:sub(2, DIGITS + 1)))
  if not generation then
    return nil
  end
  local body = text:sub(DIGITS + 2)
  local risks = body ~= "" and json.decode(body) or nil
  return { list = list, risks = type(risks) == "table" and risks or nil }, generation
end

---The entry of the blacklist under a key. One of a generation that is not complete yet counts already.
---@param key string
---@return riskscreen.nginx.ListEntry|nil
function Store:blacklisted(key)
  local entry, generation = self:get(key)
  local state = entry and entry.list == "blacklist" and self:state()
  if entry and entry.list == "blacklist" and not (state and generation < state.generation) then
    return entry
  end
end

---Whether the key is on the whitelist of the last complete generation.
---@param key string
---@return boolean
function Store:whitelisted(key)
  local entry, generation = self:get(key)
  local state = entry and entry.list == "whitelist" and self:state()
  return state and generation == state.generation or false
end

---The time until which the last refresh counts.
---@param now number Unix seconds
---@param max_age number seconds
---@return number|nil until Unix seconds; nil where the refresh is too old, or lies in the future
function Store:valid_until(now, max_age)
  local state = self:state()
  if state and state.refreshed_at <= now + SKEW and now < state.refreshed_at + max_age then
    return state.refreshed_at + max_age
  end
end

-- Writes an entry. The third result says whether the last complete generation had the same.
local function put(self, key, entry, generation, last)
  local body = entry.risks and json.encode(entry.risks) or ""
  local before = read(self, key)
  local same = before and last and before == FORMAT:format(letters[entry.list], last.generation, body)
  local ok, message = write(self, key, FORMAT:format(letters[entry.list], generation, body), KEPT)
  return ok, message, same
end

local function publish(self, generation, at, counts)
  return write(self, "state", STATE:format(generation, at, counts.blacklist, counts.whitelist), KEPT)
end

-- Tells all workers to clear their LRU.
local function announce(self, now)
  local told, message = epochs.advance(self.dict, now)
  if not told then
    -- The next refresh must try it again.
    self.dict:delete(self.prefix .. "state")
    return nil, "not every worker could be told of the change: " .. tostring(message)
  end
  return true
end

---Keeps the result of a refresh as the next generation. An address that is not in it is no longer on a list.
---@param content riskscreen.nginx.ListContent
---@param at number Unix seconds when the service was asked
---@param pause fun(): boolean called before each entry; false stops
---@return boolean|nil ok
---@return string|nil message
function Store:keep(content, at, pause)
  local last, counts = self:state(), content.counts
  local generation = math.max(math.floor(at * 1000), last and last.generation + 1 or 0)
  local changed = not last or last.blacklist ~= counts.blacklist or last.whitelist ~= counts.whitelist
  for _, key in ipairs(content.overruled) do
    self.dict:delete(self.prefix .. key)
  end
  for key, entry in pairs(content.entries) do
    if not pause() then
      return nil, "another worker has taken over"
    end
    local ok, message, same = put(self, key, entry, generation, last)
    if not ok then
      return nil, "the dict has no room for the lists: " .. tostring(message)
    end
    changed = changed or not same
  end
  local ok, message = publish(self, generation, at, counts)
  if not ok then
    return nil, "the dict has no room for the lists: " .. tostring(message)
  end
  if changed then
    return announce(self, at)
  end
  return true
end

local M = {}

---@param dict table an ngx.shared dict
---@param prefix string of the keys
---@param checksum fun(text: string): number
---@return riskscreen.nginx.ListStore
function M.new(dict, prefix, checksum)
  return setmetatable({ dict = dict, prefix = prefix, checksum = checksum }, Store)
end

return M
