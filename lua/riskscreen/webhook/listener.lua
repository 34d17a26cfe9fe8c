-- Serves an inbox over HTTP with riskscreen.server, driven by the native loop: every delivery in a task of its own, so
-- that a handler may wait.

local native = require "riskscreen.runtime.native"
local webhook = require "riskscreen.webhook"

local DEFAULT_PATH = "/webhooks"

---@class riskscreen.InboxListener: riskscreen.Pollable
---@field url string where deliveries go
---@field port integer
---@field private inbox riskscreen.Inbox
---@field private server userdata
---@field private path string
local Listener = {}
Listener.__index = Listener
Listener.__name = "riskscreen.InboxListener"

-- Below the path lies at most a secret.
local function is_served(self, path)
  return path == self.path or (path:sub(1, #self.path + 1) == self.path .. "/" and not path:find("/", #self.path + 2))
end

local function respond(self, request)
  if not is_served(self, request.path) then
    request:respond(404, { ["Content-Type"] = "application/json" }, '{"error":"there is nothing here"}')
    return
  end
  local target = request.path .. (request.query and "?" .. request.query or "")
  local where = { target = target, remote = request.remote }
  request:respond(self.inbox:deliver(request.method, request.headers, request.body, where))
end

---The descriptor to poll.
---@return integer
function Listener:pollfd()
  return self.server:pollfd()
end

---What to poll it for.
---@return string
function Listener:events()
  return self.server:events()
end

---Seconds after which `step` has something to do although the descriptor is not ready; nil: never.
---@return number|nil
function Listener:timeout()
  return self.server:timeout()
end

---Takes the deliveries that have come.
---@param seconds? number how long to wait for one
function Listener:step(seconds)
  self.server:step(seconds)
  local request = self.server:next()
  while request do
    native.tasks.spawn(respond, self, request)
    request = self.server:next()
  end
end

---Stops listening. Idempotent.
function Listener:close()
  if not self.closed then
    self.closed = true
    native.detach(self)
    self.server:close()
  end
end

local M = {}

---@type riskscreen.Option[]
M.options = {
  { name = "host", type = "string", default = "127.0.0.1", doc = "The address to listen on." },
  {
    name = "port",
    type = "integer",
    default = 0,
    minimum = 0,
    maximum = 65535,
    unit = "",
    doc = "The port to listen on; 0: any that is free.",
  },
  {
    name = "path",
    type = "string",
    default = DEFAULT_PATH,
    check = function(value)
      if not value:find "^/[%w/._~-]*[%w._~-]$" then
        return nil, "must be such as " .. DEFAULT_PATH
      end
      return value
    end,
    doc = "Where deliveries go; a secret of the path comes after it.",
  },
}

---Listens.
---@param inbox riskscreen.Inbox
---@param place { host: string, port: integer, path: string }
---@return riskscreen.InboxListener|nil
---@return string|nil message
function M.new(inbox, place)
  local made, module = pcall(require, "riskscreen.server")
  if not made then
    return nil, "riskscreen.server is not there: it is built when libmicrohttpd is"
  end
  local server, message = module.new { host = place.host, port = place.port, max_body = webhook.MAX_SIZE }
  if not server then
    return nil, message
  end
  local host = place.host:find(":", 1, true) and "[" .. place.host .. "]" or place.host
  local listener = setmetatable({
    url = ("http://%s:%d%s"):format(host, server:port(), place.path),
    port = server:port(),
    inbox = inbox,
    server = server,
    path = place.path,
  }, Listener)
  native.attach(listener)
  return listener
end

return M
