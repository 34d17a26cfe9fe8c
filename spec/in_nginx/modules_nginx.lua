-- How many modules a gate loads that has no optional parts: what one needs is what one loads.
local nginx = require "spec.support.nginx"

local MOST = 100

local HTTP = [[
lua_shared_dict riskscreen 1m;
init_by_lua_block {
  gate = require("riskscreen.nginx.gate").new {
    client = { base_url = "http://127.0.0.1", access_key = "key-71ab" }, dict = "riskscreen", on_unknown = "block",
  }
}
]]

local COUNT = [[
local names = {}
for name in pairs(package.loaded) do
  names[#names + 1] = name:match "^riskscreen" and name
end
table.sort(names)
return names
]]

describe("a gate", function()
  it("loads few modules", function()
    local server = nginx.start { http = HTTP }
    finally(function()
      server:stop()
    end)
    local names = server:eval(COUNT)
    assert.is_true(#names <= MOST, #names .. " modules: " .. table.concat(names, " "))
    for _, name in ipairs(names) do
      assert.is_nil(name:match "^riskscreen%.nginx%.answer$" or name:match "^riskscreen%.nginx%.decisions$")
    end
  end)
end)
