local time = require "riskscreen.util.time"

describe("the age of a written moment", function()
  it("is the time since then", function()
    assert.equal(30, time.age(70, 100))
    assert.equal(0, time.age(100, 100))
  end)

  it("is not known for the future, for no number and for NaN", function()
    for _, written in ipairs { 100.5, math.huge, 0 / 0, "70", false } do
      assert.is_nil(time.age(written, 100))
    end
    assert.is_nil(time.age(nil, 100))
  end)

  it("is none while another clock may be so much ahead", function()
    assert.equal(0, time.age(101, 100, 1))
    assert.is_nil(time.age(101.5, 100, 1))
  end)
end)

describe("the wait until a written moment", function()
  it("ends with the moment, and is never longer than its period", function()
    assert.equal(5, time.wait(105, 100, 60))
    assert.equal(0, time.wait(95, 100, 60))
    assert.equal(60, time.wait(1e9, 100, 60))
  end)
end)
