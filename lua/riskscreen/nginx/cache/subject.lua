-- Networks and keys by which decisions and list entries are kept: the same for every spelling of an address. Pure.
local addresses = require "riskscreen.address"
local enums = require "riskscreen.interface.enums"

local LONGEST = 1024 -- bytes

local M = {}

---Every network, under its one name.
---@type string[]
M.networks = {}

---The one name of a network, by its names.
---@type table<string, string>
M.network_names = {}

for _, network in ipairs(enums.values.network) do
  local canonical = enums.canonical_network(network)
  M.network_names[network] = canonical
  if canonical == network then
    table.insert(M.networks, network)
  end
end

---@param address any
---@param network any
---@return string|nil key nil if the service cannot know the address or the network
---@return string address canonical
---@return string network canonical
function M.key(address, network)
  local canonical_network = network and M.network_names[network]
  if type(address) ~= "string" or address == "" or #address > LONGEST or not canonical_network then
    return nil, "", ""
  end
  local canonical_address = addresses.normalize(address, network)
  return canonical_network .. ":" .. canonical_address, canonical_address, canonical_network
end

---The canonical spellings of an address on a network, or on all networks, and the keys.
---@param address any
---@param network? any without it, all networks
---@return string[]|nil spellings nil if the service cannot know the address or the network
---@return string[] keys
function M.spellings(address, network)
  local keys, spellings, seen = {}, {}, {}
  for index, name in ipairs(network and { network } or M.networks) do
    local key, canonical = M.key(address, name)
    if not key then
      return nil, keys
    elseif not seen[canonical] then
      seen[canonical] = true
      spellings[#spellings + 1] = canonical
    end
    keys[index] = key
  end
  return spellings, keys
end

return M
