-- The claims and events that an inbox of nginx keeps in a shared dict. The workers here have a virtual clock. In a real
-- nginx: spec/in_nginx/inbox_nginx.lua.
local durable_dict = require "riskscreen.nginx.webhook.durable_dict"
local shared_dict = require "spec.support.shared_dict"
local store = require "riskscreen.nginx.webhook.store"
local waiters = require "riskscreen.nginx.webhook.waiters"

local LEASE, TTL = 10, 100 -- seconds

local clock, dict, workers

before_each(function()
  clock = { now = 1000 }
  dict = shared_dict.new(function()
    return clock.now
  end)
  workers = 0
end)

-- A worker that shares the dict. Its background work runs when the spec calls it.
local function new_worker()
  workers = workers + 1
  local worker = { id = workers, warnings = {}, tasks = {} }
  function worker.pid()
    return worker.id
  end
  function worker.now()
    return clock.now
  end
  function worker.warn(message)
    table.insert(worker.warnings, message)
  end
  function worker.beside(_, fn)
    worker.tasks[fn] = true
    return function()
      worker.tasks[fn] = nil
    end
  end
  function worker.watch(look, ended)
    worker.look = function()
      if not look() then
        worker.look = nil
        ended()
      end
    end
  end
  return worker
end

describe("the store of handled events over all workers", function()
  local function new_store(limit)
    local worker = new_worker()
    local made =
      store.new { dict = durable_dict.new(dict), limit = limit or 1000, ttl = TTL, lease = LEASE, worker = worker }
    return made, worker
  end

  it("is known to every worker", function()
    local one, two = new_store(), new_store()
    assert.equal("new", one:claim "w1")
    assert.same({ "busy", "busy" }, { one:claim "w1", (two:claim "w1") })
    one:complete "w1"
    assert.same({ "done", "done", "new" }, { one:claim "w1", two:claim "w1", (two:claim "w2") })
  end)

  it("forgets an event after its time", function()
    local one = new_store()
    one:claim "w1"
    one:complete "w1"
    clock.now = clock.now + TTL - 1
    assert.equal("done", one:claim "w1")
    clock.now = clock.now + 1
    assert.equal("new", one:claim "w1")
  end)

  it("lets an event come again when its worker has died", function()
    local one, worker = new_store()
    local two = new_store()
    one:claim "w1"
    for _ = 1, 5 do
      clock.now = clock.now + LEASE - 1
      for task in pairs(worker.tasks) do
        task()
      end
      assert.equal("busy", two:claim "w1")
    end
    clock.now = clock.now + LEASE
    assert.equal("new", two:claim "w1")
  end)

  it("is not changed by a worker that has lost its claim", function()
    local one, two = new_store(), new_store()
    one:claim "w1"
    clock.now = clock.now + LEASE
    two:claim "w1"
    one:release "w1"
    assert.equal("busy", one:claim "w1")
  end)

  it("stops renewing a claim that is over", function()
    local one, worker = new_store()
    one:claim "w1"
    one:complete "w1"
    one:claim "w2"
    one:release "w2"
    assert.same({}, worker.tasks)
    assert.equal("new", one:claim "w2")
  end)

  it("forgets the oldest events above its limit", function()
    local one = new_store(3)
    for index = 1, 5 do
      one:claim("w" .. index)
      one:complete("w" .. index)
    end
    assert.equal("done", one:claim "w5")
    assert.equal("done", one:claim "w4")
    assert.equal("new", one:claim "w1")
  end)

  it("never forgets an event that is being handled", function()
    local one, two = new_store(2), new_store(2)
    one:claim "w0"
    for index = 1, 20 do
      two:claim("w" .. index)
      two:complete("w" .. index)
    end
    assert.equal("busy", two:claim "w0")
    one:complete "w0"
    assert.equal("done", two:claim "w0")
    for index = 21, 25 do
      two:claim("w" .. index)
      two:complete("w" .. index)
    end
    assert.equal("new", two:claim "w0")
  end)

  it("makes room by forgetting the oldest, and refuses an event for which there is none", function()
    local one = new_store()
    dict.room = 6
    for index = 1, 50 do
      assert.equal("new", one:claim("w" .. index))
      one:complete("w" .. index)
    end
    assert.equal("done", one:claim "w50")
    dict.entries, dict.full = {}, true
    local state, message = one:claim "w51"
    assert.is_nil(state)
    assert.matches("no memory", message, 1, true)
  end)

  it("marks an event as handled although the dict is full", function()
    local one, worker = new_store()
    one:claim "w1"
    dict.full = true
    one:complete "w1"
    assert.equal("done", one:claim "w1")
    assert.same({}, worker.warnings)
  end)
end)

describe("events in a shared dict", function()
  local function new_waiters()
    local worker = new_worker()
    return waiters.new { dict = durable_dict.new(dict), ttl = TTL, worker = worker }, worker
  end

  local function new_awaited(request_id, custom_id)
    local awaited = { request_id = request_id, custom_id = custom_id, offered = {} }
    function awaited:offer(event)
      table.insert(self.offered, event.webhookId)
    end
    return awaited
  end

  local function event(id, request_id, custom_id)
    return { webhookId = id, data = { requestId = request_id, customId = custom_id, status = 1003 } }
  end

  it("are offered to a later waiter, in any worker, for a time", function()
    local one, two = new_waiters(), new_waiters()
    assert.is_true(one:add(event("w1", "r1")))
    local early, late = new_awaited "r1", new_awaited "r1"
    clock.now = clock.now + TTL - 1
    two:expect(early)
    clock.now = clock.now + 1
    two:expect(late)
    assert.same({ { "w1" }, {} }, { early.offered, late.offered })
  end)

  it("from before a submission are not offered to its transaction", function()
    local one, two = new_waiters(), new_waiters()
    one:add(event("w1", "r1"))
    clock.now = clock.now + 1
    local mark = two:mark()
    local fresh, resumed = new_awaited "r1", new_awaited "r1"
    two:expect(fresh, mark)
    two:expect(resumed)
    assert.same({ {}, { "w1" } }, { fresh.offered, resumed.offered })
    one:add(event("w2", "r1"))
    two:expect(fresh, mark)
    assert.same({ "w2" }, fresh.offered)
  end)

  it("are offered to waiters: at once in the receiving worker, at the next poll elsewhere", function()
    local one, here = new_waiters()
    local two, there = new_waiters()
    local mine, theirs, others = new_awaited "r1", new_awaited "r1", new_awaited "r2"
    local waiting = { one:attend(mine, 60), two:attend(theirs, 60), two:attend(others, 60) }
    here.look()
    there.look()
    one:add(event("w1", "r1"))
    assert.same({ { "w1" }, {} }, { mine.offered, theirs.offered })
    there.look()
    there.look()
    assert.same({ { "w1" }, { "w1" }, {} }, { mine.offered, theirs.offered, others.offered })
    one:leave(waiting[1])
    two:leave(waiting[2])
    two:leave(waiting[3])
  end)

  it("are polled for as long as somebody waits", function()
    local one, worker = new_waiters()
    local first = one:attend(new_awaited "r1", 60)
    local second = one:attend(new_awaited "r1", 30)
    one:leave(first)
    worker.look()
    assert.is_function(worker.look)
    one:leave(second)
    worker.look()
    assert.is_nil(worker.look)
    one:attend(new_awaited "r2", 5)
    clock.now = clock.now + 5
    worker.look()
    assert.is_nil(worker.look)
  end)

  it("are not polled for a waiter that was collected", function()
    local one, worker = new_waiters()
    one:attend(new_awaited "r1", 60)
    collectgarbage()
    collectgarbage()
    worker.look()
    assert.is_nil(worker.look)
  end)

  it("are polled again after nginx has dropped the timer", function()
    local one, worker = new_waiters()
    local two = new_waiters()
    local watch = worker.watch
    worker.watch = function() end
    local awaited = new_awaited "r1"
    local waiting = one:attend(awaited, 600)
    worker.watch = watch
    clock.now = clock.now + 20
    local another = one:attend(new_awaited "r2", 600)
    two:add(event("w1", "r1"))
    worker.look()
    assert.same({ "w1" }, awaited.offered)
    one:leave(waiting)
    one:leave(another)
  end)

  it("reach a transaction by requestId alone: a customId may be several transactions'", function()
    local one = new_waiters()
    local awaited = new_awaited("r1", "c1")
    one:add(event("w1", nil, "c1"))
    one:add(event("w2", "r2", "c1"))
    one:expect(awaited)
    local waiting = one:attend(awaited, 60)
    assert.same({}, awaited.offered)
    one:leave(waiting)
  end)

  it("are kept once, however often one is added after its handler failed", function()
    local one = new_waiters()
    for _ = 1, 40 do
      one:add(event("w1", "r1"))
    end
    one:add(event("w2", "r1"))
    local awaited = new_awaited "r1"
    one:expect(awaited)
    assert.same({ "w1", "w2" }, awaited.offered)
  end)

  it("are at most sixteen for one transaction: the oldest are dropped", function()
    local one = new_waiters()
    for index = 1, 20 do
      one:add(event("w" .. index, "r1"))
    end
    local awaited = new_awaited "r1"
    one:expect(awaited)
    assert.equal(16, #awaited.offered)
    assert.same({ "w5", "w20" }, { awaited.offered[1], awaited.offered[16] })
    local places = 0
    for key in pairs(dict.entries) do
      places = places + (key:find "^entry:" and 1 or 0)
    end
    assert.equal(16, places)
  end)

  it("are refused while there is no room", function()
    local one = new_waiters()
    dict.full = true
    local ok, message = one:add(event("w1", "r1"))
    assert.is_nil(ok)
    assert.matches("the shared dict cannot keep the event: no memory", message, 1, true)
    dict.full = false
    assert.is_true(one:add(event("w1", "r1")))
    local awaited = new_awaited "r1"
    one:expect(awaited)
    assert.same({ "w1" }, awaited.offered)
  end)

  it("are kept completely or refused, wherever the room ends", function()
    for room = 0, 8 do
      dict.entries, dict.room = {}, room
      local one = new_waiters()
      local ok = one:add(event("w1", "r1", "c1"))
      dict.room = nil
      if ok then
        local awaited = new_awaited "r1"
        one:expect(awaited)
        assert.same({ "w1" }, awaited.offered)
      else
        assert.is_true(one:add(event("w1", "r1", "c1")))
      end
    end
  end)

  it("use no list for an id that no transaction can have", function()
    local one = new_waiters()
    assert.is_true(one:add(event("w1", ("r"):rep(70000), { "not a text" })))
    assert.is_true(one:add(event("w2", "", "")))
  end)
end)
