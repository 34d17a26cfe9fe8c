local text = require "riskscreen.text"

local networks = { "ethereum", "eth", "tron", "btc", "solana" }

describe("the name that was meant", function()
  for word, meant in pairs {
    etherum = "ethereum",
    ETHEREUM = "ethereum",
    ehtereum = "ethereum",
    trn = "tron",
    tron2 = "tron",
    solona = "solana",
    bct = "btc",
  } do
    it(("is %s for %s"):format(meant, word), function()
      assert.equal(meant, text.nearest(word, networks))
    end)
  end

  it("is none where nothing is near", function()
    assert.is_nil(text.nearest("dogecoin", networks))
    assert.is_nil(text.nearest("", networks))
    assert.is_nil(text.nearest(("e"):rep(100), networks))
    assert.is_nil(text.nearest(5, networks))
  end)
end)

describe("printable text", function()
  it("has no control characters", function()
    assert.equal("a?b?c??", text.printable "a\nb\0c\r\127")
  end)

  it("is cut at a limit, never inside a character", function()
    assert.equal(("x"):rep(60) .. "...", text.printable(("x"):rep(61)))
    assert.equal(("x"):rep(59) .. "...", text.printable(("x"):rep(59) .. "\226\130\172"))
  end)
end)
