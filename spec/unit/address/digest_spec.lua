-- The digests against the vectors of their standards, in the core and in Lua.
local digest = require "riskscreen.address.digest"
local random = require "spec.support.random"

local function hexadecimal(bytes)
  return (bytes:gsub(".", function(one)
    return ("%02x"):format(one:byte())
  end))
end

local vectors = {
  sha256 = {
    [""] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    -- luacheck: ignore 631
    abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
  },
  keccak256 = {
    [""] = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
    abc = "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45",
    ["The quick brown fox jumps over the lazy dog"] = "4d741b6f1eb29cb2a9b9911c82f56fa8d73b04959d3d9d222895df6c0b28aa15",
  },
}

local kinds = { "of_sums" }
if rawget(_G, "jit") then
  kinds[2] = "of_luajit"
elseif math.type then -- luacheck: ignore 143
  kinds[2] = "of_operators"
end

describe("a digest", function()
  it("is that of the standard", function()
    for name, cases in pairs(vectors) do
      for text, wanted in pairs(cases) do
        assert.equal(wanted, hexadecimal(digest[name](text)))
      end
    end
  end)

  for _, kind in ipairs(kinds) do
    it("is the same in Lua, with bit operations " .. kind, function()
      local in_lua = digest.in_lua(kind)
      for name, cases in pairs(vectors) do
        for text, wanted in pairs(cases) do
          assert.equal(wanted, hexadecimal(in_lua[name](text)))
        end
      end
      -- Around the ends of the blocks of both digests.
      local bytes = random.new(1).integer
      for _, length in ipairs { 1, 55, 56, 63, 64, 65, 119, 120, 135, 136, 137, 271, 272, 300 } do
        local text = {}
        for index = 1, length do
          text[index] = string.char(bytes(256) - 1)
        end
        text = table.concat(text)
        assert.equal(hexadecimal(digest.sha256(text)), hexadecimal(in_lua.sha256(text)))
        assert.equal(hexadecimal(digest.keccak256(text)), hexadecimal(in_lua.keccak256(text)))
      end
    end)
  end

  it("is computed in Lua where the core is missing", function()
    local loaded, preload = package.loaded, package.preload
    local names, kept = { "riskscreen.core", "riskscreen.util.core", "riskscreen.address.digest" }, {}
    for _, name in ipairs(names) do
      kept[name], loaded[name] = loaded[name], nil
    end
    preload["riskscreen.core"] = function()
      error "compiled for another Lua"
    end
    local ok, without = pcall(require, "riskscreen.address.digest")
    preload["riskscreen.core"] = nil
    for _, name in ipairs(names) do
      loaded[name] = kept[name]
    end
    assert.is_true(ok)
    assert.not_equal(digest.sha256, without.sha256)
    assert.equal(vectors.sha256.abc, hexadecimal(without.sha256 "abc"))
    assert.equal(vectors.keccak256.abc, hexadecimal(without.keccak256 "abc"))
  end)
end)
