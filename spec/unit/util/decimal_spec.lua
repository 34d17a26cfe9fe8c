local decimal = require "riskscreen.util.decimal"

describe("decimal.compare", function()
  local ascending = {
    "-1e3",
    "-100.5",
    "-100.49",
    "-1",
    "-0.001",
    "0",
    "1e-400",
    "0.1",
    "0.1000000000000000000001",
    "0.11",
    "0.9",
    "1",
    "9.99",
    "10",
    "79.99999999999999999999999999999999",
    "80",
    "80.00000000000000000000000000000001",
    "100",
    "1e999999999",
  }
  it("orders numbers by their value", function()
    for i, a in ipairs(ascending) do
      for j, b in ipairs(ascending) do
        assert.equal(i == j and 0 or (i < j and -1 or 1), decimal.compare(a, b), a .. " beside " .. b)
      end
    end
  end)

  local equal = {
    { "80", "80.000" },
    { "080", "80" },
    { "-0", "0.00" },
    { "+5", "5" },
    { "1.5e2", "150" },
    { "15000E-2", "150.0" },
    { "0e5", "0" },
    { "0.00120", "12e-4" },
  }
  for _, pair in ipairs(equal) do
    it("takes " .. pair[1] .. " and " .. pair[2] .. " for equal", function()
      assert.equal(0, decimal.compare(pair[1], pair[2]))
      assert.equal(0, decimal.compare(pair[2], pair[1]))
    end)
  end

  it("tells numbers apart that are one float", function()
    assert.equal(-1, decimal.compare("9007199254740992", "9007199254740993"))
    assert.equal(1, decimal.compare("70.0000000000000001", "70"))
  end)

  it("agrees with integers", function()
    for a = -25, 25 do
      for b = -25, 25 do
        local expected = a == b and 0 or (a < b and -1 or 1)
        assert.equal(expected, decimal.compare(("%d"):format(a), ("%d"):format(b)))
        assert.equal(expected, decimal.compare(("%d.0"):format(a), ("%de0"):format(b)))
      end
    end
  end)

  local refused = {
    "",
    " ",
    "1 ",
    " 1",
    "1,5",
    "1.",
    ".5",
    ".",
    "-",
    "+-1",
    "--1",
    "1.2.3",
    "0x10",
    "1e",
    "e5",
    "1e+",
    "1e1.5",
    "nan",
    "inf",
    "Infinity",
    "1_000",
    "１",
    "1\0",
    "1\n",
    "1e1234567890",
    ("1"):rep(1025),
    "1-2",
    "12+3",
    "1e5e5",
  }
  for index, text in ipairs(refused) do
    it(("refuses a text that is no decimal (%d)"):format(index), function()
      local order, message = decimal.compare(text, "1")
      assert.is_nil(order)
      assert.matches("^the first must be a decimal number", message)
      order, message = decimal.compare("1", text)
      assert.is_nil(order)
      assert.matches("^the second must be a decimal number", message)
    end)
  end

  it("refuses numbers and absent values: they have no exact text", function()
    for _, value in ipairs { 80, 0.1, true, {} } do
      assert.is_nil(decimal.compare(value, "1"))
    end
    assert.is_nil((decimal.compare(nil, "1")))
    assert.is_nil((decimal.compare("1")))
  end)
end)

describe("decimal.check", function()
  it("gives the reason", function()
    assert.is_true(decimal.check "12.50")
    local ok, message = decimal.check "high"
    assert.is_false(ok)
    assert.equal("must be a decimal number written as a text, such as '12.50' (got 'high')", message)
  end)
end)
