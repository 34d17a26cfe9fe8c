local core = require("riskscreen.core")

local function hex(bytes)
  return (bytes:gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end

-- The message, its SHA-256 (FIPS 180-4) and its Keccak-256 (the original padding).
local VECTORS = {
  {
    "",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
  },
  {
    "abc",
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45",
  },
  {
    "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    "45d3b367a6904e6e8d502ee04999a7c27647f91fa845d456525fd352ae3d7371",
  },
  {
    "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
      .. "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
    "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
    "f519747ed599024f3882238e5ab43960132572b7345fbeb9a90769dafd21ad67",
  },
  {
    ("a"):rep(1000000),
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
    "fadae6b49f129bbb812be8407b7b2894f34aecf6dbd1f9b0f0c7e9853098fc96",
  },
  {
    ("a"):rep(55),
    "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318",
    "bb17c0a497f956eb60406de77632af5a598833dac1d41a5f171943dc6aaa519a",
  },
  {
    ("a"):rep(56),
    "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a",
    "86e098d28db0370fc43ce9ced16fa20fd031f0f85f2c200dfc615a46661c4647",
  },
  {
    ("a"):rep(63),
    "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34",
    "665d33bbec07cf132a7ac9b1724f4027d12fcba1e506332fa68b247329ed6de4",
  },
  {
    ("a"):rep(64),
    "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb",
    "1036d73cc8350b0635393d79759b10488165e792073f84d4462e22edec243b92",
  },
  {
    ("a"):rep(65),
    "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0",
    "c970b103fd7a66de650b6fc134af4bbf8cb7445d7ff7b32150975686ba7a47a6",
  },
  {
    ("a"):rep(135),
    "dfa58dfd72f3c7080d0249a7758fd3636872f63fa24b18473ed36f031e248347",
    "34367dc248bbd832f4e3e69dfaac2f92638bd0bbd18f2912ba4ef454919cf446",
  },
  {
    ("a"):rep(136),
    "6f0e44b9ce4ea61d52a3479c10f60ef916937f799f11964b7f1c7771063905c4",
    "a6c4d403279fe3e0af03729caada8374b5ca54d8065329a3ebcaeb4b60aa386e",
  },
  {
    ("a"):rep(137),
    "b6dc2da678c065ebdce374ebe1842728277203ee1a9a29832f058cf013d5ad85",
    "d869f639c7046b4929fc92a4d988a8b22c55fbadb802c0c66ebcd484f1915f39",
  },
}

for i, name in ipairs { "sha256", "keccak256" } do
  local digest = core[name]

  describe("core." .. name, function()
    for _, vector in ipairs(VECTORS) do
      it(("hashes %q"):format(#vector[1] > 12 and #vector[1] .. " bytes" or vector[1]), function()
        assert.equal(vector[i + 1], hex(digest(vector[1])))
      end)
    end

    it("hashes NUL bytes", function()
      assert.equal(32, #digest("\0"))
      assert.are_not.equal(digest("\0"), digest("\0\0"))
      assert.are_not.equal(digest(""), digest("\0"))
    end)

    it("raises when the text is not a string", function()
      assert.error_matches(digest, "bad argument #1")
      assert.error_matches(function()
        digest(1)
      end, "string expected, got number")
    end)
  end)
end

describe("core.keccak256", function()
  it("gives the checksum letters of EIP-55", function()
    local address = "5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"
    local digits = hex(core.keccak256(address))
    local spelled = address:gsub("()(%x)", function(at, digit)
      return tonumber(digits:sub(at, at), 16) >= 8 and digit:upper() or digit
    end)
    assert.equal("5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", spelled)
  end)
end)

describe("core.hmac", function()
  local KEY = ("k"):rep(32)

  -- RFC 4231, test case 2.
  it("computes the code of texts in a row", function()
    local hmac, expected = core.hmac "Jefe", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert.equal(expected, hex(hmac:code "what do ya want for nothing?"))
    assert.equal(expected, hex(hmac:code("what do ya ", "", "want for nothing?")))
  end)

  it("is that of RFC 4231 for a key longer than a block", function()
    assert.equal(
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
      hex(core.hmac(("\170"):rep(131)):code "Test Using Larger Than Block-Size Key - Hash Key First")
    )
  end)

  it("refuses what is no text", function()
    assert.error_matches(core.hmac, "bad argument #1")
    assert.error_matches(function()
      core.hmac(KEY):code {}
    end, "string expected")
    assert.error_matches(function()
      core.hmac(KEY).code({}, "text")
    end, "riskscreen.Hmac expected")
  end)
end)
