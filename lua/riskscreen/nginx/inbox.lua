-- An inbox of webhooks that all workers of nginx share: what it remembers is in a shared dict of its own, so that any
-- worker may receive an event, each is handled once, and whoever waits for it in any worker gets it.

local check = require "riskscreen.check"
local guard = require "riskscreen.inbox.guard"
local inbox = require "riskscreen.inbox"
local ledger = require "riskscreen.nginx.inbox.ledger"
local events = require "riskscreen.nginx.inbox.events"
local store = require "riskscreen.nginx.inbox.store"
local text = require "riskscreen.text"
local worker = require "riskscreen.nginx.inbox.worker"

local LONGEST_TTL = 30 * 86400 -- seconds

---@class riskscreen.nginx.InboxOptions
---@field dict string
---@field handlers? table<string, fun(event: riskscreen.WebhookEvent): any>
---@field secret? { value: string|string[], header?: string, query?: string, path?: boolean }
---@field allow? string[]
---@field verify? fun(body: string, headers: table<string, string>, delivery: riskscreen.Delivery): boolean|nil, string?
---@field accept_unauthenticated? boolean
---@field fetch? fun(request_id: string): table|nil, any
---@field remember? { limit?: integer, ttl?: number }
---@field early? { ttl?: number }
---@field lease? number
---@field poll? number
---@field on_failure? fun(failure: any, event: riskscreen.WebhookEvent)

local function shared_dict(name)
  local ngx = rawget(_G, "ngx")
  local dict = ngx and ngx.shared and ngx.shared[name]
  if not dict then
    return nil,
      ("must name a shared dict (got %s): put 'lua_shared_dict %s 8m;' into http"):format(
        text.show(name),
        text.printable(name)
      )
  end
  return dict
end

local function report(failure, event)
  local what = text.printable(event.eventType) .. " " .. text.printable(event.webhookId)
  worker.warn("the webhook " .. what .. " was not handled: " .. text.printable(tostring(failure), 500))
end

local function seconds(name, default, minimum, maximum, doc)
  return {
    name = name,
    type = "number",
    default = default,
    minimum = minimum,
    maximum = maximum,
    unit = "seconds",
    doc = doc,
  }
end

local function option(name)
  for _, entry in ipairs(inbox.options) do
    if entry.name == name then
      return entry
    end
  end
end

---@type riskscreen.Option[]
local own_options = {
  {
    name = "dict",
    type = "string",
    required = true,
    check = shared_dict,
    doc = "Name of a `lua_shared_dict` that nothing else uses: what a full one pushes out would be lost.",
  },
  option "handlers",
  option "secret",
  option "allow",
  option "verify",
  option "accept_unauthenticated",
  option "fetch",
  option "remember",
  {
    name = "early",
    type = "table",
    default = { ttl = 3600 },
    fields = { seconds("ttl", 3600, 1, LONGEST_TTL, "For how long.") },
    doc = "For how long events are kept for transactions that are awaited later, or elsewhere.",
  },
  seconds("lease", 30, 0.1, 3600, "After how long an event may come again whose worker has ended while it handled it."),
  seconds("poll", 0.05, 0.005, 10, "How often a worker in which somebody waits looks for what others have received."),
  {
    name = "on_failure",
    type = "function",
    default = report,
    doc = "on_failure(failure, event): told of every event that was not handled; by default it is in the error log.",
  },
}

local M = { options = own_options }

---An inbox, or what is wrong with its options.
---@param given riskscreen.nginx.InboxOptions
---@return riskscreen.Inbox|nil inbox
---@return string|nil message
function M.make(given)
  if type(given) ~= "table" then
    return nil, "expected a table of options (got " .. text.kind(given) .. ")"
  end
  local settings, wrong = check.options(own_options, given)
  local message = wrong and wrong.message or guard.problem(settings)
  if message then
    return nil, message
  end
  local book = ledger.new(settings.dict)
  local handled = store.new {
    ledger = book,
    limit = settings.remember.limit,
    ttl = settings.remember.ttl,
    lease = settings.lease,
    worker = worker,
  }
  local kept = events.new {
    ledger = book,
    ttl = settings.early.ttl,
    worker = {
      pid = worker.pid,
      now = worker.now,
      warn = worker.warn,
      watch = worker.watcher(settings.poll),
    },
  }
  return inbox.assemble(settings, handled, kept)
end

---An inbox for all workers: to be made in init_by_lua, and served by `inbox:serve()` in a content handler.
---@param given riskscreen.nginx.InboxOptions
---@return riskscreen.Inbox
function M.new(given)
  local made, message = M.make(given)
  if not made then
    error("nginx.inbox: " .. message, 2)
  end
  return made
end

return M
