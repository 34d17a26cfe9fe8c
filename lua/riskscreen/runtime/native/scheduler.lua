-- The event loop of a Lua state and the tasks on it. Tasks are resumed from `step` alone; whoever waits outside of any
-- task steps the loop meanwhile. What a request is, is not known here.

local core = require "riskscreen.core"
local task = require "riskscreen.runtime.tasks"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

local MAX_NESTING = 60 -- steps within steps; Lua's C stack holds some 200 levels

-- PUC Lua 5.1 cannot yield inside the iterator of a generic `for`.
local yields_in_for = _VERSION ~= "Lua 5.1" or rawget(_G, "jit") ~= nil

---@class riskscreen.Pollable an object that is driven by readiness, such as a server or another loop
---@field pollfd fun(self): integer
---@field events fun(self): string
---@field timeout fun(self): number|nil seconds until `step` has something to do without the descriptor
---@field step fun(self, seconds: number)

local loop -- of this Lua state, made when first needed

-- What is called when an operation of the loop comes out of it.
---@type table<userdata, fun()>
local handlers = {}

-- Replaced rather than changed, so that an object may attach or detach another while it is being stepped.
---@type { object: riskscreen.Pollable, watch: userdata, stepping: boolean }[]
local attached = {}

---@type table<thread, riskscreen.Task>
local owners = setmetatable({}, { __mode = "k" })

-- The tasks to resume, from `head` to `tail`.
local ready, head, tail = {}, 1, 0
local nudge -- a timer that makes the descriptor ready while `ready` holds something
local nesting = 0 -- how many steps are under way
local resumed_tasks = 0 -- how often a task was resumed
local raised -- by an attached object during the step that is under way
local bound = 0 -- iterators that must not yield are running, so many within each other

local tasks

local M = { now = core.now }

local function the_loop()
  loop = loop or core.loop {}
  return loop
end

-- Whoever polls the descriptor must learn that tasks are ready.
local function announce_ready()
  if nesting == 0 and not nudge and head <= tail then
    nudge = the_loop():timer(0)
    handlers[nudge] = function()
      handlers[nudge] = nil
      nudge = nil
    end
  end
end

local function make_ready(entry)
  tail = tail + 1
  ready[tail] = entry
  announce_ready()
end

---The task that is running, if it may yield.
---@return riskscreen.Task|nil
local function current()
  if bound > 0 then
    return nil
  end
  return owners[coroutine.running() or false]
end

local runtime = { current = current }

-- PUC Lua 5.1 makes no coroutine of a C function.
local function lua_function(body)
  if debug.getinfo(body, "S").what ~= "C" then
    return body
  end
  return function(...)
    return body(...)
  end
end

function runtime.start(started, body, ...)
  started.coroutine = coroutine.create(lua_function(body))
  owners[started.coroutine] = started
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
  local operation = the_loop():timer(seconds)
  handlers[operation] = function()
    handlers[operation] = nil
    callback()
  end
  return {
    cancel = function()
      handlers[operation] = nil
      operation:cancel()
    end,
  }
end

local function finish(ended, ok, ...)
  local thread = ended.coroutine
  -- Before Lua 5.2 a weak table keeps an entry whose value leads to its key.
  owners[thread] = nil
  ended.coroutine = nil
  tasks.ended(ended, thread, ok, ...)
end

local function after_resume(resumed, ok, ...)
  if not ok or coroutine.status(resumed.coroutine) == "dead" then
    finish(resumed, ok, ...)
  elseif not resumed.suspended then
    finish(resumed, false, "a task must not yield by itself: only the library's waits may")
  end
end

local function resume(entry)
  local resumed = entry.task
  if resumed.closing then
    return
  elseif resumed.stop and not resumed.started then
    finish(resumed, false, resumed.stop)
    return
  end
  resumed.started = true
  resumed_tasks = resumed_tasks + 1
  local outer = bound
  bound = 0
  after_resume(resumed, coroutine.resume(resumed.coroutine, unpack(entry, 1, entry.n)))
  bound = outer
end

-- Resumes what was ready when this began: a task that keeps itself ready cannot keep others waiting.
local function resume_ready(out_of_time)
  local last = tail
  while head <= last and not out_of_time() do
    local entry = ready[head]
    ready[head] = nil
    head = head + 1
    resume(entry)
  end
end

-- An object whose step runs this loop again is not entered twice. What its step raises waits until this one is over.
local function step_object(entry)
  if not entry.stepping then
    entry.stepping = true
    local ok, message = pcall(entry.object.step, entry.object, 0)
    entry.stepping = false
    if not ok then
      raised = raised or { message = message }
    end
  end
end

local function wait_limit(seconds)
  for _, entry in ipairs(attached) do
    local wanted = not entry.stepping and entry.object:timeout()
    if wanted and (not seconds or wanted < seconds) then
      seconds = wanted
    end
  end
  return seconds
end

-- Takes what has finished out of the loop, one by one, so that a bounded step leaves the rest in it.
local function dispatch(this, resuming, out_of_time)
  while not out_of_time() do
    local finished = this:next()
    if not finished then
      return
    end
    local handle = handlers[finished]
    if handle then
      handle()
    end
    if resuming then
      resume_ready(out_of_time)
    end
  end
end

local function never()
  return false
end

-- Whether the budget is used up; a task is resumed however small it is.
local function deadline_of(budget)
  if not budget then
    return never
  end
  local deadline, before = core.now() + budget, resumed_tasks
  return function()
    return resumed_tasks > before and core.now() >= deadline
  end
end

local function step(seconds, resuming, budget)
  local this = the_loop()
  nesting = nesting + 1
  this:step(resuming and head <= tail and 0 or wait_limit(seconds))
  local out_of_time = deadline_of(budget)
  dispatch(this, resuming, out_of_time)
  if resuming then
    resume_ready(out_of_time)
  end
  for _, entry in ipairs(attached) do
    if entry.object:timeout() == 0 then
      step_object(entry)
    end
  end
  nesting = nesting - 1
  announce_ready()
  if raised then
    local message = raised.message
    raised = nil
    error(message, 0)
  end
end

local function nothing_under_way(this)
  if head <= tail or this:timeout() then
    return false
  end
  local stats = this:stats()
  return stats.transfers + stats.queued + stats.timers + stats.watches == 0
end

-- Waits outside of any task. Other tasks go on meanwhile, unless this waits inside one of them for an operation alone:
-- then nothing but the operation is needed, and the stack does not grow.
local function block(done, timeout, resuming)
  local expired = false
  local timer = timeout and runtime.timer(timeout, function()
    expired = true
  end)
  if resuming and nesting >= MAX_NESTING then
    error("too many tasks wait inside each other, in coroutines or iterators that cannot yield", 0)
  end
  while not (expired or done()) do
    if nothing_under_way(the_loop()) then
      error("this wait can never end: every task waits and nothing is under way", 0)
    end
    step(nil, resuming or nesting == 0)
  end
  if timer then
    timer:cancel()
  end
end

function runtime.block_until(done, timeout)
  block(done, timeout, true)
end

tasks = task(runtime)
M.tasks = tasks

---Waits for an operation of the loop to come out of it. When the waiting task is stopped, the operation is cancelled.
---@param operation userdata
function M.await(operation)
  local me = current()
  if me then
    handlers[operation] = function()
      handlers[operation] = nil
      runtime.wake(me)
    end
    tasks.pause(me, function()
      handlers[operation] = nil
      operation:cancel()
    end)
    return
  end
  local finished = false
  handlers[operation] = function()
    handlers[operation] = nil
    finished = true
  end
  block(function()
    return finished
  end, nil, false)
end

local function after_contained(...)
  bound = bound - 1
  return ...
end

---Calls a function so that whatever waits in it blocks.
---@param fn fun(...): any
---@return boolean ok as of pcall
---@return any ...
function tasks.contain(fn, ...)
  bound = bound + 1
  return after_contained(pcall(fn, ...))
end

local function raise_failure(ok, ...)
  if not ok then
    error((...), 0)
  end
  return ...
end

---Makes an iterator usable in a generic `for` under every Lua: where it could not yield there, it blocks.
---@param iterate fun(...): any
---@return fun(...): any
function tasks.iterator(iterate)
  if yields_in_for then
    return iterate
  end
  return function(...)
    return raise_failure(tasks.contain(iterate, ...))
  end
end

---The core's loop.
---@return userdata
M.loop = the_loop

---Drives an object of another library, or a server of one's own, whenever this loop is stepped.
---@param object riskscreen.Pollable
function M.attach(object)
  local entry = { object = object, stepping = false, watch = the_loop():watch(object:pollfd(), object:events()) }
  handlers[entry.watch] = function()
    step_object(entry)
  end
  local more = { entry }
  for i, other in ipairs(attached) do
    more[i + 1] = other
  end
  attached = more
end

---Ends `attach`.
---@param object riskscreen.Pollable
function M.detach(object)
  local rest = {}
  for _, entry in ipairs(attached) do
    if entry.object == object then
      handlers[entry.watch] = nil
      entry.watch:cancel()
    else
      rest[#rest + 1] = entry
    end
  end
  attached = rest
end

---The loop as another program's loop drives it.
---@class riskscreen.Loop: riskscreen.Pollable
M.pollable = {}

---The descriptor that is readable when `step` has something to do.
---@return integer
function M.pollable:pollfd() -- luacheck: ignore 212
  return the_loop():pollfd()
end

---What to wait for on the descriptor.
---@return "r"
function M.pollable:events() -- luacheck: ignore 212
  return the_loop():events()
end

---Seconds after which `step` has something to do whether or not the descriptor is readable; nil for never.
---@return number|nil
function M.pollable:timeout() -- luacheck: ignore 212
  if head <= tail then
    return 0
  end
  return wait_limit(the_loop():timeout())
end

---Lets whatever is under way progress and resumes tasks. Waits at most so many seconds, without a limit until something
---happens; with a budget it does not wait, and leaves for the next step what does not fit.
---@param wait? number|{ budget: number } seconds
function M.pollable:step(wait) -- luacheck: ignore 212
  if type(wait) == "table" then
    if type(wait.budget) ~= "number" or wait.budget < 0 then
      error("step: budget must be a number of seconds", 2)
    end
    step(0, true, wait.budget)
  elseif wait == nil or (type(wait) == "number" and wait >= 0) then
    step(wait, true)
  else
    error("step: expected a number of seconds or { budget = seconds }", 2)
  end
end

return M
