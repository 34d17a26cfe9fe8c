-- Brings events to the transactions that await them, in whichever worker: events are kept in a shared dict, and a
-- worker in which somebody waits looks there for what has come. Not here: what an event means.

local json = require "riskscreen.json"

local LONGEST_ID = 1024 -- bytes of a requestId or customId that anyone can await
local SEQUENCE = "sequence" -- counts what was kept
local LATE = 15 -- seconds without a look, after which whoever should look is given up

---@class riskscreen.nginx.Waiting somebody who waits now
---@field awaited riskscreen.Awaited
---@field ends number when it is over at the latest
---@field renew_at number when to say again that it awaits a customId

---@class riskscreen.nginx.Events
---@field private ledger riskscreen.nginx.Ledger
---@field private ttl number seconds for which an event is kept
---@field private worker table
---@field private identities table<riskscreen.Awaited, string> weak: of those without a requestId
---@field private attended table<riskscreen.nginx.Waiting, true> weak: one whose request is aborted goes without a word
---@field private seen? number the count up to which this worker has looked, while it looks
---@field private watching? table whoever looks, while somebody does
---@field private looked_at? number when that was last known to be so
---@field private serial integer
local Events = {}
Events.__index = Events

local function list_name(kind, id)
  local proper = type(id) == "string" and id ~= "" and #id <= LONGEST_ID
  return proper and kind .. ":" .. id or nil
end

-- Events by requestId and by customId, and who awaits something by a customId.
local function request_list(id)
  return list_name("request", id)
end

local function custom_list(id)
  return list_name("custom", id)
end

local function claimant_list(id)
  return list_name("claimants", id)
end

-- Whoever has awaited the customId is remembered as long as the event: it must not seem to be one's who comes later.
local function keep_claimants(self, custom_id)
  local list = claimant_list(custom_id)
  if list then
    self.ledger:keep(list, self.ttl)
  end
end

---Keeps an event for whoever awaits it, now or later.
---@param event riskscreen.WebhookEvent
---@return boolean|nil ok
---@return string|nil message why it is not kept
function Events:add(event)
  local id, ledger = event.webhookId, self.ledger
  local ok, message = ledger:put("event:" .. id, json.encode(event), self.ttl)
  for _, list in pairs { request_list(event.data.requestId), custom_list(event.data.customId) } do
    if ok then
      ok, message = ledger:note(list, id, self.ttl)
    end
  end
  if ok then
    keep_claimants(self, event.data.customId)
    ok, message = ledger:count(SEQUENCE)
  end
  if not ok then
    return nil, "the shared dict cannot keep the event: " .. message
  end
  self:look_for_all()
  return true
end

-- What tells one who awaits a customId from all others, in any worker.
local function identity_of(self, awaited)
  if awaited.request_id then
    return "request:" .. awaited.request_id
  end
  local identity = self.identities[awaited]
  if not identity then
    self.serial = self.serial + 1
    identity = ("custom:%d:%d:%.3f"):format(self.worker.pid(), self.serial, self.worker.now())
    self.identities[awaited] = identity
  end
  return identity
end

-- A customId is the caller's own: where several transactions carry it, an event may be any one's and is nobody's.
local function is_only_one(self, awaited, event)
  local claimants, complete = self.ledger:list(claimant_list(awaited.custom_id))
  local mine, its_own = identity_of(self, awaited), request_list(event.data.requestId)
  local found = false
  for _, claimant in ipairs(claimants) do
    if claimant == mine then
      found = true
    elseif not its_own or claimant == its_own or claimant:find "^custom:" then
      return false
    end
  end
  return found and complete
end

local function events_of(self, list)
  local events = {}
  for _, id in ipairs(list and self.ledger:list(list) or {}) do
    local text = self.ledger:get("event:" .. id)
    local event = type(text) == "string" and json.decode(text)
    if type(event) == "table" then
      events[#events + 1] = event
    end
  end
  return events
end

-- Offers what is kept for one who awaits it.
local function look_for(self, awaited)
  for _, event in ipairs(events_of(self, request_list(awaited.request_id))) do
    awaited:offer(event)
  end
  for _, event in ipairs(events_of(self, custom_list(awaited.custom_id))) do
    if is_only_one(self, awaited, event) then
      awaited:offer(event)
    end
  end
end

-- Says to all workers who awaits the customId.
local function claim(self, awaited)
  local list = claimant_list(awaited.custom_id)
  if list then
    local ok, message = self.ledger:note(list, identity_of(self, awaited), self.ttl)
    if not ok then
      self.worker.warn("a transaction cannot be awaited by its customId: " .. message)
    end
  end
end

---Offers what has been kept for `awaited`. What comes later is offered while it is attended.
---@param awaited riskscreen.Awaited
---@return table hold
function Events:expect(awaited)
  claim(self, awaited)
  look_for(self, awaited)
  return awaited
end

-- Those who wait now.
local function who_waits(self)
  local now, list = self.worker.now(), {}
  for waiting in pairs(self.attended) do
    if waiting.ends <= now then
      self.attended[waiting] = nil
    else
      list[#list + 1] = waiting
    end
  end
  return list
end

-- Offers everyone who waits what has come since.
function Events:look_for_all()
  local count = self.ledger:get(SEQUENCE)
  if self.watching and count ~= self.seen then
    self.seen = count
    for _, waiting in ipairs(who_waits(self)) do
      look_for(self, waiting.awaited)
    end
  end
end

local function renew_claims(self)
  local now = self.worker.now()
  for _, waiting in ipairs(who_waits(self)) do
    if waiting.renew_at <= now then
      waiting.renew_at = now + self.ttl / 2
      claim(self, waiting.awaited)
    end
  end
end

-- Looks for what other workers have kept until nobody waits any more. Of too many timers nginx drops some when they are
-- due, without a word.
local function watch(self)
  local now = self.worker.now()
  if self.watching and math.abs(now - self.looked_at) < LATE then
    return
  end
  local watching = {}
  self.watching, self.looked_at, self.seen = watching, now, nil
  self.worker.watch(function()
    if self.watching ~= watching then
      return false
    end
    self.looked_at = self.worker.now()
    self:look_for_all()
    renew_claims(self)
    return #who_waits(self) > 0
  end, function()
    if self.watching == watching then
      self.watching = nil
    end
  end)
end

---From now on, until `leave` or for so long at most, `awaited` is offered what any worker keeps for it.
---@param awaited riskscreen.Awaited
---@param seconds number
---@return riskscreen.nginx.Waiting
function Events:attend(awaited, seconds)
  local now = self.worker.now()
  local waiting = { awaited = awaited, ends = now + seconds, renew_at = now + self.ttl / 2 }
  self.attended[waiting] = true
  claim(self, awaited)
  look_for(self, awaited)
  watch(self)
  return waiting
end

---Ends `attend`.
---@param waiting riskscreen.nginx.Waiting
function Events:leave(waiting)
  self.attended[waiting] = nil
end

local M = {}

---@class riskscreen.nginx.EventsSettings
---@field ledger riskscreen.nginx.Ledger
---@field ttl number seconds for which an event is kept
---@field worker table `pid()`, `now()`, `warn(message)`, and `watch(look, ended)`, which calls look now and then for as
---long as it returns true

---@param settings riskscreen.nginx.EventsSettings
---@return riskscreen.nginx.Events
function M.new(settings)
  local weak = { __mode = "k" }
  return setmetatable({
    ledger = settings.ledger,
    ttl = settings.ttl,
    worker = settings.worker,
    identities = setmetatable({}, weak),
    attended = setmetatable({}, weak),
    serial = 0,
  }, Events)
end

return M
