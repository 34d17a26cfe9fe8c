-- The third tier of a gate's cache: verdicts that several machines share in Redis. Their text is in verdict.lua, and is
-- outside input. The commands go through pipeline.lua, within `deadline`. A purge reaches every machine by purges.lua.
local account_lists = require "riskscreen.nginx.fleet.account_lists"
local addresses = require "riskscreen.address"
local breakers = require "riskscreen.call.breaker"
local build = require "riskscreen.options.build"
local errors = require "riskscreen.errors"
local pipelines = require "riskscreen.nginx.fleet.pipeline"
local purges = require "riskscreen.nginx.fleet.purges"
local random = require "riskscreen.util.random"
local redis = require "riskscreen.redis"
local runtime = require "riskscreen.runtime"
local seals = require "riskscreen.nginx.fleet.seal"
local tables = require "riskscreen.util.tables"
local verdicts = require "riskscreen.nginx.fleet.verdict"

local ngx = _G.ngx
local now = runtime.nginx_time

local CIRCUIT = { failures = 3, share = 0.5, minimum = 20, window = 10, cooldown = 1, probes = 1 }
local SLOWEST = 1 -- seconds for what no request waits for
local ROUNDS = 1000 -- of a timer that listens: nginx keeps a little memory of each until the timer ends
local FIRST_PAUSE, GROWTH, LONGEST_PAUSE = 0.005, 1.5, 0.05 -- seconds between looks for another machine's verdict

-- Returns the verdict of another machine, the number of a lease, or 0 while another machine has it. A verdict that was
-- refused before is passed, so that it does not come again.
local TAKE_LEASE = [[
local verdict = redis.call('GET', KEYS[1])
if verdict and verdict ~= ARGV[2] then return verdict end
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
local time = redis.call('TIME')
local number = time[1] * 1000000 + time[2]
redis.call('SET', KEYS[2], string.format('%016.0f', number), 'PX', ARGV[1])
return number]]

-- Keeps a verdict, unless the one there is of a later lease, or Redis has lost the purge that the verdict names. Ends
-- the lease.
local SHARE = ([[
local old = redis.call('GET', KEYS[1])
local record = redis.call('XRANGE', KEYS[3], ARGV[4], ARGV[4])[1]
local is_known = record and string.sub(record[2][2], -#ARGV[5]) == ARGV[5]
local is_kept = is_known and not (old and string.sub(old, %d, %d) > ARGV[3])
if is_kept then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
%sreturn is_kept and 1 or 0]]):format(verdicts.LEASE_FIRST, verdicts.LEASE_LAST, redis.release("KEYS[2]", "ARGV[3]"))

---@type riskscreen.Option[]
local fleet_options = tables.concat({
  build.required(
    build.checked(
      "key",
      "string|table",
      seals.check_keys,
      "The secret that signs what stands in Redis: at least 16 bytes, the same on all machines. Of a list, the first "
        .. "one signs, and all are accepted."
    ),
    build.NO_VARIABLE
  ),
  build.seconds("deadline", 0.02, "How long a request may wait for Redis.", 0.001, 10),
  build.seconds(
    "purge_delay",
    5,
    "How long a decision other than block is still served when this machine cannot hear of purges.",
    0.1,
    3600
  ),
  build.seconds("clock_skew", 1, "How far two machines may differ in the time that they take from Redis.", 0, 60),
  build.seconds("lease", 1, "How long other machines wait for the one that asks about an address.", 0.01, 60),
}, redis.options)

---@class riskscreen.nginx.Fleet
---@field delay number seconds; see the option `purge_delay`
---@field private settings table the checked options
---@field private client riskscreen.Redis
---@field private stream string the key of the purges in Redis
---@field private pipeline riskscreen.nginx.Pipeline of requests
---@field purges riskscreen.nginx.Purges
---@field private verdicts riskscreen.nginx.Verdicts
---@field private recorder riskscreen.nginx.Recorder
---@field private breaker riskscreen.Breaker
---@field private made_at number seconds
---@field private started boolean
local Fleet = {}
Fleet.__index = Fleet

-- Runs a command of a request. Counts the failure.
local function call(self, command)
  local started = now()
  local reply, problem = self.pipeline:call(self.settings.deadline, command)
  if reply == nil then
    self.recorder:count("redis_errors", problem)
    return nil
  end
  self.recorder:took("redis", now() - started)
  if errors.is(reply) then
    self.recorder:count("redis_errors", "reply")
    return nil
  end
  return reply
end

-- The verdict that a text of Redis holds, or nil where it does not count.
local function open(self, key, address, sealed)
  local offset = self.purges:offset()
  local verdict, reason = nil, "future"
  if offset then
    verdict, reason = self.verdicts:decode(key, sealed, now(), offset)
  end
  if verdict and self.purges:is_purged(address, verdict.purge) then
    verdict, reason = nil, "purged"
  end
  if not verdict then
    self.recorder:count("redis_refused", reason)
  end
  return verdict
end

---The key of a verdict in Redis.
---@param version string of the policy
---@return string prefix
function Fleet:prefix_of(version)
  return self.client:key(("verdict:%s:"):format(version))
end

---The verdict about an address.
---@param key string
---@param address string canonical
---@return riskscreen.nginx.SharedVerdict|nil
---@return string|false|nil refused the text that is there and does not count; nil where Redis has not answered
function Fleet:find(key, address)
  local sealed = call(self, { "GET", key })
  local verdict = sealed and open(self, key, address, sealed) or nil
  self.recorder:lookup("redis", verdict ~= nil)
  return verdict, sealed
end

---Waits until this machine may fetch, at most as long as a lease. Returns the verdict if another machine has fetched
---it meanwhile.
---@param key string
---@param address string canonical
---@param refused string|false the text that is there and does not count
---@param seconds number that are left for the whole fetch
---@return number lease 0 without one
---@return riskscreen.nginx.SharedVerdict|nil
function Fleet:take_lease(key, address, refused, seconds)
  local settings = self.settings
  local deadline, pause = now() + math.min(settings.lease, seconds / 2), FIRST_PAUSE
  local milliseconds = ("%.0f"):format(math.ceil(settings.lease * 1000))
  repeat
    local reply = call(self, { "EVAL", TAKE_LEASE, "2", key, key .. ":lease", milliseconds, refused or "" })
    if type(reply) == "string" then
      local verdict = open(self, key, address, reply)
      if verdict then
        return 0, verdict
      end
      refused = reply
    elseif type(reply) ~= "number" then
      return 0
    elseif reply > 0 then
      return reply
    end
    ngx.sleep(pause)
    pause = math.min(pause * GROWTH, LONGEST_PAUSE)
  until now() >= deadline
  return 0
end

local function post(self, command)
  self.recorder:count("redis_writes", command and self.pipeline:post(command) and "sent" or "dropped")
end

---Ends a lease without a verdict.
---@param key string
---@param lease number
function Fleet:release(key, lease)
  if lease > 0 then
    post(self, { "EVAL", redis.RELEASE, "1", key .. ":lease", ("%016.0f"):format(lease) })
  end
end

---Writes a verdict later, and ends the lease.
---@param key string
---@param known riskscreen.nginx.KnownDecision
---@param at number seconds of the fetch
---@param valid_until number seconds
---@param purge number the last one before the fetch
---@param mark string of its record
---@param lease number 0 without one
function Fleet:share(key, known, at, valid_until, purge, mark, lease)
  if self.pipeline:refuses() then
    return post(self, nil)
  end
  local milliseconds, offset = math.floor((valid_until - now()) * 1000), self.purges:offset()
  local text = milliseconds > 0
    and offset
    and self.verdicts:encode(key, known.json, at, valid_until, offset, purge, lease)
  if not text then
    return self:release(key, lease)
  end
  local lifetime, number, id = ("%.0f"):format(milliseconds), ("%016.0f"):format(lease), ("%.0f-0"):format(purge)
  post(self, { "EVAL", SHARE, "3", key, key .. ":lease", self.stream, text, lifetime, number, id, mark })
end

---The account's lists, which one machine fetches for all.
---@param id string
---@return riskscreen.nginx.SharedLists
function Fleet:lists(id)
  local settings = self.settings
  return account_lists.new(self.slow_client, settings.key(), id, settings.clock_skew, now, random.token())
end

local function start(self)
  local function try(premature)
    if not premature then
      self.purges:listen(ROUNDS)
    end
  end
  self.started = ngx.timer.every(math.min(0.5, self.delay / 4), try) and ngx.timer.at(0, try) and true or false
end

---Starts listening for purges in this worker. LuaJIT compiles this function: it makes no closure.
function Fleet:start()
  if not self.started then
    start(self)
  end
end

---@class riskscreen.nginx.RedisFacts
---@field circuit table the status of the circuit
---@field unheard_seconds number since this machine heard of purges, or since the gate was made
---@field purge_delay number seconds

---@return riskscreen.nginx.RedisFacts
function Fleet:facts()
  return {
    circuit = self.breaker:status(),
    unheard_seconds = math.max(0, now() - self.purges:heard_at(self.made_at)),
    purge_delay = self.delay,
  }
end

local M = { options = fleet_options }

---@class riskscreen.nginx.FleetSettings
---@field options table the checked option `redis` of a gate
---@field dict table an ngx.shared dict
---@field name string of the gate
---@field recorder riskscreen.nginx.Recorder
---@field forget fun(address: string, network?: string) in all workers of this machine; raises if that fails
---@field forget_all fun() in all workers of this machine; raises if that fails

---It sends nothing yet, so it can be made in init_by_lua.
---@param given riskscreen.nginx.FleetSettings
---@return riskscreen.nginx.Fleet
function M.new(given)
  local options, recorder = given.options, given.recorder
  local of_redis = tables.without(options, "key")
  local client = redis.with(tables.merge(of_redis, { timeout = options.deadline }))
  local slow = redis.with(tables.merge(of_redis, { timeout = options.timeout + purges.LONGEST_BLOCK }))
  local stream = slow:key "purges"
  -- All gates of the dict share what this machine knows of the stream, because a purge by one of them is for all.
  local dict_prefix = ("riskscreen:fleet:%s:%s:"):format(slow:server(), stream)
  local breaker = breakers.new(CIRCUIT, now, given.dict, dict_prefix .. given.name)
  local function log(problem)
    ngx.log(ngx.WARN, "riskscreen: redis: ", errors.text(problem))
  end
  return setmetatable({
    settings = tables.merge(client.settings, {
      key = function()
        return options.key
      end,
    }),
    delay = options.purge_delay,
    recorder = recorder,
    breaker = breaker,
    verdicts = verdicts.new(options.key, options.clock_skew),
    client = client,
    slow_client = slow,
    stream = stream,
    pipeline = pipelines.new(client, breaker, SLOWEST, log),
    purges = purges.new {
      dict = given.dict,
      prefix = dict_prefix,
      stream = stream,
      keys = options.key,
      delay = options.purge_delay,
      client = slow,
      forget = given.forget,
      forget_all = given.forget_all,
      spellings = addresses.all_spellings,
      now = now,
      skew = options.clock_skew,
      identity = ngx.worker.pid,
      exiting = ngx.worker.exiting,
      count = function(result)
        recorder:count("redis_purges", result)
      end,
      log = log,
    },
    made_at = now(),
    started = false,
  }, Fleet)
end

return M
