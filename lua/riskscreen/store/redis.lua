-- The entries of a store in Redis, which programs on any machine share. The same rules as in sqlite.lua.
--
-- A space has three keys in Redis. A hash has the values. A sorted set has the keys in the order of their bytes, and
-- another one the times at which entries expire. A script changes all three, so a batch is there as a whole or not at
-- all.

local errors = require "riskscreen.errors"
local is_forked = require "riskscreen.util.forked"
local random = require "riskscreen.util.random"
local redis = require "riskscreen.redis"
local runtime = require "riskscreen.runtime"
local text = require "riskscreen.util.text"

local SCHEMA_VERSION = 1
local SWEEP_LIMIT = 1000 -- expired entries that one script removes
local PAGE_SIZE = 8 * 1024 * 1024 -- bytes of values after which a page ends

-- The time is the client's where it has a clock, else that of Redis, which is the same for all machines.
local TIME = [[
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] + time[2] / 1000000
end
]]

-- KEYS: values, index, expiries; a batch may change no space. Removes expired entries of a space: true where there may
-- be more.
local SWEEP = TIME
  .. redis.permitted [[KEYS[3] and {
  { 'HSET', KEYS[1], 'a', 'b' }, { 'HDEL', KEYS[1], 'a' }, { 'ZADD', KEYS[2], '0', 'a' }, { 'ZREM', KEYS[3], 'a' },
} or {}]]
  .. [[
local function sweep(values, index, expiries, limit)
  local expired = redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, limit)
  for _, key in ipairs(expired) do
    redis.call('HDEL', values, key)
    redis.call('ZREM', index, key)
    redis.call('ZREM', expiries, key)
  end
  return #expired == limit
end
]]

-- KEYS: values, expiries. ARGV: time, key.
local GET = redis.script("get", TIME .. [[
local value = redis.call('HGET', KEYS[1], ARGV[2])
local expiry = redis.call('ZSCORE', KEYS[2], ARGV[2])
return (not expiry or tonumber(expiry) > now) and value
]])

-- KEYS: values, index, expiries. ARGV: time, first key, end of the keys, limit of entries, of bytes, of the sweep.
-- Returns false where it has to be run again.
local PAGE = redis.script("page", SWEEP .. [[
if sweep(KEYS[1], KEYS[2], KEYS[3], tonumber(ARGV[6])) then return false end
local found, size = {}, 0
for _, key in ipairs(redis.call('ZRANGEBYLEX', KEYS[2], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])) do
  local value = redis.call('HGET', KEYS[1], key)
  if not value then return redis.error_reply('DAMAGED a value is gone') end
  found[#found + 1] = key
  found[#found + 1] = value
  size = size + #value
  if size > tonumber(ARGV[5]) then break end
end
return found
]])

-- KEYS: values, index and expiries of each space, then each lock and its last token. ARGV: time, limit of the sweep,
-- number of spaces, number of locks, life of a lock; the tokens; 7 values for each change. All conditions are
-- checked before anything is written. Wrong types raise before as well. The locks are renewed. One that has expired is
-- taken back if nobody else has taken it since: the last token is still its own. A number would not do. Redis may lose
-- it, and then it would count the same again for another holder.
local APPLY = redis.script("apply", SWEEP .. [[
local spaces, locks = tonumber(ARGV[3]), tonumber(ARGV[4])
for space = 1, spaces do
  redis.call('HLEN', KEYS[3 * space - 2])
  redis.call('ZCARD', KEYS[3 * space - 1])
  redis.call('ZCARD', KEYS[3 * space])
end
for lock = 1, locks do
  local key, token = 3 * spaces + 2 * lock - 1, ARGV[5 + lock]
  if redis.call('GET', KEYS[key + 1]) ~= token then
    return redis.error_reply('LOCKLOST ' .. lock)
  end
  if redis.call('PEXPIRE', KEYS[key], ARGV[5]) == 0 then redis.call('SET', KEYS[key], token, 'PX', ARGV[5]) end
end
local entries, order, sweeps = {}, {}, {}
local function entry_of(space, key)
  entries[space] = entries[space] or {}
  local entry = entries[space][key]
  if not entry then
    local value = redis.call('HGET', KEYS[3 * space - 2], key)
    local expiry = value and redis.call('ZSCORE', KEYS[3 * space], key)
    if expiry and tonumber(expiry) <= now then value = false end
    entry = { space = space, key = key, value = value }
    entries[space][key] = entry
    order[#order + 1] = entry
  end
  return entry
end
for at = 6 + locks, #ARGV, 7 do
  local kind, space, ttl = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 4])
  local entry = entry_of(space, ARGV[at + 2])
  local holds = kind == 'put' or entry.value
  if kind == 'add' then
    holds = not entry.value
  elseif ARGV[at + 5] == '1' then
    holds = entry.value == ARGV[at + 6]
  end
  if not holds then return 0 end
  entry.value = kind ~= 'delete' and ARGV[at + 3]
  entry.expiry = kind ~= 'delete' and ttl and string.format('%.17g', now + ttl)
  sweeps[space] = sweeps[space] or ttl
end
for _, entry in ipairs(order) do
  local values, index, expiries = KEYS[3 * entry.space - 2], KEYS[3 * entry.space - 1], KEYS[3 * entry.space]
  if entry.value then
    redis.call('HSET', values, entry.key, entry.value)
    redis.call('ZADD', index, 0, entry.key)
  else
    redis.call('HDEL', values, entry.key)
    redis.call('ZREM', index, entry.key)
  end
  if entry.expiry then
    redis.call('ZADD', expiries, entry.expiry, entry.key)
  else
    redis.call('ZREM', expiries, entry.key)
  end
end
for space in pairs(sweeps) do
  sweep(KEYS[3 * space - 2], KEYS[3 * space - 1], KEYS[3 * space], tonumber(ARGV[2]))
end
return 1
]])

-- KEYS: lock, last token. ARGV: life in milliseconds, a new token. Returns the token, or false where it is held.
local TAKE = redis.script(
  "take",
  [[
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
redis.call('SET', KEYS[2], ARGV[2])
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
return ARGV[2]
]]
)

-- KEYS: lock. ARGV: token.
local RELEASE = redis.script("release", redis.RELEASE)

---@class riskscreen.store.Redis: riskscreen.StoreBackend
---@field private redis riskscreen.Redis
---@field private settings { name: string, lock_ttl: number }
---@field private owns_redis boolean whether `close` closes the connection
---@field private locks table<string, string> tokens by the name of the lock
---@field private checked boolean whether the data in Redis are known to be this library's
local Redis = { is_shared = true }
Redis.__index = Redis

local function failure(reason, message)
  return errors.new("storage", "store redis: " .. message, { reason = reason, uncertain = false })
end

-- A key of this store. All are in one slot of a Cluster.
local function key_of(self, name)
  return self.redis:key(("%s:%d:%s"):format(self.settings.name, SCHEMA_VERSION, name))
end

local function keys_of(self, space)
  return key_of(self, "values:" .. space), key_of(self, "index:" .. space), key_of(self, "expiries:" .. space)
end

local function lock_keys(self, name)
  return key_of(self, "lock:" .. name), key_of(self, "counter:" .. name)
end

local function time(now)
  return now and text.number("%.17g", now) or ""
end

-- Checks, once, that the data are this library's and that Redis keeps them. Returns an error.
local function check(self)
  if self.checked then
    return nil
  end
  local schema = self.redis:key(self.settings.name .. ":schema")
  -- In a Cluster the first command finds the node that has the keys.
  local set, refusal = self.redis:call("SET", schema, SCHEMA_VERSION, "NX")
  local replies, err = self.redis:pipeline { { "GET", schema }, { "INFO", "memory" } }
  if not replies then
    return err
  elseif errors.is(replies[1]) then
    return replies[1]
  elseif replies[1] == false and set == nil then
    return refusal
  end
  local version = tonumber(replies[1])
  if not version then
    return failure("foreign", "the key " .. schema .. " is another program's; choose another prefix or name")
  elseif version > SCHEMA_VERSION then
    local wanted = "the store has version %s, and this riskscreen reads up to version %d; upgrade riskscreen"
    return failure("newer", wanted:format(replies[1], SCHEMA_VERSION))
  end
  -- A user whose ACL forbids INFO gets no warning.
  local warning = type(replies[2]) == "string" and redis.eviction_problem(replies[2])
  if warning then
    return warning
  end
  self.checked = true
end

-- Runs a script. One that only reads runs again where the connection was lost.
local function run(self, script, keys, arguments, reads)
  local err = check(self)
  if err then
    return nil, err
  end
  local reply
  reply, err = self.redis:script(script, keys, arguments)
  if err and reads and err.uncertain and err.reason == "unreachable" then
    reply, err = self.redis:script(script, keys, arguments)
  end
  if err and err.code == "DAMAGED" then
    return nil, failure("damaged", "entries of this store were removed by another program or by eviction")
  end
  return reply, err
end

function Redis:get(space, key, now)
  local values, _, expiries = keys_of(self, space)
  local value, err = run(self, GET, { values, expiries }, { time(now), key }, true)
  return value or nil, err
end

function Redis:time()
  local reply, err = self.redis:call "TIME"
  if not reply then
    return nil, err
  end
  return tonumber(reply[1]) + tonumber(reply[2]) / 1e6
end

function Redis:page(space, from, to, limit, now)
  local values, index, expiries = keys_of(self, space)
  local arguments = { time(now), "[" .. from, "(" .. to, limit, PAGE_SIZE, SWEEP_LIMIT }
  local reply, err
  repeat
    reply, err = run(self, PAGE, { values, index, expiries }, arguments, true)
  until reply ~= false
  return reply, err
end

local function milliseconds(seconds)
  return math.ceil(seconds * 1000)
end

-- The tokens of this process's locks: those of a parent are not a child's to renew or to release.
local function locks_of(self)
  if is_forked(self) then
    self.locks = {}
  end
  return self.locks
end

-- The keys of a batch, and the number of each space among them.
local function spaces_of(self, changes)
  local keys, numbers, count = {}, {}, 0
  for _, change in ipairs(changes) do
    if not numbers[change.space] then
      count = count + 1
      numbers[change.space] = count
      keys[3 * count - 2], keys[3 * count - 1], keys[3 * count] = keys_of(self, change.space)
    end
  end
  return keys, numbers, count
end

function Redis:apply(changes, now)
  local keys, numbers, count = spaces_of(self, changes)
  local names, arguments = {}, { time(now), SWEEP_LIMIT, count, 0, milliseconds(self.settings.lock_ttl) }
  for name, token in pairs(locks_of(self)) do
    names[#names + 1] = name
    keys[#keys + 1], keys[#keys + 2] = lock_keys(self, name)
    arguments[#arguments + 1] = token
  end
  arguments[4] = #names
  for _, change in ipairs(changes) do
    local at, expected = #arguments, change.expected
    arguments[at + 1], arguments[at + 2], arguments[at + 3] = change.kind, numbers[change.space], change.key
    arguments[at + 4], arguments[at + 5] = change.value or "", change.ttl or ""
    arguments[at + 6], arguments[at + 7] = expected and 1 or 0, expected or ""
  end
  local made, err = run(self, APPLY, keys, arguments)
  if err and err.code == "LOCKLOST" then
    local message = "the lock '%s' is lost: this program did not renew it in time, and another has taken it"
    local name = names[tonumber(err.message:match "LOCKLOST (%d+)")]
    return nil, failure("lock_lost", message:format(name))
  elseif err then
    return nil, err
  end
  return made == 1
end

-- Renews a lock until it is released: every change does, also of nothing.
local function keep(self, name, token)
  runtime.sleep(self.settings.lock_ttl / 3)
  while locks_of(self)[name] == token and not self.closed do
    self:apply {}
    runtime.sleep(self.settings.lock_ttl / 3)
  end
end

---Takes a lock for `lock_ttl` seconds at first. While it is held, it is renewed, and each change of this store makes
---sure that it is still held.
function Redis:lock(name)
  local lock, last = lock_keys(self, name)
  local token, err = run(self, TAKE, { lock, last }, { milliseconds(self.settings.lock_ttl), random.token() })
  if not token then
    return nil, err
  end
  locks_of(self)[name] = token
  runtime.defer(keep, self, name, token)
  return function()
    if locks_of(self)[name] == token then
      locks_of(self)[name] = nil
      run(self, RELEASE, { lock }, { token })
    end
  end
end

function Redis:close()
  self.closed = true
  for name, token in pairs(locks_of(self)) do
    run(self, RELEASE, { (lock_keys(self, name)) }, { token })
  end
  self.locks = {}
  if self.owns_redis then
    self.redis:close()
  end
end

local M = {}

---@param settings { redis: riskscreen.Redis, owns_redis?: boolean, name: string, lock_ttl: number } checked
---@return riskscreen.store.Redis|nil
---@return riskscreen.Error|nil err
function M.new(settings)
  local self = setmetatable({
    redis = settings.redis,
    owns_redis = settings.owns_redis,
    settings = settings,
    locks = {},
  }, Redis)
  -- Where nothing can wait, as in init_by_lua of nginx, the first use checks.
  local err = not runtime.refusal() and check(self) or nil
  if err then
    if self.owns_redis then
      self.redis:close()
    end
    return nil, err
  end
  return self
end

return M
