local locales = require "spec.support.locales"
local temporary = require "spec.support.temporary"
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

describe("a text with small letters", function()
  it("has them for A to Z alone", function()
    assert.equal("abcxyz-09 \196\176\221", text.lower "AbcXYZ-09 \196\176\221")
  end)

  it("is the same in every locale: services, headers and names are found", function()
    finally(temporary.clean)
    local lines = locales.run({ "tr_TR" }, "lower_in_locale")
    if lines[#lines] == "no locale" then
      pending "there is no localedef, or it lacks tr_TR"
    else
      assert.same({ lines[1], lines[1] }, lines)
    end
  end)
end)

describe("a number in a text", function()
  it("is read in every locale: scores of the sandbox, shares of claims", function()
    finally(temporary.clean)
    local lines = locales.run({ "de_DE" }, "numbers_in_locale")
    if lines[#lines] == "no locale" then
      pending "there is no localedef, or it lacks de_DE"
    else
      assert.same({ "95.00\ttrue", "95.00\ttrue" }, lines)
    end
  end)
end)

describe("headers", function()
  it("have their names in small letters, and one text for all values of a name", function()
    assert.same({ ["x-one"] = "a", two = "5" }, text.lower_names { ["X-One"] = "a", TWO = 5 })
    assert.same({ x = "a, b" }, text.lower_names { X = { "a", "b" } })
    assert.same({ x = "a, b" }, text.lower_names { X = "b", x = "a" })
    assert.same({ x = "a, b" }, text.lower_names { X = "a", x = "b" })
  end)
end)

describe("a number with its noun", function()
  it("has the noun's plural unless it is 1", function()
    local shown = {}
    for _, case in ipairs { { 1, "row" }, { 0, "row" }, { 2, "entry" }, { 1, "address" }, { 3, "address" } } do
      shown[#shown + 1] = text.count(case[1], case[2])
    end
    assert.same({ "1 row", "0 rows", "2 entries", "1 address", "3 addresses" }, shown)
    assert.equal("1,000 rows", text.count(1000, "row", "1,000"))
  end)
end)

describe("printable text", function()
  it("has no control characters", function()
    assert.equal("a?b?c??", text.printable "a\nb\0c\r\127")
  end)

  for what, hidden in pairs {
    ["C1 control characters"] = "\194\128\194\133\194\159",
    ["line and paragraph separators"] = "\226\128\168\226\128\169",
    ["embedded directions"] = "\226\128\170\226\128\174",
    ["marks of direction"] = "\226\128\142\226\128\143\216\156",
    ["isolated directions"] = "\226\129\166\226\129\169",
    ["characters without width"] = "\226\128\139\239\187\191\226\129\160",
    ["tags"] = "\243\160\129\129",
    ["bytes that are not UTF-8"] = "\128\255\192",
    ["overlong and surrogate sequences"] = "\192\128\224\128\128\237\160\128\244\144\128\128",
  } do
    it("has no " .. what, function()
      local shown = text.printable("a" .. hidden .. "b")
      assert.matches("^a%?+b$", shown)
    end)
  end

  it("keeps letters of every script", function()
    for _, letters in ipairs { "\195\164", "\206\177", "\228\184\173", "\240\159\152\128", "\194\160" } do
      assert.equal(letters, text.printable(letters))
    end
  end)

  it("is cut at a limit, never inside a character", function()
    assert.equal(("x"):rep(60) .. "...", text.printable(("x"):rep(61)))
    assert.equal(("x"):rep(59) .. "...", text.printable(("x"):rep(59) .. "\226\130\172"))
  end)
end)

describe("a shown text", function()
  it("cannot end its own quotes", function()
    assert.equal("'T1\\' allow \\\\'", text.show "T1' allow \\")
    assert.equal("'\\'?'", text.show "'\n")
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
    assert.is_false(text.made_of("a", "0x") "0x")
  end)

  it("may want a beginning", function()
    local is_number = text.made_of("a-c", "0x")
    assert.is_true(is_number "0xab")
    for _, other in ipairs { "0xad", "0Xab", "xab", "ab", "0", "0x0xab", "", "\0000xab" } do
      assert.is_false(is_number(other), other)
    end
  end)
end)

describe("a text in UTF-8", function()
  -- The limits of table 3-7 of the Unicode standard.
  it("keeps every well-formed sequence", function()
    for _, sequence in ipairs {
      "\194\128",
      "\223\191",
      "\224\160\128",
      "\237\159\191",
      "\238\128\128",
      "\239\191\191",
      "\240\144\128\128",
      "\244\143\191\191",
    } do
      local content = "a" .. sequence .. sequence .. "z"
      assert.equal(content, text.utf8(content))
    end
  end)

  it("has U+FFFD for each byte of another sequence", function()
    for _, sequence in ipairs {
      "\128",
      "\191",
      "\192\128",
      "\193\191",
      "\194",
      "\224\160",
      "\224\159\191",
      "\237\160\128",
      "\237\191\191",
      "\240\144\128",
      "\240\143\191\191",
      "\244\144\128\128",
      "\245\128\128\128",
      "\255",
    } do
      assert.equal("a" .. ("\239\191\189"):rep(#sequence) .. "z", text.utf8("a" .. sequence .. "z"))
    end
  end)
end)

describe("base64", function()
  it("is as RFC 4648 has it", function()
    for bytes, written in pairs {
      [""] = "",
      f = "Zg==",
      fo = "Zm8=",
      foo = "Zm9v",
      foob = "Zm9vYg==",
      ["\255\254"] = "//4=",
    } do
      assert.equal(written, text.base64(bytes))
    end
  end)
end)
