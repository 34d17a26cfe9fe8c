-- Seals of texts in Redis, with the core and without it.
local KEYS = { "a secret of the fleet's gates", "another secret of them" }

-- The module as it is where the core is not compiled.
local function load_without_core()
  local names, kept = { "riskscreen.util.core", "riskscreen.nginx.fleet.seal" }, {}
  for index, name in ipairs(names) do
    kept[index], package.loaded[name] = package.loaded[name], nil
  end
  package.loaded[names[1]] = false
  local seals = require(names[2])
  for index, name in ipairs(names) do
    package.loaded[name] = kept[index]
  end
  return seals
end

local compiled, in_lua = require "riskscreen.nginx.fleet.seal", load_without_core()

for name, pair in pairs { ["with the core"] = { compiled, in_lua }, ["without the core"] = { in_lua, compiled } } do
  describe("a seal " .. name, function()
    local own, other = pair[1].new(KEYS, "verdict"), pair[2].new(KEYS, "verdict")

    it("is that of any other machine", function()
      for _, text in ipairs { "", "text", ("x"):rep(1000) } do
        local sealed = own:close("label", text)
        assert.equal(other:close("label", text), sealed)
        assert.equal(text, own:open("label", sealed))
        assert.equal(text, other:open("label", sealed))
      end
    end)

    it("is by the first key, and those by any key are accepted", function()
      local sealed = pair[2].new({ KEYS[2] }, "verdict"):close("label", "text")
      assert.are_not.equal(sealed, own:close("label", "text"))
      assert.equal("text", own:open("label", sealed))
    end)

    it("holds for no other text, label, purpose or key", function()
      local sealed = own:close("label", "text")
      assert.is_nil(own:open("label", "text"))
      assert.is_nil(own:open("label", "u" .. sealed:sub(2)))
      assert.is_nil(own:open("abel", "l" .. sealed))
      assert.is_nil(own:open("label2", sealed))
      assert.is_nil(pair[1].new(KEYS, "purge"):open("label", sealed))
      assert.is_nil(pair[1].new({ "a secret of other gates" }, "verdict"):open("label", sealed))
    end)
  end)
end
