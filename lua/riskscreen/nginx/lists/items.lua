-- Turns the items of both lists into one entry for each address; the blacklist wins where an address is on both. Pure.
local addresses = require "riskscreen.address"
local enums = require "riskscreen.interface.enums"
local subjects = require "riskscreen.nginx.cache.subject"

---@class riskscreen.nginx.ListEntry
---@field list "blacklist"|"whitelist"
---@field risks? table[] of the blacklist; nil where the item gives no reason

local M = {}

-- The keys of an entry; none for a text that can be no address. Without a network, or with an unknown one, the entry
-- holds on all networks, and a network may have a canonical address of its own.
local function keys_of(address, network)
  if network ~= nil and enums.has("network", network) then
    return { (subjects.key(address, network)) }
  end
  local keys, seen = {}, {}
  for _, name in ipairs(subjects.networks) do
    local key, canonical = subjects.key(address, name)
    if key and not seen[canonical] then
      seen[canonical] = true
      keys[#keys + 1] = "*:" .. canonical
    end
  end
  return keys
end

-- The fields that a policy reads. Nil where the item has no risk: that must not become "an address without risk".
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

-- Joins two items about one address. An item without a reason decides alone.
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

---@class riskscreen.nginx.ListContent
---@field entries table<string, riskscreen.nginx.ListEntry> by key
---@field overruled string[] keys of whitelist items whose address is on the blacklist too
---@field counts { blacklist: integer, whitelist: integer } entries
---@field invalid any[] addresses of items that are none: no request can match them
local Content = {}
Content.__index = Content

local function add(self, key, entry)
  if not self.entries[key] then
    self.counts[entry.list] = self.counts[entry.list] + 1
  end
  self.entries[key] = entry
end

local function check(self, address, network)
  local is_address
  if network ~= nil and enums.has("network", network) then
    is_address = addresses.validate(address, network)
  else
    is_address = addresses.networks_of(address)[1]
  end
  if not is_address then
    table.insert(self.invalid, address == nil and "no address" or address)
  end
end

---@param list table[] items as the service lists them
function Content:blacklist(list)
  for _, item in ipairs(list) do
    check(self, item.address, item.network)
    for _, key in ipairs(keys_of(item.address, item.network)) do
      add(self, key, joined(self.entries[key], risks_of(item)))
    end
  end
end

local function is_blacklisted(self, key)
  local entry = self.entries[key]
  return entry ~= nil and entry.list == "blacklist"
end

---Adds items of the whitelist. The whole blacklist must have been added before.
---@param list table[] items as the service lists them
function Content:whitelist(list)
  for _, item in ipairs(list) do
    check(self, item.address, item.chain)
    local key, address = subjects.key(item.address, item.chain)
    if key and (is_blacklisted(self, "*:" .. address) or is_blacklisted(self, key)) then
      table.insert(self.overruled, key)
    elseif key then
      add(self, key, { list = "whitelist" })
    end
  end
end

---Empty lists.
---@return riskscreen.nginx.ListContent
function M.new()
  return setmetatable({
    entries = {},
    overruled = {},
    counts = { blacklist = 0, whitelist = 0 },
    invalid = {},
  }, Content)
end

return M
