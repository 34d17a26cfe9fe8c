-- The webhooks of a service: what is delivered when, how often, in which order and with what wrong in it. Pure: whoever
-- delivers (deliverer.lua, or a test) takes what is due and reports how it was answered.

local check = require "riskscreen.options.check"
local json = require "riskscreen.json"

local EVENT_TYPE = "getTxHashCustomRiskScore" -- the one type that the interface shows
local LONGEST_WAIT = 86400 -- seconds
local MOST = 1000000000

-- What can be wrong with an event, by name: each changes a fresh copy of it.
local flaws = {
  webhookId = function(event)
    event.webhookId = nil
  end,
  eventType = function(event)
    event.eventType = "sandboxUnknownEvent"
  end,
  timestamp = function(event)
    event.timestamp = "yesterday"
  end,
  data = function(event)
    event.data = "none"
  end,
  requestId = function(event)
    event.data.requestId = "sandbox-request-of-another"
  end,
  customId = function(event)
    event.data.customId = "custom-id-of-another"
  end,
  maxScore = function(event)
    event.data.maxScore = 0
  end,
  status = function(event)
    event.data.status = 1999
  end,
  dirData = function(event)
    event.data.dirData = nil
  end,
}

local flaw_names = {}
for name in pairs(flaws) do
  flaw_names[#flaw_names + 1] = name
end
table.sort(flaw_names)

---@class riskscreen.sandbox.Manner how the webhook of a transaction is delivered
---@field late? number seconds after the transaction is done
---@field copies? integer how often, each delivery the same event
---@field never? boolean
---@field hold? boolean only after the next one, that is out of order
---@field wrong? string the field that is wrong
---@field nth? integer the first transaction that it is about (default 1)
---@field count? integer how many transactions (default all)

local M = {}

local function number(name, type, minimum, maximum, unit, doc)
  return { name = name, type = type, minimum = minimum, maximum = maximum, unit = unit, doc = doc }
end

---@type riskscreen.Option[]
M.fields = {
  number("late", "number", 0, LONGEST_WAIT, "seconds", "How long after the transaction is done."),
  number("copies", "integer", 1, 100, "deliveries", "How often the same event is delivered."),
  { name = "never", type = "boolean", doc = "It is not delivered." },
  { name = "hold", type = "boolean", doc = "It is delivered after the next one." },
  { name = "wrong", type = "string", values = flaw_names, doc = "The field that is wrong." },
  number("nth", "integer", 1, MOST, "transactions", "The first that it is about; by default 1."),
  number("count", "integer", 1, MOST, "transactions", "How many it is about; by default all."),
}

---@type riskscreen.Option
M.setting = {
  name = "webhook",
  type = "table",
  fields = {
    {
      name = "url",
      type = "string",
      check = function(value)
        if not value:find "^https?://[^/?#]+[^#]*$" then
          return nil, "must be such as http://127.0.0.1:8080/webhooks"
        end
        return value
      end,
      doc = "Where webhooks are delivered.",
    },
    { name = "headers", type = "table", default = {}, doc = "More headers of the deliveries." },
    {
      name = "attempts",
      type = "integer",
      default = 5,
      minimum = 1,
      maximum = 1000,
      unit = "deliveries",
      doc = "How often an event is delivered as long as the answer is a 5xx or none comes.",
    },
    {
      name = "retry",
      type = "number",
      default = 1,
      minimum = 0.001,
      maximum = LONGEST_WAIT,
      unit = "seconds",
      doc = "From such an answer to the next attempt; each time twice as long.",
    },
  },
  doc = "Where webhooks go: `url`, `headers`, `attempts`, `retry`; without a url they are not delivered by themselves.",
}

---A checked copy of a manner of delivery.
---@param manner riskscreen.sandbox.Manner
---@return riskscreen.sandbox.Manner?
---@return string? message
function M.check(manner)
  local checked, wrong = check.options(M.fields, manner)
  return checked, wrong and wrong.message
end

---The manner that a submission's header X-Sandbox-Webhook asks for, such as "late=2; copies=2" or "never".
---@param header string
---@return riskscreen.sandbox.Manner?
---@return string? message
function M.parse(header)
  local manner = {}
  for part in header:gmatch "[^;]+" do
    local name, value = part:match "^%s*([%a]+)%s*=?%s*(.-)%s*$"
    if not name then
      return nil, "X-Sandbox-Webhook cannot be read (got '" .. part .. "')"
    end
    manner[name] = value == "" and true or tonumber(value) or value
  end
  local checked, message = M.check(manner)
  return checked, message and "X-Sandbox-Webhook: " .. message
end

---@class riskscreen.sandbox.Webhook one event on its way
---@field account riskscreen.sandbox.Account
---@field event table
---@field body string
---@field at number when it is due
---@field left integer attempts that are left
---@field wait number seconds to the attempt after the next

---@class riskscreen.sandbox.Webhooks
---@field changed fun() called when something was added
---@field private queue riskscreen.sandbox.Webhook[] by due time, then in the order in which they were added
---@field private held riskscreen.sandbox.Webhook[] those that wait for another
---@field private rules { manner: riskscreen.sandbox.Manner, seen: integer }[]
local Webhooks = {}
Webhooks.__index = Webhooks

---How the webhooks of transactions that are submitted from now on are delivered.
---@param manner riskscreen.sandbox.Manner
---@return boolean? ok
---@return string? message
function Webhooks:deliver(manner)
  local checked, message = M.check(manner)
  if not checked then
    return nil, message
  end
  table.insert(self.rules, { manner = checked, seen = 0 })
  return true
end

local function manner_of(rules)
  local chosen
  for _, rule in ipairs(rules) do
    rule.seen = rule.seen + 1
    local first = rule.manner.nth or 1
    if not chosen and rule.seen >= first and rule.seen < first + (rule.manner.count or math.huge) then
      chosen = rule.manner
    end
  end
  return chosen or {}
end

local function copy_of(value)
  if type(value) ~= "table" then
    return value
  end
  local copy = setmetatable({}, getmetatable(value))
  for key, member in pairs(value) do
    copy[key] = copy_of(member)
  end
  return copy
end

local function insert(queue, webhook)
  local position = #queue + 1
  while position > 1 and queue[position - 1].at > webhook.at do
    position = position - 1
  end
  table.insert(queue, position, webhook)
end

---A transaction will be done.
---@param account riskscreen.sandbox.Account
---@param id string the webhookId
---@param at number when, seconds since the Unix epoch
---@param data table the event's
---@param asked? riskscreen.sandbox.Manner in place of what `deliver` was told
function Webhooks:add(account, id, at, data, asked)
  local manner = manner_of(self.rules)
  manner = asked or manner
  if manner.never then
    return
  end
  local timestamp = os.date("!%Y-%m-%d %H:%M:%S", math.floor(at))
  local event = copy_of { webhookId = id, eventType = EVENT_TYPE, timestamp = timestamp, data = data }
  if manner.wrong then
    flaws[manner.wrong](event)
  end
  local body = assert(json.encode(event))
  for _ = 1, manner.copies or 1 do
    insert(self.queue, {
      account = account,
      event = event,
      body = body,
      at = at + (manner.late or 0),
      held = manner.hold,
      left = self.attempts,
      wait = self.retry,
    })
  end
  self.changed()
end

---What is due by now and was not taken before, in the order of delivery.
---@param now number
---@return riskscreen.sandbox.Webhook[]
function Webhooks:take(now)
  local due = {}
  while self.queue[1] and self.queue[1].at <= now do
    local webhook = table.remove(self.queue, 1)
    if webhook.held then
      webhook.held = nil
      table.insert(self.held, webhook)
    else
      table.insert(due, webhook)
      for _, waiting in ipairs(self.held) do
        table.insert(due, waiting)
      end
      self.held = {}
    end
  end
  for _, webhook in ipairs(due) do
    webhook.left = webhook.left - 1
  end
  return due
end

---How a delivery was answered: after a 5xx, or no answer, it is due again.
---@param webhook riskscreen.sandbox.Webhook
---@param status? integer absent when there was no answer
---@param now number
function Webhooks:answered(webhook, status, now)
  if webhook.left > 0 and (not status or status >= 500) then
    webhook.at = now + webhook.wait
    webhook.wait = webhook.wait * 2
    insert(self.queue, webhook)
    self.changed()
  end
end

---When the next one is due, or nil.
---@return number?
function Webhooks:next_at()
  return self.queue[1] and self.queue[1].at
end

---No webhooks yet.
---@param settings { attempts: integer, retry: number }
---@return riskscreen.sandbox.Webhooks
function M.new(settings)
  local webhooks = { attempts = settings.attempts, retry = settings.retry, queue = {}, held = {}, rules = {} }
  webhooks.changed = function() end
  return setmetatable(webhooks, Webhooks)
end

return M
