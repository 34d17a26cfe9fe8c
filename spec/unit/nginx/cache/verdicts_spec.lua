-- Verdicts by their digests: what is the same has one name for all workers, and nothing else has that.
local shared_dict = require "spec.support.shared_dict"
local verdicts = require "riskscreen.nginx.cache.verdicts"
local worlds = require "spec.support.cache_world"

local NOW = 1700000000 -- Unix seconds
local PREFIX = "texts:"
local LONGEST = 3600 -- seconds that an entry lives

local dict, time

before_each(function()
  time = NOW
  dict = shared_dict.new(function()
    return time
  end)
end)

local function worker(of_dict)
  return verdicts.new {
    dict = of_dict == nil and dict or of_dict or nil,
    prefix = PREFIX,
    digest = worlds.digest,
    longest = LONGEST,
  }
end

local function reason(action, message, more)
  local all = { action = action, message = message }
  for name, value in pairs(more or {}) do
    all[name] = value
  end
  return all
end

local function decision(action, reasons, more)
  local all = { action = action, reasons = reasons, degraded = false }
  for name, value in pairs(more or {}) do
    all[name] = value
  end
  return all
end

local fine = decision("allow", { reason("allow", "fine") })

describe("a verdict", function()
  it("is known to all workers by the digest that one has given it", function()
    local digest, verdict = worker():name(fine, time)
    assert.same({ "allow", "fine" }, { verdict.action, verdict.reasons[1].message })
    local found = worker():find(digest)
    assert.same({ "allow", "fine" }, { found.action, found.reasons[1].message })
  end)

  it("is known to the worker alone where there is no dict", function()
    local own = worker(false)
    local digest = own:name(fine, time)
    assert.equal("allow", own:find(digest).action)
    assert.is_nil(worker(false):find(digest))
  end)

  it("is a decision about whatever an entry is about", function()
    local failed = decision("unknown", { reason("unknown", "late") }, { degraded = true })
    local _, verdict = worker():name(failed, time)
    assert.same({
      action = "unknown",
      reasons = { { action = "unknown", message = "late" } },
      address = "0xab",
      network = "eth",
      degraded = true,
      cached = true,
      stale = false,
      elapsed = 0,
    }, verdicts.decision(verdict, "eth", "0xab"))
  end)

  it("is another where anything is another", function()
    local all = {
      decision("allow", { reason("allow", "m") }),
      decision("block", { reason("block", "m") }),
      decision("block", { reason("block", "n") }),
      decision("review", { reason("review", "m") }),
      decision("block", { reason("block", "m") }, { degraded = true }),
      decision("block", { reason("block", "m"), reason("review", "m") }),
      decision("block", { reason("block", "m", { rule = { name = "one" } }) }),
      decision("block", { reason("block", "m", { rule = { name = "two" } }) }),
    }
    for _, risk in ipairs {
      { riskLevel = "low", riskType = "scam", riskSource = "own" },
      { riskLevel = "high", riskType = "scam", riskSource = "own" },
      { riskLevel = "low", riskType = "hack", riskSource = "own" },
      { riskLevel = "low", riskType = "scam", riskSource = "other" },
      {},
    } do
      all[#all + 1] = decision("block", { reason("block", "m", { risk = risk }) })
    end
    local own, others = worker(), worker()
    local function check(one)
      local digest = own:name(one, time)
      local read, said = others:find(digest), one.reasons[1]
      assert.same({ one.action, one.degraded, #one.reasons }, { read.action, read.degraded, #read.reasons })
      assert.same({ said.message, said.risk }, { read.reasons[1].message, read.reasons[1].risk })
      assert.equal(said.rule and said.rule.name, read.reasons[1].rule and read.reasons[1].rule.name)
    end
    for _, before in ipairs(all) do
      for _, one in ipairs(all) do
        check(before)
        check(one)
      end
    end
  end)

  it("is not named where it could not be read again", function()
    for _, message in ipairs { print, 0 / 0, 5 } do
      assert.is_nil((worker():name(decision("allow", { reason("allow", message) }), time)))
    end
  end)

  it("is not what a text says that has another digest", function()
    local digest = worker():name(decision("block", { reason("block", "bad") }), time)
    local key = PREFIX .. digest
    for _, text in ipairs { '{"a":"allow","r":[{"a":"allow","m":"x"}]}', "", " " .. dict:get(key), 5, true } do
      dict:set(key, text)
      assert.is_nil(worker():find(digest))
    end
  end)

  it("is right however many there are, and however long", function()
    local own = worker()
    for index = 1, 300 do
      local message = index .. (" "):rep(10000)
      local digest = own:name(decision("block", { reason("block", message) }), time)
      assert.equal(message, own:find(digest).reasons[1].message)
      assert.equal(message, worker():find(digest).reasons[1].message)
    end
    assert.equal("allow", own:find((own:name(fine, time))).action)
  end)
end)

describe("a worker", function()
  it("remembers no more verdicts than it has room for", function()
    local own = worker(false)
    collectgarbage()
    collectgarbage()
    local before = collectgarbage "count"
    for index = 1, 20000 do
      own:name(decision("block", { reason("block", "reason " .. index) }), time)
    end
    collectgarbage()
    collectgarbage()
    assert.is_true(collectgarbage "count" - before < 2048)
    assert.equal("allow", own:find((own:name(fine, time))).action)
  end)
end)

describe("the text of a verdict", function()
  it("outlives every entry that names it", function()
    local own = worker()
    local digest
    for _ = 1, 200 do
      digest = own:name(fine, time)
      time = time + 1
    end
    time = time - 1 + LONGEST
    assert.is_table(worker():find(digest))
  end)

  it("is given to the dict again within a minute after that has lost it", function()
    local own = worker()
    local digest = own:name(fine, time)
    dict.entries = {}
    time = time + 60
    own:name(fine, time)
    assert.is_table(worker():find(digest))
  end)

  it("is given to the dict again when the clock was set back", function()
    local own = worker()
    own:name(fine, time)
    dict.entries = {}
    time = time - 1000
    assert.is_table(worker():find((own:name(fine, time))))
  end)

  it("is given to the dict again when that had no room", function()
    local own = worker()
    local set = dict.set
    dict.set = function()
      return false, "no memory"
    end
    local digest = own:name(fine, time)
    dict.set = set
    assert.is_nil(worker():find(digest))
    own:name(fine, time)
    assert.is_table(worker():find(digest))
  end)
end)
