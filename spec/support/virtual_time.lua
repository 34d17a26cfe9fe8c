-- A runtime with a virtual clock. When everything waits, the clock jumps to the next timer. Tests of waits are exact
-- and take no time.
local task = require "riskscreen.runtime.tasks"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

local M = {}

---@return table runtime now(), sleep(seconds), tasks
function M.new()
  local now, serial, ready, timers = 0, 0, {}, {}
  local owners = setmetatable({}, { __mode = "k" })
  local runtime, tasks = {}, nil

  function runtime.current()
    return owners[coroutine.running() or false]
  end

  function runtime.start(started, body, ...)
    started.coroutine = coroutine.create(body)
    owners[started.coroutine] = started
    ready[#ready + 1] = { task = started, n = select("#", ...), ... }
  end

  function runtime.suspend(suspended)
    suspended.suspended = true
    coroutine.yield()
  end

  function runtime.wake(woken)
    woken.interrupt = nil
    if woken.suspended then
      woken.suspended = false
      ready[#ready + 1] = { task = woken, n = 0 }
    end
  end

  function runtime.timer(seconds, callback)
    serial = serial + 1
    local timer = { at = now + seconds, serial = serial, callback = callback }
    timers[timer] = true
    return {
      cancel = function()
        timers[timer] = nil
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

  local function earliest()
    local first
    for timer in pairs(timers) do
      if not first or timer.at < first.at or (timer.at == first.at and timer.serial < first.serial) then
        first = timer
      end
    end
    return first
  end

  local function step()
    local entry = table.remove(ready, 1)
    if entry then
      resume(entry)
      return
    end
    local timer = earliest() or error("everyone waits and nothing is under way", 0)
    timers[timer] = nil
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
      local count = 0
      for _ in pairs(timers) do
        count = count + 1
      end
      return count
    end,
  }
end

return M
