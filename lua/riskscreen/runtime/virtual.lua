-- A runtime with a virtual clock. When everything waits, the clock jumps to the next timer: waits are exact and take no
-- time. The sandbox explores programs in it, and tests wait in it.

local tables = require "riskscreen.util.tables"
local task = require "riskscreen.runtime.tasks"

local M = {}

---@class riskscreen.VirtualRuntime: table a runtime for the client option `runtime`
---@field now fun(): number
---@field sleep fun(seconds: number)
---@field tasks table
---@field timers fun(): integer the number of timers: 0 when nothing waits
---@field at fun(seconds: number, callback: fun()): { cancel: fun(self) } calls a function after a time
---@field drive fun(done: fun(): boolean) lets time pass until `done` returns true

---@param start? number the first time of the clock
---@param on_wait? fun(seconds: number) called for each jump of the clock
---@return riskscreen.VirtualRuntime
function M.new(start, on_wait)
  local now, tasks = start or 0, nil
  local timers, waiting = {}, 0 -- those that were cancelled stay in the list until their time
  local ready = {} -- the tasks to resume, in order
  local running
  local runtime = {}

  function runtime.current()
    return running and running.coroutine == coroutine.running() and running or nil
  end

  function runtime.start(started, body, ...)
    started.coroutine = coroutine.create(body)
    started.arguments = { n = select("#", ...), ... }
    table.insert(ready, started)
  end

  function runtime.suspend(suspended)
    suspended.suspended = true
    coroutine.yield()
  end

  function runtime.wake(woken)
    woken.interrupt = nil
    if woken.suspended then
      woken.suspended = false
      table.insert(ready, woken)
    end
  end

  function runtime.timer(seconds, callback)
    local timer = { at = now + seconds, callback = callback }
    tables.insert_sorted(timers, "at", timer)
    waiting = waiting + 1
    return {
      cancel = function()
        waiting = waiting - (timer.callback and 1 or 0)
        timer.callback = nil
      end,
    }
  end

  local function after_resume(resumed, outer, ok, ...)
    running = outer
    if not ok or coroutine.status(resumed.coroutine) == "dead" then
      tasks.ended(resumed, resumed.coroutine, ok, ...)
    end
  end

  local function resume(resumed)
    local arguments = resumed.arguments
    if resumed.closing then
      return
    elseif resumed.stop and arguments then
      tasks.ended(resumed, resumed.coroutine, false, resumed.stop)
      return
    end
    local outer = running
    resumed.arguments, running = nil, resumed
    arguments = arguments or { n = 0 }
    after_resume(resumed, outer, coroutine.resume(resumed.coroutine, tables.unpack(arguments, 1, arguments.n)))
  end

  local function step()
    if ready[1] then
      resume(table.remove(ready, 1))
      return
    end
    local timer = table.remove(timers, 1) or error("everyone waits and nothing is under way", 0)
    local callback = timer.callback
    if callback then
      local before = now
      now, waiting, timer.callback = math.max(now, timer.at), waiting - 1, nil
      if on_wait and now > before then
        on_wait(now - before)
      end
      callback()
    end
  end

  local function drive(done)
    while not done() do
      step()
    end
  end

  function runtime.block_until(done, timeout)
    local expired = false
    local timer = timeout and runtime.timer(timeout, function()
      expired = true
    end)
    drive(function()
      return expired or done()
    end)
    if timer then
      timer:cancel()
    end
  end

  tasks = task(runtime)
  tasks.contain = pcall
  return {
    now = function()
      return now
    end,
    sleep = tasks.sleep,
    tasks = tasks,
    at = runtime.timer,
    drive = drive,
    timers = function()
      return waiting
    end,
  }
end

return M
