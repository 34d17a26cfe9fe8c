-- The entries of a store in a file of SQLite, by lua-dbi. The file is in WAL mode: readers and one writer work at the
-- same time. A crash at any moment leaves the last complete batch.
--
-- Of the two bindings that Debian packages for every Lua, lua-dbi binds values to prepared statements. The packaged
-- lua-sql 2.6 ignores bound values without an error. lua-dbi passes SQLite's messages on, but no result codes.

local errors = require "riskscreen.errors"
local files = require "riskscreen.util.files"
local is_forked = require "riskscreen.util.forked"
local optional = require "riskscreen.util.optional"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local APPLICATION_ID = 1381190483 -- "RSKS", in the header of the file
local SCHEMA_VERSION = 1
local SWEEP_INTERVAL = 60 -- seconds between two removals of expired entries
local NO_BINDING = "store.sqlite needs lua-dbi: apt install lua-dbi-sqlite3, or luarocks install luadbi-sqlite3"

-- A statement is prepared once. LIVE holds for entries that have not expired.
local LIVE = "(expires IS NULL OR expires > ?)"
local PAGE = " ORDER BY key LIMIT ?"
local statements = {
  get = "SELECT value FROM entries WHERE space = ? AND key = ? AND " .. LIVE,
  put = [[INSERT INTO entries (space, key, value, expires) VALUES (?, ?, ?, ?)
    ON CONFLICT (space, key) DO UPDATE SET value = excluded.value, expires = excluded.expires]],
  add = [[INSERT INTO entries (space, key, value, expires) VALUES (?, ?, ?, ?)
    ON CONFLICT (space, key) DO UPDATE SET value = excluded.value, expires = excluded.expires
    WHERE entries.expires <= ?]],
  replace = "UPDATE entries SET value = ?, expires = ? WHERE space = ? AND key = ? AND value = ? AND " .. LIVE,
  delete = "DELETE FROM entries WHERE space = ? AND key = ? AND " .. LIVE,
  delete_expected = "DELETE FROM entries WHERE space = ? AND key = ? AND value = ? AND " .. LIVE,
  sweep = "DELETE FROM entries WHERE expires <= ?",
  page = "SELECT key, value FROM entries WHERE space = ? AND key >= ? AND key < ? AND " .. LIVE .. PAGE,
  next_page = "SELECT key, value FROM entries WHERE space = ? AND key > ? AND key >= ? AND key < ? AND "
    .. LIVE
    .. PAGE,
  count = "SELECT count(*) FROM entries WHERE space = ? AND key >= ? AND key < ? AND " .. LIVE,
  begin = "BEGIN IMMEDIATE",
  commit = "COMMIT",
  rollback = "ROLLBACK",
}

local schema = {
  [[CREATE TABLE entries (
    space TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, expires REAL, PRIMARY KEY (space, key)
  ) WITHOUT ROWID]],
  "CREATE INDEX entries_expires ON entries (expires) WHERE expires IS NOT NULL",
  "PRAGMA application_id = " .. APPLICATION_ID,
  "PRAGMA user_version = " .. SCHEMA_VERSION,
}

-- SQLite's messages, each with a reason and advice for the operator.
local failures = {
  { pattern = "disk is full", reason = "full", advice = "make room on the disk" },
  { pattern = "is locked", reason = "busy", retryable = true, advice = "another program writes for too long" },
  { pattern = "not a database", reason = "foreign", advice = "the file is no database of SQLite" },
  { pattern = "malformed", reason = "damaged", advice = "the file is damaged; restore it from a backup" },
  { pattern = "readonly database", reason = "read_only", advice = "allow writing to the file and its directory" },
  { pattern = "unable to open", reason = "missing", advice = "its directory must exist and allow writing" },
  { pattern = "disk I/O error", reason = "io", advice = "the disk or a limit on file sizes refused the access" },
}

local function failure(path, message)
  message = tostring(message):gsub("^Execute failed ", ""):gsub("^Error preparing statement handle: ", "")
  local fields, advice = { reason = "other", cause = message }, nil
  for _, entry in ipairs(failures) do
    if message:find(entry.pattern, 1, true) then
      fields.reason, fields.retryable, advice = entry.reason, entry.retryable, entry.advice
      break
    end
  end
  local shown = ("store %s: %s%s"):format(text.printable(path, 200), message, advice and ": " .. advice or "")
  return errors.new("storage", shown, fields)
end

local function refused(path, reason, message)
  return errors.new("storage", ("store %s: %s"):format(text.printable(path, 200), message), { reason = reason })
end

---@class riskscreen.store.Sqlite: riskscreen.StoreBackend
---@field private path string
---@field private connection? userdata none yet in a forked child
---@field private prepared table<string, userdata> statements by name
---@field private locks table<string, userdata> connections by the lock's name
---@field private swept? number when expired entries were last removed
---@field private settings riskscreen.SqliteOptions
local Sqlite = {}
Sqlite.__index = Sqlite

local opened, opener = setmetatable({}, { __mode = "k" }), {} -- the open stores, and the process that opened them

local function close_connections(self)
  -- SQLite does not close a connection that has open statements.
  for _, statement in pairs(self.prepared) do
    statement:close()
  end
  for _, connection in pairs(self.locks) do
    connection:close()
  end
  if self.connection then
    self.connection:close()
  end
  self.prepared, self.locks, self.connection = {}, {}, nil
end

-- SQLite's locks are those of a process. A forked child's inherited connections have none, nor has a new one beside
-- them. The parent's close would remove the file that the child writes to. So all of them are closed first.
local function close_inherited()
  if is_forked(opener) then
    for store in pairs(opened) do
      close_connections(store)
    end
  end
end

-- Runs a statement once and returns its first row.
local function run_once(connection, sql)
  local statement, message = connection:prepare(sql)
  if not statement then
    return nil, message
  end
  local ok, problem = statement:execute()
  local row = {}
  if ok then
    -- lua-dbi raises where a later row cannot be read.
    ok, row = pcall(statement.fetch, statement, false)
    problem = row
  end
  statement:close()
  if not ok then
    return nil, problem
  end
  return row or {}
end

-- Executes a prepared statement. A statement that failed reports its failure again when it is reused, so it is closed.
local function execute(self, name, ...)
  close_inherited()
  if not self.connection then
    local err = self:connect()
    if err then
      return nil, err
    end
  end
  local statement = self.prepared[name]
  if not statement then
    local message
    statement, message = self.connection:prepare(statements[name])
    if not statement then
      return nil, failure(self.path, message)
    end
    self.prepared[name] = statement
  end
  local ok, message = statement:execute(...)
  if not ok then
    statement:close()
    self.prepared[name] = nil
    return nil, failure(self.path, message)
  end
  return statement
end

-- All values of a statement's rows, in turn. Every row is read, because an open statement would hold the read lock.
local function select_values(self, name, ...)
  local statement, err = execute(self, name, ...)
  if not statement then
    return nil, err
  end
  local values = {}
  local ok, message = pcall(function()
    local row = statement:fetch(false)
    while row do
      for _, value in ipairs(row) do
        values[#values + 1] = value
      end
      row = statement:fetch(false)
    end
  end)
  if not ok then
    statement:close()
    self.prepared[name] = nil
    return nil, failure(self.path, message)
  end
  return values
end

-- The arguments of each kind of change.
local function execute_change(self, change, now)
  local kind, space, key, expires = change.kind, change.space, change.key, change.ttl and now + change.ttl
  if kind == "put" then
    return execute(self, "put", space, key, change.value, expires)
  elseif kind == "add" then
    return execute(self, "add", space, key, change.value, expires, now)
  elseif kind == "replace" then
    return execute(self, "replace", change.value, expires, space, key, change.expected, now)
  elseif change.expected then
    return execute(self, "delete_expected", space, key, change.expected, now)
  end
  return execute(self, "delete", space, key, now)
end

-- Makes one change. Returns false where its condition does not hold.
local function apply_one(self, change, now)
  local statement, err = execute_change(self, change, now)
  if not statement then
    return nil, err
  end
  return statement:affected() > 0
end

local function apply_all(self, changes, now)
  for _, change in ipairs(changes) do
    local made, err = apply_one(self, change, now)
    if not made then
      return made, err
    end
  end
  return true
end

-- Removes expired entries now and then. They are hidden in any case, so a failure does not matter here.
local function sweep(self, changes, now)
  if next(tables.pluck(changes, "ttl")) and now >= (self.swept or 0) + SWEEP_INTERVAL then
    self.swept = now
    execute(self, "sweep", now)
  end
end

function Sqlite:get(space, key, now)
  local values, err = select_values(self, "get", space, key, now)
  if not values then
    return nil, err
  end
  return values[1]
end

function Sqlite:apply(changes, now)
  local made, err
  if #changes == 1 then
    made, err = apply_one(self, changes[1], now)
  else
    local begun
    begun, err = execute(self, "begin")
    if not begun then
      return nil, err
    end
    made, err = apply_all(self, changes, now)
    if made then
      local committed
      committed, err = execute(self, "commit")
      made = committed and true or nil
    end
    if not made then
      -- SQLite may have rolled back already; then this fails, which changes nothing.
      execute(self, "rollback")
    end
  end
  if made then
    sweep(self, changes, now)
  end
  return made, err
end

-- The first text after all those that begin with a prefix. Keys are at most 1024 bytes of any value but zero.
local function end_of(prefix)
  return prefix .. ("\255"):rep(1025 - #prefix)
end

function Sqlite:page(space, prefix, after, limit, now)
  if after then
    return select_values(self, "next_page", space, after, prefix, end_of(prefix), now, limit)
  end
  return select_values(self, "page", space, prefix, end_of(prefix), now, limit)
end

function Sqlite:count(space, prefix, now)
  local values, err = select_values(self, "count", space, prefix, end_of(prefix), now)
  return values and values[1], err
end

-- A lock is an exclusive transaction in a file beside the database, one for all of its names. The operating system ends
-- it with the program.
function Sqlite:lock(name)
  close_inherited()
  local path = files.target(self.path) .. "-" .. name .. ".lock"
  local connection, row, message
  if not self.locks[name] then
    connection, message = self.open(path)
    if connection then
      row, message = run_once(connection, "BEGIN EXCLUSIVE")
    end
    if not row then
      local _ = connection and connection:close()
      local err = failure(path, message)
      if err.reason ~= "busy" then
        return nil, err
      end
    end
  end
  if not row then
    return nil, refused(self.path, "locked", ("the lock '%s' is held by another program or by this one"):format(name))
  end
  self.locks[name] = connection
  return function()
    if self.locks[name] == connection then
      self.locks[name] = nil
      connection:close()
    end
  end
end

function Sqlite:close()
  close_connections(self)
  opened[self] = nil
end

-- The application, the schema's version and the number of tables. One statement sees them at one moment, also while
-- another program creates them.
local HEADER = [[SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)
  FROM pragma_application_id, pragma_user_version]]

-- The header of the file; or nil and SQLite's message.
local function read_header(connection)
  local row, message = run_once(connection, HEADER)
  if not row then
    return nil, message
  end
  local application, version, count = row[1], row[2], row[3]
  local is_empty = count == 0 and application == 0 and version == 0
  return { application = application, version = version, is_empty = is_empty }
end

-- Runs statements until one fails. Returns SQLite's message.
local function run_all(connection, list)
  for _, sql in ipairs(list) do
    local row, message = run_once(connection, sql)
    if not row then
      return message
    end
  end
end

-- Creates the table in an empty file; another program may do so at the same time.
local function create(connection)
  local message, header = run_all(connection, { "BEGIN IMMEDIATE" }), nil
  if not message then
    header, message = read_header(connection)
  end
  if header and header.is_empty then
    message = run_all(connection, schema)
  end
  return message or run_all(connection, { "COMMIT" })
end

-- Checks the file before anything is written: a file of another program stays as it is. Returns an error.
local function prepare_file(connection, path)
  local header, message = read_header(connection)
  if header and header.is_empty then
    message = create(connection)
    if not message then
      header, message = read_header(connection)
    end
  end
  if message then
    return failure(path, message)
  elseif header.application ~= APPLICATION_ID then
    return refused(path, "foreign", "the file is a database of another program; name another file")
  elseif header.version > SCHEMA_VERSION then
    local wanted = "the file has version %d, and this riskscreen reads up to version %d; upgrade riskscreen"
    return refused(path, "newer", wanted:format(header.version, SCHEMA_VERSION))
  end
end

-- Switches the file to WAL mode, or finds it so. Returns the mode that it has then; or nil and SQLite's message. SQLite
-- does not wait when another program switches the file at the same time. A transaction waits, up to busy_timeout.
local function use_wal(connection)
  local row, message
  for _ = 1, 10 do
    row, message = run_once(connection, "PRAGMA journal_mode = WAL")
    if row or not message:find "is locked" then
      break
    end
    local failed = run_all(connection, { "BEGIN IMMEDIATE", "COMMIT" })
    if failed then
      return nil, failed
    end
  end
  return row and row[1], message
end

-- Prepares a new connection. Returns an error.
local function set_up(connection, settings)
  local path = settings.path
  local wait = ("PRAGMA busy_timeout = %d"):format(math.floor(settings.busy_timeout * 1000))
  local message = run_all(connection, { wait })
  local err = message and failure(path, message) or prepare_file(connection, path)
  if err then
    return err
  end
  local mode
  mode, message = use_wal(connection)
  if mode and mode ~= "wal" then
    return refused(path, "io", "SQLite cannot use WAL mode here; the file must be on a local disk")
  end
  message = message or run_all(connection, { "PRAGMA synchronous = " .. settings.synchronous })
  return message and failure(path, message) or nil
end

-- Opens the file. Returns an error.
function Sqlite:connect()
  local connection, message = self.open(self.path)
  if not connection then
    return failure(self.path, message)
  end
  local err = set_up(connection, self.settings)
  if err then
    connection:close()
    return err
  end
  self.connection = connection
end

local M = {}

---@param settings riskscreen.SqliteOptions checked
---@return riskscreen.store.Sqlite|nil
---@return riskscreen.Error|nil err
function M.new(settings)
  local driver = optional "dbd.sqlite3"
  if not driver then
    return nil, errors.new("unsupported", NO_BINDING)
  end
  local function open(path)
    local connection, message = driver.New(path)
    if connection then
      connection:autocommit(true) -- without it lua-dbi begins transactions by itself
    end
    return connection, message
  end
  close_inherited()
  local self =
    setmetatable({ path = settings.path, settings = settings, open = open, prepared = {}, locks = {} }, Sqlite)
  local err = self:connect()
  if err then
    return nil, err
  end
  opened[self] = true
  return self
end

return M
