local redact = require "riskscreen.call.redact"

describe("redaction", function()
  local KEY = "a.b%c/d+e="

  it("takes the key out of every place", function()
    assert.equal("x [redacted] y [redacted]", redact.new(KEY)("x " .. KEY .. " y " .. KEY))
  end)

  it("takes the key out as a URL and as JSON spell it", function()
    local hide = redact.new(KEY)
    assert.equal("k=[redacted]&z", hide "k=a.b%25c%2Fd%2Be%3D&z")
    assert.equal('"[redacted]"', hide '"a.b%c\\/d+e="')
  end)

  it("takes out the piece of the key at the end of a text that was cut", function()
    assert.equal("x [redacted]", redact.new(KEY) "x a.b%c/d")
  end)

  it("leaves other text alone", function()
    local text = "aXb%c/d+e= and nothing else"
    assert.equal(text, redact.new(KEY)(text))
  end)
end)
