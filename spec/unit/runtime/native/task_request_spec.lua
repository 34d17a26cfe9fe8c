-- Calls inside tasks, over real sockets to a sandbox in the same process.

local driver = require "spec.support.native_driver"
local leftovers = require "spec.support.leftovers"
local native = require "riskscreen.runtime.native"
local peer = require "spec.support.peer"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"
local scheduler = require "riskscreen.runtime.native.scheduler"

local run, spawn, sleep = riskscreen.run, riskscreen.spawn, riskscreen.sleep

local clean = sandbox.scenario("clean-eth").address
local hanging = { headers = { ["X-Sandbox-Fault"] = "hang" } }

describe("a call in a task", function()
  local server, client

  before_each(function()
    server = assert(sandbox.serve {})
    client = riskscreen.new { base_url = server.url, access_key = server.access_key }
  end)

  after_each(function()
    client:close()
    server:close()
  end)

  local function ask(options)
    return client.kya:risk({ address = clean, network = "eth" }, options)
  end

  -- Steps the loop until so many requests have reached the service.
  local function wait_for_requests(count)
    while #server.service:requests() < count do
      sleep(0.001)
    end
  end

  it("lets other tasks go on while it waits", function()
    local order, held = {}, nil
    local service = peer.tcp(driver, function(connection)
      held = connection
    end)
    local waiting = riskscreen.new { base_url = service.url, access_key = server.access_key }
    run(function()
      local slow = spawn(function()
        assert(waiting:request("GET", "/"))
        order[#order + 1] = "slow"
      end)
      repeat
        sleep(0.001)
      until held
      ask()
      order[#order + 1] = "prompt"
      held:send(peer.response "{}")
      slow:await()
    end)
    assert.same({ "prompt", "slow" }, order)
    waiting:close()
    service:close()
  end)

  it("that is cancelled aborts its transfer and frees its handle", function()
    run(function()
      local task = spawn(ask, hanging)
      wait_for_requests(1)
      assert.equal(1, scheduler.loop():stats().transfers)
      task:cancel()
      assert.equal(0, scheduler.loop():stats().transfers)
      assert.equal("cancelled", select(2, task:await()).kind)
    end)
  end)

  it("that is cancelled with its parent is aborted as well", function()
    run(function()
      local parent = spawn(function()
        spawn(ask, hanging)
        sleep(1000)
      end)
      wait_for_requests(1)
      parent:cancel()
      parent:await()
    end)
    assert.equal(0, scheduler.loop():stats().transfers)
  end)

  -- An object whose step is called at once while it is attached.
  local function stepped(step)
    local poll = require("riskscreen.core").loop {}
    local object = { step = step }
    function object.pollfd()
      return poll:pollfd()
    end
    function object.events()
      return "r"
    end
    function object.timeout()
      return 0
    end
    return object
  end

  it("leaves no transfer behind where an attached object ends its wait with an error", function()
    local object = stepped(function()
      error("a bug", 0)
    end)
    native.attach(object)
    local ok, message = pcall(client.request, client, "GET", "/", hanging)
    native.detach(object)
    assert.same({ false, "a bug" }, { ok, message })
    assert.equal(0, scheduler.loop():stats().transfers)
  end)

  it("leaves no timer behind where an attached object ends a timed wait with an error", function()
    local before, signal = scheduler.loop():stats().timers, native.tasks.signal()
    local object = stepped(function()
      error("a bug", 0)
    end)
    native.attach(object)
    local ok, message = pcall(signal.wait, signal, 30)
    native.detach(object)
    assert.same({ false, "a bug" }, { ok, message })
    assert.equal(before, scheduler.loop():stats().timers)
  end)

  it("reports the later failure of a task where an attached object has ended the wait for it with an error", function()
    local said, stderr = {}, io.stderr
    io.stderr = { -- luacheck: ignore 122
      write = function(_, ...)
        said[#said + 1] = table.concat { ... }
      end,
    }
    local object = stepped(function()
      error("a bug", 0)
    end)
    local task = native.tasks.spawn(function()
      native.sleep(0.002)
      error "lost"
    end)
    native.attach(object)
    local ok, message = pcall(task.await, task, 30)
    native.detach(object)
    task = nil -- luacheck: ignore 311
    native.sleep(0.01)
    collectgarbage()
    collectgarbage()
    io.stderr = stderr -- luacheck: ignore 122
    assert.same({ false, "a bug" }, { ok, message })
    assert.equal(1, #said)
    assert.matches("lost", said[1], 1, true)
  end)

  it("that is cancelled between its answer and its next step leaves no transfer behind", function()
    local before = leftovers.count().handles
    local function cancel_late()
      local own = riskscreen.new { base_url = server.url, access_key = server.access_key }
      local task, object
      object = stepped(function()
        native.detach(object)
        for _ = 1, 20 do -- meanwhile the task's answer comes, and its step has to wait
          ask()
        end
        task:cancel()
      end)
      run(function()
        task = spawn(own.request, own, "GET", "/")
        native.attach(object)
        assert.equal("cancelled", select(2, task:await()).kind)
      end)
      own:close()
    end
    cancel_late()
    client:close()
    assert.equal(before, leftovers.count().handles)
  end)

  it("without a waiter does not disturb the next one", function()
    run(function()
      local task = spawn(ask, hanging)
      wait_for_requests(1)
      task:cancel()
      assert.equal(clean, ask().address)
    end)
  end)

  it("blocks in a coroutine of the caller's own", function()
    local record = run(function()
      return coroutine.wrap(function()
        return (ask())
      end)()
    end)
    assert.equal(clean, record.address)
  end)

  it("fails by its own deadline, however many wait before it", function()
    local kinds = {}
    run(function()
      for index = 1, 40 do
        spawn(function()
          local _, err = ask { timeout = 0.05, headers = hanging.headers }
          kinds[index] = err.kind
        end)
      end
    end)
    for index = 1, 40 do
      assert.equal("timeout", kinds[index])
    end
  end)
end)

it("the wait of a task in a coroutine of its own raises an error before the stack overflows", function()
  local messages = {}
  run(function()
    for _ = 1, 100 do
      spawn(function()
        local ok, message = pcall(coroutine.wrap(sleep), 0.001)
        messages[ok or message] = true
      end)
    end
  end)
  local wanted = "too many tasks wait inside each other, in coroutines or iterators that cannot yield"
  assert.same({ [true] = true, [wanted] = true }, messages)
end)

describe("ten thousand tasks", function()
  local count = 10000

  -- All of them wait at the same time. Returns the KB of Lua memory before, during and after the wait.
  local function wait_together()
    local go = native.tasks.signal()
    local before, meanwhile = leftovers.collect(), nil
    run(function()
      local ended = 0
      for _ = 1, count do
        spawn(function()
          go:wait(1000)
          ended = ended + 1
        end)
      end
      sleep(0)
      meanwhile = leftovers.collect()
      go:notify()
      while ended < count do
        sleep(0)
      end
    end)
    go = nil -- luacheck: ignore 311
    return before, meanwhile, leftovers.collect()
  end

  it("take less than 4 KB each while they wait, and leave nothing behind", function()
    -- Tables of the runtime and Lua's table of strings may grow once. An object that each task leaves behind would add
    -- memory each time.
    local least, each = math.huge, nil
    for _ = 1, 4 do
      local before, meanwhile, after = wait_together()
      least, each = math.min(least, after - before), (meanwhile - before) / count
    end
    assert.is_true(each < 4, ("%.2f KB"):format(each))
    assert.is_true(least < 16, ("%.0f KB are left"):format(least))
    assert.equal(0, scheduler.loop():stats().timers)
  end)
end)
