-- A runtime with a virtual clock. When everything waits, the clock jumps to the next timer. Tests of waits are exact
-- and take no time.
local task = require "riskscreen.runtime.tasks"
local timer_heap = require "spec.support.timer_heap"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

local M = {}

---@return table runtime now(), sleep(seconds), tasks
function M.new()
  local now, serial, timers = 0, 0, timer_heap.new()
  local ready, first_ready, last_ready = {}, 1, 0
  local owners = setmetatable({}, { __mode = "k" })
  local runtime, tasks = {}, nil

  function runtime.current()
    return owners[coroutine.running() or false]
  end

  function runtime.start(started, body, ...)
    started.coroutine = coroutine.create(body)
    owners[started.coroutine] = started
    last_ready = last_ready + 1
    ready[last_ready] = { task = started, n = select("#", ...), ... }
  end

  function runtime.suspend(suspended)
    suspended.suspended = true
    coroutine.yield()
  end

  function runtime.wake(woken)
    woken.interrupt = nil
    if woken.suspended then
      woken.suspended = false
      last_ready = last_ready + 1
      ready[last_ready] = { task = woken, n = 0 }
    end
  end

  function runtime.timer(seconds, callback)
    serial = serial + 1
    local timer = { at = now + seconds, serial = serial, callback = callback }
    timers:add(timer)
    return {
      cancel = function()
        timers:remove(timer)
      end,
    }
  end

  local function after_resume(resumed, ok, ...)
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
    resumed.started = true
    after_resume(resumed, coroutine.resume(resumed.coroutine, unpack(entry, 1, entry.n)))
  end

  local function step()
    local entry = ready[first_ready]
    if entry then
      ready[first_ready] = nil
      first_ready = first_ready + 1
      resume(entry)
      return
    end
    local timer = timers:pop() or error("everyone waits and nothing is under way", 0)
    now = math.max(now, timer.at)
    timer.callback()
  end

  function runtime.block_until(done, timeout)
    local expired = false
    local timer = timeout and runtime.timer(timeout, function()
      expired = true
    end)
    while not (expired or done()) do
      step()
    end
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
    ---The number of timers: 0 when nothing waits.
    timers = function()
      return timers.count
    end,
  }
end

return M
