-- What a verdict is remembered under: one address on one chain, whatever the spelling of either. Pure.
local enums = require "riskscreen.enums"
local subject = require "riskscreen.subject"

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
for _, network in ipairs(enums.values.network) do
  if enums.canonical_network(network) == network then
    table.insert(M.networks, network)
  end
end

---What an address on a network is remembered under; nil for what no service could be asked.
---@param address any
---@param network any
---@return riskscreen.nginx.Subject|nil
function M.of(address, network)
  if type(address) ~= "string" or address == "" or #address > LONGEST or not enums.has("network", network) then
    return nil
  end
  local canonical_address, is_hexadecimal = subject.canonical_address(address)
  local canonical_network = enums.canonical_network(network)
  return {
    key = canonical_network .. ":" .. canonical_address,
    address = canonical_address,
    network = canonical_network,
    is_hexadecimal = is_hexadecimal,
  }
end

return M
