-- Applies a function to every item of a source, several at a time: lazily, each item exactly once, in the source's
-- order or as they finish. What an item or a result means is not known here.

local check = require "riskscreen.options.check"
local options = require "riskscreen.options"
local own_runtime = require "riskscreen.runtime"
local sources = require "riskscreen.client.source"
local text = require "riskscreen.util.text"

local WINDOW = 8 -- times `concurrency` items at most are taken and not yet reported, however slow one of them is

---@class riskscreen.MapEntry
---@field index integer
---@field item any
---@field task riskscreen.Task
---@field done? boolean

---@class riskscreen.Run one pass over a source: an iterator that can be stopped
---@field private runtime table
---@field private read fun(): any
---@field private body fun(item: any, index: integer): any, any
---@field private present fun(index: integer, value: any, err: any, item: any): ...
---@field private entries table<integer, riskscreen.MapEntry> taken and not yet reported
---@field private finished integer[] of those, in the order in which they ended, from `first` to `last`
local Run = {}
Run.__index = Run
Run.__name = "riskscreen.Run"

-- Takes the next item and starts its task. While the source is read nothing else of the run happens, and a source that
-- raised is not asked again.
local function take(run)
  run.broken = true
  local item = run.read()
  run.broken = false
  if item == nil then
    run.exhausted = true
    return
  end
  local entry = { index = run.taken + 1, item = item }
  run.taken = entry.index
  run.entries[entry.index] = entry
  run.running = run.running + 1
  entry.task = run.runtime.tasks.spawn(run.body, item, entry.index)
  entry.task:on_end(function()
    entry.done = true
    run.running = run.running - 1
    run.last = run.last + 1
    run.finished[run.last] = entry.index
    run.changed:notify()
  end)
end

local function fill(run)
  while
    not (run.exhausted or run.stopped)
    and run.running < run.concurrency
    and run.taken - run.reported < run.concurrency * WINDOW
  do
    take(run)
  end
end

-- The entry whose turn it is, if its task has ended.
local function due(run)
  if run.first > run.last then
    return nil
  elseif run.ordered then
    local entry = run.entries[run.reported + 1]
    return entry and entry.done and entry or nil
  end
  return run.entries[run.finished[run.first]]
end

local function forget(run, entry)
  run.entries[entry.index] = nil
  run.reported = run.reported + 1
  -- In order, which one ended first does not matter: only how many are left.
  run.finished[run.first] = nil
  run.first = run.first + 1
end

local function tell_progress(run)
  local elapsed = run.runtime.now() - run.started
  local rate = elapsed > 0 and run.reported / elapsed or 0
  local left = run.total and math.max(0, run.total - run.reported)
  local eta = left and (left == 0 and 0 or rate > 0 and left / rate) or nil
  run.on_progress(run.reported, run.failed, rate, eta)
end

local function report(run, entry)
  -- The task has ended: this does not wait.
  local ok, value, err = pcall(entry.task.await, entry.task)
  if not ok then
    run:stop()
    error(value, 0)
  end
  forget(run, entry)
  if value == nil then
    run.failed = run.failed + 1
  end
  if run.on_progress then
    tell_progress(run)
  end
  return run.present(entry.index, value, err, entry.item)
end

---The next result, or nothing at the end: what the run gives when it is called, for use outside of a generic `for`.
---@return ...
function Run:next()
  if self.broken then
    error("the source is being read, or has failed: the run cannot go on", 2)
  end
  while not self.stopped do
    fill(self)
    local entry = due(self)
    if entry then
      return report(self, entry)
    elseif self.exhausted and self.running == 0 then
      return nil
    end
    self.changed:wait()
  end
  return nil
end

function Run:__call()
  return self.iterate()
end

---@class riskscreen.Standing where a run stands
---@field taken integer items taken from the source
---@field reported integer items whose result was given out
---@field failed integer of those, how many had no value
---@field position integer every item up to this one has been reported
---@field pending { index: integer, item: any }[] taken and not reported, in the source's order

---@return riskscreen.Standing
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

---Ends the run: nothing more is taken, what is under way is aborted, and the loop over it ends.
---@return riskscreen.Standing
function Run:stop()
  self.stopped = true
  for _, entry in pairs(self:where().pending) do
    self.entries[entry.index].task:cancel()
  end
  self.changed:notify()
  return self:where()
end

local function everything(...)
  return ...
end

local M = {}

---A run over a source, with options that are checked.
---@param runtime table that the run's tasks and its time are of
---@param source any
---@param body fun(item: any, index: integer): any, any
---@param settings { concurrency: integer, ordered: boolean, on_progress?: function, total?: integer }
---@param present? fun(index: integer, value: any, err: any, item: any): ... what the run gives for a result
---@return riskscreen.Run|nil
---@return string|nil message what is wrong with the source
function M.new(runtime, source, body, settings, present)
  local read, total = sources.reader(source)
  if not read then
    return nil, "source " .. total
  end
  local run = setmetatable({
    runtime = runtime,
    read = read,
    body = body,
    present = present or everything,
    concurrency = settings.concurrency,
    ordered = settings.ordered,
    on_progress = settings.on_progress,
    total = settings.total or total,
    started = runtime.now(),
    taken = 0,
    reported = 0,
    failed = 0,
    running = 0,
    entries = {},
    finished = {},
    first = 1,
    last = 0,
    changed = runtime.tasks.signal(),
  }, Run)
  run.iterate = runtime.tasks.iterator(function()
    return run:next()
  end)
  return run
end

---Applies a function to every item, `concurrency` at a time:
---`for index, value, err, item in riskscreen.map(source, fn, { concurrency = 8 }) do … end`.
---What the function raises, the loop raises. At most 8 × concurrency items are taken and not yet reported.
---@param source any[]|(fun(): any)|file* of a file the lines, without those that are blank
---@param body fun(item: any, index: integer): any, any both results are reported; without the first it has failed
---@param given? { concurrency?: integer, ordered?: boolean, on_progress?: function, total?: integer }
---@return riskscreen.Run
function M.map(source, body, given)
  if type(body) ~= "function" then
    error("map: expected a function (got " .. text.kind(body) .. ")", 2)
  elseif given ~= nil and type(given) ~= "table" then
    error("map: options must be a table (got " .. text.kind(given) .. ")", 2)
  end
  local settings, wrong = check.options(options.map, given or {})
  if not settings then
    error("map: " .. wrong.message, 2)
  end
  local run, message = M.new(own_runtime, source, body, settings)
  if not run then
    error("map: " .. message, 2)
  end
  return run
end

return M
