-- The digests inside nginx against the vectors of their standards. Without the core OpenSSL and LuaJIT compute them.
local core = require "riskscreen.core"
local nginx = require "spec.support.nginx"

describe("inside nginx", function()
  local server

  setup(function()
    server = nginx.start {}
  end)

  teardown(function()
    server:stop()
  end)

  local function hex(bytes)
    return (bytes:gsub(".", function(byte)
      return ("%02x"):format(byte:byte())
    end))
  end

  -- The result of an expression of a text, as hexadecimal digits.
  local function digest_of(expression, text)
    local code = "local digest, text = require 'riskscreen.address.digest', ... "
      .. "return require('riskscreen.util.text').hex("
      .. expression
      .. ")"
    return server:eval(code, text)
  end

  it("digests are those of the standards", function()
    local quick = "The quick brown fox jumps over the lazy dog"
    assert.equal(
      "d7a8fbb307d7809469ca9abcb0082e4f8d5651e46d3cdb762d02d0bf37c9e592",
      digest_of("digest.sha256(text)", quick)
    )
    assert.equal(
      "4d741b6f1eb29cb2a9b9911c82f56fa8d73b04959d3d9d222895df6c0b28aa15",
      digest_of("digest.keccak256(text)", quick)
    )
    -- RFC 4231: a short key, and one longer than a block.
    assert.equal(
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
      digest_of("digest.hmac('Jefe'):code('what do ya ', text)", "want for nothing?")
    )
    assert.equal(
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
      digest_of("digest.hmac(('\\170'):rep(131)):code(text)", "Test Using Larger Than Block-Size Key - Hash Key First")
    )
  end)

  it("digests of any length are the core's", function()
    -- Around the ends of the blocks of both digests.
    for _, length in ipairs { 0, 1, 55, 56, 63, 64, 65, 119, 120, 135, 136, 137, 271, 272, 300 } do
      local text = ("0123456789abcdefghi"):rep(16):sub(1, length)
      assert.equal(hex(core.sha256(text)), digest_of("digest.sha256(text)", text))
      assert.equal(hex(core.keccak256(text)), digest_of("digest.keccak256(text)", text))
    end
  end)
end)
