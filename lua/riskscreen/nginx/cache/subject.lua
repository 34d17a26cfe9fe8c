-- What a verdict is remembered under: one address on one chain, whatever the spelling of either. Pure.
local addresses = require "riskscreen.address"
local enums = require "riskscreen.interface.enums"

local type = type

local LONGEST = 1024 -- bytes; no address is as long, and keys have room for more

---@class riskscreen.nginx.Subject
---@field key string the same for all spellings, and for nothing else
---@field address string canonical
---@field network string canonical
---@field is_hexadecimal boolean the address has no case

local M = {}

---Every network, under its one name.
---@type string[]
M.networks = {}

local canonical_networks = {}
for _, network in ipairs(enums.values.network) do
  canonical_networks[network] = enums.canonical_network(network)
  if enums.canonical_network(network) == network then
    table.insert(M.networks, network)
  end
end

---The one spelling of an address on a network; nil for what no service could be asked. Makes nothing but the text.
---@param address any
---@param network any
---@return string|nil address in its one spelling
---@return string network
---@return boolean is_hexadecimal
function M.canonical(address, network)
  local canonical_network = network and canonical_networks[network]
  if type(address) ~= "string" or address == "" or #address > LONGEST or not canonical_network then
    return nil, "", false
  end
  local canonical_address, is_hexadecimal = addresses.canonical(address)
  return canonical_address, canonical_network, is_hexadecimal
end

---What an address on a network is remembered under; nil for what no service could be asked.
---@param address any
---@param network any
---@return riskscreen.nginx.Subject|nil
function M.of(address, network)
  local canonical_address, canonical_network, is_hexadecimal = M.canonical(address, network)
  return canonical_address
    and {
      key = canonical_network .. ":" .. canonical_address,
      address = canonical_address,
      network = canonical_network,
      is_hexadecimal = is_hexadecimal,
    }
end

return M
