-- An inbox of webhooks: authenticates deliveries and handles each event once. An event goes to the transactions that
-- await it and to the operator's handlers. Any HTTP server can call `deliver`; listener.lua is the library's own.

local auth = require "riskscreen.webhook.auth"
local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local claims = require "riskscreen.webhook.claims"
local digest = require "riskscreen.address.digest"
local errors = require "riskscreen.errors"
local event_parser = require "riskscreen.webhook.event"
local json = require "riskscreen.json"
local listener = require "riskscreen.webhook.listener"
local places = require "riskscreen.webhook.places"
local runtime = require "riskscreen.runtime"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local ttl_queue = require "riskscreen.util.ttl_queue"
local waiters = require "riskscreen.webhook.waiters"

local protected = runtime.tasks.pcall

local MAX_SIZE = event_parser.MAX_SIZE
local MAX_REMEMBERED = 10000000 -- events
local LONGEST_TTL = 30 * 86400 -- seconds
local LEASE = 300 -- seconds after which another program may handle an event whose program has ended
local RETRY_AFTER = "1" -- seconds, for a delivery of an event that is being handled

---@class riskscreen.InboxOptions
---@field handlers? table<string, fun(event: riskscreen.WebhookEvent): any> by type of event; "*" for all others
---@field secret? { value: string|string[], header?: string, query?: string, path?: boolean }
---@field allow? string[] addresses and networks that may deliver
---@field verify? fun(body: string, headers: table<string, string>, delivery: riskscreen.Delivery): boolean|nil, string?
---@field accept_unauthenticated? boolean
---@field fetch? fun(request_id: string): table|nil, any gives the result that is used in place of the event's data
---@field store? riskscreen.Store|riskscreen.WebhookStore
---@field account? string required with a store of riskscreen.store
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

local function is_store(value)
  return type(value.space) == "function"
end

local function store_of_operator(value)
  if is_store(value) then
    return value
  end
  for _, method in ipairs { "claim", "complete", "release" } do
    if type(value[method]) ~= "function" then
      return nil, "must have a method " .. method
    end
  end
  return value
end

local function bounds(name, limit, ttl, doc)
  return build.group(name, {
    build.count("limit", "events", limit, 1, MAX_REMEMBERED, "How many; beyond that the oldest are dropped."),
    build.seconds("ttl", ttl, "For how long.", nil, LONGEST_TTL),
  }, doc, {})
end

local function report(failure, event)
  local what = text.printable(event.eventType) .. " " .. text.printable(event.webhookId)
  local why = text.printable(tostring(failure), 500)
  runtime.tasks.report(("riskscreen: the webhook %s was not handled: %s"):format(what, why))
end

local HANDLERS = "Functions by type of event; `*` for all others. One that raises, or returns nil or false and an "
  .. "error, fails: the answer is 500 and the event may come again."
local ON_FAILURE = "on_failure(failure, event): called for every event that was not handled; by default it is written "
  .. "to stderr, or to nginx's error log."
local STORE = "A store that keeps which events were handled, and early events; or a table with `claim`, `complete` and "
  .. "`release` for handled events alone. By default both are in memory. Inboxes of several accounts may share it."

---The options of every inbox.
---@type riskscreen.Option[]
local shared_options = tables.concat(auth.options, {
  build.dictionary("handlers", handlers, HANDLERS, {}),
  build.callback("fetch", "fetch(requestId) → result: called for every event; its result replaces the event's data."),
  bounds("remember", 100000, 7 * 86400, "How many handled events are remembered, and for how long."),
  build.callback("on_failure", ON_FAILURE, report),
})

---@type riskscreen.Option[]
local inbox_options = tables.concat(shared_options, {
  build.checked("store", "table", store_of_operator, STORE),
  build.text("account", build.forms.word, "Name of the account whose events come here. Required beside `store`."),
  bounds("early", 1000, 3600, "How many events are kept for transactions that are awaited later, and for how long."),
  build.clock("Returns seconds, for `remember` and `early`.", runtime.now, runtime.now),
})

-- The events that have been handled, so that none is handled twice. A store that several processes share has the same
-- three methods.
---@class riskscreen.WebhookStore
---@field claim fun(self, id: string): "new"|"busy"|"done"|nil, any claims the event; or nil and the reason
---@field complete fun(self, id: string) marks the event as handled
---@field release fun(self, id: string) gives up the claim: the event may come again
local Store = {}
Store.__index = Store

function Store:claim(id)
  if self.done:get(id) then
    return "done"
  elseif self.claimed[id] then
    return "busy"
  end
  self.claimed[id] = true
  return "new"
end

function Store:complete(id)
  self.claimed[id] = nil
  self.done:put(id, true)
end

function Store:release(id)
  self.claimed[id] = nil
end

---@class riskscreen.Inbox
---@field dict? table the shared dict of nginx that holds the inbox's events
---@field account? string the name of the account whose events come here
---@field waiters riskscreen.webhook.Waiters the transactions that await events
---@field private authenticate fun(delivery: riskscreen.Delivery): integer|nil, string|nil
---@field private handlers table<string, function>
---@field private store riskscreen.WebhookStore
---@field private settings { fetch?: function, verify?: function, on_failure: function }
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

local function delivery_of(method, headers, body, where)
  local target = where.target or "/"
  local path, query = target:match "^([^?]*)%??(.*)$"
  return {
    method = method,
    headers = text.lower_names(headers),
    body = body,
    path = path,
    query = query,
    remote = where.remote,
  }
end

-- The event with the fetched result in place of its own data. Everything else from the sender is dropped.
local function with_fetched_data(self, event)
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
  local fetched = tables.pick(event, { "webhookId", "eventType", "timestamp" })
  fetched.data = tables.merge(result, { requestId = request_id })
  return fetched
end

-- The id under which an event is handled once, and the id under which transactions get it. Fetched data make the first
-- one: a forged delivery must not keep out the genuine one by its webhookId. The second one tells events of one
-- webhookId apart, where the operator's store lets them pass.
local function ids_of(self, event)
  local webhook_id = not self.settings.fetch and event.webhookId or nil
  local id = text.hex(digest.sha256(tables.fingerprint { event.eventType, event.data, webhook_id }))
  return webhook_id or id, id
end

-- Handles an event. Returns the failure and the status to answer with, or nothing.
local function process(self, event, id)
  local kept, failure = self.waiters:add(event, id)
  if not kept then
    return failure, 503
  end
  local handler = self.handlers[event.eventType] or self.handlers["*"]
  if handler then
    local value, err = handler(event)
    if not value and err ~= nil then
      return err
    end
  end
end

-- Tells the operator of a failure. Where that fails, too, the delivery has its answer nevertheless.
local function tell(self, failure, event)
  local ok, told = protected(self.settings.on_failure, failure, event)
  if not ok then
    report(told, event)
  end
end

local function refuse_failed(self, status, failure, event)
  tell(self, failure, event)
  return refuse(status, "the event could not be handled")
end

-- Calls a method of the store, which may be the operator's own. Nil and the reason where it fails.
local function ask_store(self, method, id)
  local ok, state, err = protected(self.store[method], self.store, id)
  if ok then
    return state, err
  end
  return nil, state
end

-- Tells the store how the handling of an event has ended. Where that fails, the delivery has its answer nevertheless.
local function tell_store(self, method, id, event)
  local _, failure = ask_store(self, method, id)
  if failure ~= nil then
    tell(self, failure, event)
  end
end

local function accept(self, event)
  if self.settings.fetch then
    local ok, fetched, err = protected(with_fetched_data, self, event)
    if not ok or not fetched then
      return refuse_failed(self, 500, err or fetched, event)
    end
    event = fetched
  end
  local id, event_id = ids_of(self, event)
  local state, err = ask_store(self, "claim", id)
  if state == "done" then
    return answer(200, { received = true, duplicate = true })
  elseif state == "busy" then
    return refuse(503, "the event is being handled", { ["Retry-After"] = RETRY_AFTER })
  elseif state ~= "new" then
    tell(self, err or "the store cannot say whether the event was handled", event)
    return refuse(503, "the event cannot be taken now")
  end
  local ok, failure, status = protected(process, self, event, event_id)
  if ok and failure == nil then
    tell_store(self, "complete", id, event)
    return answer(200, { received = true })
  end
  tell_store(self, "release", id, event)
  return refuse_failed(self, status or 500, failure, event)
end

-- Asks the operator's `verify`. Returns a status to refuse the delivery with, or nil.
local function verify(self, delivery)
  local ok, genuine, reason = protected(self.settings.verify, delivery.body, delivery.headers, delivery)
  if not ok then
    tell(self, genuine, { webhookId = "", eventType = "being verified" })
    return 500, "the delivery could not be verified"
  elseif genuine ~= true then
    return 401, type(reason) == "string" and text.printable(reason, 200) or "the delivery is not genuine"
  end
end

---Takes one delivery that any HTTP server has received.
---@param method string
---@param headers table<string, string>
---@param body string
---@param where? { target?: string, remote?: string } the request's path and query, and the sender's IP address
---@return integer status
---@return table<string, string> headers
---@return string body
function Inbox:deliver(method, headers, body, where)
  text.expect_self(self, Inbox, "inbox:deliver")
  if type(method) ~= "string" or type(headers) ~= "table" or type(body) ~= "string" then
    error("inbox:deliver: expected a method, a table of headers and a body", 2)
  end
  where = where == nil and {} or where
  if type(where) ~= "table" or where.target ~= nil and type(where.target) ~= "string" then
    error("inbox:deliver: the last argument must be a table such as { target = '/webhooks', remote = '192.0.2.7' }", 2)
  end
  local delivery = delivery_of(method, headers, body, where)
  local status, reason = self.authenticate(delivery)
  if not status and method ~= "POST" then
    return refuse(405, "events are delivered by POST", { Allow = "POST" })
  elseif not status and #body > MAX_SIZE then
    return refuse(413, ("a delivery has at most %d bytes"):format(MAX_SIZE))
  elseif not status and self.settings.verify then
    status, reason = verify(self, delivery)
  end
  if status then
    return refuse(status, reason)
  end
  local event, err = event_parser.parse(body, delivery.headers)
  if not event then
    return refuse(400, err.message)
  end
  return accept(self, event)
end

---Sets the handler of a type of event, or of all others: "*".
---@param event_type string
---@param handler fun(event: riskscreen.WebhookEvent): any
function Inbox:on(event_type, handler)
  text.expect_self(self, Inbox, "inbox:on")
  if type(event_type) ~= "string" or type(handler) ~= "function" then
    error("inbox:on: expected a type of event and a function", 2)
  end
  self.handlers[event_type] = handler
end

---Serves the inbox over HTTP with the library's own server, driven by its own loop.
---@param options? { host?: string, port?: integer, path?: string, on_refused?: function }
---@return riskscreen.InboxListener|nil listener `url`, `close()`
---@return riskscreen.Error|nil err
function Inbox:listen(options)
  text.expect_self(self, Inbox, "inbox:listen")
  local place = check.arguments("inbox:listen", listener.options, options or {})
  return listener.new(self, place)
end

---Answers the request that nginx is serving. Call it in content_by_lua.
---@return integer status
function Inbox:serve()
  text.expect_self(self, Inbox, "inbox:serve")
  local status = runtime.serve and runtime.serve(MAX_SIZE, function(...)
    return self:deliver(...)
  end)
  return status or error("inbox:serve: it answers a request of nginx, in content_by_lua", 2)
end

local M = { options = inbox_options, shared_options = shared_options }

---Checks the options of an inbox.
---@param specs riskscreen.Option[]
---@param given any
---@return table|nil settings
---@return string|nil message
function M.check(specs, given)
  local settings, wrong = check.options(specs, given)
  local message = wrong and wrong.message or auth.misuse(settings)
  return not message and settings or nil, message
end

---Makes an inbox of checked options, a store and waiters.
---@param settings table
---@param handled riskscreen.WebhookStore the events that were handled
---@param awaited riskscreen.webhook.Waiters the transactions that await events
---@return riskscreen.Inbox
function M.assemble(settings, handled, awaited)
  return setmetatable({
    authenticate = auth.new(settings),
    handlers = settings.handlers,
    store = handled,
    waiters = awaited,
    -- The secret stays in `authenticate`.
    settings = { fetch = settings.fetch, verify = settings.verify, on_failure = settings.on_failure },
  }, Inbox)
end

---A new inbox.
---@param given riskscreen.InboxOptions
---@return riskscreen.Inbox
function M.new(given)
  local settings, message = M.check(inbox_options, given)
  if settings and settings.store and is_store(settings.store) and not settings.account then
    message = "store needs `account`: a name for your account at the service, the same after the key is replaced"
  end
  if message then
    error("webhook.inbox: " .. message, 2)
  end
  local remember, early, clock = settings.remember, settings.early, settings.clock
  local handled, place = settings.store, places.memory(early, clock)
  if not handled then
    handled = setmetatable({ done = ttl_queue.new(remember.limit, remember.ttl, clock), claimed = {} }, Store)
  elseif is_store(handled) then
    place = places.store(handled, settings.account, early.ttl, waiters.keys_of)
    handled = claims.new(handled:space "webhook:handled", {
      prefix = places.prefix(settings.account),
      old_prefix = "id ",
      ttl = remember.ttl,
      lease = LEASE,
    })
  end
  local made = M.assemble(settings, handled, waiters.new(place, early.ttl))
  made.account = settings.account
  return made
end

return M
