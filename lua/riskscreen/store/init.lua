-- Where a program keeps what must last: texts by key, in named spaces. This is the one interface; a backend holds the
-- entries: memory.lua, sqlite.lua and redis.lua.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local lifetimes = require "riskscreen.store.lifetime"
local memory = require "riskscreen.store.memory"
local redis = require "riskscreen.store.redis"
local redis_client = require "riskscreen.redis"
local runtime = require "riskscreen.runtime"
local sqlite = require "riskscreen.store.sqlite"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local time = require "riskscreen.util.time"

local LONGEST_KEY = 1024 -- bytes
local LONGEST_VALUE = 16 * 1024 * 1024 -- bytes
local PAGE = 500 -- entries that an iteration reads at once
local SYNCHRONOUS = "`full`: each batch waits for the disk, so a power cut loses no change that was reported as made. "
  .. "`normal`: faster; a power cut may lose the last changes, a crash of the program none."
local FIRST = "\1" -- the least byte of a key, so KEY .. FIRST is the text that comes after KEY
local LAST = ("\255"):rep(LONGEST_KEY + 1) -- comes after all keys

---@class riskscreen.StoreChange one change of a batch
---@field kind "put"|"add"|"replace"|"delete"
---@field space string
---@field key string
---@field value? string of put, add and replace
---@field expected? string of replace and delete: the value that the entry must have
---@field ttl? number seconds until the entry expires; without it the entry stays

---A backend. Each method returns nil and an error when the store fails.
---@class riskscreen.StoreBackend
---@field is_shared? boolean programs on other machines change the entries, too
---@field get fun(self, space: string, key: string, now: number): string|nil, riskscreen.Error|nil
---@field apply fun(self, changes: riskscreen.StoreChange[], now: number): boolean|nil, riskscreen.Error|nil all
---changes or none; false: a condition does not hold
---@field page fun(self, space: string, from: string, to: string, limit: integer, now: number): string[]|nil,
---riskscreen.Error|nil keys and values in turn, in the order of the keys' bytes, the first at `from`, all before `to`
---@field lock fun(self, name: string): fun()|nil, riskscreen.Error|nil the function that releases the lock; nil alone
---where another holder has it
---@field time? fun(self): number|nil, riskscreen.Error|nil seconds since 1970, where the store has a clock of its own
---@field close fun(self)

---@class riskscreen.Store
---@field private backend riskscreen.StoreBackend
---@field private clock fun(): number|nil by which entries expire; nil: the backend's own
---@field private date? fun(): number Unix seconds, unless the backend has a clock of its own
---@field private lifetime? riskscreen.store.Lifetime
local Store = {}
Store.__index = Store
Store.__name = "riskscreen.Store"

---@class riskscreen.StoreSpace
---@field name string
---@field private store riskscreen.Store
local Space = {}
Space.__index = Space
Space.__name = "riskscreen.StoreSpace"

-- The error of a text that the store cannot hold, or nil. SQLite's binding ends a text at a zero byte.
local function text_error(field, value, longest)
  local message
  if type(value) ~= "string" then
    message = ("store: %s must be a string (got %s)"):format(field, text.kind(value))
  elseif #value > longest then
    message = ("store: %s must be at most %d bytes long (got %d)"):format(field, longest, #value)
  elseif value:find("%z") then
    message = ("store: %s must have no zero byte"):format(field)
  end
  return message and errors.new("invalid_argument", message, { field = field })
end

local KINDS = { "put", "add", "replace", "delete" }
local is_kind = tables.set(KINDS)

local function change_error(change)
  local kind, ttl, expected = change.kind, change.ttl, change.expected
  if not is_kind[kind] then
    local message = "store: kind must be put, add, replace or delete (got " .. text.show(kind) .. ")"
    return errors.new("invalid_argument", message, { field = "kind", allowed = KINDS })
  elseif expected ~= nil and (kind == "put" or kind == "add") then
    return errors.new("invalid_argument", "store: expected is of replace and delete alone", { field = "expected" })
  elseif ttl ~= nil and not (type(ttl) == "number" and ttl > 0) then
    local message = "store: ttl must be seconds above 0 (got " .. text.show(ttl) .. ")"
    return errors.new("invalid_argument", message, { field = "ttl" })
  end
  return text_error("space", change.space, LONGEST_KEY)
    or text_error("key", change.key, LONGEST_KEY)
    or kind ~= "delete" and text_error("value", change.value, LONGEST_VALUE)
    or (expected ~= nil or kind == "replace") and text_error("expected", expected, LONGEST_VALUE)
    or nil
end

local function backend_of(self)
  return self.backend or error("the store is closed", 3)
end

---Makes several changes at once: all of them, or none where the condition of one does not hold.
---@param changes riskscreen.StoreChange[]
---@return boolean|nil made false: a condition does not hold; nil: the store failed
---@return riskscreen.Error|nil err
function Store:batch(changes)
  text.expect_self(self, Store, "store:batch")
  local backend = backend_of(self)
  if type(changes) ~= "table" or not tables.sequence_length(changes) then
    error("store: changes must be a list without a gap", 2) -- those behind a gap would be lost
  end
  for _, change in ipairs(changes) do
    text.expect("store: a change", change, "table")
    local err = change_error(change)
    if err then
      return nil, err
    end
  end
  local note = self.lifetime and self.lifetime:note()
  return backend:apply(note and tables.concat({ note }, changes) or changes, self.clock())
end

---A space: the entries of one use of the store, apart from those of others.
---@param name string
---@return riskscreen.StoreSpace
function Store:space(name)
  text.expect_self(self, Store, "store:space")
  if type(name) ~= "string" or name == "" or text_error("space", name, LONGEST_KEY) then
    error("store:space: the name must be a text (got " .. text.show(name) .. ")", 2)
  end
  return setmetatable({ name = name, store = self }, Space)
end

---Whether programs on other machines change the entries, too.
---@return boolean
function Store:is_shared()
  text.expect_self(self, Store, "store:is_shared")
  return backend_of(self).is_shared or false
end

---The store's time: the same for all programs that share it.
---@return number|nil seconds since 1970
---@return riskscreen.Error|nil err
function Store:time()
  text.expect_self(self, Store, "store:time")
  local backend = backend_of(self)
  if self.date then
    return self.date()
  end
  return backend:time()
end

---Takes a lock, which one program holds until it releases it, closes the store or ends, however it ends.
---@param name string of letters, digits, "_" and "-"
---@return fun()|nil release
---@return riskscreen.Error|nil err its reason is "locked" where another holder has the lock
function Store:lock(name)
  text.expect_self(self, Store, "store:lock")
  if type(name) ~= "string" or not name:find "^[%w_-]+$" then
    error("store:lock: the name must be of letters, digits, '_' and '-' (got " .. text.show(name) .. ")", 2)
  end
  local release, err = backend_of(self):lock(name)
  if not release and not err then
    local message = "store: the lock '%s' is held by another program or by this one"
    err = errors.new("storage", message:format(name), { reason = "locked" })
  end
  return release, err
end

---Closes the store and releases its locks. Idempotent; later calls raise.
function Store:close()
  text.expect_self(self, Store, "store:close")
  if self.backend then
    self.backend:close()
    self.backend = nil
  end
end

local function change(self, kind, key, value, ttl, expected)
  local entry = { kind = kind, space = self.name, key = key, value = value, ttl = ttl, expected = expected }
  return self.store:batch { entry }
end

---The value of a key; nil without an error where there is none.
---@param key string
---@return string|nil value
---@return riskscreen.Error|nil err
function Space:get(key)
  local backend = backend_of(self.store)
  local err = text_error("key", key, LONGEST_KEY)
  if err then
    return nil, err
  end
  return backend:get(self.name, key, self.store.clock())
end

---Sets the value of a key.
---@param key string
---@param value string
---@param ttl? number seconds until the entry expires
---@return boolean|nil made
---@return riskscreen.Error|nil err
function Space:put(key, value, ttl)
  return change(self, "put", key, value, ttl)
end

---Sets the value of a key that has none.
---@param key string
---@param value string
---@param ttl? number seconds until the entry expires
---@return boolean|nil made false: the key has a value
---@return riskscreen.Error|nil err
function Space:add(key, value, ttl)
  return change(self, "add", key, value, ttl)
end

---Sets the value of a key whose value is `expected`.
---@param key string
---@param expected string
---@param value string
---@param ttl? number seconds until the entry expires
---@return boolean|nil made false: the key has another value, or none
---@return riskscreen.Error|nil err
function Space:replace(key, expected, value, ttl)
  return change(self, "replace", key, value, ttl, expected)
end

---Removes a key.
---@param key string
---@param expected? string the value that it must have
---@return boolean|nil made false: the key has no value, or not the expected one
---@return riskscreen.Error|nil err
function Space:delete(key, expected)
  return change(self, "delete", key, nil, nil, expected)
end

---Iterates over the entries in the order of their keys' bytes. It reads them in pages, so that the program may change
---the space meanwhile. A change behind the current key is not seen. Raises the error where the store fails.
---@param range? { prefix?: string, after?: string } keys that begin with `prefix` and come after `after`
---@return fun(): string|nil, string|nil
function Space:each(range)
  text.expect("store: range", range, "table", true)
  local prefix, after = range and range.prefix or "", range and range.after
  text.expect("store: prefix", prefix, "string")
  text.expect("store: after", after, "string", true)
  local from, to = prefix, prefix .. LAST:sub(#prefix + 1)
  if after and not tables.precedes(after, prefix) then
    from = after .. FIRST
  end
  local page, position = {}, 1
  return function()
    if page[position] == nil and from then
      local backend = backend_of(self.store)
      page, position = errors.ensure(backend:page(self.name, from, to, PAGE, self.store.clock())), 1
      from = page[1] and page[#page - 1] .. FIRST
    end
    position = position + 2
    return page[position - 2], page[position - 1]
  end
end

---How many keys there are.
---@param prefix? string of the keys
---@return integer|nil
---@return riskscreen.Error|nil err
function Space:count(prefix)
  text.expect("store: prefix", prefix, "string", true)
  return errors.result(runtime.tasks.pcall(function()
    local count = 0
    for _ in self:each { prefix = prefix } do
      count = count + 1
    end
    return count
  end))
end

local clock = build.clock("Returns the time in seconds since 1970, for `ttl`; by default time as it passes.", time.now)

local options = {
  memory = { clock },
  sqlite = {
    build.required(build.checked("path", "string", function(value)
      if value == "" or value:find "%z" or value:find "^:" or value:find "^file:" then
        return nil, "must be the path of a file"
      end
      return value
    end, "The database file; it is created where there is none.")),
    build.choice("synchronous", { "full", "normal" }, "full", SYNCHRONOUS),
    build.seconds("busy_timeout", 5, "How long to wait while another program writes.", 0),
    clock,
  },
}

options.redis = {
  build.required(build.checked("redis", "table|string", function(value)
    if type(value) == "table" then
      return build.object("redis", "riskscreen.Redis", "riskscreen.redis.new", "").check(value)
    end
    return value
  end, "A client made by `riskscreen.redis.new`, or a URL.")),
  build.text("name", build.forms.word, "Name of the store: part of its keys, after the client's prefix.", "store"),
  build.seconds("lock_ttl", 30, "How long a lock outlives a program that ends without releasing it.", 0.1, 3600),
  build.clock("Returns the time in seconds since 1970, for `ttl`; by default the clock of Redis.", time.now),
}

local function no_time()
  return nil
end

local function new(backend, settings, more)
  return setmetatable(tables.merge({ backend = backend, clock = settings.clock, date = settings.clock }, more), Store)
end

local M = { options = options }

---A store in memory, which ends with the program.
---@param given? { clock?: fun(): number }
---@return riskscreen.Store
function M.memory(given)
  local settings = check.arguments("store.memory", options.memory, given or {})
  return new(memory.new(), settings, not settings.clock and { clock = runtime.now, date = time.now })
end

---@class riskscreen.SqliteOptions
---@field path string
---@field synchronous? "full"|"normal"
---@field busy_timeout? number seconds
---@field clock? fun(): number

---A store in a file of SQLite, which lasts. Several programs of one machine may use the file at the same time. A call
---blocks the program for the time of a write, so do not use it in a worker of nginx.
---@param given riskscreen.SqliteOptions|string the options or the path
---@return riskscreen.Store|nil
---@return riskscreen.Error|nil err its `reason` is such as "foreign", "newer" or "damaged"
function M.sqlite(given)
  local by_name = type(given) == "string" and { path = given } or given
  local settings = check.arguments("store.sqlite", options.sqlite, by_name)
  local backend, err = sqlite.new(settings)
  if not backend then
    return nil, err
  end
  local lifetime = not settings.clock and lifetimes.new(backend, time.now, runtime.now)
  return new(backend, settings, lifetime and {
    clock = function()
      return lifetime:time()
    end,
    date = time.now,
    lifetime = lifetime,
  })
end

---@class riskscreen.RedisStoreOptions
---@field redis riskscreen.Redis|string a client, or a URL
---@field name? string
---@field lock_ttl? number seconds
---@field clock? fun(): number

---A store in Redis, which programs on any machine share. It works in tasks and in nginx, too.
---@param given riskscreen.RedisStoreOptions|string the options or a URL
---@return riskscreen.Store|nil
---@return riskscreen.Error|nil err its `reason` is such as "unreachable", "evicting", "newer" or "wrong_type"
function M.redis(given)
  local by_name = type(given) == "string" and { redis = given } or given
  local settings = check.arguments("store.redis", options.redis, by_name)
  if type(settings.redis) == "string" then
    local ok, message = pcall(redis_client.new, settings.redis)
    if not ok then
      error("store.redis: " .. tostring(message):gsub("^.*redis%.new: ", ""), 2)
    end
    settings.redis, settings.owns_redis = message, true
  end
  local backend, err = redis.new(settings)
  if not backend then
    return nil, err
  end
  return new(backend, settings, not settings.clock and { clock = no_time })
end

return M
