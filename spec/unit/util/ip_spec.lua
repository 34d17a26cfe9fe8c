local ip = require "riskscreen.util.ip"

describe("an IP network", function()
  local cases = {
    ["192.0.2.0/24"] = { within = { "192.0.2.1", "::ffff:192.0.2.255" }, without = { "192.0.3.1", "::192.0.2.1" } },
    ["10.128.0.0/9"] = { within = { "10.128.0.0", "10.255.255.255" }, without = { "10.127.255.255" } },
    ["0.0.0.0/0"] = { within = { "1.2.3.4" }, without = { "::1" } },
    ["198.51.100.7"] = { within = { "198.51.100.7" }, without = { "198.51.100.6" } },
    ["2001:db8:8000::/33"] = { within = { "2001:DB8:ffff::1" }, without = { "2001:db8:7fff::1" } },
    ["2001:db8::1"] = { within = { "2001:0db8:0:0:0:0:0:1" }, without = { "2001:db8::1:1" } },
    ["::ffff:10.0.0.0/104"] = { within = { "10.1.2.3" }, without = { "11.1.2.3" } },
    ["::/0"] = { within = { "::", "fe80::1" }, without = { "1.2.3.4", "::ffff:1.2.3.4" } },
  }

  for network, addresses in pairs(cases) do
    it("such as " .. network .. " has its addresses in each spelling, and no others", function()
      local networks = { assert(ip.network(network)) }
      for _, address in ipairs(addresses.within) do
        assert.is_true(ip.is_within(networks, address), address)
      end
      for _, address in ipairs(addresses.without) do
        assert.is_false(ip.is_within(networks, address), address)
      end
    end)
  end

  it("is compared with a text as long as all headers at once", function()
    local networks, started = { assert(ip.network "0.0.0.0/0") }, os.clock()
    for _, piece in ipairs { "1", "1.", "1:" } do
      assert.is_false(ip.is_within(networks, piece:rep(32768) .. "x"))
    end
    assert.is_true(os.clock() - started < 0.5)
  end)

  it("is none where programs could read another one, or none", function()
    local wrong = "1.2.3 1.2.3.256 010.0.0.1 1.2.3.4/33 ::/129 1:2:3:4:5:6:7 1:2:3:4::5:6:7:8 1::2::3 ::: 12345:: g:: "
      .. "::1.2.3 1.2.3.4:: f1.2.3.4"
    for text in wrong:gmatch "%S+" do
      assert.is_nil(ip.network(text), text)
    end
    assert.is_nil(ip.network "")
    assert.is_nil(ip.network(7))
  end)
end)
