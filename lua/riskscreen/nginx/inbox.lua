-- An inbox of webhooks that all workers of nginx share: what it remembers is in a shared dict of its own, so that any
-- worker may receive an event, each is handled once, and whoever waits for it in any worker gets it.

local check = require "riskscreen.options.check"
local guard = require "riskscreen.webhook.auth"
local inbox = require "riskscreen.webhook.inbox"
local ledger = require "riskscreen.nginx.webhook.durable_dict"
local events = require "riskscreen.nginx.webhook.waiters"
local options = require "riskscreen.nginx.webhook.options"
local store = require "riskscreen.nginx.webhook.store"
local text = require "riskscreen.util.text"
local worker = require "riskscreen.nginx.webhook.worker"

-- With the rest, by the process that reads the configuration: workers may not be allowed to read its files.
require "riskscreen.nginx.webhook.content"

local function report(failure, event)
  local what = text.printable(event.eventType) .. " " .. text.printable(event.webhookId)
  worker.warn("the webhook " .. what .. " was not handled: " .. text.printable(tostring(failure), 500))
end

local M = {}

---An inbox, or what is wrong with its options.
---@param given riskscreen.nginx.InboxOptions
---@return riskscreen.Inbox|nil inbox
---@return string|nil message
function M.make(given)
  if type(given) ~= "table" then
    return nil, "expected a table of options (got " .. text.kind(given) .. ")"
  end
  local settings, wrong = check.options(options, given)
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
  settings.on_failure = settings.on_failure or report
  local made = inbox.assemble(settings, handled, kept)
  made.dict = settings.dict
  return made
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
