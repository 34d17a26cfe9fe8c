-- Tasks inside nginx: each on a light thread of the request or timer that spawned it, which does not end before its
-- tasks. Whoever waits, in a task or outside of any, yields to nginx. What is waited for is not known here.
local monotonic = require "riskscreen.runtime.nginx.monotonic"
local semaphore = require "ngx.semaphore"
local task = require "riskscreen.runtime.tasks"

local ngx = _G.ngx
local running, yield = coroutine.running, coroutine.yield
local unpack = unpack -- luacheck: ignore 113
local thread = ngx.thread

local SHORTEST_WAIT = 0.001 -- seconds: what nginx's timers can tell apart
local LONGEST_WAIT = 86400 -- seconds that nginx is asked to wait at once

-- Where nginx can resume what waits.
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

-- By the coroutine of its light thread, of which nginx makes no other use. No task leads to its coroutine, so that what
-- an aborted request leaves behind can be collected.
---@type table<thread, riskscreen.Task>
local owners = setmetatable({}, { __mode = "k" })
local owned = 0 -- at most so many: mostly there is no task, and nobody has to be asked who is running

-- What is called when a guard is collected: the stack that held it is gone.
---@type table<userdata, { abandon: fun(self) }>
local guarded = setmetatable({}, { __mode = "k" })

local prototype = newproxy(true) -- luacheck: ignore 113
getmetatable(prototype).__gc = function(guard)
  local thing = guarded[guard]
  -- At the end of the process nothing waits any more.
  if thing and not ngx.worker.exiting() then
    guarded[guard] = nil
    thing:abandon()
  end
end

local tasks

local M = { now = monotonic }

---Why nothing can wait here; nil where it can.
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

-- Guards that are not in use: to make one, and to have it collected, costs more than all that it guards.
local spare, spares = {}, 0

function runtime.guard(thing)
  local guard
  if spares > 0 then
    guard, spare[spares] = spare[spares], nil
    spares = spares - 1
  else
    guard = newproxy(prototype) -- luacheck: ignore 113
  end
  guarded[guard] = thing
  return guard
end

function runtime.disarm(guard)
  guarded[guard] = nil
  spares = spares + 1
  spare[spares] = guard
end

---The task that is running, if it may be stopped where it waits.
---@return riskscreen.Task|nil
local function current()
  if owned == 0 then
    return nil
  end
  local owner = owners[running() or false]
  if owner and owner.contained == 0 then
    return owner
  end
end

runtime.current = current

local function new_semaphore()
  return assert(semaphore.new(0))
end

-- Milliseconds are what nginx counts: rounded up, so that a wait is not over too early.
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
    wait_on(gate, due and due - monotonic() or LONGEST_WAIT)
    due = suspended.due
    if suspended.suspended and due and monotonic() >= due then
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
  owner.due, owner.on_due = monotonic() + seconds, callback
  return {
    cancel = function()
      owner.due = nil
    end,
  }
end

local function pause_thread(seconds)
  local due = monotonic() + seconds
  repeat
    ngx.sleep(math.min(seconds, LONGEST_WAIT))
    seconds = due - monotonic()
  until seconds < SHORTEST_WAIT
end

-- Someone who waits outside of any task. What is called from elsewhere must not be a function within one that waits:
-- where a request is aborted, LuaJIT gives the stack that such a function looks into to a later request.
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
  local due = timeout and monotonic() + timeout
  local visitor = new_visitor(waiters)
  local guard = runtime.guard(visitor)
  repeat
    wait_on(visitor.gate, due and due - monotonic() or LONGEST_WAIT)
  until done() or (due and monotonic() >= due)
  visitor:abandon()
  runtime.disarm(guard)
end

-- A failure with where it happened: the stack is gone when xpcall returns.
local function located(failure)
  return tasks.located(failure)
end

-- A task on its light thread.
---@class riskscreen.Rider
---@field task riskscreen.Task
local Rider = {}
Rider.__index = Rider

function Rider:abandon()
  owned = owned - 1
  self.task:abandon()
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
  yield() -- whoever spawned it goes on first
  if started.stop then
    after_run(this, started, guard, false, started.stop)
  else
    after_run(this, started, guard, xpcall(body, located, ...))
  end
end

local function spawn(...)
  thread.spawn(run, ...)
end

-- From a coroutine that is over at once: nginx keeps a light thread that has ended as long as what spawned it lives.
function runtime.start(started, body, ...)
  started.contained = 0
  coroutine.wrap(spawn)(started, body, ...)
end

tasks = task(runtime)
M.tasks = tasks

---What waits here holds up nobody else.
---@return boolean
function tasks.blocks()
  return false
end

local function after_contained(me, ...)
  me.contained = me.contained - 1
  return ...
end

---Calls a function in which the running task is not stopped.
---@param fn fun(...): any
---@return boolean ok as of pcall
---@return any ...
function tasks.contain(fn, ...)
  local me = current()
  if not me then
    return pcall(fn, ...)
  end
  me.contained = me.contained + 1
  return after_contained(me, pcall(fn, ...))
end

---A generic `for` can wait in any iterator.
---@param iterate fun(...): any
---@return fun(...): any
function tasks.iterator(iterate)
  return iterate
end

local function raise_failure(ok, ...)
  if not ok then
    error((...), 0)
  end
  return ...
end

local function pack(...)
  return { n = select("#", ...), ... }
end

-- Runs a function in a light thread of its own, which only its parent may kill.
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
  return raise_failure(unpack(results, 1, results.n))
end

---Lets a function be aborted with the task that calls it, whatever of nginx it waits for. Outside of a task it is
---called as it is.
---@param fn fun(request: any): any
---@return fun(request: any): any
function M.abortable(fn)
  return function(request)
    local me = current()
    if not me then
      return fn(request)
    end
    return call_beside(me, fn, request)
  end
end

return M
