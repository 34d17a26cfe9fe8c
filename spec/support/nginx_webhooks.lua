-- Inside nginx: an inbox over the shared dict "events", clients that await its events, and what its handler was given.
-- See nginx_inbox.lua.
local ngx = _G.ngx
local riskscreen = require "riskscreen"

local M = { TYPE = "getTxHashCustomRiskScore" }

---@param options? table of the inbox, in place of those here
---@param redis? string URL of a store for the events, in place of the dict
function M.start(options, redis)
  local all = {
    dict = "events",
    accept_unauthenticated = true,
    handlers = {
      [M.TYPE] = function(event)
        ngx.shared.notes:incr("handled", 1, 0)
        ngx.shared.notes:incr("handled " .. event.webhookId, 1, 0)
      end,
    },
  }
  for name, value in pairs(options or {}) do
    all[name] = value
  end
  if redis then
    all.dict, all.store, all.account = nil, assert(riskscreen.store.redis(redis)), "specs"
  end
  M.inbox = (redis and riskscreen.webhook.inbox or require("riskscreen.nginx.inbox").new)(all)
end

---A client of a service, which submits there; its results come by webhook alone.
---@param service { url: string, key: string }
function M.client(service)
  return riskscreen.new { base_url = service.url, access_key = service.key, inbox = M.inbox }
end

---Awaits a result: its score, or the kind of the error.
---@param request { id?: string, ticket?: string, seconds: number }
function M.await(request)
  local client = M.client { url = "http://127.0.0.1:1", key = "no-access-key" }
  ngx.shared.notes:incr("waiting", 1, 0)
  local result, other
  if request.ticket then
    result, other = client.kyt:resume(request.ticket):await { timeout = request.seconds }
  else
    result, other = client.kyt:await(request.id, { timeout = request.seconds })
  end
  return { score = result and result.maxScore, source = result and other.source, kind = not result and other.kind }
end

return M
