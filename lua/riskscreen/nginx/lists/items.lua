-- What the items of both lists come to: for each address one entry, of the blacklist where it is on both. Pure. What an
-- entry means for a request is the policy's to say (lists.lua); how it is kept is store.lua's.
local enums = require "riskscreen.interface.enums"
local canonical_address = require("riskscreen.address").canonical
local subjects = require "riskscreen.nginx.cache.subject"

---@class riskscreen.nginx.ListEntry
---@field list "blacklist"|"whitelist"
---@field risks? table[] of the blacklist: why; nil where the item does not say

local M = {}

---What an address is kept under; without a network, or with one that nobody knows, it holds on all of them.
---@param address any
---@param network any
---@return string|nil key nil for what can be no address
local function key_of(address, network)
  if network ~= nil and enums.has("network", network) then
    local known = subjects.of(address, network)
    return known and known.key
  end
  return subjects.of(address, "eth") and M.everywhere(address)
end

-- The fields that a policy looks at; nil where there is no risk, which must not be taken for an address without risk.
local function risks_of(item)
  if type(item.risks) ~= "table" or not item.risks[1] then
    return nil
  end
  local risks = {}
  for index, risk in ipairs(item.risks) do
    risks[index] = { riskLevel = risk.riskLevel, riskType = risk.riskType, riskSource = risk.riskSource }
  end
  return risks
end

-- Of two items about one address each says why, or the one that does not decides.
local function joined(entry, risks)
  if not entry then
    return { list = "blacklist", risks = risks }
  elseif entry.risks and risks then
    for _, risk in ipairs(risks) do
      table.insert(entry.risks, risk)
    end
    return entry
  end
  return { list = "blacklist" }
end

---The key of an entry that holds on every network.
---@param address string
---@return string
function M.everywhere(address)
  return "*:" .. canonical_address(address)
end

---@class riskscreen.nginx.ListContent
---@field entries table<string, riskscreen.nginx.ListEntry> by key
---@field overruled string[] keys of items of the whitelist whose address is on the blacklist, too
---@field counts { blacklist: integer, whitelist: integer } entries
local Content = {}
Content.__index = Content

local function add(self, key, entry)
  if not self.entries[key] then
    self.counts[entry.list] = self.counts[entry.list] + 1
  end
  self.entries[key] = entry
end

---@param list table[] items as the service lists them
function Content:blacklist(list)
  for _, item in ipairs(list) do
    local key = key_of(item.address, item.network)
    if key then
      add(self, key, joined(self.entries[key], risks_of(item)))
    end
  end
end

local function is_blacklisted(self, key)
  local entry = self.entries[key]
  return entry ~= nil and entry.list == "blacklist"
end

---All of the blacklist must be there already.
---@param list table[] items as the service lists them
function Content:whitelist(list)
  for _, item in ipairs(list) do
    local known = subjects.of(item.address, item.chain)
    if known and (is_blacklisted(self, M.everywhere(item.address)) or is_blacklisted(self, known.key)) then
      table.insert(self.overruled, known.key)
    elseif known then
      add(self, known.key, { list = "whitelist" })
    end
  end
end

---Lists without an item.
---@return riskscreen.nginx.ListContent
function M.new()
  return setmetatable({ entries = {}, overruled = {}, counts = { blacklist = 0, whitelist = 0 } }, Content)
end

return M
