-- The reader of queries, as Lua without an FFI calls it. spec/unit/nginx/input/query_key_spec.lua tests its results.
local core = require "riskscreen.core"

local ADDRESS = "0x00112233445566778899aabbccddeeff00112233"
local QUERY = "address=" .. ADDRESS .. "&network=eth"

describe("a reader of queries", function()
  it("returns the number of the network and the key", function()
    local reader = core.query_reader("address", "network", "prefix:")
    assert.is_true(reader:add_network("bsc", "bsc"))
    assert.is_true(reader:add_network("eth", "ethereum"))
    assert.same({ 2, "prefix:ethereum:" .. ADDRESS }, { reader:read(QUERY) })
    assert.same({ 0 }, { reader:read "address=0x0&network=eth" })
  end)

  it("refuses networks for which it has no room", function()
    local reader = core.query_reader("address", "network", "")
    for number = 1, 64 do
      assert.is_true(reader:add_network("net" .. number, "net"))
    end
    assert.is_false(reader:add_network("eth", "eth"))
    assert.same({ 0 }, { reader:read(QUERY) })
    for _, name in ipairs { "", ("x"):rep(65) } do
      assert.is_false(core.query_reader("address", "network", ""):add_network(name, "eth"))
    end
  end)

  it("raises for values of other types", function()
    local reader = core.query_reader("address", "network", "")
    assert.has_error(function()
      reader:read(nil)
    end)
    assert.has_error(function()
      reader.read(io.stdout, QUERY)
    end)
    assert.has_error(function()
      core.query_reader("address", {}, "")
    end)
  end)
end)
