-- An inbox of webhooks that all workers of nginx share. Its memory is a shared dict of its own. Any worker may
-- receive an event, and any worker may await it. Each event is handled once.

local build = require "riskscreen.options.build"
local claims = require "riskscreen.webhook.claims"
local dicts = require "riskscreen.nginx.webhook.dict"
local inbox = require "riskscreen.webhook.inbox"
local runtime = require "riskscreen.runtime"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local time = require "riskscreen.util.time"
local waiters = require "riskscreen.webhook.waiters"

local ngx = _G.ngx

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
  local dict = ngx.shared[name]
  if not dict then
    return nil,
      ("must name a shared dict (got %s): put 'lua_shared_dict %s 8m;' into http"):format(
        text.show(name),
        text.printable(name)
      )
  end
  return dict
end

local dict_doc = "Name of a `lua_shared_dict` with no other user: others could push events out of it."
local dict = build.required(build.checked("dict", "string", shared_dict, dict_doc))
local early_fields = { build.seconds("ttl", 3600, "How long they are kept.", 1, LONGEST_TTL) }
local early_doc = "How long events are kept for transactions that are awaited later, or in another worker."

---@type riskscreen.Option[]
local options = tables.concat({ dict }, inbox.shared_options, {
  build.group("early", early_fields, early_doc, {}),
  build.seconds("lease", 30, "Time after which an event may come again whose worker died handling it.", 0.1, 3600),
  build.seconds("poll", 0.05, "Interval at which a worker with waiters looks for events of other workers.", 0.005, 10),
})

local M = { options = options }

---An inbox, or the reason why its options are refused.
---@param given riskscreen.nginx.InboxOptions
---@return riskscreen.Inbox|nil inbox
---@return string|nil message
function M.make(given)
  local settings, message = inbox.check(options, given)
  if not settings then
    return nil, message
  end
  local place = dicts.new(settings.dict, {
    limit = settings.remember.limit,
    ttl = settings.early.ttl,
    poll = settings.poll,
    time = time.now,
    now = runtime.now,
  })
  local handled = claims.new(place, { prefix = "claim:", ttl = settings.remember.ttl, lease = settings.lease })
  local made = inbox.assemble(settings, handled, waiters.new(place, settings.early.ttl))
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
