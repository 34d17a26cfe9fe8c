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

return M
