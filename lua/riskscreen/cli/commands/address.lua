-- riskscreen address check and networks: spellings and checksums of addresses, and the networks, without the service.

local addresses = require "riskscreen.address"
local enums = require "riskscreen.interface.enums"
local lookups = require "riskscreen.policy.lookups"
local status = require "riskscreen.cli.status"

local columns = { "address", "valid", "networks", "canonical", "problem" }

-- The record about a text, on a network or on all.
local function examined(address, network)
  local networks = network and { network } or addresses.networks_of(address)
  local problem = "it is an address of no network; -n NETWORK explains why it is none of that network"
  local canonical
  if networks[1] then
    canonical, problem = addresses.validate(address, networks[1])
  end
  local record = { address = address, valid = canonical ~= nil, canonical = canonical, problem = problem }
  record.networks = canonical and networks
  return record
end

local function run(context)
  local records, code = {}, status.done
  for index, address in ipairs(context.arguments.address) do
    records[index] = examined(address, context:network())
    code = records[index].valid and code or status.block
  end
  context:write_records(columns, records)
  return code
end

local function run_networks(context)
  local records = {}
  for index, network in ipairs(enums.values.network) do
    local canonical, offered = addresses.canonical_network(network), {}
    for _, lookup in ipairs(lookups.list) do
      offered[#offered + 1] = lookups.applies(lookup, network) and lookup.name or nil
    end
    local same_as = canonical ~= network and canonical or nil
    records[index] = { network = network, same_as = same_as, lookups = offered }
  end
  context:write_records({ "network", "same_as", "lookups" }, records)
end

return {
  {
    name = "networks",
    summary = "List the networks, with what the service offers for each.",
    examples = { { line = "networks", what = "The names that -n takes" } },
    run = run_networks,
  },
  {
    name = "address check",
    summary = "Check the spelling and the checksum of addresses, without a call.",
    arguments = { { name = "address", count = "+", doc = "Texts to check." } },
    examples = {
      { line = "address check 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", what = "The networks of an address" },
      { line = "address check 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD -n eth", what = "Why a text is no address" },
    },
    statuses = { done = "every text is an address", block = "a text is not an address" },
    run = run,
  },
}
