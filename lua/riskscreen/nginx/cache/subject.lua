-- What a verdict is remembered under: one address on one chain, whatever the spelling of either. Pure.
local enums = require "riskscreen.interface.enums"
local text = require "riskscreen.util.text"

local byte, lower, type = string.byte, string.lower, type

local ZERO, SMALL_X, LARGE_X = byte "0", byte "x", byte "X"
local LONGEST = 1024 -- bytes; no address is as long, and keys have room for more

---@class riskscreen.nginx.Subject
---@field key string the same for all spellings, and for nothing else
---@field address string canonical
---@field network string canonical
---@field is_hexadecimal boolean the address has no case

local is_hexadecimal_from = text.made_of "0-9a-fA-F"

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
---@return string|nil address as subject.canonical_address has it
---@return string network
---@return boolean is_hexadecimal
function M.canonical(address, network)
  local canonical_network = network and canonical_networks[network]
  if type(address) ~= "string" or address == "" or #address > LONGEST or not canonical_network then
    return nil, "", false
  end
  local first, second = byte(address, 1, 2)
  if first == ZERO and (second == SMALL_X or second == LARGE_X) and is_hexadecimal_from(address, 3) then
    return lower(address), canonical_network, true
  end
  return address, canonical_network, false
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
