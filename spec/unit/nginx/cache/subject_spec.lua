-- What a verdict is remembered under is what an answer is compared by: the same canonical form, however it is found.
local random = require "spec.support.random"
local subject = require "riskscreen.address"
local subjects = require "riskscreen.nginx.cache.subject"

describe("what a verdict is remembered under", function()
  local function check(address)
    local canonical, is_hexadecimal = subject.canonical(address)
    local found = subjects.of(address, "ethereum")
    assert.same(
      { key = "eth:" .. canonical, address = canonical, network = "eth", is_hexadecimal = is_hexadecimal },
      found
    )
  end

  it("has the canonical form of the address, at its edges", function()
    for _, address in ipairs {
      "0",
      "x",
      "0x",
      "0X",
      "0xA",
      "0XaF",
      "0xg",
      "0xAB\0",
      "0x\0AB",
      "0xAB\0CD",
      "0xAB ",
      " 0xAB",
      "0x0xAB",
      "1xAB",
      "0x" .. ("F"):rep(1022),
    } do
      check(address)
    end
  end)

  it("has the canonical form of any other", function()
    local pick = random.new(7).pick
    local bytes = { "0", "9", "a", "f", "g", "A", "F", "G", "x", "X", "\0", " ", "/", ":", "@", "`", "\200" }
    for _ = 1, 3000 do
      local address = pick { "0x", "0X", "" }
      for _ = 1, pick { 1, 2, 5 } do
        address = address .. pick(bytes)
      end
      check(address)
    end
  end)
end)
