local addresses = require "riskscreen.address"
local enums = require "riskscreen.interface.enums"
local index = require "riskscreen.lists.index"

local EVM = "0x12ae66cdc592e10b60f9097a7b0d3c59fce29876"

local function keys(...)
  local list = {}
  for _, place in ipairs(assert(index.places(...))) do
    list[#list + 1] = index.key(place)
  end
  return list
end

describe("the place of a list entry", function()
  it("is the network's one name and the canonical address", function()
    assert.same({ "eth:" .. EVM }, keys("0x12AE66CDc592e10B60f9097a7b0D3C59fce29876", "ethereum"))
  end)

  it("is every network whose format fits, without a network", function()
    assert.same({ "*:" .. EVM }, keys(EVM))
    assert.same({ "*:1BoatSLRHtKNngkdXEeobR76b53LETtpyT" }, keys "1BoatSLRHtKNngkdXEeobR76b53LETtpyT")
  end)

  it("has a spelling for each network that has its own", function()
    -- A script address of Bitcoin is also the old spelling of one of Litecoin.
    assert.same({
      "*:3P14159f73E4gFr7JterCCQh9QjiTjiZrG",
      "*:MVDCJxZd4A5VUm81QmeC1qf6U7LASsr7LT",
    }, keys "3P14159f73E4gFr7JterCCQh9QjiTjiZrG")
  end)

  it("is every spelling of a text where addresses are not checked", function()
    for _, address in ipairs { "cold-wallet-7", EVM:upper(), "3P14159f73E4gFr7JterCCQh9QjiTjiZrG" } do
      local found = {}
      for _, key in ipairs(keys(address, nil, false)) do
        assert.is_nil(found[key])
        found[key] = true
      end
      for _, network in ipairs(enums.values.network) do
        assert.is_true(found["*:" .. addresses.validate(address, network, false)], network)
      end
    end
  end)

  it("is none for a text that is no address, or an unknown network", function()
    assert.same({ nil, "'abc' is not an address of any network" }, { index.places "abc" })
    assert.matches("not an address of the network btc", (select(2, index.places(EVM, "btc"))))
    assert.matches("did you mean 'eth'", (select(2, index.places(EVM, "etj"))))
    local typo = EVM:gsub("ae66", "aE66")
    assert.is_nil((index.places(typo, "eth")))
    assert.same({ "eth:" .. EVM }, keys(typo, "eth", "format"))
  end)
end)

describe("an index in memory", function()
  local function with(...)
    local made = index.new()
    for _, entry in ipairs { ... } do
      made:add({ scope = entry[1], address = EVM }, entry[2], entry[3])
    end
    return made
  end

  it("finds an entry on its network alone", function()
    local made = with { "eth", "note", 0 }
    assert.same({ "note", false, 0 }, { made:find(EVM, "eth", 1) })
    assert.is_false(made:find(EVM, "bsc", 1))
    assert.is_false(made:find("0x" .. ("0"):rep(40), "eth", 1))
  end)

  it("does not find an entry from the second on at which it expires", function()
    local made = with { "*", "note", 100 }
    assert.same({ "note", true, 100 }, { made:find(EVM, "eth", 99) })
    assert.is_false(made:find(EVM, "eth", 100))
  end)

  it("finds the entry of the network where the one of every network has expired", function()
    assert.equal("own", with({ "*", "any", 5 }, { "eth", "own", 0 }):find(EVM, "eth", 10))
  end)

  it("keeps the entry that holds longer, and else the first", function()
    assert.same({ "b", true, 9 }, { with({ "*", "a", 5 }, { "*", "b", 9 }, { "*", "c", 7 }):find(EVM, "eth", 1) })
    assert.same({ "a", true, 0 }, { with({ "*", "a", 0 }, { "*", "b", 9 }):find(EVM, "eth", 1) })
    assert.same({ "b", true, 0 }, { with({ "*", "a", 9 }, { "*", "b", 0 }):find(EVM, "eth", 1) })
    assert.same({ "a", true, 5 }, { with({ "*", "a", 5 }, { "*", "b", 5 }):find(EVM, "eth", 1) })
    assert.equal(1, with({ "*", "a", 5 }, { "*", "b", 5 }).count)
  end)
end)
