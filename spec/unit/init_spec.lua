local riskscreen = require "riskscreen"

describe("require 'riskscreen'", function()
  it("gives new, errors and sleep", function()
    assert.is_function(riskscreen.new)
    assert.is_function(riskscreen.sleep)
    assert.equal(require "riskscreen.errors", riskscreen.errors)
  end)

  it("knows no other names", function()
    assert.is_nil(riskscreen.nothing_of_this_name)
  end)
end)
