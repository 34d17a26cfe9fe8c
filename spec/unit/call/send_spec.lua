local send = require "riskscreen.call.send"

describe("redaction", function()
  local KEY = "a.b%c/d+e="

  it("removes the key in every place", function()
    assert.equal("x [redacted] y [redacted]", send.redactor(KEY)("x " .. KEY .. " y " .. KEY))
  end)

  it("removes the key in the spellings of a URL and of JSON", function()
    local hide = send.redactor(KEY)
    assert.equal("k=[redacted]&z", hide "k=a.b%25c%2Fd%2Be%3D&z")
    assert.equal('"[redacted]"', hide '"a.b%c\\/d+e="')
  end)

  it("removes a piece of the key at the end of a text that was cut", function()
    assert.equal("x [redacted]", send.redactor(KEY) "x a.b%c/d")
  end)

  it("does not change other text", function()
    local text = "aXb%c/d+e= and nothing else"
    assert.equal(text, send.redactor(KEY)(text))
  end)
end)
