-- Delivers the webhooks of a service as they become due: into an inbox of this process, or by HTTP to a URL. Driven by
-- the runtime, beside whatever the program does.

local runtime = require "riskscreen.runtime"
local options = require "riskscreen.options"

local SHORTEST_WAIT = 0.01 -- seconds: a clock of whole seconds reaches a time later than asked
local TIMEOUT = 10 -- seconds for one delivery

local M = {}

---Delivers whatever `service` has to deliver, from now on.
---@param service riskscreen.sandbox.Service
---@param send fun(body: string): integer|nil the status of the answer, or nil
function M.start(service, send)
  local webhooks, changed, running = service.webhooks, runtime.tasks.signal(), false

  local function deliver(webhook)
    webhooks:answered(webhook, send(webhook.body), service.clock())
  end

  local function run()
    local at = webhooks:next_at()
    while at do
      local wait = at - service.clock()
      if wait > 0 then
        changed:wait(math.max(wait, SHORTEST_WAIT))
      end
      for _, webhook in ipairs(webhooks:take(service.clock())) do
        runtime.defer(function()
          deliver(webhook)
        end)
      end
      at = webhooks:next_at()
    end
    running = false
  end

  function webhooks.changed()
    if running then
      changed:notify()
    else
      running = true
      runtime.defer(run)
    end
  end
end

local function copy_of(headers)
  local copy = { ["Content-Type"] = "application/json" }
  for name, value in pairs(headers) do
    copy[name] = value
  end
  return copy
end

---What sends to a URL by POST.
---@param url string
---@param headers table<string, string>
---@return fun(body: string): integer|nil
function M.http(url, headers)
  local origin, target = url:match "^(https?://[^/?#]+)([^#]*)$"
  local settings = assert(options.check_client { base_url = origin, access_key = "none", compression = false })
  local transport = runtime.transport(settings)
  return function(body)
    local reply = transport {
      method = "POST",
      target = target == "" and "/" or target,
      headers = copy_of(headers),
      body = body,
      timeout = TIMEOUT,
      connect_timeout = TIMEOUT,
      replay = false,
    }
    return reply and reply.status
  end
end

---What puts deliveries into an inbox of this process.
---@param inbox riskscreen.Inbox
---@param url? string where the inbox would be served: a secret may be in it
---@param headers table<string, string>
---@return fun(body: string): integer|nil
function M.inbox(inbox, url, headers)
  local where = { target = url and url:match "^https?://[^/]+(.*)$" or "/", remote = "127.0.0.1" }
  return function(body)
    return (inbox:deliver("POST", copy_of(headers), body, where))
  end
end

return M
