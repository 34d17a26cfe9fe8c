local decision = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local policies = require "riskscreen.policy"
local sandbox = require "riskscreen.sandbox"

local function reason(action, message)
  return { action = action, message = message or action }
end

local function made(fields)
  fields.action = fields.action or "block"
  fields.reasons = fields.reasons or { reason(fields.action, "rule 1 matches high / hack") }
  return decision.new(fields)
end

describe("a decision about what the sandbox answered", function()
  it("says so, and one about an answer of the service does not", function()
    local client, address = sandbox.client {}, sandbox.scenario("clean-eth").address
    local of_sandbox = policies.new():decide(client.kya:risk { address = address, network = "eth" })
    assert.same({ "allow", "sandbox" }, { of_sandbox.action, of_sandbox.source })
    assert.is_nil(policies.new():decide({ risks = {} }, { status = 200 }).source)
  end)
end)

describe("a decision", function()
  it("has every flag and its elapsed time by default", function()
    local plain = made {}
    assert.same({ false, false, false, 0 }, { plain.degraded, plain.cached, plain.stale, plain.elapsed })
  end)

  it("keeps the fields that it is given", function()
    local given = made { cached = true, stale = true, degraded = true, elapsed = 2, record = { risks = {} } }
    assert.same({ true, true, true, 2 }, { given.cached, given.stale, given.degraded, given.elapsed })
    assert.same({ risks = {} }, given.record)
  end)

  it("prints its action, address, network and reasons", function()
    local printed = tostring(made {
      address = "0xab",
      network = "eth",
      reasons = {
        reason("block", "rule 'high risk' matches high / hack"),
        reason("allow", "rule 4 matches low / scam"),
      },
    })
    assert.equal("block 0xab (eth): rule 'high risk' matches high / hack; rule 4 matches low / scam", printed)
  end)

  it("quotes an address that could look like something else", function()
    local printed = tostring(made { address = "x (eth): it's fine; y", network = "eth" })
    assert.equal("block 'x (eth): it\\'s fine; y' (eth): rule 1 matches high / hack", printed)
  end)

  it("prints without an address when it has none", function()
    assert.equal("block: rule 1 matches high / hack", tostring(made {}))
  end)

  it("prints that it is degraded or stale", function()
    assert.matches(" %[degraded%] %[stale%]$", tostring(made { degraded = true, stale = true }))
  end)

  it("prints any address and network on one line", function()
    local line = tostring(made { address = { "0xab" }, network = "e\nth", reasons = { reason("block", "a\nb") } })
    assert.matches("^block table: 0x%x+ %(e%?th%): a%?b$", line)
    assert.matches("%(nil%)", tostring(made { address = "0xab" }))
  end)

  it("prints long reasons cut short", function()
    local line = tostring(made { reasons = { reason("block", ("x"):rep(10000)) } })
    assert.is_true(#line < 600)
    assert.matches("%.%.%.$", line)
  end)
end)

describe("an unknown decision", function()
  it("carries the failure as its error and its reason", function()
    local err = errors.new("timeout", "no answer in 5 s")
    local unknown = decision.unknown(err, "0xab", "eth")
    assert.same({ "unknown", err, "0xab", "eth" }, { unknown.action, unknown.error, unknown.address, unknown.network })
    assert.same({ { action = "unknown", message = tostring(err), error = err } }, unknown.reasons)
  end)

  it("about an invalid address has an error of that kind", function()
    local invalid = decision.invalid("the address is empty", "", "eth")
    assert.equal("unknown", invalid.action)
    assert.same({ "invalid_argument", false }, { invalid.error.kind, invalid.error.sent })
    assert.equal("unknown '' (eth): riskscreen: invalid_argument: the address is empty", tostring(invalid))
  end)
end)

describe("the order of actions", function()
  it("is allow, review, unknown, block", function()
    local order = { "allow", "review", "unknown", "block" }
    for i, milder in ipairs(order) do
      for j = i, #order do
        assert.equal(order[j], decision.worst(milder, order[j]))
        assert.equal(order[j], decision.worst(order[j], milder))
      end
    end
  end)

  it("sorts reasons, and keeps the order of reasons with the same action", function()
    local given = {
      reason("allow", "a"),
      reason("block", "b"),
      reason("review", "c"),
      reason("block", "d"),
      reason("unknown", "e"),
    }
    local sorted = {}
    for index, one in ipairs(decision.worst_first(given)) do
      sorted[index] = one.message
    end
    assert.same({ "b", "d", "e", "c", "a" }, sorted)
    assert.equal("a", given[1].message)
  end)
end)
