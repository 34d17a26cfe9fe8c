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

describe("a program without a free descriptor", function()
  it("makes tokens, waits before a retry, and records decisions", function()
    local program = [[
      local riskscreen = require "riskscreen"
      local path = os.tmpname()
      local journal = assert(riskscreen.journal.file(path))
      local client = riskscreen.sandbox.client { journal = journal, retry = { base_delay = 0 } }
      local warm = client:screen { address = ("0x%040x"):format(1), network = "eth" }
      journal:close()
      journal = assert(riskscreen.journal.file(path))
      riskscreen.sleep(0.001) -- opens the loop
      local service
      client, service = riskscreen.sandbox.client { journal = journal, retry = { base_delay = 0 } }
      service:fault { kind = "reset", count = 1 }
      local held, file = {}, nil
      repeat
        file = io.open "/dev/null"
        held[#held + 1] = file
      until not file
      local during = client:screen { address = ("0x%040x"):format(1), network = "eth" }
      for _, file in pairs(held) do file:close() end
      local after = client:screen { address = ("0x%040x"):format(1), network = "eth" }
      print(warm.action, during.action, after.action, journal:stats().lost, journal:stats().written)
    ]]
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(program)
    file:close()
    local lua = os.getenv "RISKSCREEN_LUA" or "lua5.4"
    local pipe = io.popen(("ulimit -n 64; %s %s 2>&1"):format(lua, path))
    local output = pipe:read "*a"
    pipe:close()
    os.remove(path)
    assert.matches("allow\tallow\tallow\t1\t2\n", output, 1, true)
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
