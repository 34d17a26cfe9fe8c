-- The key of a query's subject. spec/fuzz/targets/query_key.lua compares it with the Lua code that reads any query.
local query_key = require "riskscreen.nginx.input.query_key"
local compare = require "spec.fuzz.targets.query_key"
local random = require "spec.support.random"

local ADDRESS = "0x00112233445566778899aabbccddeeff00112233"

local function read(query, address, network)
  return query_key.reader(address or "address", network or "network", "prefix:")(query)
end

describe("the key of a query", function()
  it("has the network's one name and the address", function()
    assert.same({ "prefix:eth:" .. ADDRESS, "eth" }, { read("address=" .. ADDRESS .. "&network=ethereum") })
    assert.same({ "prefix:bsc:" .. ADDRESS, "bsc" }, { read("network=bsc&address=" .. ADDRESS .. "&") })
  end)

  it("is found between other parameters", function()
    local query = "id=7f3a&address=" .. ADDRESS .. "&amount=1.5&memo=a+b%20c,d&network=polygon&note="
    assert.equal("prefix:polygon:" .. ADDRESS, (read(query)))
  end)

  it("is found by parameters of other names", function()
    assert.equal("prefix:eth:" .. ADDRESS, (read("to=" .. ADDRESS .. "&network=eth", "to")))
    assert.equal("prefix:eth:" .. ADDRESS, (read("pay_to=" .. ADDRESS .. "&the-net=eth", "pay_to", "the-net")))
  end)

  it("is not looked for in a query that another program could read in another way", function()
    local usual = "address=" .. ADDRESS .. "&network=eth"
    for _, more in ipairs {
      "&address=0x0",
      "&Address=0x0",
      "&network=tron",
      "&address[]=0x0",
      "&addr.ess=0x0",
      "&x;address=0x0",
      "?address=0x0",
      "#",
      "&x=\0",
      "&x=\n",
      "&%61ddress=0x0",
      "&a__b=1",
      "&\197\191=1",
    } do
      assert.is_nil(read(usual .. more))
    end
  end)

  it("is not looked for in a query that is not usual", function()
    for _, query in ipairs {
      "",
      "address=" .. ADDRESS,
      "network=eth",
      "address&network=eth",
      "address=" .. ADDRESS .. "&network",
      "address=" .. ADDRESS:upper() .. "&network=eth",
      "address=" .. ADDRESS:sub(1, -2) .. "&network=eth",
      "address=" .. ADDRESS .. "0&network=eth",
      "address=" .. ADDRESS:sub(1, -2) .. "g&network=eth",
      "address=" .. ADDRESS .. "&network=tron",
      "address=" .. ADDRESS .. "&network=ETH",
      "address=" .. ADDRESS .. "&network=eth&x=" .. ("y"):rep(1024),
    } do
      assert.is_nil(read(query))
    end
  end)

  it("needs names that lenient programs tell from others", function()
    for _, name in ipairs { "a.b", "a[b]", "_a", "a_", "a__b", "Network", "network", "a b", ("a"):rep(65) } do
      assert.is_nil(query_key.reader(name, "network", "prefix:"))
    end
    assert.is_nil(query_key.reader("address", "network", ("x"):rep(129)))
  end)

  it("is the same that the thorough way finds, in any mixture of pieces", function()
    local pick = random.new(7).pick
    local names = { "address", "network", "to", "on", "pay_to", "Net-1", "Address", "pay__to", "pay.to", "x", "%74o" }
    local values = { ADDRESS, ADDRESS, "eth", "eth", "base", "tron", "1.5", "a=b", "a;b", "", "%00", "?to=1" }
    for _ = 1, 3000 do
      local pairs_of = {}
      for index = 1, pick { 2, 2, 3, 4 } do
        pairs_of[index] = pick(names) .. pick { "=", "=", "=", "" } .. pick(values)
      end
      compare(table.concat(pairs_of, pick { "&", "&", "&", "&&", ";" }))
    end
  end)
end)
