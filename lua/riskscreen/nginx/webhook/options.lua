-- The options of an inbox that nginx's workers share: name, type, range, default, meaning. Checks and the guide come
-- from here. What they come to is in inbox.lua.

local inbox = require "riskscreen.webhook.inbox"
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
return {
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
    doc = "on_failure(failure, event): told of every event that was not handled; by default it is in the error log.",
  },
}
