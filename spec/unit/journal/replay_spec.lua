-- Deciding a journal's decisions again.
local journals = require "riskscreen.journal"
local riskscreen = require "riskscreen"
local temporary = require "spec.support.temporary"

local scenarios = { "type-sanction", "clean-eth", "low-eth", "generally-high-eth", "fault-503", "risks-null" }

describe("a replay", function()
  local path

  before_each(function()
    path = temporary.path "decisions.jsonl"
  end)

  after_each(temporary.clean)

  local function record(options, policy)
    local journal = assert(journals.file(path, options))
    local client = riskscreen.sandbox.client { journal = journal, retry = false, policy = policy }
    for _, name in ipairs(scenarios) do
      local scenario = riskscreen.sandbox.scenario(name)
      client:screen { address = scenario.address, network = scenario.network }
    end
    client:screen { address = "no address", network = "eth" }
  end

  it("changes nothing under the policy that decided", function()
    record { record = true }
    local count = 0
    for row in journals.replay(path, riskscreen.policy()) do
      count = count + 1
      assert.equal(row.before, row.after)
      assert.is_false(row.changed)
      assert.is_nil(row.problem)
    end
    assert.equal(#scenarios + 1, count)
  end)

  it("shows the decisions that another policy changes", function()
    record { record = true }
    local strict = riskscreen.policy {
      rules = { { action = "allow", no_risk = true }, { action = "review", any = true } },
    }
    local changed = {}
    for row in journals.replay(path, strict) do
      if row.changed then
        changed[#changed + 1] = ("%d %s %s"):format(row.seq, row.before, row.after)
        assert.equal(row.after, row.decision.action)
      end
    end
    assert.same({ "1 block review", "3 allow review" }, changed)
  end)

  it("uses every lookup that the policy had made", function()
    local policy = riskscreen.policy {
      not_offered = "skip",
      rules = { { action = "block", frozen = true }, { action = "allow", any = true } },
    }
    local journal = assert(journals.file(path, { record = true }))
    local client = riskscreen.sandbox.client { journal = journal, policy = policy }
    local scenario = riskscreen.sandbox.scenario "frozen"
    assert.equal("block", client:screen({ address = scenario.address, network = scenario.network }).action)
    local row = journals.replay(path, policy)()
    assert.equal("block", row.after)
  end)

  it("says which decisions cannot be made again", function()
    record()
    for row in journals.replay(path, riskscreen.policy()) do
      assert.is_nil(row.after)
      assert.is_false(row.changed)
      assert.equal("the answer was not kept: use record = true", row.problem)
    end
  end)

  it("does not decide from an answer that was changed", function()
    record { record = true }
    temporary.write(path, (temporary.read(path):gsub('"riskLevel":"high"', '"riskLevel":"low"')))
    local row = journals.replay(path, riskscreen.policy())()
    assert.equal("the answer does not match its digest", row.problem)
    assert.is_nil(row.after)
  end)

  it("gives the same from a store", function()
    local store = riskscreen.store.memory()
    local client = riskscreen.sandbox.client { journal = journals.store(store, { record = true }) }
    local scenario = riskscreen.sandbox.scenario "type-sanction"
    client:screen { address = scenario.address, network = scenario.network }
    assert.equal("block", journals.replay(store, riskscreen.policy())().after)
  end)

  it("can be made by hand with client:decide", function()
    record { record = true }
    local client = riskscreen.sandbox.client()
    local actions = {}
    for entry in journals.entries(path) do
      actions[#actions + 1] = entry.record.risk and client:decide(entry.record).action
    end
    assert.same({ "block", "allow", "allow", "review" }, { actions[1], actions[2], actions[3], actions[4] })
  end)
end)
