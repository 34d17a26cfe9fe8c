-- Applies a function to every item of a source, several items at a time. Each item is reported exactly once, in the
-- source's order or as it finishes. The source is read lazily.

local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local options = require "riskscreen.options"
local program_runtime = require "riskscreen.runtime"
local sources = require "riskscreen.client.source"
local text = require "riskscreen.util.text"

local WINDOW = 8 -- times `concurrency` is the most items that are taken and not yet reported

---@class riskscreen.MapEntry
---@field index integer
---@field item any
---@field task riskscreen.Task
---@field done? boolean
---@field told? boolean on_progress was called for it

---@class riskscreen.Run one pass over a source: an iterator that can be stopped
---@field private runtime table
---@field private read fun(): any
---@field private body fun(item: any, index: integer): any, any, any
---@field private present fun(index: integer, value: any, err: any, item: any, extra: any): ...
---@field private settings table
---@field private entries table<integer, riskscreen.MapEntry> taken and not yet reported
---@field private finished integer[] the indexes in the order in which their tasks ended
---@field private taken integer
---@field private ended integer
---@field private reported integer
---@field private failed integer
---@field private failures integer in a row
---@field private stopped? boolean
---@field private exhausted? boolean the source has no more items
---@field private problem? any the failure of the source, raised after the results of its items
---@field private broken? boolean the source is being read, or has raised
---@field private failure? riskscreen.Error raised after `stop_after_failures`
local Run = {}
Run.__index = Run
Run.__name = "riskscreen.Run"

-- Takes the next item and starts its task. A source that raises is not read again.
local function take(run)
  run.broken = true
  local item, problem = run.read()
  run.broken = false
  if item == nil then
    run.exhausted, run.problem = true, problem
    return
  end
  local entry = { index = run.taken + 1, item = item }
  run.taken = entry.index
  run.entries[entry.index] = entry
  entry.task = run.runtime.tasks.spawn(run.body, item, entry.index)
  run.runtime.tasks.on_end(entry.task, function()
    entry.done = true
    run.ended = run.ended + 1
    run.finished[run.ended] = entry.index
    run.changed:notify()
  end)
end

local function fill(run)
  local concurrency = run.settings.concurrency
  while
    not (run.exhausted or run.stopped)
    and run.taken - run.ended < concurrency
    and run.taken - run.reported < concurrency * WINDOW
  do
    take(run)
  end
end

-- The entry to report next, if its task has ended.
local function due(run)
  local index = run.settings.ordered and run.reported + 1 or run.finished[run.reported + 1]
  local entry = run.entries[index]
  return entry and entry.done and entry or nil
end

-- Tells the progress with the next result counted in.
local function tell_progress(run, is_failure)
  local done, failed = run.reported + 1, run.failed + (is_failure and 1 or 0)
  local elapsed = run.runtime.now() - run.started
  local rate = elapsed > 0 and done / elapsed or 0
  local left = run.total and math.max(0, run.total - done)
  local eta = left and (left == 0 and 0 or rate > 0 and left / rate) or nil
  run.settings.on_progress(done, failed, rate, eta)
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
    local message = ("stopped after %d failures in a row; the last: %s"):format(run.failures, tostring(err))
    run.failure = errors.new("cancelled", message, { failures = run.failures, cause = err })
    run:stop()
  end
end

local M = {}

local function report(run, entry)
  -- The task has ended: this does not wait.
  local ok, value, err, extra = pcall(entry.task.await, entry.task)
  if not ok then
    run:stop()
    error(value, 0)
  end
  if run.settings.on_progress and not entry.told then
    -- An error of on_progress must not lose the result: the next call returns it.
    entry.told = true
    tell_progress(run, value == nil)
    if run.entries[entry.index] ~= entry then
      -- While on_progress waited, another task has taken the result.
      return M.next(run)
    end
  end
  run.entries[entry.index] = nil
  run.reported = run.reported + 1
  run.finished[run.reported] = nil
  if value ~= nil then
    run.failures = 0
  else
    count_failure(run, err)
  end
  return run.present(entry.index, value, err, entry.item, extra)
end

---The next result of a run; nothing at the end.
---@param run riskscreen.Run
---@return ...
function M.next(run)
  if run.broken then
    error("the source is being read, or has failed: the run cannot go on", 2)
  end
  while not run.stopped do
    fill(run)
    local entry = due(run)
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
  return self.iterate()
end

---@class riskscreen.RunStatus the progress of a run
---@field taken integer items taken from the source
---@field reported integer items whose result was reported
---@field failed integer reported items without a value
---@field position integer every item up to this one has been reported
---@field pending { index: integer, item: any }[] items taken and not reported, in the source's order

---@return riskscreen.RunStatus
function Run:where()
  local pending = {}
  for index, entry in pairs(self.entries) do
    pending[#pending + 1] = { index = index, item = entry.item }
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

---Stops the run: no further item is taken, the tasks under way are cancelled, and the loop over the run ends.
---@return riskscreen.RunStatus
function Run:stop()
  self.stopped = true
  local standing = self:where()
  for _, entry in ipairs(standing.pending) do
    self.entries[entry.index].task:cancel()
  end
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
---@return riskscreen.Run|nil
---@return string|nil message the fault of the source
function M.new(runtime, source, body, settings, present)
  local read, total = sources.reader(source)
  if not read then
    return nil, "source " .. total
  end
  local run = setmetatable({
    runtime = runtime,
    read = read,
    body = body,
    present = present or four_values,
    settings = settings,
    total = settings.total or total,
    started = runtime.now(),
    taken = 0,
    ended = 0,
    reported = 0,
    failed = 0,
    failures = 0,
    entries = {},
    finished = {},
    changed = runtime.tasks.signal(),
  }, Run)
  run.iterate = runtime.tasks.iterator(function()
    return M.next(run)
  end)
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
  local settings, wrong = check.options(options.map, given == nil and {} or given)
  if not settings then
    error("map: " .. wrong.message, 2)
  end
  local run, message = M.new(program_runtime, source, body, settings)
  if not run then
    error("map: " .. message, 2)
  end
  return run
end

return M
