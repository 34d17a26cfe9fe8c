-- One text for tables with the same content, and other texts for others.
local fingerprint = require "riskscreen.nginx.fingerprint"
local policies = require "riskscreen.policy"

describe("a fingerprint", function()
  local function of_rules(...)
    return fingerprint.of(policies.new({ rules = { ... } }).settings)
  end

  it("is the same for the same content in another order", function()
    local one, other = {}, {}
    for index = 1, 50 do
      one["k" .. index], other["k" .. 51 - index] = index, 51 - index
    end
    assert.equal(fingerprint.of(one), fingerprint.of(other))
    assert.equal(fingerprint.of(policies.new().settings), fingerprint.of(policies.new().settings))
  end)

  it("is another for another policy", function()
    local seen = {}
    for _, text in ipairs {
      of_rules { level = "high", action = "block" },
      of_rules { level = "high", action = "review" },
      of_rules { level = "low", action = "block" },
      of_rules { level = { "high", "low" }, action = "block" },
      of_rules({ level = "high", action = "block" }, { no_risk = true, action = "allow" }),
      of_rules({ no_risk = true, action = "allow" }, { level = "high", action = "block" }),
      fingerprint.of(policies.new({ provider = "Other" }).settings),
      fingerprint.of(policies.new({ absent_entity = "none" }).settings),
    } do
      assert.is_nil(seen[text])
      seen[text] = true
    end
  end)

  it("tells texts from numbers, and where a text ends", function()
    assert.not_equal(fingerprint.of { "1" }, fingerprint.of { 1 })
    assert.not_equal(fingerprint.of { "a", "b" }, fingerprint.of { "ab" })
    assert.not_equal(fingerprint.of { a = "b}" }, fingerprint.of { a = "b", "}" })
  end)
end)
