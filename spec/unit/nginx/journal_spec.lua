-- The alarm of a gate's journal over minutes. spec/in_nginx/journal_nginx.lua has a real nginx.
local riskscreen = require "riskscreen"
local temporary = require "spec.support.temporary"

describe("the journal of a gate that cannot be written", function()
  local now, log, counts, tick, journal, real

  before_each(function()
    now, log, counts, real = 1000, {}, {}, _G.ngx
    _G.ngx = {
      ERR = "error",
      var = {},
      now = function()
        return now
      end,
      log = function(level, ...)
        log[#log + 1] = level .. " " .. table.concat { ... }
      end,
      sleep = function() end,
      timer = {
        every = function(_, call)
          tick = call
          return true
        end,
      },
    }
    package.loaded["riskscreen.nginx.journal"] = nil
    local recorder = {
      count = function(_, name, label, number)
        assert.equal("recorded", name)
        counts[label] = (counts[label] or 0) + number
      end,
    }
    local path = temporary.path "later" .. "/decisions.jsonl"
    journal = assert(require("riskscreen.nginx.journal").new({ path = path, interval = 1, buffer = 2 }, recorder))
  end)

  after_each(function()
    _G.ngx, package.loaded["riskscreen.nginx.journal"] = real, nil
    temporary.clean()
  end)

  local function record(count)
    local policy = riskscreen.policy()
    local location = {
      effective_action = function()
        return "allow"
      end,
    }
    for _ = 1, count do
      local decision = policy:decide { risk = { whitelist = false, risks = {} } }
      journal:record(decision, "upstream", { policy = policy, own_location = location }, "0x1", "0x1")
    end
  end

  it("says so at once and then each minute, with what waits and what is lost", function()
    record(2)
    for _ = 1, 60 do
      tick()
      now = now + 1
    end
    assert.equal(1, #log)
    assert.matches("^error .*No such file or directory; decisions of this worker: 2 waiting, 0 lost$", log[1])
    assert.same({ failed = 60 }, counts)
    record(3)
    assert.equal(3, counts.lost)
    assert.matches("the buffer of 2 lines is full; decisions of this worker: 2 waiting, 1 lost$", log[2])
    tick()
    assert.matches("No such file or directory; decisions of this worker: 2 waiting, 3 lost$", log[3])
    assert.equal(3, #log)
  end)

  it("goes on where it can be written again, and says how many decisions were lost", function()
    record(3)
    tick()
    assert(os.execute("mkdir " .. temporary.path "later"))
    tick()
    record(1)
    tick()
    assert.same({ failed = 1, lost = 1, written = 4 }, counts)
    local shown = {}
    for entry in riskscreen.journal.entries(temporary.path "later" .. "/decisions.jsonl") do
      shown[#shown + 1] = entry.lost or entry.action
    end
    assert.same({ 1, "allow", "allow", "allow" }, shown)
  end)
end)
