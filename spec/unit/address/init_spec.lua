-- The formats, checksums and canonical spellings of addresses, by network, by the vectors of their standards.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local enums = require "riskscreen.interface.enums"
local address_rules = require "riskscreen.address"

local valid = {
  btc = {
    "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    "1111111111111111111114oLvT2",
    "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
    -- BIP-173 and BIP-350
    "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4",
    "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y",
    "BC1SW50QGDZ25J",
    "bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs",
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
  },
  eth = {
    -- EIP-55
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x27b1fdb04752bbc536007a920d24acb045561c26",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
  },
  tron = { "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "41a614f803b6fd780986a42c78ec9c7f77e6ded13c" },
  ltc = { "3MSvaVbVFFLML86rt5eqgA9SvW23upaXdY", "MTf4tP1TCNBn8dNkyxeBVoPrFCcVzxJvvh" },
  doge = { "DH5yaieqoZN36fDVciNyRueRGvGLR3mr7L" },
  solana = { "11111111111111111111111111111111", "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA" },
  iotex = { "io1mflp9m6hcgm2qcghchsdqj3z3eccrnekx9p0ms", "0xda7e12ef57c236a06117c5e0d04a228e7181cf36" },
}

-- BIP-173 and BIP-350
local invalid_segwit = {
  "tc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq5zuyut",
  "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
  "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd",
  "BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL",
  "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh",
  "bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4",
  "BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R",
  "bc1pw5dgrnzv",
  "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v8n0nx0muaewav253zgeav",
  "BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P",
  "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jJ0",
  "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf",
  "bc1gmk9yu",
  "BC13W508D6QEJXTDG4Y5R3ZARVARY0C5XW7KN40WF2",
  "bc1rw5uspcuh",
  "bc10w508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kw5rljs90",
  "bc1zw508d6qejxtdg4y5r3zarvaryvqyzf3du",
  "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5",
}

local clean_ltc = addresses["clean-ltc"]

describe("an address", function()
  local function is_well_formed(address, network)
    return address_rules.validate(address, network) ~= nil
  end

  it("has a format on every network of the interface", function()
    for _, network in ipairs(enums.values.network) do
      local _, _, field = address_rules.validate("", network)
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
      { btc:sub(1, 4) .. btc:sub(5):upper(), "btc" },
      { "bitcoin:" .. btc, "btc" },
      { tron:lower(), "tron" },
      { "42" .. ("a"):rep(40), "tron" },
      { "0x41" .. ("a"):rep(40), "tron" },
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
      local _, message, field = address_rules.validate("?", network)
      assert.matches("is not an address of the network " .. network, message, 1, true)
      assert.equal("address", field)
    end
  end)

  it("is accepted where a standard or its owner publishes it", function()
    for network, list in pairs(valid) do
      for _, address in ipairs(list) do
        assert.is_string(address_rules.validate(address, network))
        assert.is_nil((address_rules.explain(address, network)))
      end
    end
  end)

  it("is refused where a standard says so", function()
    for _, address in ipairs(invalid_segwit) do
      assert.is_nil(address_rules.validate(address, "btc"), address)
    end
  end)

  it("is refused with a wrong checksum, unless the format is all that counts", function()
    for _, case in ipairs {
      { "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "eth" },
      { "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb", "btc" },
      { "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5", "btc" },
      { "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u", "tron" },
      { "MTf4tP1TCNBn8dNkyxeBVoPrFCcVzxJvvi", "ltc" },
      { "DH5yaieqoZN36fDVciNyRueRGvGLR3mr7M", "doge" },
      { "io1mflp9m6hcgm2qcghchsdqj3z3eccrnekx9p0mq", "iotex" },
    } do
      local address, network = case[1], case[2]
      local canonical, problem, field = address_rules.validate(address, network)
      assert.is_nil(canonical)
      assert.matches("the checksum fails: is a letter wrong?", problem, 1, true)
      assert.equal("address", field)
      assert.is_string(address_rules.validate(address, network, "format"))
      assert.is_string(address_rules.validate(address, network, false))
    end
  end)

  it("is checked at known levels only", function()
    local ok, message = pcall(address_rules.validate, valid.eth[1], "eth", "strict")
    assert.is_false(ok)
    assert.matches("level must be 'checksum', 'format' or false (got 'strict')", message, 1, true)
  end)

  it("has one canonical spelling", function()
    for _, case in ipairs {
      { "eth", "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed" },
      { "eth", "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", "0X5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED" },
      { "btc", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4" },
      { "ltc", "MTf4tP1TCNBn8dNkyxeBVoPrFCcVzxJvvh", "3MSvaVbVFFLML86rt5eqgA9SvW23upaXdY" },
      { "ltc", clean_ltc, clean_ltc:upper() },
      {
        "iotex",
        "0xda7e12ef57c236a06117c5e0d04a228e7181cf36",
        "io1mflp9m6hcgm2qcghchsdqj3z3eccrnekx9p0ms",
        "IO1MFLP9M6HCGM2QCGHCHSDQJ3Z3ECCRNEKX9P0MS",
      },
      { "tron", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "41A614F803B6FD780986A42C78EC9C7F77E6DED13C" },
    } do
      local network, canonical = case[1], case[2]
      for index = 2, #case do
        assert.equal(canonical, (address_rules.validate(case[index], network)))
        assert.equal(canonical, (address_rules.normalize(case[index], network)))
      end
    end
    for network, other in pairs {
      btc = "3MSvaVbVFFLML86rt5eqgA9SvW23upaXdY",
      eth = "io1mflp9m6hcgm2qcghchsdqj3z3eccrnekx9p0ms",
      solana = "41a614f803b6fd780986a42c78ec9c7f77e6ded13c",
      ltc = "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4",
    } do
      assert.equal(other, (address_rules.normalize(other, network)))
    end
    assert.equal(valid.iotex[2], (address_rules.normalize(valid.iotex[1])))
  end)

  it("stays as it is where it is no address", function()
    for _, text in ipairs { "", "3", "BC1", "io1x", "LTC1", "41", "bc1QQ", "?", ("4"):rep(500) } do
      for _, network in ipairs(enums.values.network) do
        assert.equal(text, (address_rules.normalize(text, network)))
      end
      assert.equal(text, (address_rules.normalize(text)))
    end
  end)

  it("is checked again after others were", function()
    for round = 1, 2 do
      for number = 0, 20000 do
        local address = ("0x%040x"):format(number)
        assert.equal(address, (address_rules.validate(address, "eth")), round)
      end
    end
  end)

  it("has the networks on which it is one", function()
    assert.same({ "btc", "ltc" }, address_rules.networks_of "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy")
    assert.same({ "tron" }, address_rules.networks_of(addresses["clean-tron"]))
    assert.same({ "solana" }, address_rules.networks_of(addresses["clean-solana"]))
    assert.equal(16, #address_rules.networks_of(addresses["clean-eth"]))
    assert.same({}, address_rules.networks_of "?")
    assert.same({}, address_rules.networks_of(addresses["clean-tron"]:sub(1, -2) .. "H"))
    assert.same({ "tron" }, address_rules.networks_of(addresses["clean-tron"]:sub(1, -2) .. "H", "format"))
    assert.same({}, address_rules.networks_of(nil))
  end)

  it("says to a person why it is none", function()
    local eth, tron = addresses["clean-eth"], addresses["clean-tron"]
    for _, case in ipairs {
      { eth .. " ", "eth", "it has a space at its end" },
      { " " .. eth, "eth", "it has a space at its beginning" },
      { "\239\187\191" .. eth, "eth", "it has the invisible character U+FEFF (a byte order mark) at position 1" },
      { "\194\160" .. eth, "eth", "it has the invisible character U+00A0 (a no-break space) at position 1" },
      { eth .. "\226\128\139", "eth", "it has the invisible character U+200B (a zero-width space) at position 43" },
      { "0x\208\176" .. eth:sub(4), "eth", "it has the character U+0430 at position 3, which is not ASCII" },
      { eth .. "\255", "eth", "it has the byte 0xFF at position 43" },
      { eth .. "\0", "eth", "it has the control character U+0000 at position 43" },
      { "ethereum:" .. eth, "eth", "it begins with 'ethereum:'" },
      { '"' .. eth .. '"', "eth", "it has the character '\"' at position 1" },
      { eth .. ",eth", "eth", "it has the character ',' at position 43" },
      { "", "eth", "it is empty" },
      { eth:sub(1, -2), "eth", "it is 41 characters long, and a 0x address has 42" },
      { eth:sub(1, -2) .. "g", "eth", "it has the character 'g' at position 42, which is not hexadecimal" },
      { addresses["clean-tron"], "eth", "it looks like a tron address, and the network is eth" },
      { eth, "tron", "it looks like an EVM (0x…) address, and the network is tron" },
      { valid.btc[3], "doge", "it looks like a btc or an ltc address, and the network is doge" },
      { "x", "btc", "addresses of btc begin with 1, 3 or bc1" },
      { addresses["clean-tron"]:sub(1, -2), "tron", "it is 33 characters long, and a tron address has 34" },
      { "T0" .. tron:sub(3), "tron", "it has the character '0' at position 2, which Base58 does not use" },
      { "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3tB", "btc", "it mixes upper and lower case letters" },
      { "bc1pw5dgrnzv", "btc", "its witness program has a wrong length: is a letter missing?" },
      { eth, "dogecoin", "the network must be one that the service knows (got 'dogecoin')" },
      { 12, "eth", "the address must be a text (got a number)" },
    } do
      assert.equal(case[3], address_rules.explain(case[1], case[2]))
    end
  end)
end)

describe("the spellings of a text", function()
  it("are one for each network that spells the address in its own way", function()
    local spellings = address_rules.spellings "3P14159f73E4gFr7JterCCQh9QjiTjiZrG"
    assert.same({ "3P14159f73E4gFr7JterCCQh9QjiTjiZrG", "MVDCJxZd4A5VUm81QmeC1qf6U7LASsr7LT" }, spellings)
    local evm = ("0x%040X"):format(255)
    assert.same({ evm:lower() }, address_rules.spellings(evm))
    assert.same({}, address_rules.spellings "abc")
    assert.same({}, address_rules.spellings(nil))
  end)
end)
