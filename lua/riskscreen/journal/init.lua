-- The record of decisions: one JSON line for each, chained by hashes. A file or a store takes the lines.
-- They are checked by verify.lua, and decided again by replay.lua.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local digest = require "riskscreen.address.digest"
local errors = require "riskscreen.errors"
local files = require "riskscreen.journal.file"
local is_forked = require "riskscreen.util.forked"
local lines = require "riskscreen.journal.line"
local random = require "riskscreen.util.random"
local replay = require "riskscreen.journal.replay"
local runtime = require "riskscreen.runtime"
local stored = require "riskscreen.journal.stored"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local verify = require "riskscreen.journal.verify"

local MAX_SIZE = 2 ^ 40 -- bytes
local MAX_BUFFER = 1000000 -- lines
local SYNC = "Wait for the disk at the first decision so many seconds after the last time, and at the end; 0: at each "
  .. "decision; false: never, the system writes when it likes."
local SETTLE_INTERVAL = 1 -- seconds between two notes of the head

---The place for the lines of a journal. Its methods raise their failures.
---@class riskscreen.JournalTarget
---@field write fun(self, take: fun(): string[]) seals and keeps them, all or none
---@field head fun(self): riskscreen.JournalHead
---@field rotate? fun(self): true
---@field close fun(self): true

---@class riskscreen.Journal
---@field private target riskscreen.JournalTarget
---@field private settings table
---@field private seed? string of the ids
---@field private count integer lines that were made here
---@field private buffer table<integer, string> lines that wait
---@field private first integer the first of them
---@field private last integer
---@field private counters { written: integer, lost: integer }
---@field private unreported integer lost lines that no line of the journal tells of yet
local Journal = {}
Journal.__index = Journal
Journal.__name = "riskscreen.Journal"

local function report(err)
  io.stderr:write("riskscreen: a decision was not recorded: ", tostring(err), "\n")
end

local function sync_check(value)
  if value == true or (type(value) == "number" and not (value >= 0 and value <= build.LONGEST_WAIT)) then
    return nil, "must be seconds from 0 on, or false"
  end
  return value
end

---@type riskscreen.Option[]
local shared_options = {
  build.flag("record", false, "Keep the whole answer of the service, so that `replay` can decide again."),
  build.text("key", build.forms.key, "The key of the chain: HMAC-SHA256 in place of SHA-256."),
  build.notice("on_failure", "on_failure(err): takes a failure to record; by default it goes to stderr.", report),
  build.clock("Returns the time in seconds since 1970.", os.time, os.time),
}

---@type riskscreen.Option[]
local file_options = tables.concat(shared_options, {
  build.checked("sync", "number|boolean", sync_check, SYNC, 1),
  build.count("max_size", "bytes", nil, 1024, MAX_SIZE, "Begin a new file before this one grows larger."),
  build.count("buffer", "lines", nil, 1, MAX_BUFFER, "Keep so many lines until `flush` writes them to the file."),
  build.seconds("lock_timeout", 5, "How long to wait while another program writes to the file.", 0),
  build.callback("sleep", "sleep(seconds): how to wait for that; by default as tasks do."),
})

-- A forked child, such as a worker of nginx, has ids of its own, and leaves the lines in the buffer to its parent.
local function notice_fork(self)
  if is_forked(self) then
    self.seed, self.count, self.unreported = random.token(), 0, 0
    self.buffer, self.first, self.last = {}, 1, 0
  end
end

local function new_id(self)
  self.count = self.count + 1
  return text.hex(digest.sha256(self.seed .. self.count):sub(1, 12))
end

local function time_text(seconds)
  return os.date("!%Y-%m-%dT%H:%M:%SZ", math.floor(seconds))
end

-- Decisions that get no line. The operator's function is told, and must not change a verdict.
local function lose(self, number, err)
  self.counters.lost, self.unreported = self.counters.lost + number, self.unreported + number
  self.settings.on_failure(err)
  return nil, err
end

local function failure_of(raised)
  local message = "journal: " .. text.printable(tostring(raised), 200)
  return errors.is(raised) and raised or errors.new("storage", message, { reason = "other" })
end

-- Passes the lines of `take` to the target, after one about those that were lost before them. The target may wait
-- first, and more may be lost meanwhile. A function of the operator may raise.
local function write(self, take)
  local lost, count = 0, 0
  local ok, raised = runtime.tasks.pcall(self.target.write, self.target, function()
    local bodies = take()
    lost, self.unreported = lost + self.unreported, 0
    if lost > 0 then
      bodies = tables.concat({ lines.lost_body(lost, new_id(self), time_text(self.settings.clock())) }, bodies)
    end
    count = #bodies
    return bodies
  end)
  if not ok then
    self.unreported = self.unreported + lost
    return nil, failure_of(raised)
  end
  self.counters.written = self.counters.written + count
  return true
end

---Records a decision. A failure changes nothing of the decision; it is counted and told to `on_failure`, and the next
---line says how many decisions were lost before it.
---@param decision riskscreen.Decision
---@param context? riskscreen.JournalContext
---@return string|nil id of the line
---@return riskscreen.Error|nil err
function Journal:append(decision, context)
  text.expect_self(self, Journal, "journal:append")
  text.expect("journal:append: decision", decision, "table")
  text.expect("journal:append: decision.reasons", decision.reasons, "table")
  text.expect("journal:append: context", context, "table", true)
  notice_fork(self)
  local settings, id = self.settings, new_id(self)
  if settings.buffer and self.last - self.first + 1 >= settings.buffer then
    local message = ("journal: the buffer of %s is full"):format(text.count(settings.buffer, "line"))
    return lose(self, 1, errors.new("storage", message, { reason = "full" }))
  end
  local ok, body = pcall(lines.body, decision, context or {}, id, time_text(settings.clock()), settings.record)
  local err = not ok and failure_of(body) or nil
  if ok and settings.buffer then
    self.last = self.last + 1
    self.buffer[self.last] = body
  elseif ok then
    ok, err = write(self, function()
      return { body }
    end)
  end
  if not ok then
    return lose(self, 1, err)
  end
  return id
end

---Writes the lines that wait in the buffer. Where that fails they stay in it.
---@param limit? integer the most lines to write
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Journal:flush(limit)
  text.expect_self(self, Journal, "journal:flush")
  text.expect("journal:flush: limit", limit, "number", true)
  notice_fork(self)
  if self.first > self.last and self.unreported == 0 then
    return true
  end
  local last
  local written, err = write(self, function()
    last = math.min(self.last, self.first + (limit or math.huge) - 1)
    local bodies = {}
    for index = self.first, last do
      bodies[#bodies + 1] = self.buffer[index]
    end
    return bodies
  end)
  if not written then
    self.settings.on_failure(err)
    return nil, err
  end
  while self.first <= last do
    self.buffer[self.first] = nil
    self.first = self.first + 1
  end
  return true
end

-- Calls a method of the target.
local function ask(target, method)
  return errors.result(runtime.tasks.pcall(target[method], target))
end

---The place in the chain. Keep it apart from the journal, for example in a message to yourself: `verify` then finds out
---whether the journal was cut at its end or written anew.
---@return riskscreen.JournalHead|nil
---@return riskscreen.Error|nil err
function Journal:head()
  text.expect_self(self, Journal, "journal:head")
  return ask(self.target, "head")
end

---Begins a new file. Only the journal of a file has files.
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Journal:rotate()
  text.expect_self(self, Journal, "journal:rotate")
  if not self.target.rotate then
    return nil, errors.new("unsupported", "journal:rotate: this journal is not a file")
  end
  return ask(self.target, "rotate")
end

---Counters: lines `written`, decisions `lost` because they could not be recorded, decisions `waiting` in the buffer,
---and torn lines that were `repaired`.
---@return { written: integer, lost: integer, waiting: integer, repaired: integer }
function Journal:stats()
  text.expect_self(self, Journal, "journal:stats")
  notice_fork(self)
  return tables.merge(self.counters, { waiting = self.last - self.first + 1, repaired = self.target.repaired or 0 })
end

---Writes the buffer and notes the head. The journal may be used again after that.
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Journal:close()
  text.expect_self(self, Journal, "journal:close")
  local ok, err = self:flush()
  if not ok then
    return nil, err
  end
  return ask(self.target, "close")
end

local function new(target, settings)
  return setmetatable({
    target = target,
    settings = tables.without(settings, "key"),
    counters = { written = 0, lost = 0 },
  }, Journal)
end

local M = {
  options = file_options,
  verify = verify.verify,
  entries = verify.entries,
  files = verify.files,
  replay = replay.replay,
}

---@class riskscreen.JournalOptions
---@field record? boolean
---@field key? string
---@field sync? number|false seconds
---@field max_size? integer bytes
---@field buffer? integer lines
---@field lock_timeout? number seconds
---@field on_failure? fun(err: riskscreen.Error)
---@field clock? fun(): number
---@field sleep? fun(seconds: number)

---A journal in a file of JSON lines.
---@param path string
---@param options? riskscreen.JournalOptions
---@return riskscreen.Journal|nil
---@return riskscreen.Error|nil err
function M.file(path, options)
  if type(path) ~= "string" or path == "" then
    error("journal.file: path must be a text (got " .. text.show(path) .. ")", 2)
  end
  local settings = check.arguments("journal.file", file_options, options or {})
  settings.sleep = settings.sleep or runtime.tasks.sleep
  local _
  local target, err = files.new(path, tables.merge(settings, { settle = SETTLE_INTERVAL, now = runtime.now }))
  if target and not settings.buffer then
    _, err = ask(target, "open")
  end
  if err then
    return nil, err
  end
  return new(target, settings)
end

---A journal in a store. Several programs may write to it.
---@param store riskscreen.Store
---@param options? riskscreen.JournalOptions
---@return riskscreen.Journal
function M.store(store, options)
  if type(store) ~= "table" or type(store.space) ~= "function" then
    error("journal.store: the target must be a store (got " .. text.kind(store) .. ")", 2)
  end
  local settings = check.arguments("journal.store", shared_options, options or {})
  return new(stored.of_store(store, settings.key), settings)
end

return M
