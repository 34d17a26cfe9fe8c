-- The options of an inbox that the workers of nginx share. Checks and the reference come from this table.

local build = require "riskscreen.options.build"
local inbox = require "riskscreen.webhook.inbox"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

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

local dict_doc = "Name of a `lua_shared_dict` with no other user: others could push events out of it."
local dict = build.required(build.checked("dict", "string", shared_dict, dict_doc))
local early_fields = { build.seconds("ttl", 3600, "How long they are kept.", 1, LONGEST_TTL) }
local early_doc = "How long events are kept for transactions that are awaited later, or in another worker."

---@type riskscreen.Option[]
local own_options = {
  build.group("early", early_fields, early_doc, {}),
  build.seconds("lease", 30, "Time after which an event may come again whose worker died handling it.", 0.1, 3600),
  build.seconds("poll", 0.05, "Interval at which a worker with waiters looks for events of other workers.", 0.005, 10),
}

return tables.concat({ dict }, inbox.shared_options, own_options)
