-- An inbox of webhooks: checks who delivers, takes each event once, gives it to the transactions that await it and to
-- the operator's handlers. Any HTTP server can put deliveries in; it has one of its own in inbox/listener.lua.

local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local events = require "riskscreen.webhook.waiters"
local guard = require "riskscreen.webhook.auth"
local json = require "riskscreen.json"
local runtime = require "riskscreen.runtime"
local store = require "riskscreen.webhook.store"
local text = require "riskscreen.util.text"
local webhook = require "riskscreen.webhook"

local MAX_REMEMBERED = 10000000 -- events
local LONGEST_TTL = 30 * 86400 -- seconds
local RETRY_AFTER = "1" -- seconds, for a delivery of an event that is being handled

---@class riskscreen.InboxOptions
---@field handlers? table<string, fun(event: riskscreen.WebhookEvent): any> by type of event; "*" for all others
---@field secret? { value: string|string[], header?: string, query?: string, path?: boolean }
---@field allow? string[] addresses and networks that may deliver
---@field verify? fun(body: string, headers: table<string, string>, delivery: riskscreen.Delivery): boolean|nil, string?
---@field accept_unauthenticated? boolean
---@field fetch? fun(request_id: string): table|nil, any gives the result that is used in place of the event's data
---@field store? riskscreen.WebhookStore
---@field remember? { limit?: integer, ttl?: number } of handled events
---@field early? { limit?: integer, ttl?: number } of events whose transaction is not awaited yet
---@field on_failure? fun(failure: any, event: riskscreen.WebhookEvent)
---@field clock? fun(): number

local function handlers(value)
  local copy = {}
  for name, handler in pairs(value) do
    if type(name) ~= "string" or type(handler) ~= "function" then
      return nil, "must map types of events to functions"
    end
    copy[name] = handler
  end
  return copy
end

local function store_of_operator(value)
  for _, method in ipairs { "claim", "complete", "release" } do
    if type(value[method]) ~= "function" then
      return nil, "must have a method " .. method
    end
  end
  return value
end

local function bounds(name, limit, ttl, doc)
  return {
    name = name,
    type = "table",
    default = { limit = limit, ttl = ttl },
    fields = {
      {
        name = "limit",
        type = "integer",
        default = limit,
        minimum = 1,
        maximum = MAX_REMEMBERED,
        unit = "events",
        doc = "How many; of more, the oldest go.",
      },
      {
        name = "ttl",
        type = "number",
        default = ttl,
        minimum = 0.001,
        maximum = LONGEST_TTL,
        unit = "seconds",
        doc = "For how long.",
      },
    },
    doc = doc,
  }
end

local function report(failure, event)
  local what = text.printable(event.eventType) .. " " .. text.printable(event.webhookId)
  io.stderr:write("riskscreen: the webhook ", what, " was not handled: ", tostring(failure), "\n")
end

---@type riskscreen.Option[]
local inbox_options = {
  {
    name = "handlers",
    type = "table",
    default = {},
    check = handlers,
    doc = "Functions by type of event; `*` for all others. One that raises, or returns nil or false and an error, "
      .. "fails: the answer is 500 and the event may come again.",
  },
  guard.options[1],
  guard.options[2],
  guard.options[3],
  guard.options[4],
  {
    name = "fetch",
    type = "function",
    doc = "fetch(requestId) → result: asked for every event, whose own data is then not used at all.",
  },
  {
    name = "store",
    type = "table",
    check = store_of_operator,
    doc = "Which events were handled; by default in memory.",
  },
  bounds("remember", 100000, 7 * 86400, "How many handled events are remembered, and for how long."),
  bounds("early", 1000, 3600, "How many events are kept for transactions that are awaited later, and for how long."),
  {
    name = "on_failure",
    type = "function",
    default = report,
    doc = "on_failure(failure, event): told of every event that was not handled; by default it is written to stderr.",
  },
  { name = "clock", type = "function", default = runtime.now, doc = "Seconds, for what is kept for a time." },
}

---@class riskscreen.Inbox
---@field dict? table the shared dict of nginx that it keeps its events in
---@field by_custom_id? boolean false where it cannot match events by their customId alone
local Inbox = {}
Inbox.__index = Inbox
Inbox.__name = "riskscreen.Inbox"

local function answer(status, body, headers)
  headers = headers or {}
  headers["Content-Type"] = "application/json"
  return status, headers, json.encode(body)
end

local function refuse(status, reason, headers)
  return answer(status, { error = reason }, headers)
end

local function lower_names(headers)
  local lower = {}
  for name, value in pairs(headers) do
    lower[tostring(name):lower()] = value
  end
  return lower
end

-- A function of the operator's, which may wait and may raise. PUC Lua 5.1 cannot yield across pcall: there it blocks.
-- Cancelling the task in which it runs is not its failure.
local function protected(fn, ...)
  local ok, result = pcall(runtime.tasks.iterator(fn), ...)
  if not ok and errors.is(result) and result.kind == "cancelled" then
    return false, result, true
  end
  return ok, result
end

local function delivery_of(method, headers, body, where)
  local target = where.target or "/"
  local path, query = target:match "^([^?]*)%??(.*)$"
  return {
    method = method,
    headers = lower_names(headers),
    body = body,
    path = path,
    query = query,
    remote = where.remote,
  }
end

-- The result of a transaction, asked for rather than believed.
local function fetched(self, event)
  local request_id = event.data.requestId
  if type(request_id) ~= "string" or request_id == "" then
    return nil, errors.new("protocol", "the event names no requestId, so that nothing can be fetched")
  end
  local result, err = self.settings.fetch(request_id)
  if type(result) ~= "table" then
    return nil, err or errors.new("protocol", "fetch returned " .. text.kind(result))
  elseif result.requestId ~= nil and result.requestId ~= request_id then
    return nil, errors.new("protocol", "fetch returned the result of another request")
  end
  local copy = {}
  for name, value in pairs(event) do
    copy[name] = value
  end
  copy.data = result
  return copy
end

-- Does with an event what is to be done; returns why it failed and with which status, or nothing.
local function process(self, event)
  if self.settings.fetch then
    local err
    event, err = fetched(self, event)
    if not event then
      return err
    end
  end
  local kept, problem = self.events:add(event)
  if not kept then
    return problem, 503
  end
  local handler = self.handlers[event.eventType] or self.handlers["*"]
  if handler then
    local value, err = handler(event)
    if not value and err ~= nil then
      return err
    end
  end
end

local function accept(self, event)
  local id = event.webhookId
  local state, problem = self.store:claim(id)
  if state == "done" then
    return answer(200, { received = true, duplicate = true })
  elseif state == "busy" then
    return refuse(503, "the event is being handled", { ["Retry-After"] = RETRY_AFTER })
  elseif state ~= "new" then
    self.settings.on_failure(problem or "the store cannot say whether the event was handled", event)
    return refuse(503, "the event cannot be taken now")
  end
  local status = 500
  local ok, failure, stopped = protected(function()
    local failure, its_status = process(self, event)
    status = its_status or status
    return failure
  end)
  if ok and failure == nil then
    self.store:complete(id)
    return answer(200, { received = true })
  end
  self.store:release(id)
  if stopped then
    error(failure, 0)
  end
  self.settings.on_failure(failure, event)
  return refuse(status, "the event could not be handled")
end

-- The operator's own word on a delivery: a status to refuse with, or nil.
local function verify(self, delivery)
  local reason
  local ok, genuine, stopped = protected(function()
    local result
    result, reason = self.settings.verify(delivery.body, delivery.headers, delivery)
    return result or false
  end)
  if stopped then
    error(genuine, 0)
  elseif not ok then
    self.settings.on_failure(genuine, { webhookId = "", eventType = "that verify was asked about" })
    return 500, "the delivery could not be verified"
  elseif not genuine then
    return 401, type(reason) == "string" and text.printable(reason, 200) or "the delivery is not genuine"
  end
end

---Takes one delivery, of whatever server.
---@param method string
---@param headers table<string, string>
---@param body string
---@param where? { target?: string, remote?: string } the request's path and query, and the sender's IP address
---@return integer status
---@return table<string, string> headers
---@return string body
function Inbox:deliver(method, headers, body, where)
  if type(method) ~= "string" or type(headers) ~= "table" or type(body) ~= "string" then
    error("inbox:deliver: expected a method, a table of headers and a body", 2)
  end
  local delivery = delivery_of(method, headers, body, where or {})
  local status, reason = self.guard(delivery)
  if not status and method ~= "POST" then
    return refuse(405, "events are delivered by POST", { Allow = "POST" })
  elseif not status and #body > webhook.MAX_SIZE then
    return refuse(413, ("a delivery has at most %d bytes"):format(webhook.MAX_SIZE))
  elseif not status and self.settings.verify then
    status, reason = verify(self, delivery)
  end
  if status then
    return refuse(status, reason)
  end
  local event, err = webhook.parse(body, delivery.headers)
  if not event then
    return refuse(400, err.message)
  end
  return accept(self, event)
end

---Sets the handler of a type of event, or of all others: "*".
---@param event_type string
---@param handler fun(event: riskscreen.WebhookEvent): any
function Inbox:on(event_type, handler)
  if type(event_type) ~= "string" or type(handler) ~= "function" then
    error("inbox:on: expected a type of event and a function", 2)
  end
  self.handlers[event_type] = handler
end

---Has a transaction told of its events, those that came before included, for as long as the returned value is kept.
---@param awaited riskscreen.Awaited
---@return table hold
function Inbox:expect(awaited)
  return self.events:expect(awaited)
end

---Says that somebody waits for the events of `awaited` now, until `leave` or for so long at most.
---@param awaited riskscreen.Awaited
---@param seconds number
---@return table|nil waiting for `leave`; nil where there is nothing to leave
function Inbox:attend(awaited, seconds)
  return self.events:attend(awaited, seconds)
end

---Ends `attend`.
---@param waiting table
function Inbox:leave(waiting)
  self.events:leave(waiting)
end

---Serves the inbox over HTTP with the library's own server, driven by its own loop.
---@param options? { host?: string, port?: integer, path?: string }
---@return riskscreen.InboxListener|nil listener `url`, `close()`
---@return string|nil message why it cannot listen
function Inbox:listen(options)
  local listener = require "riskscreen.webhook.listener"
  local place, wrong = check.options(listener.options, options or {})
  if not place then
    error("inbox:listen: " .. wrong.message, 2)
  end
  return listener.new(self, place)
end

---Answers the request that nginx is serving: to be called in its content phase.
function Inbox:serve()
  local ngx = rawget(_G, "ngx")
  if not ngx or ngx.get_phase() ~= "content" then
    error("inbox:serve: it answers a request of nginx, in content_by_lua", 2)
  end
  require("riskscreen.nginx.webhook.content").serve(self)
end

local M = { options = inbox_options }

---An inbox made of checked options and of what remembers.
---@param settings table
---@param handled riskscreen.WebhookStore which events were handled
---@param kept riskscreen.inbox.Events|riskscreen.nginx.Events events, and who awaits them
---@return riskscreen.Inbox
function M.assemble(settings, handled, kept)
  return setmetatable({
    guard = guard.new(settings),
    handlers = settings.handlers,
    store = handled,
    events = kept,
    -- What needs no secret: the guard alone has that.
    settings = { fetch = settings.fetch, verify = settings.verify, on_failure = settings.on_failure },
  }, Inbox)
end

---An inbox, or what is wrong with its options.
---@param given riskscreen.InboxOptions
---@return riskscreen.Inbox|nil inbox
---@return string|nil message
function M.new(given)
  if type(given) ~= "table" then
    return nil, "expected a table of options (got " .. text.kind(given) .. ")"
  end
  local settings, wrong = check.options(inbox_options, given)
  local message = wrong and wrong.message or guard.problem(settings)
  if message then
    return nil, message
  end
  local remember, early, clock = settings.remember, settings.early, settings.clock
  local handled = settings.store or store.new(remember.limit, remember.ttl, clock)
  return M.assemble(settings, handled, events.new(early.limit, early.ttl, clock))
end

return M
