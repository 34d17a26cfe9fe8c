-- Any bytes as a query. If the C core finds a subject in it, then sources.lua and address/ find the same one.
local addresses = require "riskscreen.address"
local parameters = require "riskscreen.nginx.input.parameters"
local query_key = require "riskscreen.nginx.input.query_key"

local PREFIX = "riskscreen:"

local ways = {}
for _, names in ipairs { { "address", "network" }, { "to", "on" }, { "pay_to", "Net-1" } } do
  ways[#ways + 1] = {
    read_key = assert(query_key.reader(names[1], names[2], PREFIX)),
    read_address = parameters.reader(names[1]),
    read_network = parameters.reader(names[2]),
  }
end

return function(query)
  for _, way in ipairs(ways) do
    local key, network = way.read_key(query)
    if key then
      local address, network_name = assert(way.read_address(query)), assert(way.read_network(query))
      for _, level in ipairs { "checksum", "format", false } do
        assert(addresses.validate(address, network_name, level) == address, "an address that is not canonical")
      end
      assert(addresses.network_names[network_name] == network, "another network")
      assert(key == PREFIX .. network .. ":" .. address, "another key")
    end
  end
end
