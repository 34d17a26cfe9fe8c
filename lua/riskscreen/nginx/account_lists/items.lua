-- Turns the items of both lists into one entry for each address; the blacklist wins where an address is on both. Pure.
local enums = require "riskscreen.interface.enums"
local index = require "riskscreen.lists.index"
local tables = require "riskscreen.util.tables"

---@class riskscreen.nginx.ListEntry
---@field list "blacklist"|"whitelist"
---@field risks? table[] of the blacklist; nil where the item gives no reason

local M = {}

-- A network that is not known is none: the entry holds on all networks.
local function known_network(network)
  return network ~= nil and enums.has("network", network) and network or nil
end

-- The places of an entry; none for a text that can be no address. The gate may accept texts with a wrong checksum. One
-- that checks the format alone spells such a text in another way than one without checks: these are the last places.
local function places_of(address, network)
  local known = known_network(network)
  return tables.concat(index.places(address, known, false) or {}, index.places(address, known, "format") or {})
end

-- The fields that a policy reads. Nil where the item has no risk: that must not become "an address without risk".
local function risks_of(item)
  if type(item.risks) ~= "table" or not item.risks[1] then
    return nil
  end
  local risks = {}
  for position, risk in ipairs(item.risks) do
    risks[position] = { riskLevel = risk.riskLevel, riskType = risk.riskType, riskSource = risk.riskSource }
  end
  return risks
end

-- The keys of a blacklist item: those of its network, and of the chains that its risks name.
local function keys_of(item)
  local keys = {}
  local function add_network(network)
    for _, place in ipairs(places_of(item.address, network)) do
      keys[index.key(place)] = true
    end
  end
  add_network(item.network)
  for _, risk in ipairs(type(item.risks) == "table" and item.risks or {}) do
    for _, chain in ipairs(type(risk.chains) == "table" and risk.chains or {}) do
      add_network(chain.chain)
    end
  end
  return keys
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
  if not index.places(address, known_network(network)) then
    table.insert(self.invalid, address == nil and "no address" or address)
  end
end

---@param list table[] items as the service lists them
function Content:blacklist(list)
  for _, item in ipairs(list) do
    check(self, item.address, item.network)
    for key in pairs(keys_of(item)) do
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
    -- Without a known network it holds nowhere.
    local places = known_network(item.chain) and places_of(item.address, item.chain) or {}
    local here, is_overruled = places[1] and index.key(places[1]), false
    for _, place in ipairs(places) do
      local everywhere, own = index.keys(place.address, place.scope)
      is_overruled = is_overruled or is_blacklisted(self, everywhere) or is_blacklisted(self, own)
    end
    if is_overruled then
      table.insert(self.overruled, here)
    elseif here then
      add(self, here, { list = "whitelist" })
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
