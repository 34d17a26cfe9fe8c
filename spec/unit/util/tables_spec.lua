-- Fingerprints: one text for tables with equal content, and another text for any other table.
local fingerprint = require("riskscreen.util.tables").fingerprint
local policies = require "riskscreen.policy"

describe("a fingerprint", function()
  local function of_rules(...)
    return fingerprint(policies.new({ rules = { ... } }).settings)
  end

  it("is the same for equal content in another order", function()
    local one, other = {}, {}
    for index = 1, 50 do
      one["k" .. index], other["k" .. 51 - index] = index, 51 - index
    end
    assert.equal(fingerprint(one), fingerprint(other))
    assert.equal(fingerprint(policies.new().settings), fingerprint(policies.new().settings))
  end)

  it("differs for another policy", function()
    local seen = {}
    for _, text in ipairs {
      of_rules { level = "high", action = "block" },
      of_rules { level = "high", action = "review" },
      of_rules { level = "low", action = "block" },
      of_rules { level = { "high", "low" }, action = "block" },
      of_rules({ level = "high", action = "block" }, { no_risk = true, action = "allow" }),
      of_rules({ no_risk = true, action = "allow" }, { level = "high", action = "block" }),
      fingerprint(policies.new({ provider = "Other" }).settings),
      fingerprint(policies.new({ absent_entity = "none" }).settings),
    } do
      assert.is_nil(seen[text])
      seen[text] = true
    end
  end)

  it("differs between texts and numbers, and between split texts", function()
    assert.not_equal(fingerprint { "1" }, fingerprint { 1 })
    assert.not_equal(fingerprint { 0.1 }, fingerprint { 0.1 + 2 ^ -56 })
    assert.not_equal(fingerprint { "a", "b" }, fingerprint { "ab" })
    assert.not_equal(fingerprint { a = "b}" }, fingerprint { a = "b", "}" })
  end)
end)
