local errors = require "riskscreen.errors"
local patience = require "spec.support.patience"
local riskscreen = require "riskscreen"
local runtime = require "riskscreen.runtime"

local run, spawn, gather, sleep = riskscreen.run, riskscreen.spawn, riskscreen.gather, riskscreen.sleep
local tasks = runtime.tasks
local signal = tasks.signal

-- PUC Lua 5.1 cannot yield across pcall, so a failure is observed from outside of its task.
local pcall_yields = _VERSION ~= "Lua 5.1" or rawget(_G, "jit") ~= nil

local function failure_of(body, ...)
  local ok, failure = pcall(run, body, ...)
  assert.is_false(ok)
  return failure
end

-- A task that waits until it is cancelled.
local function endless()
  return spawn(function()
    signal():wait(1000)
  end)
end

describe("run", function()
  it("passes arguments in and results out, nils included", function()
    local results = { n = 0 }
    local function collect(...)
      results = { n = select("#", ...), ... }
    end
    collect(run(function(a, b, c)
      return c, b, a, nil
    end, 1, nil, 3))
    assert.same({ n = 4, 3, nil, 1, nil }, results)
  end)

  it("takes a function that is written in C", function()
    assert.equal("3", run(tostring, 3))
  end)

  it("raises the error of the function, with its traceback", function()
    local failure = failure_of(function()
      sleep(0)
      error "boom"
    end)
    assert.matches("tasks_spec.lua:%d+: boom", failure)
    assert.matches("stack traceback:", failure, 1, true)
  end)

  it("raises an error object as it is, with a traceback", function()
    local err = errors.new("network", "cut")
    assert.equal(
      err,
      failure_of(function()
        error(err, 0)
      end)
    )
    assert.matches("stack traceback:", err.traceback, 1, true)
  end)

  it("ends only when all spawned tasks have ended", function()
    local ended = {}
    run(function()
      spawn(function()
        spawn(function()
          sleep(0.002)
          ended[#ended + 1] = "grandchild"
        end)
      end)
      ended[#ended + 1] = "body"
    end)
    assert.same({ "body", "grandchild" }, ended)
  end)

  it("fails where the function or a child raises nil", function()
    assert.matches("^the task raised nil\n", failure_of(error))
    assert.matches(
      "^the task raised nil\n",
      failure_of(function()
        spawn(error)
        sleep(10)
      end)
    )
  end)

  it("raises the failure of a child that nobody awaits, at the parent's next wait", function()
    local reached = false
    local failure = failure_of(function()
      spawn(function()
        error "child"
      end)
      signal():wait(1000)
      reached = true
    end)
    assert.matches("child", failure, 1, true)
    assert.is_false(reached)
  end)

  it("raises the failure of a child even when the parent has returned", function()
    local failure = failure_of(function()
      spawn(function()
        sleep(0.001)
        error "late child"
      end)
    end)
    assert.matches("late child", failure, 1, true)
  end)

  it("cancels the siblings of a child that fails", function()
    local sibling
    failure_of(function()
      sibling = endless()
      spawn(function()
        error "child"
      end)
    end)
    local _, err = sibling:await()
    assert.equal("cancelled", err.kind)
  end)

  it("refuses to run inside a task", function()
    local failure = failure_of(function()
      run(function() end)
    end)
    assert.matches("already inside a task", failure, 1, true)
  end)

  it("refuses a task that yields by itself", function()
    local failure = failure_of(function()
      coroutine.yield()
    end)
    assert.matches("must not yield", failure, 1, true)
  end)

  it("refuses a wait that can never end", function()
    local failure = failure_of(function()
      signal():wait()
    end)
    assert.matches("can never end", failure, 1, true)
  end)
end)

describe("await", function()
  it("returns the task's results each time", function()
    run(function()
      local task = spawn(function()
        return 1, 2
      end)
      assert.same({ 1, 2 }, { task:await() })
      assert.same({ 1, 2 }, { task:await() })
    end)
  end)

  it("blocks outside of a task", function()
    local task = spawn(function()
      sleep(0.001)
      return "done"
    end)
    assert.equal("done", task:await())
  end)

  it("gives up after its timeout and lets the task go on", function()
    run(function()
      local go = signal()
      local task = spawn(function()
        go:wait(1000)
        return "done"
      end)
      local value, err = task:await(0.001)
      assert.is_nil(value)
      assert.equal("timeout", err.kind)
      go:notify()
      assert.equal("done", task:await())
    end)
  end)

  it("leaves later waits whole where its timeout is too long", function()
    run(function()
      local child = spawn(function()
        sleep(0.01)
      end)
      if pcall_yields then
        pcall(child.await, child, 2e9) -- natively it is refused; nginx waits in several pieces
      end
      local started = runtime.now()
      sleep(0.05)
      assert.is_true(runtime.now() - started >= 0.05)
    end)
  end)

  it("serves several waiters", function()
    run(function()
      local target = spawn(function()
        sleep(0.001)
        return "x"
      end)
      local function wait()
        return (target:await())
      end
      assert.same({ "x", "x", "x" }, (gather { wait, wait, wait }))
    end)
  end)

  it("raises the task's failure where it is awaited", function()
    local failure = failure_of(function()
      local task = spawn(function()
        sleep(0.001)
        error "inner"
      end)
      task:await()
    end)
    assert.matches("inner", failure, 1, true)
  end)

  if pcall_yields then
    it("leaves the parent unharmed when it catches the failure", function()
      run(function()
        local task = spawn(function()
          sleep(0.001)
          error "inner"
        end)
        local ok, failure = pcall(task.await, task)
        assert.is_false(ok)
        assert.matches("inner", failure, 1, true)
        sleep(0)
      end)
    end)
  end

  it("refuses to await itself", function()
    local failure = failure_of(function()
      local task
      task = spawn(function()
        task:await()
      end)
      task:await()
    end)
    assert.matches("cannot await itself", failure, 1, true)
  end)
end)

describe("on_end", function()
  it("calls its function when the task returns, fails or is cancelled", function()
    local ended = {}
    local function note(name)
      return function()
        ended[#ended + 1] = name
      end
    end
    local returns, cancelled = spawn(function() end), endless()
    local fails = spawn(function()
      error "boom"
    end)
    tasks.on_end(returns, note "returned")
    tasks.on_end(fails, note "failed")
    tasks.on_end(cancelled, note "cancelled")
    sleep(0)
    assert.same({ "returned", "failed" }, ended)
    cancelled:cancel()
    cancelled:await()
    assert.equal("cancelled", ended[3])
  end)

  it("calls its function at once when the task has ended already", function()
    local task = spawn(function() end)
    task:await()
    local called = false
    tasks.on_end(task, function()
      called = true
    end)
    assert.is_true(called)
  end)

  it("does not fail the parent when the task fails, and await raises the failure", function()
    local message
    run(function()
      local child = spawn(function()
        error("boom", 0)
      end)
      tasks.on_end(child, function()
        local _, failure = pcall(child.await, child)
        message = failure
      end)
      sleep(0.001)
    end)
    assert.matches("^boom", message)
  end)
end)

describe("cancel", function()
  it("ends a wait at once", function()
    run(function()
      local task = endless()
      sleep(0)
      task:cancel()
      local value, err = task:await()
      assert.is_nil(value)
      assert.equal("cancelled", err.kind)
    end)
  end)

  it("keeps a task from starting that has not started", function()
    local begun = false
    run(function()
      local task = spawn(function()
        begun = true
      end)
      task:cancel()
      assert.equal("cancelled", select(2, task:await()).kind)
    end)
    assert.is_false(begun)
  end)

  it("reaches the children", function()
    local child
    run(function()
      local parent = spawn(function()
        child = endless()
        signal():wait(1000)
      end)
      sleep(0)
      parent:cancel()
    end)
    assert.equal("cancelled", select(2, child:await()).kind)
  end)

  it("leaves a task that has ended alone", function()
    local task = spawn(function()
      return "done"
    end)
    assert.equal("done", task:await())
    task:cancel()
    assert.equal("done", task:await())
  end)

  it("does not fail the parent", function()
    assert.equal(
      "fine",
      run(function()
        endless():cancel()
        sleep(0)
        return "fine"
      end)
    )
  end)
end)

describe("gather", function()
  it("gives the first and second results in the order of the functions", function()
    local values, errs = run(function()
      return gather {
        function()
          sleep(0.002)
          return "slow"
        end,
        function()
          return nil, "no"
        end,
      }
    end)
    assert.equal("slow", values[1])
    assert.is_nil(values[2])
    assert.equal("no", errs[2])
  end)

  it("works outside of a task", function()
    assert.same({ 1, 2 }, (gather {
      function()
        return 1
      end,
      function()
        return 2
      end,
    }))
  end)

  it("raises the first failure and cancels the others", function()
    local cancelled = true
    local ok, failure = pcall(gather, {
      function()
        signal():wait(1000)
        cancelled = false
      end,
      function()
        error "second"
      end,
    })
    assert.is_false(ok)
    assert.matches("second", failure, 1, true)
    assert.is_true(cancelled)
  end)
end)

describe("a wait in the caller's own coroutine", function()
  it("blocks instead of yielding to the wrong resumer", function()
    local steps = {}
    local other = spawn(function()
      steps[#steps + 1] = "other"
    end)
    local value = coroutine.wrap(function()
      sleep(0.001)
      return "value"
    end)()
    assert.equal("value", value)
    other:await()
    assert.same({ "other" }, steps)
  end)

  it("blocks inside a task as well", function()
    assert.equal(
      "value",
      run(function()
        local inner = spawn(function()
          sleep(0.001)
          return "value"
        end)
        return coroutine.wrap(function()
          return (inner:await())
        end)()
      end)
    )
  end)
end)

describe("what a task holds", function()
  local hold, release = tasks.hold, tasks.release
  local given_up

  before_each(function()
    given_up = 0
  end)

  local function held()
    return {
      abandon = function()
        given_up = given_up + 1
      end,
    }
  end

  it("is abandoned when the task is cancelled while it waits", function()
    run(function()
      local task = spawn(function()
        hold(held())
        hold(held())
        sleep(1000)
      end)
      sleep(0)
      task:cancel()
      task:await()
    end)
    assert.equal(2, given_up)
  end)

  it("is abandoned when the task fails", function()
    failure_of(function()
      hold(held())
      error "boom"
    end)
    assert.equal(1, given_up)
  end)

  it("is abandoned when a child's failure stops the task", function()
    failure_of(function()
      hold(held())
      spawn(error, "boom")
      sleep(1000)
    end)
    assert.equal(1, given_up)
  end)

  it("is not abandoned after its release, or when the task returns", function()
    run(function()
      local thing = held()
      hold(thing)
      release(thing)
      local task = spawn(function()
        hold(held())
      end)
      task:await()
      task:cancel()
    end)
    assert.equal(0, given_up)
  end)

  it("is nothing outside of a task", function()
    local thing = held()
    hold(thing)
    release(thing)
    assert.equal(0, given_up)
  end)
end)

describe("turns", function()
  it("let one call run at a time, in tasks and outside of them", function()
    local in_turn, under_way, most, count = tasks.turns(), 0, 0, 0
    local function call()
      under_way = under_way + 1
      most = math.max(most, under_way)
      sleep(0.001)
      under_way, count = under_way - 1, count + 1
      return count, "done"
    end
    assert.same({ 1, "done" }, { in_turn(call) })
    gather {
      function()
        in_turn(call)
      end,
      function()
        in_turn(call)
      end,
      function()
        in_turn(call)
      end,
    }
    assert.same({ 1, 4 }, { most, count })
  end)

  it("are not waited for where the call under way could not go on meanwhile", function()
    local in_turn, count = tasks.turns(), 0
    local function call()
      sleep(0.001)
      count = count + 1
    end
    local function blocking()
      coroutine.wrap(function()
        in_turn(call)
      end)()
    end
    gather {
      blocking,
      blocking,
      function()
        in_turn(call)
      end,
    }
    local task = spawn(blocking)
    blocking()
    task:await()
    assert.equal(5, count)
  end)

  it("go on after a call that failed, and after a task that was cancelled in its turn", function()
    local in_turn = tasks.turns()
    local ok, failure = pcall(in_turn, error, "it fails", 0)
    assert.same({ false, "it fails" }, { ok, failure })
    run(function()
      local task = spawn(in_turn, function()
        signal():wait(1000)
      end)
      task:cancel()
      assert.equal(7, in_turn(tonumber, "7"))
    end)
  end)
end)

describe("a wait that may have to block on PUC Lua 5.1", function()
  it("returns inside pcall and iterators, and wakes its task once", function()
    local slept = {}
    run(function()
      local started = runtime.now()
      assert.is_true(pcall(sleep, 0.02))
      assert.is_true(pcall(function()
        assert.is_true(pcall(sleep, 0.01))
      end))
      for count in
        function(_, count)
          sleep(0.01)
          return not count and 1 or nil
        end
      do
        slept[count] = runtime.now() - started
      end
      slept[2] = runtime.now() - started
      sleep(0.05)
      slept[3] = runtime.now() - started
    end)
    for index, seconds in ipairs { 0.04, 0.05, 0.1 } do
      assert.is_true(slept[index] >= seconds - 0.001, index)
    end
  end)

  it("lets other tasks go on", function()
    local other
    run(function()
      spawn(function()
        sleep(0)
        other = true
      end)
      pcall(sleep, 0.01)
      assert.is_true(other)
    end)
  end)

  it("fails in a metamethod, if the Lua cannot yield there, and its task ends", function()
    local odd = setmetatable({}, {
      __index = function()
        sleep(0)
        return "value"
      end,
    })
    local ok, value = pcall(run, function()
      return odd.field
    end)
    assert.is_truthy(value == "value" or not ok and value:find "attempt to yield across metamethod")
  end)
end)

describe("in a function that a function of C calls", function()
  it("a task's wait blocks, and its later waits are whole", function()
    local upper, awaited
    run(function()
      local started = runtime.now()
      upper = ("ab"):gsub(".", function(letter)
        sleep(0.01)
        return letter:upper()
      end)
      local list = { 2, 1 }
      table.sort(list, function(left, right)
        awaited = spawn(function()
          sleep(0.01)
          return "awaited"
        end):await()
        return left < right
      end)
      assert.same({ 1, 2 }, list)
      sleep(0.05)
      assert.is_true(runtime.now() - started >= 0.08 - 0.001)
    end)
    assert.same({ "AB", "awaited" }, { upper, awaited })
  end)

  it("and in a pcall, a task that is started is a child", function()
    local ended = {}
    local function start()
      spawn(function()
        sleep(0.01)
        ended[#ended + 1] = true
      end)
    end
    run(function()
      pcall(start)
      assert.equal(1, select(2, ("a"):gsub(".", start)))
    end)
    assert.same({ true, true }, ended)
  end)

  it("the failure of a child that nobody awaits is the task's", function()
    local failure = failure_of(function()
      pcall(spawn, function()
        error("boom", 0)
      end)
    end)
    assert.matches("^boom", failure)
  end)
end)

describe("a contained function", function()
  it("blocks where it waits, and other tasks go on", function()
    local order = {}
    run(function()
      spawn(function()
        order[#order + 1] = "other"
      end)
      tasks.contain(function()
        sleep(0.001)
        order[#order + 1] = "contained"
      end)
    end)
    assert.same({ "other", "contained" }, order)
  end)

  it("hides no failure of a child, although nothing waits after it", function()
    local failure = failure_of(function()
      spawn(function()
        error("boom", 0)
      end)
      tasks.contain(sleep, 0.001)
    end)
    assert.matches("^boom", failure)
  end)

  it("makes waits block only until it returns", function()
    run(function()
      assert.is_false(tasks.blocks())
      tasks.contain(function()
        assert.is_true(tasks.blocks())
      end)
      assert.is_false(tasks.blocks())
    end)
    tasks.contain(error, "boom")
    assert.is_true(tasks.blocks())
  end)

  it("is not stopped where it waits, but the next wait after it ends at once", function()
    local reached
    run(function()
      local task = spawn(function()
        tasks.contain(function()
          sleep(0.002)
          reached = "the end of it"
        end)
        signal():wait()
        reached = "what follows"
      end)
      sleep(0)
      task:cancel()
      assert.equal("cancelled", select(2, task:await()).kind)
    end)
    assert.equal("the end of it", reached)
  end)

  it("returns the results of pcall", function()
    assert.same({ true, 1, 2 }, {
      tasks.contain(function(...)
        return ...
      end, 1, 2),
    })
    local ok, message = tasks.contain(error, "boom", 0)
    assert.same({ false, "boom" }, { ok, message })
  end)
end)

describe("a failure that nobody awaits", function()
  it("is reported once, after the task was collected", function()
    local said = {}
    local stderr = io.stderr
    io.stderr = { -- luacheck: ignore 122
      write = function(_, ...)
        said[#said + 1] = table.concat { ... }
      end,
    }
    spawn(function()
      error "lost"
    end)
    sleep(0)
    collectgarbage()
    collectgarbage()
    io.stderr = stderr -- luacheck: ignore 122
    assert.equal(1, #said)
    assert.matches("lost", said[1], 1, true)
  end)
end)

describe("the loop", function()
  local loop = riskscreen.loop

  it("resumes tasks in step only", function()
    local done = false
    local task = spawn(function()
      done = true
    end)
    assert.is_false(done)
    assert.equal(0, loop:timeout())
    loop:step(0)
    assert.is_true(done)
    task:await()
  end)

  it("leaves work beyond its budget to the next step", function()
    local count = 0
    for _ = 1, 20 do
      spawn(function()
        count = count + 1
      end)
    end
    loop:step { budget = 0 }
    assert.equal(1, count)
    assert.equal(0, loop:timeout())
    while count < 20 do
      loop:step { budget = 0 }
    end
  end)

  it("wakes timers in the order of their times", function()
    local order = patience(function(seconds)
      local order = {}
      run(function()
        for index, share in ipairs { 1, 1 / 3, 2 / 3 } do
          spawn(function()
            sleep(share * seconds)
            order[#order + 1] = index
          end)
        end
      end)
      return table.concat(order) == "231", order
    end)
    assert.same({ 2, 3, 1 }, order)
  end)
end)
