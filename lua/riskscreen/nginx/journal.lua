-- The journal of a gate. A request only puts its decision into a buffer of the worker. A timer makes the lines and
-- writes them, a few at a time, and the rest when the worker ends. All workers write to one file.

local build = require "riskscreen.options.build"
local journals = require "riskscreen.journal"
local tables = require "riskscreen.util.tables"

local ngx = _G.ngx

local SLICE = 50 -- lines that are written at once; a worker serves no request meanwhile
local LOCK_TIMEOUT = 0.5 -- seconds

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
  build.required {
    name = "path",
    type = "string",
    doc = "The file. Workers must be allowed to write to its directory.",
  },
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
---@field private lost integer decisions that were reported as lost
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

local function flush_slice(self)
  local before = self.journal:stats().written
  local ok, err = self.journal:flush(SLICE)
  local written = self.journal:stats().written - before
  if written > 0 then
    self.recorder:count("recorded", "written", written)
  end
  return ok, err
end

local function flush(self)
  while self.journal:stats().waiting > 0 do
    if not flush_slice(self) then
      return
    elseif not self.is_ending then
      ngx.sleep(0)
    end
  end
end

---Writes what waits in the buffer. The worker is about to end, and nothing can wait any more.
function Journal:finish()
  self.is_ending = true
  flush(self)
  self.journal:close()
end

local function start(self)
  local is_busy = false
  self.started = ngx.timer.every(self.settings.interval, function(premature)
    if premature then
      self:finish()
    elseif not is_busy then
      is_busy = true
      local ok, message = pcall(flush, self)
      is_busy = false
      if not ok then
        ngx.log(ngx.ERR, "riskscreen: the journal cannot be written: ", tostring(message))
      end
    end
  end) and true or false
end

local function record(self, decision, source, policy, input, canonical)
  if not self.started and not self.is_ending then
    start(self)
  end
  self.journal:append(decision, {
    input = input,
    address = canonical,
    source = sources[source],
    policy = policy,
    request_id = ngx.var.request_id,
    hide = self.hide,
    is_final = true,
  })
  if self.is_ending then
    self:finish() -- the timers of this worker have ended
  end
end

---Records a decision later. Never fails a request.
---@param decision riskscreen.Decision which nobody changes
---@param source string as the gate calls it
---@param policy riskscreen.Policy
---@param input? any
---@param canonical? string
function Journal:record(decision, source, policy, input, canonical)
  local ok, message = pcall(record, self, decision, source, policy, input, canonical)
  if not ok then
    ngx.log(ngx.ERR, "riskscreen: a decision was not recorded: ", tostring(message))
  end
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
    lost = 0,
  }, Journal)
  local journal, err = journals.file(settings.path, {
    record = settings.record,
    key = settings.key,
    max_size = settings.max_size,
    buffer = settings.buffer,
    sync = false, -- a worker must not wait for the disk
    lock_timeout = LOCK_TIMEOUT,
    sleep = sleeper(self),
    on_failure = function(failure)
      local lost = self.journal:stats().lost
      if lost > self.lost then
        self.recorder:count("recorded", "lost", lost - self.lost)
      end
      -- One line for the first of many lost decisions.
      if lost == self.lost or self.lost == 0 then
        ngx.log(ngx.WARN, "riskscreen: ", tostring(failure))
      end
      self.lost = lost
    end,
  })
  if not journal then
    return nil, "journal: " .. tostring(err)
  end
  self.journal = journal
  return self
end

return M
