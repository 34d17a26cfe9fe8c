-- The spellings of one address, by network. The first is canonical or the service's own.
local addresses = require "riskscreen.address"
local scenarios = require "riskscreen.sandbox.scenario_addresses"

local CLEAN = scenarios["clean-eth"]

local spellings = {
  eth = { CLEAN, CLEAN:lower(), "0x" .. CLEAN:sub(3):upper() },
  btc = { scenarios["clean-btc"], scenarios["clean-btc"]:upper() },
  ltc = { "3MSvaVbVFFLML86rt5eqgA9SvW23upaXdY", "MTf4tP1TCNBn8dNkyxeBVoPrFCcVzxJvvh" },
  tron = { "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "41a614f803b6fd780986a42c78ec9c7f77e6ded13c" },
  iotex = { "io1mflp9m6hcgm2qcghchsdqj3z3eccrnekx9p0ms", "0xda7e12ef57c236a06117c5e0d04a228e7181cf36" },
  doge = { scenarios["clean-doge"] },
  solana = { scenarios["clean-solana"] },
}
for network in pairs(addresses.network_names) do
  spellings[network] = spellings[network] or (addresses.is_evm(network) and spellings.eth or nil)
end

return spellings
