-- Tasks: structured concurrency, the same in every runtime. A task ends only when the tasks that it spawned have ended.
-- The runtime starts, suspends and wakes the coroutines.

local errors = require "riskscreen.errors"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local LONGEST_WAIT = 1e9 -- seconds; the core's timers take no longer ones

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

local function pack(...)
  return { n = select("#", ...), ... }
end

---The functions of a runtime under its tasks.
---@class riskscreen.TaskRuntime
---@field current fun(): riskscreen.Task|nil the running task
---@field is_yieldable? fun(): boolean whether the running task can yield here; where it cannot, its waits block
---@field start fun(task: riskscreen.Task, body: fun(...), ...) runs the body soon, and calls `ended` at its end
---@field suspend fun(task: riskscreen.Task) returns after `wake`; called by the running task
---@field wake fun(task: riskscreen.Task) wakes a suspended task and clears its `interrupt`
---@field block_until fun(done: fun(): boolean, timeout?: number, waiters?: table<fun(), true>, needs_no_task?: boolean)
---waits outside of tasks; the functions in `waiters` are called when `done` may have changed
---@field timer fun(seconds: number, callback: fun()): { cancel: fun(self) } of the running task, which suspends next
---@field refusal? fun(): string|nil why nothing can wait at this point of the program
---@field guard? fun(thing: { abandon: fun(self) }): any calls `abandon` when the stack of the caller is gone
---@field disarm? fun(guard: any) ends `guard`
---@field notice_fork? fun(): any called before a task waits: a forked child gives up what its parent's tasks hold
---@field report? fun(message: string) reports a failure that nobody awaits; by default to stderr

local function cancelled_error()
  return errors.new("cancelled", "the task was cancelled")
end

-- The failure with its traceback: added to a text, a field of an error object, nothing for other values. A task that
-- has raised nil has failed, too.
local function with_traceback(failure, coroutine)
  if failure == nil then
    failure = "the task raised nil"
  end
  if type(failure) == "string" then
    -- A failure of an awaited task has its traceback already.
    local told = failure:find("\nstack traceback:\n", 1, true)
    return told and failure or debug.traceback(coroutine, failure)
  elseif errors.is(failure) and not failure.traceback then
    failure.traceback = debug.traceback(coroutine)
  end
  return failure
end

local is_puc_5_1 = _VERSION == "Lua 5.1" and rawget(_G, "jit") == nil

local resume_protected

-- Goes on after the coroutine of a protected call has waited or ended. The caller waits in its own coroutine.
local function after_protected(me, outer, inner, ok, ...)
  if me then
    me.coroutine = outer
  end
  if not ok or coroutine.status(inner) == "dead" then
    return ok, ...
  end
  return resume_protected(me, outer, inner, coroutine.yield(...))
end

function resume_protected(me, outer, inner, ...)
  if me then
    me.coroutine = inner
  end
  return after_protected(me, outer, inner, coroutine.resume(inner, ...))
end

-- PUC Lua 5.1 cannot yield across pcall. There a protected call in a coroutine, of a task or of the program, has one of
-- its own.
local function protected_call(me, fn, ...)
  if not coroutine.running() then
    return pcall(fn, ...)
  end
  local inner = coroutine.create(function(...)
    return fn(...)
  end)
  return resume_protected(me, me and me.coroutine, inner, ...)
end

-- The keys of a table that may change while they are visited.
local function keys_of(map)
  local keys = {}
  for key in pairs(map) do
    keys[#keys + 1] = key
  end
  return keys
end

local function never()
  return false
end

local function to_stderr(message)
  io.stderr:write(message, "\n")
end

-- Calls `collected` when the returned value is garbage. Before Lua 5.2 a table has no `__gc`.
local function guard(collected)
  if newproxy then -- luacheck: ignore 113
    local proxy = newproxy(true) -- luacheck: ignore 113
    getmetatable(proxy).__gc = collected
    return proxy
  end
  return setmetatable({}, { __gc = collected })
end

-- The failure of a task without a parent is reported when nobody can await it any more.
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
  local is_yieldable = runtime.is_yieldable

  -- The running task where it can wait by yielding: not inside a function of C such as the callback of string.gsub.
  local function yielding()
    local me = runtime.current()
    return me and (not is_yieldable or is_yieldable()) and me or nil
  end

  ---@class riskscreen.Task of this runtime: a program may have several
  local Task = { __name = "riskscreen.Task" }
  Task.__index = Task

  local M = {
    ---Writes a line for the operator: to stderr, or to nginx's error log.
    ---@type fun(message: string)
    report = runtime.report or to_stderr,
    ---pcall of a function that may wait.
    ---@type fun(fn: fun(...): any, ...): boolean, any
    pcall = is_puc_5_1 and function(...)
      return protected_call(yielding(), ...)
    end or pcall,
  }
  local settle
  -- The things that a task holds. They are in no field of it: a program may log its task, and a call leads to the key.
  local held = setmetatable({}, { __mode = "k" })

  local function abandon_held(task)
    local things = held[task]
    held[task] = nil
    for thing in pairs(things or {}) do
      thing:abandon()
    end
  end

  -- Suspends the running task until it is woken. When the task is stopped, or was stopped before, `interrupt(subject)`
  -- ends the wait.
  local function pause(task, interrupt, subject)
    if task.stop then
      interrupt(subject)
    else
      task.interrupt, task.subject = interrupt, subject
      runtime.suspend(task)
      task.interrupt, task.subject = nil, nil
    end
    local stop = task.stop
    if stop then
      -- A cancelled task stays so; a child's failure is raised once.
      if not task.cancelling then
        task.stop = nil
      end
      abandon_held(task)
      error(stop, 0)
    end
  end

  -- Suspends the running task until its function in `waiters` is called or the time is up. Outside of tasks it blocks
  -- until `done` returns true or the time is up.
  local function wait_for(waiters, done, timeout, needs_no_task)
    local me = yielding()
    if not me then
      runtime.block_until(done, timeout, waiters, needs_no_task)
      return
    elseif runtime.notice_fork and runtime.notice_fork() and done() then
      return
    end
    local timer, wake
    local function leave()
      if timer then
        timer:cancel()
      end
      waiters[wake] = nil
    end
    function wake()
      leave()
      runtime.wake(me)
    end
    timer = timeout and runtime.timer(timeout, wake) -- raises for a time that is too long
    waiters[wake] = true
    pause(me, leave)
  end

  local function wake_all(waiters)
    for _, wake in ipairs(keys_of(waiters)) do
      wake()
    end
  end

  -- Raises two levels up where nothing can wait.
  local function ensure_waiting(what)
    local why = runtime.refusal and runtime.refusal()
    if why then
      error(what .. ": " .. why, 3)
    end
  end

  local function is_duration(value)
    return type(value) == "number" and value >= 0 and value <= LONGEST_WAIT
  end

  local function interrupt(task)
    local undo = task.interrupt
    if undo then
      undo(task.subject)
      runtime.wake(task)
    end
  end

  local function stop_children(task)
    local children = {}
    for place = 1, task.open do
      children[place] = task.children[place]
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
    -- The last child takes the place. With children as keys, 1,024 of them fill the table, and Lua rebuilds it for each
    -- further one (spec/c/tables_test.c).
    local children, last = parent.children, parent.open
    children[child.place] = children[last]
    children[last].place = child.place
    children[last] = nil
    parent.open = last - 1
    if child.failure ~= nil and not child.fate.awaited then
      child.fate.awaited = true
      fail(parent, child.failure)
    end
    settle(parent)
  end

  -- A task whose body has ended is done when its children are done.
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
      watch_failure(task, M.report)
    end
  end

  ---Ends a task. The runtime calls it when the body has ended.
  function M.ended(task, coroutine, ok, ...)
    local failure = ...
    if ok and not task.cancelling and task.stop then
      ok, failure = false, task.stop -- a child failed, and no wait has raised that
    end
    if ok then
      task.results = pack(...)
    else
      abandon_held(task)
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

  ---A failure for `ended`, made before the stack is unwound.
  ---@param failure any
  ---@return any
  function M.located(failure)
    local me = runtime.current()
    if me and failure == me.stop then
      return failure
    end
    return with_traceback(failure, coroutine.running())
  end

  ---Ends a task that will never go on, because its coroutine is gone.
  ---@param task riskscreen.Task
  function M.abandon(task)
    local undo = task.interrupt
    task.interrupt = nil
    if undo then
      undo(task.subject)
    end
    task.cancelling = true
    task.stop = cancelled_error()
    M.ended(task, nil, false, task.stop)
  end

  ---Waits for a task and returns the results of its function. A failure is raised, with its traceback.
  ---@param timeout? number seconds
  ---@return any ... or nil and an error of kind timeout (the task goes on) or cancelled
  function Task:await(timeout)
    text.expect_self(self, Task, "task:await")
    if timeout ~= nil and not is_duration(timeout) then
      error("await: timeout must be a number of seconds from 0 to 1e9 (got " .. text.show(timeout) .. ")", 2)
    elseif runtime.current() == self then
      error("await: a task cannot await itself", 2)
    elseif not self.done then
      ensure_waiting "await"
    end
    if not self.done then
      local function is_done()
        return self.done
      end
      if yielding() then
        wait_for(self.waiters, is_done, timeout)
      else
        self.blocked = self.blocked + 1
        local ok, failure = M.pcall(wait_for, self.waiters, is_done, timeout)
        self.blocked = self.blocked - 1
        M.raise_failure(ok, failure)
      end
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

  ---Calls a function when a task has ended. The caller must then look at the task's failure by `await`.
  ---@param task riskscreen.Task
  ---@param callback fun() must not wait
  function M.on_end(task, callback)
    if task.done then
      callback()
    else
      task.waiters[callback] = true
    end
  end

  ---Whether tasks that a task has spawned have not ended.
  ---@param task riskscreen.Task
  ---@return boolean
  function M.has_children(task)
    return task.open > 0
  end

  ---Stops the task and the tasks that it spawned. Their waits are aborted at once. `await` of a cancelled task returns
  ---nil and an error of kind cancelled. A task that has ended stays as it is.
  function Task:cancel()
    text.expect_self(self, Task, "task:cancel")
    if self.closing or self.cancelling then
      return
    end
    self.cancelling = true
    self.stop = cancelled_error()
    stop_children(self)
    interrupt(self)
  end

  ---Starts a task. Inside a task the new task is a child. The parent does not end before its children, and cancels them
  ---when it is cancelled. It fails when a child fails and nobody awaits the child.
  ---@param body fun(...): any
  ---@return riskscreen.Task
  function M.spawn(body, ...)
    if type(body) ~= "function" then
      error("spawn: expected a function (got " .. text.kind(body) .. ")", 2)
    end
    ensure_waiting "spawn"
    local parent = runtime.current()
    local task = { parent = parent, children = {}, open = 0, waiters = {}, blocked = 0, fate = {} }
    setmetatable(task, Task)
    if not parent then
      runtime.start(task, body, ...)
      return task
    end
    parent.open = parent.open + 1
    parent.children[parent.open], task.place = task, parent.open
    local ok, failure = pcall(runtime.start, task, body, ...)
    if not ok then
      -- Memory ran out. The parent must not wait for a child that does not run.
      parent.children[parent.open] = nil
      parent.open = parent.open - 1
      error(failure, 0)
    end
    return task
  end

  ---Runs a function as a task until the task and all its children have ended. Returns the function's results, or raises
  ---its failure.
  ---@param body fun(...): any
  ---@return any ...
  function M.run(body, ...)
    if type(body) ~= "function" then
      error("run: expected a function (got " .. text.kind(body) .. ")", 2)
    elseif yielding() then
      error("run: already inside a task; call the function, or spawn it", 2)
    end
    ensure_waiting "run"
    return M.spawn(body, ...):await()
  end

  ---Runs functions side by side and waits for all of them. When one raises, the others are cancelled, and its failure
  ---is raised.
  ---@param bodies (fun(): any)[]
  ---@return any[] values the first result of each, at its place
  ---@return any[] errs the second result of each, at its place
  function M.gather(bodies)
    if type(bodies) ~= "table" then
      error("gather: expected a list of functions (got " .. text.kind(bodies) .. ")", 2)
    end
    for _, body in ipairs(bodies) do
      if type(body) ~= "function" then
        error("gather: expected a list of functions (one is a " .. type(body) .. ")", 2)
      end
    end
    if not tables.sequence_length(bodies) then
      error("gather: expected a list of functions without a gap", 2) -- those behind a gap would not run
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
      error("sleep: expected a number of seconds from 0 to 1e9 (got " .. text.show(seconds) .. ")", 2)
    end
    ensure_waiting "sleep"
    wait_for(yielding() and {} or nil, never, seconds)
  end

  ---A signal: tasks wait for its next notice.
  ---@param needs_no_task? boolean no task gives the notice, so that a wait that blocks need not resume any
  ---@return { wait: fun(self, timeout?: number), notify: fun(self) }
  function M.signal(needs_no_task)
    local waiters, notices = {}, 0
    return {
      ---Waits for the next notice, or until the time is up.
      wait = function(_, timeout)
        local before = notices
        wait_for(waiters, function()
          return notices ~= before
        end, timeout, needs_no_task)
      end,
      ---Ends all waits that are under way.
      notify = function()
        notices = notices + 1
        if next(waiters) then
          wake_all(waiters)
        end
      end,
    }
  end

  ---The running task holds a thing until `release`. When the task is stopped or fails before, `thing:abandon()` is
  ---called. Outside of tasks this needs a runtime that notices when its caller is gone.
  ---@param thing { abandon: fun(self) } `abandon` must not wait
  ---@return any hold to keep on the caller's stack, for `release`
  function M.hold(thing)
    local me = runtime.current()
    if me then
      local things = held[me] or {}
      held[me], things[thing] = things, true
      return me
    end
    return runtime.guard and runtime.guard(thing)
  end

  ---Ends `hold`.
  ---@param thing table
  ---@param hold any the result of `hold`
  function M.release(thing, hold)
    if not hold then
      return
    elseif runtime.guard and getmetatable(hold) ~= Task then
      runtime.disarm(hold)
    elseif held[hold] then
      held[hold][thing] = nil
    end
  end

  ---Abandons what some tasks hold, because they will never go on.
  ---@param is_left fun(task: riskscreen.Task): boolean
  function M.abandon_held(is_left)
    for _, task in ipairs(keys_of(held)) do
      if is_left(task) then
        abandon_held(task)
      end
    end
  end

  ---Turns of tasks: each call of the returned function waits until no other one is under way. A task that is stopped
  ---gives up its turn. Where both calls block, the one under way is below on the same stack, and cannot go on before
  ---this one returns: then this one does not wait.
  ---@return fun(fn: (fun(...): any), ...): any the results of `fn`; its failure is raised
  function M.turns()
    local ended, holder = M.signal(), nil
    local function finish(turn, hold, ...)
      M.release(turn, hold)
      turn.abandon()
      return M.raise_failure(...)
    end
    return function(fn, ...)
      local blocks = M.blocks()
      while holder do
        if blocks and holder.blocks then
          return fn(...)
        end
        ended:wait()
      end
      local turn = { blocks = blocks }
      function turn.abandon()
        holder = holder ~= turn and holder or nil
        ended:notify()
      end
      holder = turn
      return finish(turn, M.hold(turn), M.pcall(fn, ...))
    end
  end

  ---Whether a wait blocks here, because there is no task to suspend.
  ---@return boolean
  function M.blocks()
    return yielding() == nil
  end

  ---Calls a function during which the running task cannot be stopped: the coroutine of the call is no task's.
  ---@param fn fun(...): any
  ---@return boolean ok as of pcall
  ---@return any ...
  function M.contain(fn, ...)
    return require("riskscreen.util.guard").call(fn, ...)
  end

  ---Returns the results of pcall, or raises its failure unchanged.
  ---@param ok boolean
  ---@param ... any
  ---@return any ...
  function M.raise_failure(ok, ...)
    if not ok then
      error((...), 0)
    end
    return ...
  end

  M.pause, M.yielding = pause, yielding

  return M
end
