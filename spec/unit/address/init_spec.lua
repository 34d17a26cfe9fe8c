-- The formats of addresses, by network.
local addresses = require "riskscreen.sandbox.addresses"
local enums = require "riskscreen.interface.enums"
local address_rules = require "riskscreen.address"

describe("an address", function()
  local function is_well_formed(address, network)
    return address_rules.problem(address, network) == nil
  end

  it("has a format on every network of the interface", function()
    for _, network in ipairs(enums.values.network) do
      local _, field = address_rules.problem("", network)
      assert.equal("address", field, network)
    end
  end)

  it("has the format of its network", function()
    for _, network in ipairs { "tron", "btc", "solana", "doge", "ltc", "eth" } do
      for _, level in ipairs { "clean", "low", "generally-high", "high" } do
        assert.is_true(is_well_formed(addresses[level .. "-" .. network], network), level .. "-" .. network)
      end
    end
    local hexadecimal = addresses["clean-eth"]
    for _, network in ipairs { "ethereum", "bsc", "polygon", "arbitrum", "optimism", "avalanche", "base", "zksync" } do
      assert.is_true(is_well_formed(hexadecimal, network), network)
    end
    assert.is_true(is_well_formed(hexadecimal:lower(), "eth"))
    assert.is_true(is_well_formed("0X" .. hexadecimal:sub(3):upper(), "eth"))
  end)

  it("is refused in any other spelling", function()
    local eth, btc, tron = addresses["high-eth"], addresses["high-btc"], addresses["high-tron"]
    for _, case in ipairs {
      { eth:sub(3), "eth" },
      { eth .. "0", "eth" },
      { eth:sub(1, -2), "eth" },
      { " " .. eth, "eth" },
      { eth .. "\n", "eth" },
      { eth .. "\0", "eth" },
      { eth:gsub("E", "\208\149"), "eth" },
      { "vitalik.eth", "eth" },
      { "ethereum:" .. eth, "eth" },
      { btc:upper(), "btc" },
      { btc:sub(1, 4) .. btc:sub(5):upper(), "btc" },
      { "bitcoin:" .. btc, "btc" },
      { tron:lower(), "tron" },
      { "41" .. ("a"):rep(40), "tron" },
      { "0x" .. ("a"):rep(40), "tron" },
      { tron, "eth" },
      { eth, "btc" },
      { "", "eth" },
      { 12, "eth" },
      { { eth }, "eth" },
      { ("1"):rep(5000), "solana" },
    } do
      assert.is_false(is_well_formed(case[1], case[2]), tostring(case[1]))
    end
    assert.is_false(is_well_formed(nil, "eth"))
  end)

  it("needs a network of the interface", function()
    for _, network in ipairs { "ETH", "Ethereum", "eth ", "", "dogecoin" } do
      assert.is_false(is_well_formed(addresses["clean-eth"], network), network)
    end
    assert.is_false(is_well_formed(addresses["clean-eth"], nil))
    for _, network in ipairs(enums.values.network) do
      assert.matches("the address", (address_rules.problem("?", network)))
    end
  end)
end)
