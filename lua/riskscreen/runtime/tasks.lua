-- Tasks: structured concurrency, the same over every runtime. A task ends only when the tasks it spawned have ended.
-- Not here: how a runtime starts, suspends and wakes a coroutine.

local errors = require "riskscreen.errors"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

local function pack(...)
  return { n = select("#", ...), ... }
end

---What a runtime provides.
---@class riskscreen.TaskRuntime
---@field current fun(): riskscreen.Task|nil the task that is running
---@field start fun(task: riskscreen.Task, body: fun(...), ...) runs the body soon; reports its end to `ended`
---@field suspend fun(task: riskscreen.Task) returns after `wake`; called by the running task
---@field wake fun(task: riskscreen.Task) of a suspended task; forgets its `interrupt`
---@field block_until fun(done: fun(): boolean, timeout?: number, waiters?: table<fun(), true>) waits outside of any
---task; what is in `waiters` is called when `done` may have changed
---@field timer fun(seconds: number, callback: fun()): { cancel: fun(self) } of the running task, which suspends next
---@field refusal? fun(): string|nil why nothing can wait at this point of the program
---@field guard? fun(thing: { abandon: fun(self) }): any has `abandon` called when it is swept away with its stack
---@field disarm? fun(guard: any) ends `guard`
---@field report? fun(message: string) a failure that nobody awaits; by default to stderr

local function cancelled_error()
  return errors.new("cancelled", "the task was cancelled")
end

-- The failure with where it happened: a text grows, one of our errors gets a field, anything else stays as it is.
local function with_traceback(failure, coroutine)
  if type(failure) == "string" then
    -- One that came from another task says already where.
    local told = failure:find("\nstack traceback:\n", 1, true)
    return told and failure or debug.traceback(coroutine, failure)
  elseif errors.is(failure) and not failure.traceback then
    failure.traceback = debug.traceback(coroutine)
  end
  return failure
end

local function to_stderr(message)
  io.stderr:write(message, "\n")
end

-- Calls `collected` when the returned value is garbage; a table has no such hook before Lua 5.2.
local function guard(collected)
  if newproxy then -- luacheck: ignore 113
    local proxy = newproxy(true) -- luacheck: ignore 113
    getmetatable(proxy).__gc = collected
    return proxy
  end
  return setmetatable({}, { __gc = collected })
end

-- A root task's failure has no parent to surface in: it is reported when nobody can await it any more.
local function watch_failure(task, report)
  local fate = task.fate
  task.guard = guard(function()
    if not fate.awaited then
      report("riskscreen: a task failed and nobody awaited it: " .. tostring(fate.failure))
    end
  end)
  fate.failure = task.failure
end

return function(runtime)
  ---@class riskscreen.Task of this runtime: a program may have several
  local Task = { __name = "riskscreen.Task" }
  Task.__index = Task

  local M = {}
  local settle

  local function give_up(task)
    local held = task.held
    task.held = nil
    for thing in pairs(held or {}) do
      thing:abandon()
    end
  end

  -- Suspends the running task until it is woken; `interrupt` undoes what it waits for when it is stopped instead, be it
  -- that it was stopped while it could not be interrupted.
  local function pause(task, interrupt)
    if task.stop then
      interrupt()
    else
      task.interrupt = interrupt
      runtime.suspend(task)
      task.interrupt = nil
    end
    local stop = task.stop
    if stop then
      -- A cancelled task stays so; a child's failure is raised once.
      if not task.cancelling then
        task.stop = nil
      end
      give_up(task)
      error(stop, 0)
    end
  end

  -- Waits, suspended, until one of `waiters` is called or the time is up.
  local function wait_among(waiters, timeout)
    local me = runtime.current()
    local timer
    local function wake()
      if timer then
        timer:cancel()
      end
      waiters[wake] = nil
      runtime.wake(me)
    end
    waiters[wake] = true
    timer = timeout and runtime.timer(timeout, wake)
    pause(me, function()
      if timer then
        timer:cancel()
      end
      waiters[wake] = nil
    end)
  end

  local function wake_all(waiters)
    local list = {}
    for wake in pairs(waiters) do
      list[#list + 1] = wake
    end
    for _, wake in ipairs(list) do
      wake()
    end
  end

  -- Raises, two levels up, where nothing can wait.
  local function ensure_waiting(what)
    local why = runtime.refusal and runtime.refusal()
    if why then
      error(what .. ": " .. why, 3)
    end
  end

  local function is_duration(value)
    return type(value) == "number" and value >= 0 and value < math.huge
  end

  local function interrupt(task)
    local undo = task.interrupt
    if undo then
      undo()
      runtime.wake(task)
    end
  end

  local function stop_children(task)
    local children = {}
    for child in pairs(task.children) do
      children[#children + 1] = child
    end
    for _, child in ipairs(children) do
      child:cancel()
    end
  end

  local function fail(task, failure)
    stop_children(task)
    if task.closing then
      task.failure = task.failure or failure
    else
      task.stop = task.stop or failure
      interrupt(task)
    end
  end

  local function child_ended(parent, child)
    parent.children[child] = nil
    parent.open = parent.open - 1
    if child.failure ~= nil and not child.fate.awaited then
      child.fate.awaited = true
      fail(parent, child.failure)
    end
    settle(parent)
  end

  -- A task whose body has ended is done when its children are.
  function settle(task)
    if not task.closing or task.done or task.open > 0 then
      return
    end
    task.done = true
    if next(task.waiters) or task.blocked > 0 then
      task.fate.awaited = true
      wake_all(task.waiters)
    end
    if task.parent then
      child_ended(task.parent, task)
    elseif task.failure ~= nil and not task.fate.awaited then
      watch_failure(task, runtime.report or to_stderr)
    end
  end

  ---The runtime says that a task's body has ended.
  function M.ended(task, coroutine, ok, ...)
    if ok then
      task.results = pack(...)
    else
      local failure = ...
      give_up(task)
      if task.cancelling and failure == task.stop then
        task.results = pack(nil, failure)
      else
        task.failure = with_traceback(failure, coroutine)
      end
      stop_children(task)
    end
    task.closing = true
    settle(task)
  end

  ---A failure as `ended` takes it, made where the stack is still there.
  ---@param failure any
  ---@return any
  function M.located(failure)
    local me = runtime.current()
    if me and failure == me.stop then
      return failure
    end
    return with_traceback(failure, coroutine.running())
  end

  ---The runtime says that the task will never go on: what ran it was swept away.
  function Task:abandon()
    local undo = self.interrupt
    self.interrupt = nil
    if undo then
      undo()
    end
    self.cancelling = true
    self.stop = cancelled_error()
    M.ended(self, nil, false, self.stop)
  end

  ---Waits for a task and returns what its function returned. A failure is raised, with its traceback.
  ---@param timeout? number seconds
  ---@return any ... or nil and an error of kind timeout (the task goes on) or cancelled
  function Task:await(timeout)
    if timeout ~= nil and not is_duration(timeout) then
      error("await: timeout must be a number of seconds", 2)
    elseif runtime.current() == self then
      error("await: a task cannot await itself", 2)
    elseif not self.done then
      ensure_waiting "await"
    end
    if not self.done and runtime.current() then
      wait_among(self.waiters, timeout)
    elseif not self.done then
      self.blocked = self.blocked + 1
      runtime.block_until(function()
        return self.done
      end, timeout, self.waiters)
      self.blocked = self.blocked - 1
    end
    if not self.done then
      return nil, errors.new("timeout", ("the task did not end within %g s"):format(timeout))
    end
    self.fate.awaited = true
    if self.failure ~= nil then
      error(self.failure, 0)
    end
    return unpack(self.results, 1, self.results.n)
  end

  ---Calls a function when the task has ended, however it did. Its failure is then the caller's to look at, by `await`.
  ---@param callback fun() must not wait
  function Task:on_end(callback)
    if self.done then
      callback()
    else
      self.waiters[callback] = true
    end
  end

  ---Stops the task and those it spawned: what they wait for is aborted at once. Awaiting it gives nil and an error of
  ---kind cancelled. A task that has ended is left alone.
  function Task:cancel()
    if self.closing or self.cancelling then
      return
    end
    self.cancelling = true
    self.stop = cancelled_error()
    stop_children(self)
    interrupt(self)
  end

  ---Starts a task. Inside a task the new one is its child: it is awaited before the parent ends, cancelled with it, and
  ---when it raises and nobody awaits it, its parent fails.
  ---@param body fun(...): any
  ---@return riskscreen.Task
  function M.spawn(body, ...)
    if type(body) ~= "function" then
      error("spawn: expected a function (got a " .. type(body) .. ")", 2)
    end
    ensure_waiting "spawn"
    local parent = runtime.current()
    local task = { parent = parent, children = {}, open = 0, waiters = {}, blocked = 0, fate = {} }
    setmetatable(task, Task)
    if parent then
      parent.children[task] = true
      parent.open = parent.open + 1
    end
    runtime.start(task, body, ...)
    return task
  end

  ---Runs a function as a task until it and all it spawned have ended; returns what it returned, or raises its failure.
  ---@param body fun(...): any
  ---@return any ...
  function M.run(body, ...)
    if type(body) ~= "function" then
      error("run: expected a function (got a " .. type(body) .. ")", 2)
    elseif runtime.current() then
      error("run: already inside a task; call the function, or spawn it", 2)
    end
    ensure_waiting "run"
    return M.spawn(body, ...):await()
  end

  ---Runs functions side by side and waits for all of them. When one raises, the others are cancelled and it is raised.
  ---@param bodies (fun(): any)[]
  ---@return any[] values the first result of each, at its place
  ---@return any[] errs the second result of each, at its place
  function M.gather(bodies)
    if type(bodies) ~= "table" then
      error("gather: expected a list of functions (got a " .. type(bodies) .. ")", 2)
    end
    ensure_waiting "gather"
    local group = M.spawn(function()
      local tasks, values, errs = {}, {}, {}
      for index, body in ipairs(bodies) do
        tasks[index] = M.spawn(body)
      end
      for index, task in ipairs(tasks) do
        values[index], errs[index] = task:await()
      end
      return values, errs
    end)
    return group:await()
  end

  ---Waits.
  ---@param seconds number
  function M.sleep(seconds)
    if not is_duration(seconds) then
      error("sleep: expected a number of seconds, 0 or more", 2)
    end
    ensure_waiting "sleep"
    local me = runtime.current()
    if not me then
      runtime.block_until(function()
        return false
      end, seconds)
      return
    end
    local timer = runtime.timer(seconds, function()
      runtime.wake(me)
    end)
    pause(me, function()
      timer:cancel()
    end)
  end

  ---Something to wait for that anyone may give notice of.
  ---@return { wait: fun(self, timeout?: number), notify: fun(self) }
  function M.signal()
    local waiters, notices = {}, 0
    return {
      ---Waits for the next notice, or until the time is up.
      wait = function(_, timeout)
        if runtime.current() then
          wait_among(waiters, timeout)
          return
        end
        local before = notices
        runtime.block_until(function()
          return notices ~= before
        end, timeout, waiters)
      end,
      ---Wakes everyone who waits now.
      notify = function()
        notices = notices + 1
        wake_all(waiters)
      end,
    }
  end

  ---The running task holds something until `release`: should it be stopped or fail before, `thing:abandon()` is called.
  ---Outside of a task that happens where the runtime can tell that its caller is gone.
  ---@param thing { abandon: fun(self) } `abandon` must not wait
  ---@return any hold to be kept on the caller's stack, and given to `release`
  function M.hold(thing)
    local me = runtime.current()
    if me then
      me.held = me.held or {}
      me.held[thing] = true
    elseif runtime.guard then
      return runtime.guard(thing)
    end
  end

  ---Ends `hold`.
  ---@param thing table
  ---@param hold any what `hold` returned
  function M.release(thing, hold)
    if hold then
      runtime.disarm(hold)
      return
    end
    local me = runtime.current()
    if me and me.held then
      me.held[thing] = nil
    end
  end

  ---Whether a wait blocks here, because nothing could be suspended.
  ---@return boolean
  function M.blocks()
    return runtime.current() == nil
  end

  M.pause = pause

  return M
end
