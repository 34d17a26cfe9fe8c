-- The lists in the shared dict: an entry for each address with its generation, and the number of the last complete
-- generation. The dict may lose any of these; then the service is asked.
local json = require "riskscreen.json"
local time = require "riskscreen.util.time"

local letters = { blacklist = "b", whitelist = "w" }

---@class riskscreen.nginx.ListState
---@field generation integer
---@field refreshed_at number seconds when the service was asked
---@field blacklist integer entries
---@field whitelist integer entries
---@field invalid integer items that are no address

---@class riskscreen.nginx.ListStore
---@field private dict table an ngx.shared dict
---@field private prefix string
local Store = {}
Store.__index = Store

local function read(self, key)
  local text = self.dict:get(self.prefix .. key)
  return type(text) == "string" and text or ""
end

-- May push out decisions, which can be fetched again. The blacklist holds while the service is unreachable.
local function write(self, key, text)
  local ok, message = self.dict:set(self.prefix .. key, text)
  if not ok then
    error("the dict has no room for the lists: " .. tostring(message), 0)
  end
end

---The last complete generation; nil where none is known.
---@return riskscreen.nginx.ListState|nil
function Store:state()
  local generation, at, black, white, invalid = read(self, "state"):match "^(%d+) (%-?[%d.]+) (%d+) (%d+) (%d+)$"
  return tonumber(at)
    and {
      generation = tonumber(generation),
      refreshed_at = tonumber(at),
      blacklist = tonumber(black),
      whitelist = tonumber(white),
      invalid = tonumber(invalid),
    }
end

-- The generation, the letter of the list and the risks as JSON of the last entry of a key.
local function read_entry(self, key)
  local generation, letter, risks = read(self, key):match "^(%d+)([bw])(.*)$"
  return tonumber(generation), letter, risks
end

---The entry of the blacklist under a key. One of a generation that is not complete yet counts already.
---@param key string
---@return riskscreen.nginx.ListEntry|nil
function Store:blacklisted(key)
  local generation, letter, risks = read_entry(self, key)
  local state = letter == "b" and self:state()
  if letter == "b" and not (state and generation < state.generation) then
    local decoded = risks ~= "" and json.decode(risks)
    return { list = "blacklist", risks = type(decoded) == "table" and decoded or nil }
  end
end

---Whether the key is on the whitelist of the last complete generation.
---@param key string
---@return boolean
function Store:whitelisted(key)
  local generation, letter = read_entry(self, key)
  local state = letter == "w" and self:state()
  return state and generation == state.generation or false
end

---Whether the last refresh still counts.
---@param now number seconds
---@param max_age number seconds
---@return boolean is_current false where it is too old, or lies in the future
function Store:is_current(now, max_age)
  local state = self:state()
  return state ~= nil and time.age(state.refreshed_at, now, time.LAG) ~= nil and now < state.refreshed_at + max_age
end

---A value that differs after each refresh, and from all others while the last one is unknown.
---@return string|table
function Store:version()
  local text = self.dict:get(self.prefix .. "state")
  return type(text) == "string" and text or {}
end

---Keeps the result of a refresh as the next generation; raises where the dict has no room. An address that is not in it
---is no longer on a list.
---@param content riskscreen.nginx.ListContent
---@param at number seconds when the service was asked
---@param now number seconds
---@param pause fun() called before each entry; may raise
function Store:keep(content, at, now, pause)
  -- Above the numbers of all refreshes so far, also of failed ones and of those that the dict has lost.
  local generation, counts = math.floor(now * 1000), content.counts
  for _, key in ipairs(content.overruled) do
    self.dict:delete(self.prefix .. key)
  end
  for key, entry in pairs(content.entries) do
    pause()
    local risks = entry.risks and json.encode(entry.risks) or ""
    write(self, key, ("%.0f%s%s"):format(generation, letters[entry.list], risks))
  end
  local state = "%.0f %.3f %d %d %d"
  write(self, "state", state:format(generation, at, counts.blacklist, counts.whitelist, #content.invalid))
end

local M = {}

---@param dict table an ngx.shared dict
---@param prefix string of the keys
---@return riskscreen.nginx.ListStore
function M.new(dict, prefix)
  return setmetatable({ dict = dict, prefix = prefix }, Store)
end

return M
