-- The purges of all machines: a stream of sealed records in Redis. Their numbers have no gaps, except before the record
-- of a machine that begins. That number is above the time of Redis, so that no older record can make it small, and the
-- record names the number before it. One worker of a machine listens. A record that is missing means that purges may be
-- missing: then the machine forgets all verdicts.
-- Redis may lose its last records, and their numbers are used again. So a number alone does not name a record: its mark
-- does, which is the end of the seal.
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
local MAX_WAITING = 1000 -- purges that Redis does not have yet
local UNTOLD = 0 -- instead of the time from when on a purge is told: Redis has not taken it
local PATIENCE = 5 -- seconds after which another worker tells a purge, because its own one may have died
local MARK_SIZE = 16 -- bytes

local VERSION = "1"
local BEGIN, PURGE = "begin", "purge"

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
---@return number
function Purges:heard_at()
  return number_of(self, self.keys.heard_at) or -self.settings.delay
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

local function raise_floors(self, number)
  for bucket = 0, buckets.BUCKETS - 1 do
    raise_floor(self, bucket, number)
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

-- Adds a record with the next number. Redis refuses a number that is not above all others, so that of two machines one
-- tries again. Where the stream is lost, the numbers go on above those of all machines that know them.
local function append(self, kind, content)
  local settings, client, problem = self.settings, self.settings.client, nil
  local least = last_number(self) or 0
  for try = 1, TRIES do
    local records, failure = client:call("XREVRANGE", settings.stream, "+", "-", "COUNT", 1)
    if not records then
      return nil, tostring(failure)
    end
    local last = parts_of(records[1]) or 0
    local number = math.max(last, least)
    if kind == BEGIN or number == 0 or try > TRIES / 2 then
      local offset, failed = clock.offset(client, settings.now, math.huge)
      if not offset then
        return nil, tostring(failed)
      end
      number = math.max(number, math.floor((settings.now() + offset) * 1000))
    end
    number = number + 1
    -- A random number tells apart two records with the same number and the same content.
    local text = ("%s%s %d\n%s"):format(VERSION, kind, random.seed(), content or ("%.0f"):format(last))
    local sealed = self.seal:close(label_of(self, number), text)
    local id = ("%.0f-0"):format(number)
    local added
    added, problem = client:call("XADD", settings.stream, "MAXLEN", "~", KEPT, id, "r", sealed)
    if added == id then
      return number, sealed
    elseif not tostring(problem):find("equal or smaller", 1, true) then
      break
    end
  end
  return nil, tostring(problem)
end

-- A purge that waits: the time from when on any worker tells it, and its text. The time has a fixed length: a full dict
-- takes a text of the same length.
local function waiting_text(content, due)
  return ("%016.3f\n%s"):format(due, content)
end

-- Keeps a purge until Redis has it, so that it outlives its worker. Returns the key, or nil where there is no room.
local function keep_waiting(self, waiting)
  for slot = 1, MAX_WAITING do
    local key = self.keys.waiting .. slot
    local ok, message = self.settings.dict:safe_add(key, waiting)
    if ok or message ~= "exists" then
      return ok and key or nil
    end
  end
end

-- Adds the record of a purge. Raises where the dict has no room.
local function add_record(self, content)
  local number, problem = append(self, PURGE, content)
  if not number then
    return nil, problem
  end
  for _, bucket in ipairs((parts_of_purge(self, content))) do
    raise_floor(self, bucket, number)
  end
  self.settings.count "published"
  return true
end

local function publish(self, content)
  local ran, ok, problem = pcall(add_record, self, content)
  return ran and ok, ran and problem or ok
end

-- Counts a purge that Redis has not taken. Where it cannot be kept, the count is lost, and this machine begins anew.
local function keep_untold(self, key, waiting, content)
  local dict, untold = self.settings.dict, self.keys.untold
  if key and dict:get(key) == waiting and dict:set(key, waiting_text(content, UNTOLD)) then
    dict:incr(untold, 1, not last_number(self) and 0 or nil)
  else
    dict:delete(untold)
  end
end

---Tells all machines of a purge. Until that has succeeded, this machine takes no verdict from Redis.
---@param address string
---@param network? string
---@return boolean|nil ok
---@return string|nil problem the machines are told later, when Redis answers
function Purges:publish(address, network)
  local settings, content = self.settings, (network or "") .. "\n" .. address
  local waiting = waiting_text(content, settings.now() + PATIENCE)
  local key = keep_waiting(self, waiting)
  local ok, problem = publish(self, content)
  if not ok then
    settings.count "failed"
    keep_untold(self, key, waiting, content)
    return nil, tostring(problem)
  elseif key then
    settings.dict:delete(key)
  end
  return true
end

-- Publishes what could not be published, or what a worker has not published before its end. Returns the number of
-- untold purges where it finds none, because a full dict has lost them.
local function publish_waiting(self)
  local dict, is_empty = self.settings.dict, true
  local untold = number_of(self, self.keys.untold)
  for slot = 1, MAX_WAITING do
    local key = self.keys.waiting .. slot
    local waiting = dict:get(key)
    local due, content = (waiting or ""):match "^(%S+)\n(.*)$"
    is_empty = is_empty and not waiting
    if waiting and tonumber(due) <= self.settings.now() then
      if not publish(self, content) then
        return nil
      end
      dict:delete(key)
      if tonumber(due) == UNTOLD then
        dict:incr(self.keys.untold, -1)
      end
    end
  end
  return is_empty and untold ~= 0 and (untold or 0) or nil
end

-- Begins anew, with a record of its own: nothing that was asked before it counts. Where untold purges are lost, the
-- record tells the other machines of a loss.
local function begin(self, lost)
  local settings, asked_at = self.settings, self.settings.now()
  local number, sealed = append(self, BEGIN, lost and "lost" or nil)
  if not number then
    return nil, sealed
  end
  raise_floors(self, number)
  settings.forget_all()
  remember(self, number, sealed)
  settings.dict:incr(self.keys.untold, -(lost or 0), 0)
  set(self, self.keys.heard_at, asked_at)
  return true
end

local function forget_all(self, number, message)
  local settings = self.settings
  settings.count "lost"
  settings.log(message .. ": all verdicts are forgotten")
  raise_floors(self, number)
  settings.forget_all()
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

-- Learns of one record. A number that is left out, or a record that this release cannot read, is a loss.
local function learn(self, record)
  local number, sealed = parts_of(record)
  if not number then
    return begin(self)
  end
  local text = self.seal:open(label_of(self, number), sealed)
  local kind, content = (text or ""):match "^1(%a+) %d+\n(.*)$"
  local before = kind == BEGIN and tonumber(content) or kind ~= BEGIN and number - 1
  if before ~= last_number(self) then
    forget_all(self, number, ("purges before %.0f are missing"):format(number))
  elseif kind == PURGE then
    apply(self, number, content)
  elseif kind ~= BEGIN then
    forget_all(self, number, ("the purge %.0f cannot be read"):format(number))
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
  end
  local is_set_back = known and offset < known - settings.skew
  if is_set_back then
    settings.log "the clock of Redis was set back: all verdicts are forgotten"
  end
  if is_set_back and not begin(self) then
    return nil, "the purges cannot begin anew"
  end
  set(self, self.keys.offset, offset)
  return true
end

-- Listens for a moment. Returns nil and the reason if Redis fails.
local function listen_once(self, block)
  local settings = self.settings
  local lost = publish_waiting(self)
  local learned, problem = learn_time(self)
  if not learned then
    return nil, problem
  end
  local number = last_number(self)
  if not number then
    return begin(self)
  elseif lost then
    settings.count "lost"
    settings.log "the dict has lost purges that Redis has not taken: all verdicts are forgotten"
    return begin(self, lost)
  end
  local asked_at = settings.now()
  local own, records
  own, records, problem = read(self, number, block)
  if not own then
    return nil, problem
  elseif not is_continued(self, own) then
    settings.count "lost"
    settings.log "Redis has lost the purges: all verdicts are forgotten"
    return begin(self)
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
  for _, name in ipairs { "number", "mark", "heard_at", "offset", "listener", "untold" } do
    keys[name] = settings.prefix .. name
  end
  for _, name in ipairs { "floor", "waiting" } do
    keys[name] = settings.prefix .. name .. ":"
  end
  return setmetatable({
    settings = tables.without(settings, "keys"),
    seal = seals.new(settings.keys, "purge"),
    keys = keys,
    is_listening = false,
  }, Purges)
end

return M
