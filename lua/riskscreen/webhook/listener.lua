-- Serves an inbox over HTTP with riskscreen.server, driven by the native loop. Each delivery has a task of its own, so
-- that a handler may wait.

local build = require "riskscreen.options.build"
local errors = require "riskscreen.errors"
local event = require "riskscreen.webhook.event"
local json = require "riskscreen.json"
local optional = require "riskscreen.util.optional"
local runtime = require "riskscreen.runtime"

local DEFAULT_PATH = "/webhooks"
local MAX_BODY = 4 * event.MAX_SIZE -- the inbox refuses what is too large, and says so; the server is silent

---@class riskscreen.InboxListener: riskscreen.Pollable
---@field url string where deliveries go
---@field port integer
---@field private inbox riskscreen.Inbox
---@field private server userdata
---@field private path string
local Listener = {}
Listener.__index = Listener
Listener.__name = "riskscreen.InboxListener"

-- Below the path comes at most one segment: a secret.
local function is_served(self, path)
  return path == self.path or (path:sub(1, #self.path + 1) == self.path .. "/" and not path:find("/", #self.path + 2))
end

local function respond(self, request)
  local status, headers, body = 404, { ["Content-Type"] = "application/json" }, '{"error":"there is nothing here"}'
  if is_served(self, request.path) then
    local target = request.path .. (request.query and "?" .. request.query or "")
    local where = { target = target, remote = request.remote }
    status, headers, body = self.inbox:deliver(request.method, request.headers, request.body, where)
  end
  request:respond(status, headers, body)
  if status >= 400 and self.on_refused then
    self.on_refused(status, json.decode(body).error, request.remote)
  end
end

---The descriptor to poll.
---@return integer
function Listener:pollfd()
  return self.server:pollfd()
end

---The events to poll it for.
---@return string
function Listener:events()
  return self.server:events()
end

---Seconds after which to call `step` although the descriptor is not ready; nil: never.
---@return number|nil
function Listener:timeout()
  return self.server:timeout()
end

---Takes the deliveries that have arrived.
---@param seconds? number how long to wait for one
function Listener:step(seconds)
  self.server:step(seconds)
  local request = self.server:next()
  while request do
    runtime.tasks.spawn(respond, self, request)
    request = self.server:next()
  end
end

---Stops listening. Idempotent.
function Listener:close()
  if not self.closed then
    self.closed = true
    runtime.detach(self)
    self.server:close()
  end
end

local M = {}

local function path_of_server(value)
  if not value:find "^/[%w/._~-]*[%w._~-]$" then
    return nil, "must be such as " .. DEFAULT_PATH
  end
  return value
end

---@type riskscreen.Option[]
M.options = {
  { name = "host", type = "string", default = "127.0.0.1", doc = "The address to listen on." },
  build.count("port", "", 0, 0, 65535, "The port to listen on; 0: any free one."),
  build.checked(
    "path",
    "string",
    path_of_server,
    "The path of deliveries; a secret in the path comes after it.",
    DEFAULT_PATH
  ),
  build.callback("on_refused", "on_refused(status, reason, remote): called for each delivery that is not accepted."),
}

local function unsupported(message)
  return nil, errors.new("unsupported", "inbox:listen: " .. message)
end

---Listens.
---@param inbox riskscreen.Inbox
---@param place { host: string, port: integer, path: string, on_refused?: fun(status, reason, remote) }
---@return riskscreen.InboxListener|nil
---@return riskscreen.Error|nil err
function M.new(inbox, place)
  if not runtime.attach then
    return unsupported "inside nginx call inbox:serve() in content_by_lua"
  end
  local module = optional "riskscreen.server"
  if not module then
    return unsupported "riskscreen.server is missing: build the library with libmicrohttpd"
  end
  local server, message = module.new { host = place.host, port = place.port, max_body = MAX_BODY }
  if not server then
    return nil, errors.new("network", "inbox:listen: " .. message, { sent = false })
  end
  local host = place.host:find(":", 1, true) and "[" .. place.host .. "]" or place.host
  local listener = setmetatable({
    url = ("http://%s:%d%s"):format(host, server:port(), place.path),
    port = server:port(),
    inbox = inbox,
    server = server,
    path = place.path,
    on_refused = place.on_refused,
  }, Listener)
  runtime.attach(listener)
  return listener
end

return M
