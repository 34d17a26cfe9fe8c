-- One account's blacklist or whitelist: entries in the order they came, one for each address and network.
local enums = require "riskscreen.interface.enums"
local verdicts = require "riskscreen.sandbox.verdicts"

---@class riskscreen.sandbox.ListEntry
---@field address string as it was added
---@field network? string an entry without one holds on every network
---@field risks? table[]|lightuserdata
---@field created_at integer seconds since the Unix epoch

---@class riskscreen.sandbox.List
---@field private entries riskscreen.sandbox.ListEntry[]
---@field private positions table<string, integer>
local List = {}
List.__index = List

local function key_of(address, network)
  return verdicts.canonical(address) .. "\0" .. (network and enums.canonical_network(network) or "")
end

---Adds an entry; one for the same address and network takes the old one's place.
---@param entry riskscreen.sandbox.ListEntry
function List:add(entry)
  local key = key_of(entry.address, entry.network)
  local position = self.positions[key] or #self.entries + 1
  self.entries[position], self.positions[key] = entry, position
end

---Removes the entry of an address.
---@param address string
---@param network? string
---@return boolean # whether there was one
function List:remove(address, network)
  local position = self.positions[key_of(address, network)]
  if not position then
    return false
  end
  table.remove(self.entries, position)
  self.positions = {}
  for index, entry in ipairs(self.entries) do
    self.positions[key_of(entry.address, entry.network)] = index
  end
  return true
end

---The entry that holds for an address on a network.
---@param address string
---@param network string
---@return riskscreen.sandbox.ListEntry?
function List:find(address, network)
  return self.entries[self.positions[key_of(address, network)] or self.positions[key_of(address)]]
end

---One page of the list.
---@param number integer
---@param size integer
---@return riskscreen.sandbox.ListEntry[] entries
---@return table pagination as the interface spells it
function List:page(number, size)
  local page = {}
  for index = (number - 1) * size + 1, math.min(number * size, #self.entries) do
    page[#page + 1] = self.entries[index]
  end
  return page,
    {
      current_page = number,
      per_page = size,
      total_pages = math.ceil(#self.entries / size),
      total_items = #self.entries,
    }
end

local M = {}

---An empty list.
---@return riskscreen.sandbox.List
function M.new()
  return setmetatable({ entries = {}, positions = {} }, List)
end

return M
