-- The digests against the vectors of their standards. Those without the core are in in_nginx/digest_nginx.lua.
local digest = require "riskscreen.address.digest"

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

describe("a digest", function()
  it("is that of the standard", function()
    for name, cases in pairs(vectors) do
      for text, wanted in pairs(cases) do
        assert.equal(wanted, hexadecimal(digest[name](text)))
      end
    end
  end)

  it("and a secret are compared as a whole", function()
    assert.is_true(digest.equal("secret", "secret"))
    for _, given in ipairs { "", "secre", "secret2", "Secret", "secretsecret" } do
      assert.is_false(digest.equal(given, "secret"), given)
    end
  end)
end)
