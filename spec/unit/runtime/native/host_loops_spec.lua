local core = require "riskscreen.core"
local hosts = require "spec.support.hosts"
local json = require "riskscreen.json"
local native = require "riskscreen.runtime.native"
local raw_http = require "spec.support.raw_http"
local riskscreen = require "riskscreen"

local sandbox = riskscreen.sandbox
local loop = riskscreen.loop

local CLEAN = { address = sandbox.scenario("clean-eth").address, network = "eth" }

-- A client of the sandbox, served over HTTP in this process.
local function serve()
  local server = assert(sandbox.serve {})
  return riskscreen.new { base_url = server.url, access_key = server.access_key }, server
end

for _, name in ipairs(hosts.names) do
  describe("a program whose loop is " .. name, function()
    local drive = hosts[name]
    local client, server

    before_each(function()
      client, server = serve()
    end)

    after_each(function()
      client:close()
      server:close()
    end)

    it("finishes calls made in tasks", function()
      local ended, failed = 0, 0
      for _ = 1, 8 do
        riskscreen.spawn(function()
          local record = client.kya:risk(CLEAN)
          ended, failed = ended + 1, failed + (record and 0 or 1)
        end)
      end
      drive(loop, function()
        return ended == 8
      end)
      assert.equal(0, failed)
    end)

    it("wakes sleeping tasks at their times", function()
      local asleep, woken = {}, {}
      -- A task begins when the one before it sleeps: so its time lies between two readings of the clock.
      local function note_the_latest()
        local last = asleep[#asleep]
        if last then
          last.latest = core.now() + last.seconds
        end
      end
      for _, seconds in ipairs { 0.02, 0, 0.01 } do
        riskscreen.spawn(function()
          note_the_latest()
          local task = { seconds = seconds, earliest = core.now() + seconds }
          asleep[#asleep + 1] = task
          riskscreen.sleep(seconds)
          task.woken = core.now()
          woken[#woken + 1] = task
        end)
      end
      riskscreen.spawn(note_the_latest)
      drive(loop, function()
        return #woken == 3
      end)
      for index, task in ipairs(woken) do
        assert.is_true(task.woken >= task.earliest)
        for later = index + 1, #woken do
          assert.is_true(task.earliest <= woken[later].latest)
        end
      end
    end)

    it("waits no longer than the timeout when no descriptor becomes ready", function()
      local other = core.loop {}
      local due, steps = core.now() + 0.02, 0
      local object = {
        pollfd = function()
          return other:pollfd()
        end,
        events = function()
          return "r"
        end,
        timeout = function()
          return math.max(0, due - core.now())
        end,
        step = function()
          steps = steps + 1
          due = math.huge
        end,
      }
      native.attach(object)
      local gave_up = false
      local task = riskscreen.spawn(function()
        riskscreen.sleep(5)
        gave_up = true
      end)
      drive(loop, function()
        return steps > 0 or gave_up
      end)
      native.detach(object)
      task:cancel()
      task:await()
      other:close()
      assert.same({ 1, false }, { steps, gave_up })
    end)

    it("does its own work while an answer is awaited", function()
      local ticks, held, answer = 0, nil, nil
      local listener = assert(require("riskscreen.server").new { port = 0 })
      native.attach(listener)
      local slow = riskscreen.new {
        base_url = "http://127.0.0.1:" .. ("%d"):format(listener:port()),
        access_key = "test-key",
      }
      riskscreen.spawn(function()
        answer = { slow:request("GET", "/slow") }
      end)
      drive(loop, function()
        return answer or ticks > 10000
      end, function()
        held = held or listener:next()
        ticks = ticks + (held and 1 or 0)
        if held and ticks == 5 then
          held:respond(200, { ["content-type"] = "application/json" }, json.encode { late = true })
        end
      end)
      native.detach(listener)
      listener:close()
      assert.same({ late = true }, answer[1])
      assert.is_true(ticks >= 5)
    end)

    it("starts tasks that its own work spawns while the library is idle", function()
      local ticks, answer = 0, nil
      drive(loop, function()
        return answer or ticks > 10000
      end, function()
        ticks = ticks + 1
        if ticks == 3 then
          riskscreen.spawn(function()
            answer = { client.kya:risk(CLEAN) }
          end)
        end
      end)
      assert.equal(CLEAN.address, answer[1] and answer[1].address)
    end)
  end)
end

describe("a frame", function()
  local client, server

  before_each(function()
    client, server = serve()
  end)

  after_each(function()
    client:close()
    server:close()
  end)

  for what, wait in pairs { ["step(0)"] = 0, ["step with a budget"] = { budget = 0.002 } } do
    it("never waits for an answer: " .. what, function()
      server.service:fault { kind = "hang" }
      local ended = false
      local task = riskscreen.spawn(function()
        -- If a frame waited for this call, the call would end by its timeout.
        client.kya:risk(CLEAN, { timeout = 5 })
        ended = true
      end)
      for _ = 1, 100 do
        loop:step(wait)
      end
      assert.is_false(ended)
      task:cancel()
      task:await()
    end)
  end

  it("does nothing when nothing is under way", function()
    loop:step(0)
    loop:step { budget = 0.002 }
    assert.is_false(raw_http.is_readable(loop:pollfd()))
  end)

  describe("with a budget", function()
    local real_now = core.now
    local now

    before_each(function()
      now = 0
      core.now = function() -- luacheck: ignore 122
        return now
      end
    end)

    after_each(function()
      core.now = real_now -- luacheck: ignore 122
    end)

    -- Fifty tasks that each wait by `wait` and then work for a millisecond; the number of those that have.
    local function fifty(wait)
      local worked = { count = 0 }
      for _ = 1, 50 do
        riskscreen.spawn(function()
          wait()
          now = now + 0.001
          worked.count = worked.count + 1
        end)
      end
      return worked
    end

    it("resumes no more tasks than fit in it, and goes on in the next", function()
      local worked = fifty(function()
        riskscreen.sleep(0)
      end)
      loop:step(0) -- starts the tasks, each of which then sleeps
      local counts = {}
      while worked.count < 50 do
        local before = worked.count
        loop:step { budget = 0.005 }
        counts[#counts + 1] = worked.count - before
      end
      assert.same({ 5, 5, 5, 5, 5, 5, 5, 5, 5, 5 }, counts)
    end)

    it("leaves answers that have arrived for the next frame", function()
      local worked = fifty(function()
        assert(client.kya:risk(CLEAN))
      end)
      local most, deadline = 0, real_now() + 20
      while worked.count < 50 and real_now() < deadline do
        local before = worked.count
        loop:step { budget = 0.005 }
        most = math.max(most, worked.count - before)
      end
      assert.same({ 50, 5 }, { worked.count, most })
    end)

    it("has a timeout of 0 when work is left", function()
      fifty(function() end)
      loop:step { budget = 0.005 }
      assert.equal(0, loop:timeout())
      assert.is_true(raw_http.is_readable(loop:pollfd(), raw_http.DEADLINE))
      loop:step(0)
    end)

    it("resumes a task however small the budget is", function()
      local worked = fifty(function() end)
      for _ = 1, 3 do
        loop:step { budget = 0 }
      end
      assert.equal(3, worked.count)
      loop:step(0)
    end)
  end)
end)
