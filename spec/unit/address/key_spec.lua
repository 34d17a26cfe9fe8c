-- Everything that is kept about an address is kept under one key, whatever the spelling of address and network.
local addresses = require "riskscreen.address"
local random = require "spec.support.random"
local spellings = require "spec.support.spellings"

describe("the key of an address", function()
  local function check(address)
    local canonical = addresses.normalize(address)
    assert.same({ "eth:" .. canonical, canonical, "eth" }, { addresses.key(address, "ethereum") })
  end

  it("has the canonical address, also of odd texts", function()
    for _, address in ipairs {
      "0",
      "x",
      "0x",
      "0X",
      "0xA",
      "0XaF",
      "0xg",
      "0xAB\0",
      "0x\0AB",
      "0xAB\0CD",
      "0xAB ",
      " 0xAB",
      "0x0xAB",
      "1xAB",
      "0x" .. ("F"):rep(126),
    } do
      check(address)
    end
  end)

  it("has the canonical address of any text", function()
    local pick = random.new(7).pick
    local bytes = { "0", "9", "a", "f", "g", "A", "F", "G", "x", "X", "\0", " ", "/", ":", "@", "`", "\200" }
    for _ = 1, 3000 do
      local address = pick { "0x", "0X", "" }
      for _ = 1, pick { 1, 2, 5 } do
        address = address .. pick(bytes)
      end
      check(address)
    end
  end)

  it("is one for all spellings, and another one on another chain", function()
    local seen = {}
    for network, name in pairs(addresses.network_names) do
      local list = assert(spellings[network], network)
      local key = addresses.key(list[1], network)
      for _, spelling in ipairs(list) do
        assert.equal(key, (addresses.key(spelling, network)))
        assert.equal(key, (addresses.key(spelling, name, "checksum")))
      end
      assert.is_true(seen[key] == nil or seen[key] == name)
      seen[key] = name
    end
  end)

  it("of a text with a wrong checksum is nil where it is checked", function()
    local wrong = "0x52908400098527886e0F7030069857d2e4169ee7"
    assert.is_nil((addresses.key(wrong, "eth", "checksum")))
    assert.equal("eth:" .. wrong:lower(), (addresses.key(wrong, "eth", "format")))
  end)

  it("is nil if the service cannot know the address", function()
    local too_long = ("a"):rep(129)
    for _, wrong in ipairs { { "", "eth" }, { too_long, "eth" }, { "0xab", "nowhere" }, { 5, "eth" }, { "0xab" } } do
      assert.is_nil((addresses.key(wrong[1], wrong[2])))
    end
  end)
end)
