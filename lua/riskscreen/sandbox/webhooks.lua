-- The webhooks of a service: how each event is delivered, the queue of deliveries, and sending them to an inbox or URL.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local faults = require "riskscreen.sandbox.faults"
local json = require "riskscreen.json"
local options = require "riskscreen.options"
local runtime = require "riskscreen.runtime"
local tables = require "riskscreen.util.tables"

local EVENT_TYPE = "getTxHashCustomRiskScore" -- the one type that the interface shows
local MOST = 1000000000
local SHORTEST_WAIT = 0.01 -- seconds: a clock of whole seconds may still stand before the time that was waited for
local SEND_TIMEOUT = 10 -- seconds

-- The wrong values, by the wrong field of the event or of its data. False removes the field.
local wrong_values = {
  webhookId = false,
  eventType = "sandboxUnknownEvent",
  timestamp = "yesterday",
  data = "none",
  requestId = "sandbox-request-of-another",
  customId = "custom-id-of-another",
  maxScore = 0,
  status = 1999,
  dirData = false,
}

local is_in_data = tables.set { "requestId", "customId", "maxScore", "status", "dirData" }

---@class riskscreen.sandbox.Delivery how the webhook of a transaction is delivered
---@field late? number seconds after the transaction is done
---@field copies? integer the number of deliveries of the same event
---@field never? boolean
---@field hold? boolean only after the next one, that is out of order
---@field wrong? string the field that is wrong
---@field nth? integer the first transaction that it applies to (default 1)
---@field count? integer the number of transactions (default all)

local M = {}

---@type riskscreen.Option[]
M.fields = {
  build.seconds("late", nil, "The wait after the transaction is done.", 0),
  build.count("copies", "deliveries", nil, 1, 100, "The number of deliveries of the same event."),
  build.flag("never", nil, "It is not delivered."),
  build.flag("hold", nil, "It is delivered after the next one."),
  build.choice("wrong", tables.sorted_keys(wrong_values), nil, "The field that is wrong."),
  build.count("nth", "transactions", nil, 1, MOST, "The first transaction that it applies to; by default 1."),
  build.count("count", "transactions", nil, 1, MOST, "The number of transactions; by default all."),
}

---@type riskscreen.Option
M.option = build.group("delivery", M.fields, "How a webhook is delivered.")

local function check_url(value)
  if not value:find "^https?://[^/?#]+[^#]*$" then
    return nil, "must be such as http://127.0.0.1:8080/webhooks"
  end
  return value
end

---@type riskscreen.Option
M.setting = build.group("webhook", {
  build.checked("url", "string", check_url, "The receiver of the webhooks."),
  build.map("headers", { type = "string" }, "More headers of the deliveries.", {}),
  build.count("attempts", "deliveries", 5, 1, 1000, "Deliveries of an event while the answer is a 5xx or none comes."),
  build.seconds("retry", 1, "The wait after such an answer; it doubles each time."),
}, "The receiver of webhooks: `url`, `headers`, `attempts`, `retry`. Without a url the service sends none by itself.")

---Parses the header X-Sandbox-Webhook of a submission, such as "late=2; copies=2" or "never".
---@param header string
---@return riskscreen.sandbox.Delivery?
---@return string? message
function M.parse(header)
  local delivery = {}
  for name, value in faults.parts(header) do
    delivery[name] = value
  end
  local checked, err = check.value(M.option, delivery, "X-Sandbox-Webhook")
  return checked, err and err.message
end

---@class riskscreen.sandbox.Webhook one event in the queue
---@field account riskscreen.sandbox.Account
---@field event table
---@field body string
---@field at number the time at which it is due
---@field left integer the remaining attempts
---@field wait number seconds to the attempt after the next

---@class riskscreen.sandbox.Webhooks
---@field changed fun() called when something was added
---@field private queue riskscreen.sandbox.Webhook[] by due time, then in the order of addition
---@field private held riskscreen.sandbox.Webhook[] delivered after the next one
---@field private rules { delivery: riskscreen.sandbox.Delivery, seen: integer }[]
local Webhooks = {}
Webhooks.__index = Webhooks

---Sets how the webhooks of later transactions are delivered.
---@param delivery riskscreen.sandbox.Delivery checked
function Webhooks:deliver(delivery)
  table.insert(self.rules, { delivery = delivery, seen = 0 })
end

-- The first rule that applies. Every rule counts every transaction.
local function next_delivery(rules)
  local chosen
  for _, rule in ipairs(rules) do
    local hits = faults.hits(rule, rule.delivery)
    chosen = chosen or hits and rule.delivery
  end
  return chosen or {}
end

---Adds the event of a transaction.
---@param account riskscreen.sandbox.Account
---@param id string the webhookId
---@param at number the time at which the transaction is done, seconds since the Unix epoch
---@param data table the event's data; the caller gives it away
---@param requested? riskscreen.sandbox.Delivery takes precedence over the rules
function Webhooks:add(account, id, at, data, requested)
  local by_rules = next_delivery(self.rules)
  local delivery = requested or by_rules
  if delivery.never then
    return
  end
  local timestamp = os.date("!%Y-%m-%d %H:%M:%S", math.floor(at))
  local event = { webhookId = id, eventType = EVENT_TYPE, timestamp = timestamp, data = data }
  local wrong = delivery.wrong
  if wrong then
    local part = is_in_data[wrong] and event.data or event
    part[wrong] = wrong_values[wrong] or nil
  end
  local body = assert(json.encode(event))
  for _ = 1, delivery.copies or 1 do
    tables.insert_sorted(self.queue, "at", {
      account = account,
      event = event,
      body = body,
      at = at + (delivery.late or 0),
      held = delivery.hold,
      left = self.attempts,
      wait = self.retry,
    })
  end
  self.changed()
end

---The time at which the next one is due.
---@return number?
function Webhooks:next_at()
  return self.queue[1] and self.queue[1].at
end

---Takes the webhooks that are due, in the order of delivery.
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
      due = tables.concat(due, { webhook }, self.held)
      self.held = {}
    end
  end
  for _, webhook in ipairs(due) do
    webhook.left = webhook.left - 1
  end
  return due
end

---Takes the answer to a delivery: after a 5xx, or no answer, it is due again.
---@param webhook riskscreen.sandbox.Webhook
---@param status? integer absent when there was no answer
---@param now number
function Webhooks:answered(webhook, status, now)
  if webhook.left > 0 and (not status or status >= 500) then
    webhook.at = now + webhook.wait
    webhook.wait = webhook.wait * 2
    tables.insert_sorted(self.queue, "at", webhook)
    self.changed()
  end
end

---No webhooks yet.
---@param settings { attempts: integer, retry: number }
---@return riskscreen.sandbox.Webhooks
function M.new(settings)
  local webhooks = { attempts = settings.attempts, retry = settings.retry, queue = {}, held = {}, rules = {} }
  webhooks.changed = function() end
  return setmetatable(webhooks, Webhooks)
end

---Sends the webhooks of a service as they become due, from now on. The runtime drives it.
---@param service riskscreen.sandbox.Service
---@param send fun(body: string): integer|nil the status of the answer, or nil
function M.start(service, send)
  local webhooks, changed, running = service.webhooks, runtime.tasks.signal(), false

  local function run()
    while webhooks:next_at() do
      local wait = webhooks:next_at() - service.clock()
      if wait > 0 then
        changed:wait(math.max(wait, SHORTEST_WAIT))
      end
      for _, webhook in ipairs(webhooks:take(service.clock())) do
        runtime.defer(function()
          webhooks:answered(webhook, send(webhook.body), service.clock())
        end)
      end
    end
    running = false
  end

  function webhooks.changed()
    if running then
      changed:notify()
    else
      running = true
      runtime.defer(run)
    end
  end
end

local content_type = { ["Content-Type"] = "application/json" }

---A sender that posts to a URL.
---@param url string
---@param headers table<string, string>
---@return fun(body: string): integer|nil
function M.to_url(url, headers)
  local origin, target = url:match "^(https?://[^/?#]+)([^#]*)$"
  local settings = assert(options.check_client { base_url = origin, access_key = "no-access-key", compression = false })
  local transport = runtime.transport(settings)
  return function(body)
    local reply = transport {
      method = "POST",
      target = target == "" and "/" or target,
      headers = tables.merge(content_type, headers),
      body = body,
      timeout = SEND_TIMEOUT,
      connect_timeout = SEND_TIMEOUT,
    }
    return reply and reply.status
  end
end

---A sender that puts deliveries into an inbox of this process.
---@param inbox riskscreen.Inbox
---@param url? string the URL under which the inbox would be served: its path may hold a secret
---@param headers table<string, string>
---@return fun(body: string): integer|nil
function M.to_inbox(inbox, url, headers)
  local where = { target = url and url:match "^https?://[^/]+(.*)$" or "/", remote = "127.0.0.1" }
  return function(body)
    return (inbox:deliver("POST", tables.merge(content_type, headers), body, where))
  end
end

return M
