-- The event loop of a Lua state and the tasks on it. Only `step` resumes tasks. A wait outside of tasks steps the loop
-- until it ends.

local core = assert(require "riskscreen.util.optional"("riskscreen.core"))
local tables = require "riskscreen.util.tables"
local task = require "riskscreen.runtime.tasks"
local text = require "riskscreen.util.text"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143
local this_coroutine, resume_coroutine, yield = coroutine.running, coroutine.resume, coroutine.yield

local RECEIVING = 0.5 -- share of a step's budget in which the core sends and receives; tasks have the rest
local LONGEST = 0.25 -- share of a step's budget that is kept for the longest recent task at most
local FADING = 0.98 -- by each task, the longest one counts less
local TOLERANCE = 1e-6 -- seconds; a sum of times is not exact
-- Steps within steps: each takes five of the 200 levels of PUC Lua's C stack, and three of LuaJIT's.
local MAX_NESTING = rawget(_G, "jit") and 60 or 30
local PLACES = 2 ^ 24 -- the number of an operation modulo this is a small one, which a later operation gets again

-- PUC Lua 5.1 makes no coroutine of a C function. It cannot yield across one, such as pcall, nor inside the iterator of
-- a generic `for`. Two more cases leave no trace on the stack: a metamethod, and an iterator that ended in a tail call.
local is_puc_5_1 = _VERSION == "Lua 5.1" and rawget(_G, "jit") == nil

---@class riskscreen.Pollable an object with a descriptor to poll, such as a server or another loop
---@field pollfd fun(self): integer
---@field events fun(self): string
---@field timeout fun(self): number|nil seconds until `step` has something to do without the descriptor
---@field step fun(self, seconds: number)

local loop -- of this Lua state, created at its first use

-- The waiting part for each operation of the loop, by the place of its number: a function is called once, and a
-- task that waits for the operation alone goes on. (By the numbers themselves, 64 requests in flight fill a table
-- exactly, and Lua rebuilds it for each further one.)
---@type table<integer, fun()|riskscreen.Task>
local awaited = {}

-- The list is replaced instead of changed, so that an object may attach or detach another one during its step.
---@type { object: riskscreen.Pollable, watch: integer, stepping: boolean }[]
local attached = {}

---@type riskscreen.Task|nil
local running -- the task that was resumed last and has not yielded; it may have resumed a coroutine of its own

-- The tasks to resume: a list linked by their field `next_ready`, so that waking a task needs no memory. `head` and
-- `tail` number the first and the last one. A debug hook of the program may raise an error between any two steps: then
-- the list counts, and the numbers and `last_ready` may be behind it.
local first_ready, last_ready = false, nil
local head, tail = 1, 0
local nudge -- a timer that makes the descriptor ready while tasks are ready
local nesting = 0 -- number of steps within each other
local resumed_tasks = 0 -- count of all resumes
local longest = 0 -- seconds of the longest recent task in a step with a budget
local raised -- by an attached object during the current step
local process = 1 -- counts the forks: a task that was suspended in another process is never resumed

local tasks

local M = { now = core.now }

local function is_left(left)
  return left.suspended and left.suspended ~= process
end

-- A forked child has the task that forked, and begins a loop of its own. Everything else is left to the parent.
-- Everything that the other tasks hold is free in the child.
local function the_loop()
  if loop and loop:inherited() then
    loop:close()
    while first_ready do
      first_ready.suspended = process
      first_ready = first_ready.next_ready
    end
    process = process + 1
    loop, awaited, attached = core.loop {}, {}, {}
    first_ready, last_ready, head, nudge = false, nil, tail + 1, nil
    tasks.abandon_held(is_left)
  end
  loop = loop or core.loop {}
  return loop
end

-- Makes the descriptor ready, so that a foreign loop calls `step` for the ready tasks.
local function announce_ready()
  if nesting == 0 and not nudge and first_ready then
    nudge = the_loop():timer(0)
    awaited[nudge % PLACES] = function()
      nudge = nil
    end
  end
end

local function make_ready(woken)
  if first_ready then
    while last_ready.next_ready do
      last_ready = last_ready.next_ready
    end
    last_ready.next_ready = woken
  else
    last_ready = woken
    first_ready = woken
  end
  last_ready = woken
  tail = tail + 1
  announce_ready()
end

-- Whether every function on the stack may yield, from the caller of this one on.
local function is_yieldable()
  local level = 2
  local frame = debug.getinfo(level, "Sn")
  while frame and frame.what ~= "C" and frame.name ~= "(for generator)" do
    level = level + 1
    frame = debug.getinfo(level, "Sn")
  end
  return frame == nil
end

---The running task.
---@return riskscreen.Task|nil
local function current()
  local me = running
  return me and this_coroutine() == me.coroutine and me or nil
end

local runtime = {
  current = current,
  is_yieldable = is_puc_5_1 and is_yieldable or coroutine.isyieldable, -- luacheck: ignore 143
  notice_fork = the_loop,
}

local function lua_function(body)
  if not is_puc_5_1 or debug.getinfo(body, "S").what ~= "C" then
    return body
  end
  return function(...)
    return body(...)
  end
end

function runtime.start(started, body, ...)
  the_loop()
  started.coroutine = coroutine.create(lua_function(body))
  started.arguments = { n = select("#", ...), ... }
  started.next_ready = false
  make_ready(started)
end

function runtime.suspend(suspended)
  suspended.suspended = process
  yield()
end

function runtime.wake(woken)
  woken.interrupt = nil
  if woken.suspended == process then
    woken.suspended = false
    make_ready(woken)
  end
end

local function cancel(operation)
  if loop:cancel(operation) then
    awaited[operation % PLACES] = nil
  end
end

function runtime.timer(seconds, callback)
  local timer = the_loop():timer(seconds)
  awaited[timer % PLACES] = callback
  return {
    cancel = function()
      cancel(timer)
    end,
  }
end

local function finish(ended, ok, ...)
  local thread = ended.coroutine
  ended.coroutine = nil
  tasks.ended(ended, thread, ok, ...)
end

local function after_resume(resumed, outer, ok, ...)
  running = outer
  if ok and resumed.suspended then
    return
  elseif not ok or coroutine.status(resumed.coroutine) == "dead" then
    finish(resumed, ok, ...)
  else
    finish(resumed, false, "a task must not yield by itself: only the library's waits may")
  end
end

local function resume(resumed)
  local arguments = resumed.arguments
  if resumed.closing then
    return
  elseif arguments and resumed.stop then
    finish(resumed, false, resumed.stop)
    return
  end
  resumed_tasks = resumed_tasks + 1
  local outer = running
  running = resumed
  if arguments then
    resumed.arguments = nil
    after_resume(resumed, outer, resume_coroutine(resumed.coroutine, unpack(arguments, 1, arguments.n)))
  else
    after_resume(resumed, outer, resume_coroutine(resumed.coroutine))
  end
end

-- Resumes the tasks that were ready at the start. A task that stays ready cannot keep others waiting.
local function resume_ready(out_of_time)
  local last = tail
  while first_ready and head <= last and not (out_of_time and out_of_time()) do
    local resumed = first_ready
    first_ready = resumed.next_ready
    last_ready = first_ready and last_ready
    resumed.next_ready = false
    head = head + 1
    resume(resumed)
  end
  head = first_ready and math.min(head, tail) or tail + 1
end

-- Steps an attached object, unless its step is under way already. An error is raised at the end of the loop's own step.
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

-- Takes finished operations out of the loop one by one, so that a step with a budget leaves the rest in it.
local function dispatch(this, resuming, out_of_time)
  while not (out_of_time and out_of_time()) do
    local finished = this:next()
    if not finished then
      return
    end
    local place = finished % PLACES
    local waiter = awaited[place]
    awaited[place] = nil
    if type(waiter) == "function" then
      waiter()
    elseif waiter and resuming then
      waiter.interrupt, waiter.suspended = nil, false
      resume(waiter) -- it need not become a ready one first
    elseif waiter then
      waiter.suspended = false -- it keeps its `interrupt`: stopped before it goes on, it cancels its transfer
      make_ready(waiter)
    end
    if resuming and first_ready then
      resume_ready(out_of_time)
    end
  end
end

-- A function that tells whether the budget is used up, after the receiving and after each task. The longest recent task
-- must still fit in. At least one task is resumed with any budget.
local function deadline_of(budget)
  local last = core.now()
  local deadline, most, before = last + budget, budget * LONGEST, resumed_tasks
  return function()
    local now = core.now()
    if resumed_tasks > before then
      longest = math.max(longest * FADING, math.min(now - last, most))
    end
    last = now
    return resumed_tasks > before and (now >= deadline or now + longest > deadline + TOLERANCE)
  end
end

local function work(this, seconds, resuming, budget)
  nesting = nesting + 1
  local out_of_time = budget and deadline_of(budget)
  this:step(resuming and first_ready and 0 or wait_limit(seconds), budget and budget * RECEIVING)
  dispatch(this, resuming, out_of_time)
  if resuming then
    resume_ready(out_of_time)
  end
  for _, entry in ipairs(attached) do
    if entry.object:timeout() == 0 then
      step_object(entry)
    end
  end
end

local function step(this, seconds, resuming, budget)
  local outer, level = running, nesting
  -- Protected, because memory may run out.
  local ok, failure = pcall(work, this, seconds, resuming, budget)
  nesting = level
  if not ok then
    running = outer
    error(failure, 0)
  end
  announce_ready()
  if raised then
    local message = raised.message
    raised = nil
    error(message, 0)
  end
end

local function nothing_under_way(this)
  if first_ready or this:timeout() then
    return false
  end
  local stats = this:stats()
  return stats.transfers + stats.queued + stats.timers + stats.watches == 0
end

-- Waits outside of tasks. Other tasks go on meanwhile. A wait for an operation inside a running step resumes no tasks,
-- so that the stack does not grow.
local function block(done, subject, resuming)
  local this = the_loop() -- in a forked child `done` may change
  while not done(subject) do
    if nothing_under_way(this) then
      error("this wait can never end: every task waits and nothing is under way", 0)
    end
    step(this, nil, resuming or nesting == 0)
    this = the_loop()
  end
end

function runtime.block_until(done, timeout, _, needs_no_task)
  if nesting >= MAX_NESTING and not needs_no_task then
    error("too many tasks wait inside each other, in coroutines or iterators that cannot yield", 0)
  end
  local expired = false
  local timer = timeout and runtime.timer(timeout, function()
    expired = true
  end)
  local ok, failure = pcall(block, function()
    return expired or done()
  end, nil, not needs_no_task)
  if timer then
    timer:cancel()
  end
  if not ok then
    error(failure, 0)
  end
end

tasks = task(runtime)
M.tasks = tasks

local function is_done(transfer)
  return loop:done(transfer)
end

---Waits until a transfer has finished. When the waiting task is stopped, or an error ends the wait, the transfer is
---cancelled.
---@param transfer integer
---@param with_head boolean
---@return integer|nil status
---@return string|table body or the failure
---@return string|nil head for core.details
function M.await(transfer, with_head)
  local me = tasks.yielding()
  if me then
    awaited[transfer % PLACES] = me
    tasks.pause(me, cancel, transfer)
  else
    local ok, failure = pcall(block, is_done, transfer, false)
    if not ok then
      cancel(transfer) -- the loop would keep it
      error(failure, 0)
    end
  end
  return loop:take(transfer, with_head)
end

---An iterator for a generic `for` under every Lua. Where it could not yield, it blocks.
---@param iterate fun(...): any
---@return fun(...): any
function tasks.iterator(iterate)
  if not is_puc_5_1 then
    return iterate
  end
  return function(...)
    return tasks.raise_failure(tasks.contain(iterate, ...))
  end
end

---The core's loop.
---@return userdata
M.loop = the_loop

---Why nothing can wait: the loop cannot be made, because the program has no descriptor left; else nil.
---@return string|nil
function M.refusal()
  if loop then
    return nil
  end
  local ok, failure = pcall(the_loop)
  return not ok and tostring(failure):gsub("^.-:%d+: ", "") or nil
end

---Steps an object of another library, or a server, with every step of this loop.
---@param object riskscreen.Pollable
function M.attach(object)
  local entry = { object = object, stepping = false, watch = the_loop():watch(object:pollfd(), object:events()) }
  local place = entry.watch % PLACES
  local function handle()
    awaited[place] = handle
    step_object(entry)
  end
  awaited[place] = handle
  attached = tables.concat({ entry }, attached)
end

---Ends `attach`.
---@param object riskscreen.Pollable
function M.detach(object)
  local rest = {}
  for _, entry in ipairs(attached) do
    if entry.object == object then
      cancel(entry.watch)
    else
      rest[#rest + 1] = entry
    end
  end
  attached = rest
end

---The loop for another event loop, which polls its descriptor and calls `step`.
---@class riskscreen.Loop: riskscreen.Pollable
local Loop = {}

M.pollable = setmetatable({}, Loop)

---The descriptor that is readable when `step` has work.
---@return integer
function M.pollable:pollfd()
  text.expect_self(self, Loop, "loop:pollfd")
  return the_loop():pollfd()
end

---The events to poll for on the descriptor.
---@return "r"
function M.pollable:events()
  text.expect_self(self, Loop, "loop:events")
  return the_loop():events()
end

---Seconds after which `step` has work even if the descriptor is not readable; nil for never.
---@return number|nil
function M.pollable:timeout()
  text.expect_self(self, Loop, "loop:timeout")
  if first_ready then
    return 0
  end
  return wait_limit(the_loop():timeout())
end

---Lets requests progress and resumes tasks. It waits at most so many seconds; without a number, until something
---happens. With a budget it does not wait, and leaves further work to the next step.
---@param wait? number|{ budget: number } seconds
function M.pollable:step(wait)
  text.expect_self(self, Loop, "loop:step")
  if type(wait) == "table" then
    if type(wait.budget) ~= "number" or wait.budget < 0 then
      error("step: budget must be a number of seconds", 2)
    end
    step(the_loop(), 0, true, wait.budget)
  elseif wait == nil or (type(wait) == "number" and wait >= 0 and wait <= 1e9) then
    step(the_loop(), wait, true)
  else
    error("step: expected a number of seconds from 0 to 1e9, or { budget = seconds }", 2)
  end
end

return M
