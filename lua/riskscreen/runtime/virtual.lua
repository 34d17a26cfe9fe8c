-- A runtime with a virtual clock. When everything waits, the clock jumps to the next timer: waits are exact and take no
-- time. The sandbox explores programs in it, and tests wait in it.

local tables = require "riskscreen.util.tables"
local task = require "riskscreen.runtime.tasks"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

local M = {}

---@class riskscreen.VirtualRuntime: table a runtime for the client option `runtime`
---@field now fun(): number
---@field sleep fun(seconds: number)
---@field tasks table
---@field timers fun(): integer the number of timers: 0 when nothing waits
---@field at fun(seconds: number, callback: fun()): { cancel: fun(self) } calls a function after a time
---@field drive fun(done: fun(): boolean) lets time pass until `done` returns true

---@param start? number the first time of the clock
---@return riskscreen.VirtualRuntime
function M.new(start)
  local now, tasks = start or 0, nil
  local timers, waiting = {}, 0 -- those that were cancelled stay in the list until their time
  local ready, first_ready, last_ready = {}, 1, 0
  local running
  local runtime = {}

  function runtime.current()
    return running and running.coroutine == coroutine.running() and running or nil
  end

  local function make_ready(entry)
    last_ready = last_ready + 1
    ready[last_ready] = entry
  end

  function runtime.start(started, body, ...)
    started.coroutine = coroutine.create(body)
    make_ready { task = started, n = select("#", ...), ... }
  end

  function runtime.suspend(suspended)
    suspended.suspended = true
    coroutine.yield()
  end

  function runtime.wake(woken)
    woken.interrupt = nil
    if woken.suspended then
      woken.suspended = false
      make_ready { task = woken, n = 0 }
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

  local function resume(entry)
    local resumed = entry.task
    if resumed.closing then
      return
    elseif resumed.stop and not resumed.started then
      tasks.ended(resumed, resumed.coroutine, false, resumed.stop)
      return
    end
    local outer = running
    resumed.started, running = true, resumed
    after_resume(resumed, outer, coroutine.resume(resumed.coroutine, unpack(entry, 1, entry.n)))
  end

  local function step()
    local entry = ready[first_ready]
    if entry then
      ready[first_ready] = nil
      first_ready = first_ready + 1
      resume(entry)
      return
    end
    local timer = table.remove(timers, 1) or error("everyone waits and nothing is under way", 0)
    local callback = timer.callback
    if callback then
      now, waiting, timer.callback = math.max(now, timer.at), waiting - 1, nil
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
