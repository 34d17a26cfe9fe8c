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

-- LIVE holds for entries that have not expired.
local LIVE = "(expires IS NULL OR expires > ?)"
local INSERT = [[INSERT INTO entries (space, key, value, expires) VALUES (?, ?, ?, ?)
  ON CONFLICT (space, key) DO UPDATE SET value = excluded.value, expires = excluded.expires]]
local statements = {
  get = "SELECT value FROM entries WHERE space = ? AND key = ? AND " .. LIVE,
  put = INSERT,
  add = INSERT .. " WHERE entries.expires <= ?",
  replace = "UPDATE entries SET value = ?, expires = ? WHERE space = ? AND key = ? AND value = ? AND " .. LIVE,
  delete = "DELETE FROM entries WHERE space = ? AND key = ? AND value = coalesce(?, value) AND " .. LIVE,
  sweep = "DELETE FROM entries WHERE expires <= ?",
  page = "SELECT key, value FROM entries WHERE space = ? AND key >= ? AND key < ? AND "
    .. LIVE
    .. " ORDER BY key LIMIT ?",
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
  -- lua-dbi raises some messages, which then begin with a place in the source.
  message = tostring(message):gsub("^.*Execute failed ", ""):gsub("^.*Error preparing statement handle: ", "")
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

---@class riskscreen.store.Connection
---@field path string
---@field handle userdata of lua-dbi
---@field prepared table<string, userdata> statements by their text: each is prepared once
local Connection = {}
Connection.__index = Connection

function Connection:close()
  -- SQLite does not close a connection that has open statements.
  for _, statement in pairs(self.prepared) do
    statement:close()
  end
  self.handle:close()
end

-- Executes a statement. Returns all values of its rows, in turn, and the number of changed rows. Every row is read,
-- because an open statement would hold the read lock. lua-dbi raises where a later row cannot be read.
local function execute(statement, ...)
  assert(statement:execute(...))
  local values, row = {}, statement:fetch(false)
  while row do
    for _, value in ipairs(row) do
      values[#values + 1] = value
    end
    row = statement:fetch(false)
  end
  return values, statement:affected()
end

---Runs a statement. A failure is raised as an error object, whose `cause` is SQLite's message.
---@param sql string
---@param ... any values of its parameters
---@return any[] values of its rows, in turn
---@return integer changed rows
function Connection:run(sql, ...)
  local statement = self.prepared[sql]
  if not statement then
    local message
    statement, message = self.handle:prepare(sql)
    self.prepared[sql] = statement or error(failure(self.path, message), 0)
  end
  local ok, values, changed = pcall(execute, statement, ...)
  if not ok then
    -- A statement that failed reports its failure again when it is reused.
    statement:close()
    self.prepared[sql] = nil
    error(failure(self.path, values), 0)
  end
  return values, changed
end

---@class riskscreen.store.Sqlite: riskscreen.StoreBackend
---@field private path string
---@field private connection? riskscreen.store.Connection none yet in a forked child
---@field private locks table<string, riskscreen.store.Connection> by the lock's name
---@field private swept? number when expired entries were last removed
---@field private settings riskscreen.SqliteOptions
local Sqlite = {}
Sqlite.__index = Sqlite

local opened, opener = setmetatable({}, { __mode = "k" }), {} -- the open stores, and the process that opened them

local function close_connections(self)
  for _, connection in pairs(self.locks) do
    connection:close()
  end
  if self.connection then
    self.connection:close()
  end
  self.locks, self.connection = {}, nil
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

-- Makes one change. Returns false where its condition does not hold.
local function apply_one(connection, change, now)
  local kind, space, key, value = change.kind, change.space, change.key, change.value
  local expires, sql = change.ttl and now + change.ttl, statements[kind]
  local _, changed
  if kind == "replace" then
    _, changed = connection:run(sql, value, expires, space, key, change.expected, now)
  elseif kind == "delete" then
    _, changed = connection:run(sql, space, key, change.expected, now)
  elseif kind == "add" then
    _, changed = connection:run(sql, space, key, value, expires, now)
  else
    _, changed = connection:run(sql, space, key, value, expires)
  end
  return changed > 0
end

-- Makes all changes in one transaction, or none.
local function apply_all(connection, changes, now)
  connection:run "BEGIN IMMEDIATE"
  local ok, made = pcall(function()
    for _, change in ipairs(changes) do
      if not apply_one(connection, change, now) then
        return false
      end
    end
    connection:run "COMMIT"
    return true
  end)
  if not (ok and made) then
    -- SQLite may have rolled back already; then this fails, which changes nothing.
    pcall(connection.run, connection, "ROLLBACK")
  end
  if not ok then
    error(made, 0)
  end
  return made
end

-- The application, the schema's version and the number of tables. One statement sees them at one moment, also while
-- another program creates them.
local HEADER = [[SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)
  FROM pragma_application_id, pragma_user_version]]

-- The header of the file, and whether it is empty.
local function read_header(connection)
  local header = connection:run(HEADER)
  return header, header[1] == 0 and header[2] == 0 and header[3] == 0
end

-- Creates the table in an empty file; another program may do so at the same time.
local function create(connection)
  connection:run "BEGIN IMMEDIATE"
  if select(2, read_header(connection)) then
    for _, sql in ipairs(schema) do
      connection:run(sql)
    end
  end
  connection:run "COMMIT"
end

-- Checks the file before anything is written: a file of another program stays as it is.
local function prepare_file(connection)
  local header, is_empty = read_header(connection)
  if is_empty then
    create(connection)
    header = read_header(connection)
  end
  if header[1] ~= APPLICATION_ID then
    error(refused(connection.path, "foreign", "the file is a database of another program; name another file"), 0)
  elseif header[2] > SCHEMA_VERSION then
    local wanted = "the file has version %d, and this riskscreen reads up to version %d; upgrade riskscreen"
    error(refused(connection.path, "newer", wanted:format(header[2], SCHEMA_VERSION)), 0)
  end
end

-- Switches the file to WAL mode, or finds it so. Returns the mode that it has then. SQLite does not wait when another
-- program switches the file at the same time. A transaction waits, up to busy_timeout.
local function use_wal(connection)
  for _ = 1, 10 do
    local ok, found = pcall(connection.run, connection, "PRAGMA journal_mode = WAL")
    if ok then
      return found[1]
    elseif found.reason ~= "busy" then
      error(found, 0)
    end
    connection:run "BEGIN IMMEDIATE"
    connection:run "COMMIT"
  end
  return connection:run("PRAGMA journal_mode = WAL")[1]
end

-- Prepares the connection of a store.
local function prepare(connection, settings)
  connection:run(("PRAGMA busy_timeout = %d"):format(math.floor(settings.busy_timeout * 1000)))
  prepare_file(connection)
  if use_wal(connection) ~= "wal" then
    error(refused(connection.path, "io", "SQLite cannot use WAL mode here; the file must be on a local disk"), 0)
  end
  connection:run("PRAGMA synchronous = " .. settings.synchronous)
end

-- Opens a file. A failure is raised, also one of the function that prepares the connection.
local function open(self, path, prepare_it)
  local handle, message = self.driver.New(path)
  if not handle then
    error(failure(path, message), 0)
  end
  handle:autocommit(true) -- without it lua-dbi begins transactions by itself
  local connection = setmetatable({ path = path, handle = handle, prepared = {} }, Connection)
  local ok, err = pcall(prepare_it, connection, self.settings)
  if not ok then
    connection:close()
    error(err, 0)
  end
  return connection
end

-- The connection of this process.
local function connected(self)
  close_inherited()
  self.connection = self.connection or open(self, self.path, prepare)
  return self.connection
end

function Sqlite:get(space, key, now)
  return errors.result(pcall(function()
    return connected(self):run(statements.get, space, key, now)[1]
  end))
end

function Sqlite:apply(changes, now)
  return errors.result(pcall(function()
    local connection = connected(self)
    local made
    if #changes == 1 then
      made = apply_one(connection, changes[1], now)
    else
      made = apply_all(connection, changes, now)
    end
    -- Expired entries are hidden in any case, so a failure to remove them does not matter here.
    if made and next(tables.pluck(changes, "ttl")) and now >= (self.swept or 0) + SWEEP_INTERVAL then
      self.swept = now
      pcall(connection.run, connection, statements.sweep, now)
    end
    return made
  end))
end

function Sqlite:page(space, from, to, limit, now)
  return errors.result(pcall(function()
    return (connected(self):run(statements.page, space, from, to, now, limit))
  end))
end

-- A lock is an exclusive transaction in a file beside the database, one for all of its names. The operating system ends
-- it with the program.
function Sqlite:lock(name)
  close_inherited()
  local connection, err
  if not self.locks[name] then
    local path = files.target(self.path) .. "-" .. name .. ".lock"
    connection, err = errors.result(pcall(open, self, path, function(opened_lock)
      opened_lock:run "BEGIN EXCLUSIVE"
    end))
  end
  if not connection then
    return nil, err and err.reason ~= "busy" and err or nil
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

local M = {}

---@param settings riskscreen.SqliteOptions checked
---@return riskscreen.store.Sqlite|nil
---@return riskscreen.Error|nil err
function M.new(settings)
  local driver = optional "dbd.sqlite3"
  if not driver then
    return nil, errors.new("unsupported", NO_BINDING)
  end
  local self = setmetatable({ path = settings.path, settings = settings, driver = driver, locks = {} }, Sqlite)
  local made, err = errors.result(pcall(connected, self))
  if not made then
    return nil, err
  end
  opened[self] = true
  return self
end

return M
