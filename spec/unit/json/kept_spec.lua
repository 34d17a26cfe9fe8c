local json = require "riskscreen.json"
local kept = require "riskscreen.json.kept"
local text = require "riskscreen.util.text"

local has_integers = math.type ~= nil -- luacheck: ignore 143

describe("a kept value", function()
  it("reads as it was: nulls, numbers, bytes, empty lists and objects", function()
    local values = {
      { strategies = { ["1"] = json.null } },
      { json.null, 1, json.null },
      { a = {}, b = json.empty_array(), c = { {}, json.empty_array() } },
      { 0, -1, 1700000000000, 2 ^ 53 - 1, 0.1, 1e300, -1e-300, 1e18 },
      { "", "\0\1\127", "\195\188\226\130\172\240\159\152\128", '"\\/' },
      { [""] = true, ["a.b"] = false },
    }
    for _, value in ipairs(values) do
      assert.same(value, kept.decode(assert(kept.encode(value))))
    end
    local read = kept.decode(kept.encode(values[3]))
    assert.same({ false, true }, { json.is_array(read.a), json.is_array(read.b) })
  end)

  it("is refused when it is written, if it would not read as it was", function()
    local holes = { 1 }
    holes[3] = 3
    local wrong = { "\255", { "\192\128" }, { ["\255"] = 1 }, holes, { [0] = 1 }, 0 / 0, 1 / 0, print, { 1, a = 2 } }
    wrong[#wrong + 1] = has_integers and 2 ^ 53 or nil -- JSON has it as an integer, which any check takes for exact
    for _, value in ipairs(wrong) do
      local encoded, message = kept.encode(value)
      assert.is_nil(encoded)
      assert.is_string(message, text.show(value))
    end
  end)

  it("is nil for a text that nobody has written", function()
    for _, damaged in ipairs { "", "{", '{"a":1,"a":2}', '"\255"', 7, {} } do
      assert.is_nil(kept.decode(damaged))
    end
    assert.is_nil(kept.decode(nil))
  end)
end)
