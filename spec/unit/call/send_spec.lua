local send = require "riskscreen.call.send"

describe("redaction", function()
  local KEY = "a.b%c/d+e="

  it("takes the key out of every place", function()
    assert.equal("x [redacted] y [redacted]", send.redactor(KEY)("x " .. KEY .. " y " .. KEY))
  end)

  it("takes the key out as a URL and as JSON spell it", function()
    local hide = send.redactor(KEY)
    assert.equal("k=[redacted]&z", hide "k=a.b%25c%2Fd%2Be%3D&z")
    assert.equal('"[redacted]"', hide '"a.b%c\\/d+e="')
  end)

  it("takes out the piece of the key at the end of a text that was cut", function()
    assert.equal("x [redacted]", send.redactor(KEY) "x a.b%c/d")
  end)

  it("leaves other text alone", function()
    local text = "aXb%c/d+e= and nothing else"
    assert.equal(text, send.redactor(KEY)(text))
  end)
end)
