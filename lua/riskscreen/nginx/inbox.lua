-- An inbox of webhooks that all workers of nginx share. Its memory is a shared dict of its own. Any worker may
-- receive an event, and any worker may await it. Each event is handled once.

local claims = require "riskscreen.webhook.claims"
local dicts = require "riskscreen.nginx.webhook.dict"
local inbox = require "riskscreen.webhook.inbox"
local options = require "riskscreen.nginx.webhook.options"
local waiters = require "riskscreen.webhook.waiters"

local ngx = _G.ngx

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
  local dict = dicts.new(settings.dict, {
    limit = settings.remember.limit,
    ttl = settings.early.ttl,
    poll = settings.poll,
    time = ngx.now,
  })
  local handled = claims.new(dict, { prefix = "claim:", ttl = settings.remember.ttl, lease = settings.lease })
  local made = inbox.assemble(settings, handled, waiters.new(dict, settings.early.ttl))
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
