local random = require "riskscreen.util.random"

describe("a generator", function()
  it("gives numbers from 0 up to 1, spread evenly", function()
    local next_number, counts = random.new(42), {}
    for _ = 1, 10000 do
      local number = next_number()
      assert.is_true(number >= 0 and number < 1)
      local tenth = math.floor(number * 10)
      counts[tenth] = (counts[tenth] or 0) + 1
    end
    for tenth = 0, 9 do
      assert.is_true(counts[tenth] > 850 and counts[tenth] < 1150, counts[tenth])
    end
  end)

  it("gives the same numbers for the same seed, and others for another", function()
    local one, same, other = random.new(1), random.new(1), random.new(2)
    local first = one()
    assert.equal(first, same())
    assert.are_not_equal(first, other())
  end)

  it("takes any seed", function()
    for _, seed in ipairs { 0, -5, 0.3, 2 ^ 40, 2147483646, 2147483647 } do
      local next_number = random.new(seed)
      assert.are_not_equal(next_number(), next_number())
    end
  end)

  it("leaves the program's own generator alone", function()
    math.randomseed(7)
    local expected = math.random(1000000)
    math.randomseed(7)
    random.new(random.seed())()
    assert.equal(expected, math.random(1000000))
  end)
end)

describe("a seed", function()
  it("differs from client to client of one process", function()
    local seeds, different = {}, 0
    for _ = 1, 20 do
      local seed = random.seed()
      different = different + (seeds[seed] and 0 or 1)
      seeds[seed] = true
    end
    assert.equal(20, different)
  end)
end)

describe("a token", function()
  it("is another one each time, with as many bytes as asked for", function()
    local seen = {}
    for _ = 1, 100 do
      local token = random.token(8)
      assert.matches("^%x+$", token)
      assert.equal(16, #token)
      assert.is_nil(seen[token])
      seen[token] = true
    end
    assert.equal(32, #random.token())
  end)
end)
