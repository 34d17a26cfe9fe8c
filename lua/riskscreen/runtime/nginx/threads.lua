-- Tasks inside nginx. Each has a light thread of the request or timer that spawned it. The request or timer does
-- not end before its tasks. Every wait, in a task or outside of tasks, yields to nginx.
local clock = require "riskscreen.runtime.nginx.clock"
local ffi = require "ffi"
local semaphore = require "ngx.semaphore"
local task = require "riskscreen.runtime.tasks"

local ngx = _G.ngx
local now = clock.precise
local running, yield = coroutine.running, coroutine.yield
local unpack = unpack -- luacheck: ignore 113
local thread = ngx.thread

local SHORTEST_WAIT = 0.001 -- seconds: the resolution of nginx's timers. ngx.sleep(0) may let no other request run
local LONGEST_WAIT = 86400 -- seconds of one wait in nginx
local LONGEST_DELAY = 0.1 -- seconds after which a timer that is due counts as dropped

-- The phases in which nginx can wait.
local waiting_phases = {
  rewrite = true,
  server_rewrite = true,
  access = true,
  content = true,
  timer = true,
  preread = true,
  ssl_cert = true,
  ssl_client_hello = true,
  ssl_session_fetch = true,
}

-- The tasks by the coroutine of their light thread. No task refers to its coroutine, so that the tasks of an aborted
-- request can be collected.
---@type table<thread, riskscreen.Task>
local owners = setmetatable({}, { __mode = "k" })
local owned = 0 -- the number of tasks; mostly there is none, and `current` need not look for it

-- The things to abandon when their guard is collected, because the stack that held the guard is gone.
---@type table<userdata, { abandon: fun(self) }>
local guarded = setmetatable({}, { __mode = "k" })

-- The things whose guard was collected, until the timer that abandons them, and when that timer was set.
local left_behind, left_count, timer_set_at = {}, 0, -math.huge

local function abandon_all()
  local things, count = left_behind, left_count
  left_behind, left_count, timer_set_at = {}, 0, -math.huge
  for index = 1, count do
    things[index]:abandon()
  end
end

-- When Lua closes, LuaJIT finalizes its C data before userdata. The request is gone by then, and a finalizer that calls
-- nginx's API may crash the worker.
local is_closing = false
local prototype = newproxy(true) -- luacheck: ignore 113
getmetatable(prototype).at_close = ffi.gc(ffi.new "char[1]", function()
  is_closing = true
end)

-- A finalizer must be short and without loops: LuaJIT's compiled `pairs` may never end inside a finalizer. So a timer
-- abandons the thing. Without a timer, as when too many are pending, the next finalizer tries again. nginx drops timers
-- when too many run.
getmetatable(prototype).__gc = function(guard)
  local thing = guarded[guard]
  if thing and not is_closing then
    guarded[guard] = nil
    left_count = left_count + 1
    left_behind[left_count] = thing
    local time = clock.now() -- a reader of `precise` may be interrupted by this finalizer
    if time >= timer_set_at + LONGEST_DELAY then
      local called, created = pcall(ngx.timer.at, 0, abandon_all)
      timer_set_at = called and created and time or -math.huge
    end
  end
end

local tasks

local M = { now = now }

---The reason why nothing can wait here; nil where it can.
---@return string|nil
function M.refusal()
  local phase = ngx.get_phase()
  if not waiting_phases[phase] then
    local remedy = "do it in rewrite, access or content, or later by riskscreen.defer"
    return ("nginx cannot wait in the phase '%s'; %s"):format(phase, remedy)
  end
end

local runtime = { refusal = M.refusal }

function runtime.report(message)
  ngx.log(ngx.ERR, message)
end

function runtime.guard(thing)
  local guard = newproxy(prototype) -- luacheck: ignore 113
  guarded[guard] = thing
  return guard
end

function runtime.disarm(guard)
  guarded[guard] = nil
end

---The running task, if it may be stopped where it waits.
---@return riskscreen.Task|nil
local function current()
  return owned > 0 and owners[running() or false] or nil
end

runtime.current = current

local function new_semaphore()
  return assert(semaphore.new(0))
end

-- nginx counts milliseconds. They are rounded up, so that a wait does not end early.
local function wait_on(gate, seconds)
  seconds = math.ceil(math.min(seconds, LONGEST_WAIT) * 1000) / 1000
  gate:wait(math.max(seconds, SHORTEST_WAIT))
end

function runtime.suspend(suspended)
  local gate = suspended.gate or new_semaphore()
  suspended.gate = gate
  suspended.suspended = true
  repeat
    local due = suspended.due
    wait_on(gate, due and due - now() or LONGEST_WAIT)
    due = suspended.due
    if suspended.suspended and due and now() >= due then
      suspended.due = nil
      suspended.on_due()
    end
  until not suspended.suspended
end

function runtime.wake(woken)
  woken.interrupt = nil
  if woken.suspended then
    woken.suspended = false
    woken.gate:post(1)
  end
end

function runtime.timer(seconds, callback)
  local owner = current()
  owner.due, owner.on_due = now() + seconds, callback
  return {
    cancel = function()
      owner.due = nil
    end,
  }
end

local function pause_thread(seconds)
  local due = now() + seconds
  repeat
    ngx.sleep(math.max(SHORTEST_WAIT, math.min(seconds, LONGEST_WAIT)))
    seconds = due - now()
  until seconds < SHORTEST_WAIT
end

-- A wait outside of tasks. When a request is aborted, LuaJIT reuses its stack for a later request. So `wake` must not
-- be a closure over the locals of the function that waits.
---@class riskscreen.Visitor
---@field gate table a semaphore
---@field waiters table<fun(), true>
---@field wake fun()
local Visitor = {}
Visitor.__index = Visitor

function Visitor:abandon()
  self.waiters[self.wake] = nil
end

local function new_visitor(waiters)
  local gate = new_semaphore()
  local function wake()
    gate:post(1)
  end
  waiters[wake] = true
  return setmetatable({ gate = gate, waiters = waiters, wake = wake }, Visitor)
end

function runtime.block_until(done, timeout, waiters)
  if not waiters then
    pause_thread(timeout)
    return
  end
  local due = timeout and now() + timeout
  local visitor = new_visitor(waiters)
  local guard = runtime.guard(visitor)
  repeat
    wait_on(visitor.gate, due and due - now() or LONGEST_WAIT)
  until done() or (due and now() >= due)
  visitor:abandon()
  runtime.disarm(guard)
end

-- The failure with its traceback, made before xpcall unwinds the stack.
local function located(failure)
  return tasks.located(failure)
end

-- The guarded light thread of a task.
---@class riskscreen.Rider
---@field task riskscreen.Task
local Rider = {}
Rider.__index = Rider

function Rider:abandon()
  owned = owned - 1
  tasks.abandon(self.task)
end

local function after_run(this, started, guard, ...)
  owners[this] = nil
  owned = owned - 1
  runtime.disarm(guard)
  tasks.ended(started, this, ...)
end

local function run(started, body, ...)
  local this = running()
  owners[this] = started
  owned = owned + 1
  local guard = runtime.guard(setmetatable({ task = started }, Rider))
  yield() -- the code that spawned it goes on first
  if started.stop then
    after_run(this, started, guard, false, started.stop)
  else
    after_run(this, started, guard, xpcall(body, located, ...))
  end
end

local function spawn(...)
  thread.spawn(run, ...)
end

-- A coroutine of its own spawns the thread and ends at once, because nginx keeps an ended thread as long as its parent
-- lives.
function runtime.start(started, body, ...)
  coroutine.wrap(spawn)(started, body, ...)
end

tasks = task(runtime)
M.tasks = tasks

---Whether a wait blocks everything else: never inside nginx.
---@return boolean
function tasks.blocks()
  return false
end

---An iterator for a generic `for`. It can wait under LuaJIT.
---@param iterate fun(...): any
---@return fun(...): any
function tasks.iterator(iterate)
  return iterate
end

local function pack(...)
  return { n = select("#", ...), ... }
end

-- Runs a function in a light thread of its own, which is killed when the task is stopped.
local function call_beside(me, fn, ...)
  local results
  local beside = thread.spawn(function(...)
    results = pack(xpcall(fn, located, ...))
    runtime.wake(me)
  end, ...)
  if not results then
    local ok, stop = pcall(tasks.pause, me, function() end)
    if not ok then
      thread.kill(beside)
      error(stop, 0)
    end
  end
  thread.wait(beside)
  return tasks.raise_failure(unpack(results, 1, results.n))
end

---A function that is aborted with the task that calls it, even if it waits in nginx itself.
---@param fn fun(...): any
---@return fun(...): any
function M.abortable(fn)
  return function(...)
    local me = current()
    if not me then
      return fn(...)
    end
    return call_beside(me, fn, ...)
  end
end

return M
