-- The index of lists: under which network and which spelling an address is kept and found. Local lists and the gate's
-- copy of the account's lists share it. Addresses are canonical, as riskscreen.address writes them. Pure.
local addresses = require "riskscreen.address"
local enums = require "riskscreen.interface.enums"
local text = require "riskscreen.util.text"

local M = {
  ---The scope of an entry that holds on every network.
  ANY = "*",
}

---@class riskscreen.ListPlace where an entry is kept
---@field scope string a network, or "*" for every network
---@field address string canonical

local function everywhere(address, level)
  local places = {}
  local spellings = level == false and (addresses.keys(address) or {}) or addresses.spellings(address, level)
  for position, spelling in ipairs(spellings) do
    places[position] = { scope = M.ANY, address = spelling }
  end
  if places[1] then
    return places
  end
  return nil, ("%s is not an address of any network"):format(text.show(address))
end

---The places of an entry. Without a network it holds on every network whose format fits; a network may have a canonical
---spelling of its own.
---@param address any
---@param network string|nil
---@param level? "checksum"|"format"|false how the address is checked
---@return riskscreen.ListPlace[]|nil places
---@return string|nil problem
function M.places(address, network, level)
  if network == nil then
    return everywhere(address, level)
  elseif not enums.has("network", network) then
    local hint = addresses.did_you_mean(network, enums.values.network)
    return nil, ("the network %s is not one that the service knows%s"):format(text.show(network), hint)
  end
  local canonical, problem = addresses.validate(address, network, level)
  return canonical and { { scope = addresses.canonical_network(network), address = canonical } }, problem
end

---The keys under which an entry about an address may be kept: on every network, and on this one.
---@param address string canonical
---@param network string canonical
---@return string everywhere
---@return string here
function M.keys(address, network)
  return M.ANY .. ":" .. address, network .. ":" .. address
end

---The key of a place.
---@param place riskscreen.ListPlace
---@return string
function M.key(place)
  return place.scope .. ":" .. place.address
end

---@class riskscreen.ListIndex entries in memory, for lists that are not compiled
---@field count integer
---@field private notes table<string, string> by key
---@field private expiries table<string, number> by key; Unix seconds
local Index = {}
Index.__index = Index

---Adds an entry. Of two entries with the same place, the one that holds longer is kept, or else the first.
---@param place riskscreen.ListPlace
---@param note string
---@param expires number Unix seconds, or 0 for never
function Index:add(place, note, expires)
  local key = M.key(place)
  local known = self.notes[key] and self.expiries[key] or 0
  if not self.notes[key] then
    self.count = self.count + 1
  elseif known == 0 or (expires ~= 0 and expires <= known) then
    return
  end
  self.notes[key] = note
  self.expiries[key] = expires ~= 0 and expires or nil
end

---The entry about an address that has not expired. A compiled list answers in the same way.
---@param address string canonical
---@param network string canonical
---@param now number Unix seconds
---@return string|false|nil note false without an entry; nil where the list cannot be read
---@return boolean|string|nil any_network, or the reason why the list cannot be read
---@return number|nil expires Unix seconds, or 0
function Index:find(address, network, now)
  local any, own = M.keys(address, network)
  for _, key in ipairs { any, own } do
    if self.notes[key] and (self.expiries[key] or math.huge) > now then
      return self.notes[key], key == any, self.expiries[key] or 0
    end
  end
  return false
end

---@return riskscreen.ListIndex
function M.new()
  return setmetatable({ count = 0, notes = {}, expiries = {} }, Index)
end

return M
