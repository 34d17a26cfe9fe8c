-- Applies a function to every item of a source, several items at a time. Each item is reported exactly once, in the
-- source's order or as it finishes. The source is read lazily. Worker tasks take the items one after another, because a
-- task for each item costs 23,000 instructions.

local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local options = require "riskscreen.options"
local program_runtime = require "riskscreen.runtime"
local text = require "riskscreen.util.text"

local WINDOW = 8 -- times `concurrency` is the most items that are taken and not yet reported
local AHEAD = 4 -- times `concurrency` is the most items that are taken and have not ended
local SLOW = 0.01 -- seconds for which a result waits while further items are taken

---@class riskscreen.MapEntry
---@field index integer
---@field item any
---@field value any the results of the function, unless `task` has them
---@field err any
---@field extra any
---@field task? riskscreen.Task ended with the item: the function raised, was cancelled, or left tasks behind
---@field position? integer of its report, since it has ended

---@class riskscreen.MapWorker
---@field task riskscreen.Task
---@field entry? riskscreen.MapEntry it works on

---@class riskscreen.Run one pass over a source: an iterator that can be stopped
---@field private runtime table
---@field private read fun(): any
---@field private on_take? fun(item: table, index: integer)
---@field private body fun(item: any, index: integer): any, any, any
---@field private present fun(index: integer, value: any, err: any, item: any, extra: any): ...
---@field private settings table
---@field private window integer the most items that are taken and not yet reported
---@field private concurrency integer the most workers; with so few items in the queue, further ones are taken
---@field private queue table<integer, riskscreen.MapEntry> taken and not started, at their index modulo `window`: Lua
---rebuilds a table of moving positions again and again
---@field private results table<integer, riskscreen.MapEntry> ended and not yet reported, likewise at their position in
---the order of the reports
---@field private workers table<riskscreen.MapWorker, true>
---@field private working integer number of workers
---@field private taken integer
---@field private begun integer every item up to this one has a worker
---@field private ended integer
---@field private reported integer
---@field private failed integer
---@field private failures integer in a row
---@field private stopped? boolean
---@field private exhausted? boolean the source has no more items
---@field private problem? any the failure of the source, raised after the results of its items
---@field private is_reading? boolean the source is being read, or was when its reader was cancelled
---@field private failure? riskscreen.Error raised after `stop_after_failures`
local Run = {}
Run.__index = Run
Run.__name = "riskscreen.Run"

-- Takes the next item. A source that raises fails like one that returns an error: after the results of its items.
local function take(run)
  run.is_reading = true
  local ok, item, problem = pcall(run.read)
  if not ok then
    item, problem = nil, item == nil and "the source failed" or item
  end
  run.is_reading = false
  if run.exhausted then
    return -- the run was finished meanwhile
  elseif item == nil then
    run.exhausted, run.problem = true, problem
    if not ok then
      run.runtime.sleep(0) -- raises in a task that was cancelled while it read the source
    end
    return
  end
  local index = run.taken + 1
  run.taken = index
  if run.on_take and type(item) == "table" then
    run.on_take(item, index)
  end
  -- With room for the fields that come later.
  run.queue[index % run.window] = { index = index, item = item, value = nil, err = nil, extra = nil, position = nil }
end

local function finish(run, entry)
  local ended = run.ended + 1
  local position = run.settings.ordered and entry.index or ended
  run.ended, entry.position = ended, position
  run.results[position % run.window] = entry
  -- The caller waits for the next result; and it takes further items before the workers have none.
  if position == run.reported + 1 or run.taken - run.begun <= run.concurrency then
    run.changed:notify()
  end
end

-- The body of a worker. When a function has left tasks behind, the worker ends: its item ends when they have ended. The
-- operator's runtime may not know of such tasks.
local function work(run, worker)
  local has_children, body, queue, window = run.runtime.tasks.has_children, run.body, run.queue, run.window
  run.changed:notify() -- the caller starts the other workers, if this one's first item waits
  while run.begun < run.taken and not run.stopped do
    local index = run.begun + 1
    local slot = index % window
    local entry = queue[slot]
    run.begun, worker.entry, queue[slot] = index, entry, nil
    local value, err, extra = body(entry.item, index)
    if has_children and has_children(worker.task) then
      return value, err, extra
    end
    entry.value, entry.err, entry.extra = value, err, extra
    worker.entry = nil
    finish(run, entry)
  end
end

local function start_worker(run)
  local worker, tasks = {}, run.runtime.tasks
  run.workers[worker] = true
  run.working = run.working + 1
  worker.task = tasks.spawn(work, run, worker)
  tasks.on_end(worker.task, function()
    run.workers[worker] = nil
    run.working = run.working - 1
    if worker.entry then
      worker.entry.task = worker.task
      finish(run, worker.entry)
    else
      run.changed:notify()
    end
  end)
end

-- Starts a worker for each item under way, up to `concurrency`. One worker alone finds out whether items wait at all.
local function start_workers(run)
  while
    run.working < run.concurrency
    and run.working < run.taken - run.ended
    and run.begun < run.taken
    and (run.working == 0 or run.begun > run.ended)
  do
    start_worker(run)
  end
end

-- Takes more items than are under way, so that no worker ends because the caller is slow to take further ones. A result
-- does not wait for a slow source.
local function fill(run)
  local now, results, wanted = run.runtime.now, run.results, (run.reported + 1) % run.window
  local began = now()
  start_workers(run)
  while
    not (run.exhausted or run.stopped)
    and run.taken - run.ended < AHEAD * run.concurrency
    and run.taken - run.reported < run.window
  do
    take(run)
    start_workers(run)
    if results[wanted] and now() - began > SLOW then
      return
    end
  end
end

local function tell_progress(run)
  local done, elapsed = run.reported, run.runtime.now() - run.started
  local rate = elapsed > 0 and done / elapsed or 0
  local left = run.total and math.max(0, run.total - done)
  local eta = left and (left == 0 and 0 or rate > 0 and left / rate) or nil
  run.settings.on_progress(done, run.failed, rate, eta)
end

-- Counts failures, and stops the run after too many in a row. An invalid item says nothing about the service: it
-- neither counts nor ends the row.
local function count_failure(run, err)
  run.failed = run.failed + 1
  if errors.is(err) and err.kind == "invalid_argument" then
    return
  end
  run.failures = run.failures + 1
  if run.failures == run.settings.stop_after_failures then
    local message = ("stopped after %s in a row; the last: %s"):format(
      text.count(run.failures, "failure"),
      tostring(err)
    )
    run.failure = errors.new("cancelled", message, { failures = run.failures, cause = err })
    run:stop()
  end
end

local M = {}

local function report(run, entry)
  local value, err, extra = entry.value, entry.err, entry.extra
  if entry.task then
    local ok
    ok, value, err, extra = pcall(entry.task.await, entry.task) -- it has ended: this does not wait
    if not ok then
      run:stop()
      error(value, 0)
    end
  end
  run.results[entry.position % run.window] = nil
  run.reported = run.reported + 1
  if value ~= nil then
    run.failures = 0
  else
    count_failure(run, err)
  end
  if run.settings.on_progress then
    tell_progress(run)
  end
  return run.present(entry.index, value, err, entry.item, extra)
end

local function next_result(run)
  return run.results[(run.reported + 1) % run.window]
end

---The next result of a run; nothing at the end.
---@param run riskscreen.Run
---@return ...
function M.next(run)
  if run.is_reading then
    error("the source is being read, or its reader was cancelled: the run cannot go on", 2)
  end
  while not run.stopped do
    local entry = next_result(run)
    if not entry or run.taken - run.begun <= run.concurrency then
      fill(run)
      entry = next_result(run)
    end
    if entry then
      return report(run, entry)
    elseif run.exhausted and run.ended == run.taken then
      if run.problem ~= nil then
        error(run.problem, 0)
      end
      return nil
    end
    run.changed:wait()
  end
  if run.failure then
    error(run.failure, 0)
  end
  return nil
end

function Run:__call()
  return self:iterate()
end

---@class riskscreen.RunStatus the progress of a run
---@field taken integer items taken from the source
---@field reported integer items whose result was reported
---@field failed integer reported items without a value
---@field position integer every item up to this one has been reported
---@field pending { index: integer, item: any }[] items taken and not reported, in the source's order

---@return riskscreen.RunStatus
function Run:where()
  text.expect_self(self, Run, "run:where")
  local pending, under_way = {}, {}
  for worker in pairs(self.workers) do
    under_way[#under_way + 1] = worker.entry
  end
  for _, waiting in ipairs { self.queue, self.results, under_way } do
    for _, entry in pairs(waiting) do
      pending[#pending + 1] = { index = entry.index, item = entry.item }
    end
  end
  table.sort(pending, function(a, b)
    return a.index < b.index
  end)
  return {
    taken = self.taken,
    reported = self.reported,
    failed = self.failed,
    position = pending[1] and pending[1].index - 1 or self.taken,
    pending = pending,
  }
end

---Stops the run: no further item is taken, the items under way are cancelled, and the loop over the run ends.
---@return riskscreen.RunStatus
function Run:stop()
  text.expect_self(self, Run, "run:stop")
  self.stopped = true
  local standing = self:where()
  for worker in pairs(self.workers) do
    worker.task:cancel()
  end
  self.changed:notify()
  return standing
end

---Ends the run in good order. It takes and begins no further item, and the loop ends after the results under way.
---@return riskscreen.RunStatus
function Run:finish()
  text.expect_self(self, Run, "run:finish")
  local standing = self:where()
  self.exhausted, self.taken, self.queue = true, self.begun, {}
  self.changed:notify()
  return standing
end

local function four_values(index, value, err, item)
  return index, value, err, item
end

---A run over a source. The options are checked already.
---@param runtime table for the run's tasks and its clock
---@param source any
---@param body fun(item: any, index: integer): any, any, any
---@param settings table by options.map
---@param present? fun(index: integer, value: any, err: any, item: any, extra: any): ... the values that the run returns
---@param on_take? fun(item: table, index: integer) called when a table is taken, which may be long before `body`
---@return riskscreen.Run|nil
---@return string|nil message the fault of the source
function M.new(runtime, source, body, settings, present, on_take)
  local read, total = require("riskscreen.rows.source").reader(source)
  if not read then
    return nil, "source " .. total
  end
  local run = setmetatable({
    runtime = runtime,
    read = runtime.tasks.iterator(read),
    on_take = on_take,
    body = body,
    present = present or four_values,
    settings = settings,
    total = settings.total or total,
    started = runtime.now(),
    window = settings.concurrency * WINDOW,
    concurrency = settings.concurrency,
    workers = {},
    working = 0,
    taken = 0,
    begun = 0,
    ended = 0,
    reported = 0,
    failed = 0,
    failures = 0,
    queue = {},
    results = {},
    changed = runtime.tasks.signal(),
    iterate = runtime.tasks.iterator(M.next),
  }, Run)
  return run
end

---Applies a function to every item, `concurrency` at a time:
---`for index, value, err, item in riskscreen.map(source, fn, { concurrency = 8 }) do … end`.
---The loop raises an error of the function. At most 8 × concurrency items are taken and not yet reported.
---@param source any[]|(fun(): any)|file* of a file the lines, without those that are blank
---@param body fun(item: any, index: integer): any, any both results are reported; nil as the first one is a failure
---@param given? { concurrency?: integer, ordered?: boolean, on_progress?: function, total?: integer,
---stop_after_failures?: integer }
---@return riskscreen.Run
function M.map(source, body, given)
  if type(body) ~= "function" then
    error("map: expected a function (got " .. text.kind(body) .. ")", 2)
  end
  local settings = check.arguments("map", options.map, given == nil and {} or given)
  local run, message = M.new(program_runtime, source, body, settings)
  if not run then
    error("map: " .. message, 2)
  end
  return run
end

return M
