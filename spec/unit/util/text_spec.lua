local text = require "riskscreen.util.text"

local networks = { "ethereum", "eth", "tron", "btc", "solana" }

describe("the nearest name", function()
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

  it("is nil when no candidate is near", function()
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

describe("a check of a text's characters", function()
  local is_made = text.made_of "a-cX1-2"

  it("refuses other characters", function()
    for _, made in ipairs { "a", "abcabc", "X", "12aX" } do
      assert.is_true(is_made(made), made)
    end
    for _, other in ipairs { "d", "abcd", "dabc", "x", "-", "a-c", "a\0", "\0a", "a\n", "\225", "3" } do
      assert.is_false(is_made(other), other)
    end
  end)

  it("refuses a text without characters", function()
    assert.is_false(is_made "")
    assert.is_false(is_made("a", 2))
    assert.is_false(is_made("a", 9))
  end)

  it("may begin at a later position", function()
    assert.is_true(is_made("0xab", 3))
    assert.is_false(is_made("0xab", 2))
    assert.is_false(is_made("0xad", 3))
  end)
end)
