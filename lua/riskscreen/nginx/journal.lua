-- The journal of a gate. A request only puts its decision into a buffer of the worker. A timer makes the lines and
-- writes them, a few at a time, and the rest when the worker ends. All workers write to one file.

local build = require "riskscreen.options.build"
local errors = require "riskscreen.errors"
local files = require "riskscreen.util.files"
local journals = require "riskscreen.journal"
local runtime = require "riskscreen.runtime"
local tables = require "riskscreen.util.tables"

local ngx = _G.ngx

local SLICE = 50 -- lines that are written at once; a worker serves no request meanwhile
local LOCK_TIMEOUT = 0.5 -- seconds
local ALARM_EVERY = 60 -- seconds between two lines of the error log for one reason

-- Where decisions come from, as the gate calls it.
local sources = {
  lru = "cache",
  dict = "cache",
  redis = "cache",
  stale = "cache",
  upstream = "service",
  list = "list",
  invalid = "none",
  exempt = "none",
}

local taken_over = { record = true, key = true, max_size = true, buffer = true }

---@type riskscreen.Option[]
local options = {
  build.required(
    build.text("path", build.forms.absolute, "The file: an absolute path. Workers must be allowed to write beside it.")
  ),
  build.flag(
    "required",
    false,
    "true: nginx does not start, or reload, if the master finds that the file cannot be written."
  ),
  build.seconds("interval", 1, "How often each worker writes its decisions.", 0.01, 3600),
}
for _, option in ipairs(journals.options) do
  if taken_over[option.name] then
    options[#options + 1] = option.name == "buffer" and tables.merge(option, { default = 10000 }) or option
  end
end

---@class riskscreen.nginx.Journal
---@field private settings table
---@field private recorder riskscreen.nginx.Recorder
---@field private hide? fun(text: string): string
---@field private journal riskscreen.Journal of this worker
---@field private started boolean
---@field private is_ending boolean
---@field private written integer decisions that were counted as written
---@field private lost integer decisions that were reported as lost
---@field private alarm_at table<string, number> by reason: the time of the next line in the error log
local Journal = {}
Journal.__index = Journal

-- Waits for the lock of the file. A worker that ends cannot yield: there the wait is short and busy.
local function sleeper(self)
  return function(seconds)
    if self.is_ending or not pcall(ngx.sleep, seconds) then
      local started = os.clock()
      while os.clock() - started < seconds do -- luacheck: ignore 542
      end
    end
  end
end

-- Counts and tells that decisions cannot be written: `waiting` of them, and that `total` are lost by now.
local function alarm(self, total, failure, waiting)
  local lost = math.max(total - self.lost, 0)
  self.recorder:count("recorded", lost > 0 and "lost" or "failed", math.max(lost, 1))
  self.lost = self.lost + lost
  local reason = failure.reason or "other"
  if ngx.now() >= (self.alarm_at[reason] or 0) then
    self.alarm_at[reason] = ngx.now() + ALARM_EVERY
    local figures = "; decisions of this worker: %d waiting, %d lost"
    ngx.log(ngx.ERR, "riskscreen: ", errors.text(failure), figures:format(waiting, self.lost))
  end
end

-- Another flush of this worker may write while this one waits for the file.
local function flush(self)
  while self.journal:stats().waiting > 0 do
    local ok = self.journal:flush(SLICE)
    local written = self.journal:stats().written
    if written > self.written then
      self.recorder:count("recorded", "written", written - self.written)
      self.written = written
    end
    if not ok then
      return
    elseif not self.is_ending then
      runtime.sleep(0)
    end
  end
end

---Writes what waits in the buffer. The worker is about to end, and nothing can wait any more.
function Journal:finish()
  self.is_ending = true
  flush(self)
  local _, err = self.journal:close()
  local stats = self.journal:stats()
  if stats.waiting > 0 then
    self.alarm_at = {}
    alarm(self, stats.lost + stats.waiting, err, 0)
  end
end

-- The work of the timer. Without new decisions, it notes how far the journal goes.
local function work(self)
  if self.journal:stats().waiting > 0 then
    flush(self)
  else
    self.journal:close()
  end
end

local function start(self)
  local is_busy = false
  self.started = ngx.timer.every(self.settings.interval, function(premature)
    if premature then
      self:finish()
    elseif not is_busy then
      is_busy = true
      local ok, message = pcall(work, self)
      is_busy = false
      if not ok then
        ngx.log(ngx.ERR, "riskscreen: the journal cannot be written: ", errors.text(message))
      end
    end
  end) and true or false
end

local function record(self, decision, source, gate, request_id, input, canonical)
  if not self.started and not self.is_ending then
    start(self)
  end
  local location = gate.own_location
  self.journal:append(decision, {
    input = input,
    address = canonical,
    source = sources[source],
    policy = gate.policy,
    outcome = location:effective_action(decision, source),
    monitor = location.monitor,
    request_id = request_id,
    hide = self.hide,
  })
  if self.is_ending then
    self:finish() -- the timers of this worker have ended
  end
end

---Records a decision later. Never fails a request.
---@param decision riskscreen.Decision which nobody changes
---@param source string as the gate calls it
---@param gate riskscreen.nginx.Gate that decided
---@param request_id string|nil
---@param input? any
---@param canonical? string
function Journal:record(decision, source, gate, request_id, input, canonical)
  local ok, message = pcall(record, self, decision, source, gate, request_id, input, canonical)
  if not ok then
    ngx.log(ngx.ERR, "riskscreen: a decision was not recorded: ", errors.text(message))
  end
end

-- Why this process cannot write a file. It leaves none behind: the workers could not write to one of the master's.
local function unwritable(path)
  local is_there = files.exists(path)
  local tried = is_there and path or path .. ".tried"
  local file, message = io.open(tried, "ab")
  if file then
    file:close()
    message = not is_there and select(2, os.remove(tried)) or nil
  end
  return message and path .. message:sub(#tried + 1)
end

-- Why the journal cannot be written, as far as the master can tell.
local function problem_of(path, given)
  path = files.target(path)
  local problem = unwritable(path) or unwritable(path .. ".head")
  if not problem and files.exists(path) and files.exists(path .. ".head") then
    problem = select(2, journals.file(path, tables.without(given, "buffer"))) -- without a buffer it is opened at once
  end
  return problem
end

local M = { options = options }

---@param settings table the checked options
---@param recorder riskscreen.nginx.Recorder
---@param hide? fun(text: string): string removes the access key
---@return riskscreen.nginx.Journal|nil
---@return string|nil problem
function M.new(settings, recorder, hide)
  local self = setmetatable({
    settings = tables.without(settings, "key"),
    recorder = recorder,
    hide = hide,
    started = false,
    is_ending = false,
    written = 0,
    lost = 0,
    alarm_at = {},
  }, Journal)
  local given = {
    record = settings.record,
    key = settings.key,
    max_size = settings.max_size,
    buffer = settings.buffer,
    sync = false, -- a worker must not wait for the disk
    lock_timeout = LOCK_TIMEOUT,
    sleep = sleeper(self),
    on_failure = function(failure)
      alarm(self, self.journal:stats().lost, failure, self.journal:stats().waiting)
    end,
  }
  local problem
  self.journal, problem = journals.file(settings.path, given)
  problem = problem or settings.required and problem_of(settings.path, given)
  if problem then
    return nil, "journal: " .. errors.text(problem)
  end
  return self
end

return M
