-- The purges of all machines: a stream of sealed records in Redis. The number of a record is above the time of Redis,
-- so that no older record can make it small. Each record names the number before it. One worker of a machine listens. A
-- record that is missing means that purges may be missing: then the machine forgets all verdicts.
-- Redis may lose its last records, and their numbers may be used again. So a number alone does not name a record: its
-- mark does, which is the end of the seal.
local buckets = require "riskscreen.nginx.cache.dict"
local clock = require "riskscreen.nginx.fleet.clock"
local errors = require "riskscreen.errors"
local leases = require "riskscreen.nginx.lease"
local random = require "riskscreen.util.random"
local seals = require "riskscreen.nginx.fleet.seal"
local tables = require "riskscreen.util.tables"

local KEPT = 10000 -- records of the stream
local BATCH = 100 -- records that are read at once
local LONGEST_BLOCK = 1 -- seconds that Redis may keep a reading connection waiting
local TRIES = 8 -- to add a record, while other machines add theirs
local MAX_NUMBER = 2 ^ 53 - 2
local PATIENCE = 5 -- seconds after which a purge that Redis has not taken is lost, because its worker may have died
local MARK_SIZE = 16 -- bytes

-- The text of a record: the number before it, a random number, and the content. The content is a network and an
-- address, or one of these two. The random number tells apart two records with the same number and the same content.
local TEXT, PATTERN = "1%.0f %d\n%s", "^1(%d+) %d+\n(.*)$"
local BEGIN, LOST = "", "lost"

-- Adds a record, unless another machine has added one since the last one was read.
local ADD = [[
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if (last and last[1] or '') ~= ARGV[1] then return 0 end
return redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], ARGV[3], 'r', ARGV[4])]]

---@class riskscreen.nginx.PurgeSettings
---@field dict table an ngx.shared dict
---@field prefix string of the keys in the dict
---@field stream string the key in Redis
---@field keys string[] of the operator
---@field delay number seconds; see `heard_at`
---@field client riskscreen.Redis whose timeout is longer than Redis keeps a reading connection waiting
---@field forget fun(address: string, network?: string) in all workers of this machine; raises if that fails
---@field forget_all fun() in all workers of this machine; raises if that fails
---@field spellings fun(address: string, network?: string): string[] the canonical address, on each network
---@field now fun(): number monotonic seconds
---@field skew number seconds that the time of Redis may be wrong
---@field identity fun(): string|number unique to this worker
---@field exiting fun(): boolean
---@field count fun(result: "heard"|"published"|"failed"|"lost")
---@field log fun(message: string)

---@class riskscreen.nginx.Purges
---@field private settings riskscreen.nginx.PurgeSettings
---@field private seal riskscreen.nginx.Seal
---@field private keys table<string, string> in the dict
---@field private is_listening boolean this worker
local Purges = {}
Purges.__index = Purges

local function number_of(self, key)
  local value = self.settings.dict:get(key)
  return type(value) == "number" and value or nil
end

-- The last purge that this machine has heard of; nil before the first.
local function last_number(self)
  return number_of(self, self.keys.number)
end

---The last purge that this machine has heard of; nil before the first, and while Redis lacks a purge of this machine.
---Each fetch looks up the count of these purges, so that a full dict drops decisions first. A lost count is not 0.
---@return number|nil
function Purges:number()
  return number_of(self, self.keys.untold) == 0 and last_number(self) or nil
end

---The mark of that record.
---@return string
function Purges:mark()
  return self.settings.dict:get(self.keys.mark) or ""
end

---Seconds: this machine has heard of every purge that had reached Redis by then.
---@param never? number what to return where it has heard of none; by default a time that is too long ago
---@return number
function Purges:heard_at(never)
  return number_of(self, self.keys.heard_at) or never or -self.settings.delay
end

---The time of Redis minus this machine's; nil before it is known.
---@return number|nil
function Purges:offset()
  return number_of(self, self.keys.offset)
end

---Whether an address may have been purged after a fetch: verdicts asked before the floor of its bucket do not count.
---Where a full dict has lost a floor, only verdicts after the last purge count. One mark for each address could be lost
---without a trace.
---@param address string canonical
---@param purge number the last purge before the fetch
---@return boolean
function Purges:is_purged(address, purge)
  local number = self:number()
  return not number or purge < (number_of(self, self.keys.floor .. buckets.bucket_of(address)) or number)
end

local function set(self, key, value)
  local ok, message = self.settings.dict:set(key, value)
  if not ok then
    error("the dict has no room: " .. tostring(message), 0)
  end
end

local function label_of(self, number)
  return ("%s %.0f"):format(self.settings.stream, number)
end

local function mark_of(sealed)
  return sealed:sub(-MARK_SIZE)
end

local function remember(self, number, sealed)
  set(self, self.keys.mark, mark_of(sealed))
  set(self, self.keys.number, number)
end

-- A floor never sinks: this machine may have added a later purge.
local function raise_floor(self, bucket, number)
  local key = self.keys.floor .. bucket
  if (number_of(self, key) or 0) < number then
    set(self, key, number)
  end
end

-- The buckets of a purge, the address and the network.
local function parts_of_purge(self, content)
  local network, address = content:match "^([^\n]*)\n(.+)$"
  network = network ~= "" and network or nil
  local list = {}
  for index, spelling in ipairs(address and self.settings.spellings(address, network) or {}) do
    list[index] = buckets.bucket_of(spelling)
  end
  return list, address, network
end

-- The number and the sealed text of a record of the stream: { "7-0", { "r", "…" } }.
local function parts_of(record)
  if type(record) ~= "table" or type(record[1]) ~= "string" or type(record[2]) ~= "table" then
    return nil
  end
  local number, sealed = tonumber(record[1]:match "^(%d+)%-0$"), record[2][2]
  if number and number <= MAX_NUMBER and record[2][1] == "r" and type(sealed) == "string" then
    return number, sealed
  end
end

-- Adds a record. Where the stream is lost, the numbers go on above those of all machines that know them.
local function append(self, content)
  local settings, client = self.settings, self.settings.client
  for _ = 1, TRIES do
    local records, problem = client:call("XREVRANGE", settings.stream, "+", "-", "COUNT", 1)
    local offset
    if records then
      offset, problem = clock.offset(client, settings.now, math.huge)
    end
    if not offset then
      return nil, tostring(problem)
    end
    local last = parts_of(records[1]) or 0
    local number = math.max(last, last_number(self) or 0, math.floor((settings.now() + offset) * 1000)) + 1
    local sealed = self.seal:close(label_of(self, number), TEXT:format(last, random.seed(), content))
    local id, last_id = ("%.0f-0"):format(number), records[1] and records[1][1] or ""
    local added
    added, problem = client:call("EVAL", ADD, 1, settings.stream, last_id, KEPT, id, sealed)
    if added == id then
      return number, sealed
    elseif added ~= 0 then
      return nil, tostring(problem)
    end
  end
  return nil, "other machines add their purges at the same time"
end

-- Adds the record of a purge. Raises where the dict has no room.
local function add_purge(self, content)
  local number, problem = append(self, content)
  if not number then
    return nil, problem
  end
  for _, bucket in ipairs((parts_of_purge(self, content))) do
    raise_floor(self, bucket, number)
  end
  self.settings.count "published"
  return true
end

---Tells all machines of a purge. Until that has succeeded, this machine takes no verdict from Redis.
---@param address string
---@param network? string
---@return boolean|nil ok
---@return string|nil problem all machines forget all verdicts later, when Redis answers
function Purges:publish(address, network)
  local settings, keys = self.settings, self.keys
  local dict = settings.dict
  local round = dict:get(keys.round)
  -- A count that the dict has lost stays lost.
  if dict:incr(keys.untold, 1, not last_number(self) and 0 or nil) == 1 then
    dict:set(keys.due, settings.now() + PATIENCE)
  end
  local ran, ok, problem = pcall(add_purge, self, (network or "") .. "\n" .. address)
  if ran and ok then
    dict:incr(keys.untold, -1)
    if dict:get(keys.round) ~= round then
      dict:incr(keys.untold, 1) -- it was taken for lost meanwhile, and is not counted any more
    end
    return true
  end
  dict:set(keys.due, settings.now())
  settings.count "failed"
  return nil, tostring(ran and problem or ok)
end

-- The number of purges that Redis has not taken, where there are any that may be lost. A lost count may have been one.
local function lost_purges(self)
  local untold = number_of(self, self.keys.untold)
  if untold ~= 0 and self.settings.now() >= (number_of(self, self.keys.due) or 0) then
    return untold or last_number(self) and 0 or nil
  end
end

-- Forgets all verdicts from before a record. The message says which purges are missing, if that is the reason.
local function forget_all(self, number, message)
  local settings = self.settings
  if message then
    settings.count "lost"
    settings.log(message .. ": all verdicts are forgotten")
  end
  for bucket = 0, buckets.BUCKETS - 1 do
    raise_floor(self, bucket, number)
  end
  settings.forget_all()
end

-- Begins anew, with a record of its own: nothing that was asked before it counts. Where purges of this machine are
-- lost, the record tells the others to forget all verdicts, too.
local function begin(self, message)
  local asked_at = self.settings.now()
  if lost_purges(self) then
    set(self, self.keys.round, random.seed()) -- before they are counted
  end
  local lost = lost_purges(self)
  local number, sealed = append(self, lost and LOST or BEGIN)
  if not number then
    return nil, sealed
  end
  forget_all(self, number, message)
  remember(self, number, sealed)
  self.settings.dict:incr(self.keys.untold, -(lost or 0), 0)
  set(self, self.keys.heard_at, asked_at)
  return true
end

local function apply(self, number, content)
  local settings = self.settings
  local list, address, network = parts_of_purge(self, content)
  if not list[1] then
    return forget_all(self, number, "a purge names an unknown network")
  end
  for _, bucket in ipairs(list) do
    raise_floor(self, bucket, number)
  end
  settings.forget(address, network)
  settings.count "heard"
end

-- Learns of one record. A record that is left out, or that this release cannot read, is a loss.
local function learn(self, record)
  local number, sealed = parts_of(record)
  if not number then
    return begin(self)
  end
  local text = self.seal:open(label_of(self, number), sealed)
  local before, content = (text or ""):match(PATTERN)
  if not before then
    forget_all(self, number, ("the purge %.0f cannot be read"):format(number))
  elseif tonumber(before) ~= last_number(self) then
    forget_all(self, number, ("purges before %.0f are missing"):format(number))
  elseif content == LOST then
    forget_all(self, number, "another machine could not tell of a purge")
  elseif content ~= BEGIN then
    apply(self, number, content)
  end
  remember(self, number, sealed)
  return true
end

-- Whether the stream still has the last record that this machine has heard of. Redis may have lost it.
local function is_continued(self, records)
  local _, sealed = parts_of(records[1])
  return sealed ~= nil and mark_of(sealed) == self:mark()
end

-- A server that is not the master any more does not know of purges. It refuses changes: a replica does, and a master
-- with min-replicas-to-write that is cut off from its replicas.
local function is_deposed(reply)
  return errors.is(reply) and (reply.code == "READONLY" or reply.code == "NOREPLICAS")
end

-- Reads on after a record, and the record itself. One connection does all, so that one server answers. The first
-- command changes nothing, but only a server that accepts changes executes it.
local function read(self, number, block)
  local stream, id = self.settings.stream, ("%.0f-0"):format(number)
  local replies, problem = self.settings.client:pipeline {
    { "DEL", stream .. ":none" },
    { "XRANGE", stream, id, id },
    { "XREAD", "COUNT", BATCH, "BLOCK", math.ceil(block * 1000), "STREAMS", stream, id },
  }
  for index, reply in ipairs(replies or {}) do
    if index == 1 and is_deposed(reply) or index > 1 and errors.is(reply) then
      return nil, nil, reply
    end
  end
  if not replies then
    return nil, nil, problem
  end
  return replies[2], replies[3] and replies[3][1] and replies[3][1][2] or {}
end

-- Learns the time of Redis. Where its clock was set back, no verdict from before counts: it would count for too long.
local function learn_time(self)
  local settings, known = self.settings, self:offset()
  local offset, problem = clock.offset(settings.client, settings.now, settings.skew)
  if not offset then
    return nil, problem
  elseif known and offset < known - settings.skew and not begin(self, "the clock of Redis was set back") then
    return nil, "the purges cannot begin anew"
  end
  set(self, self.keys.offset, offset)
  return true
end

-- Listens for a moment. Returns nil and the reason if Redis fails.
local function listen_once(self, block)
  local settings = self.settings
  local learned, problem = learn_time(self)
  if not learned then
    return nil, problem
  end
  local number = last_number(self)
  if not number then
    return begin(self)
  elseif lost_purges(self) then
    return begin(self, "Redis has not taken a purge of this machine")
  end
  local asked_at = settings.now()
  local own, records
  own, records, problem = read(self, number, block)
  if not own then
    return nil, problem
  elseif not is_continued(self, own) then
    return begin(self, "Redis has lost the purges")
  end
  for _, record in ipairs(records) do
    learned, problem = learn(self, record)
    if not learned then
      return nil, problem
    end
  end
  -- There are more records behind a full batch.
  if #records < BATCH then
    set(self, self.keys.heard_at, asked_at)
  end
  return true
end

---Listens, unless another worker of this machine does. Returns when this worker is about to exit, or after a failure,
---or after `rounds`.
---@param rounds integer
function Purges:listen(rounds)
  local settings, keys = self.settings, self.keys
  local block = math.min(LONGEST_BLOCK, settings.delay / 4)
  local lifetime = block * 2 + 2
  local lease = not self.is_listening
    and leases.take(settings.dict, keys.listener, settings.identity(), settings.now(), lifetime)
  if not lease then
    return
  end
  self.is_listening = true
  local ok, problem
  for _ = 1, rounds do
    local ran
    ran, ok, problem = pcall(listen_once, self, block)
    ok, problem = ran and ok, tostring(ran and problem or ok)
    local renewed = ok
      and not settings.exiting()
      and leases.renew(settings.dict, keys.listener, lease, settings.now(), lifetime)
    if not renewed then
      break
    end
    lease = renewed
  end
  self.is_listening = false
  if not ok and problem ~= self.reported then
    settings.log("purges are not heard: " .. problem)
  end
  self.reported = not ok and problem or nil
  leases.release(settings.dict, keys.listener, lease)
end

local M = { LONGEST_BLOCK = LONGEST_BLOCK }

---@param settings riskscreen.nginx.PurgeSettings
---@return riskscreen.nginx.Purges
function M.new(settings)
  local keys = {}
  for _, name in ipairs { "number", "mark", "heard_at", "offset", "listener", "untold", "due", "round" } do
    keys[name] = settings.prefix .. name
  end
  keys.floor = settings.prefix .. "floor:"
  return setmetatable({
    settings = tables.without(settings, "keys"),
    seal = seals.new(settings.keys, "purge"),
    keys = keys,
    is_listening = false,
  }, Purges)
end

return M
