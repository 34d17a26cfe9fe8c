-- Seals of texts in Redis. in_nginx/digest_nginx.lua has the codes without the core.
local seals = require "riskscreen.nginx.fleet.seal"

local KEYS = { "a secret of the fleet's gates", "another secret of them" }

describe("a seal", function()
  local own, other = seals.new(KEYS, "verdict"), seals.new(KEYS, "verdict")

  it("is that of any other machine", function()
    for _, text in ipairs { "", "text", ("x"):rep(1000) } do
      local sealed = own:close("label", text)
      assert.equal(other:close("label", text), sealed)
      assert.equal(text, own:open("label", sealed))
      assert.equal(text, other:open("label", sealed))
    end
  end)

  it("is by the first key, and those by any key are accepted", function()
    local sealed = seals.new({ KEYS[2] }, "verdict"):close("label", "text")
    assert.are_not.equal(sealed, own:close("label", "text"))
    assert.equal("text", own:open("label", sealed))
  end)

  it("holds for no other text, label, purpose or key", function()
    local sealed = own:close("label", "text")
    for _, other_text in ipairs { "text", "", ("x"):rep(31), ("x"):rep(32) } do
      assert.is_nil(own:open("label", other_text))
    end
    for index = 1, #sealed do
      local changed = string.char((sealed:byte(index) + 1) % 256)
      assert.is_nil(own:open("label", sealed:sub(1, index - 1) .. changed .. sealed:sub(index + 1)))
    end
    assert.is_nil(own:open("label", "u" .. sealed:sub(2)))
    assert.is_nil(own:open("abel", "l" .. sealed))
    assert.is_nil(own:open("label2", sealed))
    assert.is_nil(seals.new(KEYS, "purge"):open("label", sealed))
    assert.is_nil(seals.new({ "a secret of other gates" }, "verdict"):open("label", sealed))
  end)
end)
