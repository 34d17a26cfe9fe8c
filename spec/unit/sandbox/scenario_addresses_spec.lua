local address_rules = require "riskscreen.address"
local enums = require "riskscreen.interface.enums"
local sandbox = require "riskscreen.sandbox"
local support = require "spec.support.sandbox"

describe("the example list of addresses", function()
  local rows = {}

  setup(function()
    local first = true
    for line in io.lines "examples/addresses.csv" do
      if first then
        assert.equal("address,network,label", line)
        first = false
      else
        local address, network, label = line:match "^([^,]+),([^,]+),([^,]+)$"
        table.insert(rows, { address = address, network = network, label = label })
      end
    end
  end)

  it("has at least 240 rows, each with an address, a network and a label", function()
    assert.is_true(#rows >= 240)
    for _, row in ipairs(rows) do
      assert.is_string(row.label)
    end
  end)

  it("has every network, and no other", function()
    local seen = {}
    for _, row in ipairs(rows) do
      assert.is_true(enums.has("network", row.network), row.network)
      seen[row.network] = true
    end
    for _, network in ipairs(enums.values.network) do
      assert.is_true(seen[network], network)
    end
  end)

  it("has addresses with right checksums only, as the scenarios have", function()
    for _, list in ipairs { rows, sandbox.scenarios } do
      for _, entry in ipairs(list) do
        assert.is_nil(address_rules.explain(entry.address, entry.network))
      end
    end
  end)

  it("has no address twice", function()
    local seen = {}
    for _, row in ipairs(rows) do
      assert.is_nil(seen[row.address:lower()])
      seen[row.address:lower()] = true
    end
  end)

  it("has no address that makes a request fail or wait", function()
    local client = sandbox.client {
      service = support.service(),
      sleep = function()
        error "a fault address is in the list"
      end,
    }
    for _, row in ipairs(rows) do
      local _, err = client.kya:risk { address = row.address, network = row.network }
      assert.is_true(not err or not err.kind or err.kind == "protocol")
    end
  end)
end)
