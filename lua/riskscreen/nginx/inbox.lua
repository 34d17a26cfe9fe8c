-- An inbox of webhooks that all workers of nginx share. Its memory is a shared dict of its own. Any worker may
-- receive an event, and any worker may await it. Each event is handled once.

local inbox = require "riskscreen.webhook.inbox"
local durable_dict = require "riskscreen.nginx.webhook.durable_dict"
local options = require "riskscreen.nginx.webhook.options"
local store = require "riskscreen.nginx.webhook.store"
local text = require "riskscreen.util.text"
local waiters = require "riskscreen.nginx.webhook.waiters"

local ngx = _G.ngx

local COLLECTED_EVERY = 20 -- polls, in a worker that is about to exit

-- The nginx worker as an inbox needs it: pid, clock, work beside a request, and work that outlives the request. Specs
-- replace it by one with a virtual clock.
local worker = {}

---Unix seconds.
---@return number
function worker.now()
  return ngx.now()
end

---@return integer
function worker.pid()
  return ngx.worker.pid()
end

---@param message string
function worker.warn(message)
  ngx.log(ngx.ERR, "riskscreen: ", message)
end

---Calls a function at an interval until the returned function is called or the request is over.
---@param seconds number
---@param fn fun()
---@return fun() stop must be called in the same request
function worker.beside(seconds, fn)
  local thread = ngx.thread.spawn(function()
    while true do
      ngx.sleep(seconds)
      fn()
    end
  end)
  return function()
    ngx.thread.kill(thread)
  end
end

-- The waiters of aborted requests keep an exiting worker alive until they are collected.
local function collect_when_exiting(polls)
  if polls % COLLECTED_EVERY == 0 and ngx.worker.exiting() then
    collectgarbage()
  end
end

local function poll_on(poll, seconds)
  local polls = 0
  while poll() do
    ngx.sleep(seconds)
    polls = polls + 1
    collect_when_exiting(polls)
  end
end

---Makes a function that calls `poll` at an interval, independent of the request, for as long as it returns true.
---@param seconds number
---@return fun(poll: fun(): boolean, ended: fun())
function worker.watcher(seconds)
  return function(poll, ended)
    local ok, message = ngx.timer.at(0, function()
      local fine, failure = pcall(poll_on, poll, seconds)
      ended()
      if not fine then
        worker.warn("the webhooks that other workers receive are not polled: " .. tostring(failure))
      end
    end)
    if not ok then
      ended()
      worker.warn("the webhooks that other workers receive are not polled: " .. tostring(message))
    end
  end
end

local function report(failure, event)
  local what = text.printable(event.eventType) .. " " .. text.printable(event.webhookId)
  worker.warn("the webhook " .. what .. " was not handled: " .. text.printable(tostring(failure), 500))
end

local M = {}

---An inbox, or the reason why its options are refused.
---@param given riskscreen.nginx.InboxOptions
---@return riskscreen.Inbox|nil inbox
---@return string|nil message
function M.make(given)
  local settings, message = inbox.check(options, given)
  if not settings then
    return nil, message
  end
  local dict = durable_dict.new(settings.dict)
  local handled = store.new {
    dict = dict,
    limit = settings.remember.limit,
    ttl = settings.remember.ttl,
    lease = settings.lease,
    worker = worker,
  }
  local kept = waiters.new {
    dict = dict,
    ttl = settings.early.ttl,
    worker = { now = worker.now, watch = worker.watcher(settings.poll) },
  }
  settings.on_failure = settings.on_failure or report
  local made = inbox.assemble(settings, handled, kept)
  made.dict = settings.dict
  return made
end

---An inbox for all workers. Make it in init_by_lua and call `inbox:serve()` in a content handler.
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
