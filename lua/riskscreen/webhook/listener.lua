-- Serves an inbox over HTTP with riskscreen.server, driven by the native loop. Each delivery has a task of its own, so
-- that a handler may wait.

local build = require "riskscreen.options.build"
local errors = require "riskscreen.errors"
local event = require "riskscreen.webhook.event"
local json = require "riskscreen.json"
local runtime = require "riskscreen.runtime"

local DEFAULT_PATH = "/webhooks"
local MAX_BODY = 4 * event.MAX_SIZE -- the inbox refuses what is too large, and knows the secret and the sender

---@class riskscreen.InboxListener: riskscreen.Server
---@field url string where deliveries go
---@field port integer
---@field private inbox riskscreen.Inbox
---@field private path string

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
  return true
end

-- Answers and reports where `respond` has failed: the store was closed, or a function of the operator's raised. The
-- sender comes again. An answer that was sent stays.
local function answer_failure(task, request)
  local ok, done, err = pcall(task.await, task)
  if not ok or not done then
    local headers, body = { ["Content-Type"] = "application/json" }, '{"error":"the event could not be handled"}'
    pcall(request.respond, request, 500, headers, body) -- it raises when the listener is closed
    runtime.tasks.report("riskscreen: a delivery failed: " .. tostring(ok and err or done))
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
  build.checked("path", "string", path_of_server, "The path of deliveries; a secret comes after it.", DEFAULT_PATH),
  build.notice("on_refused", "on_refused(status, reason, remote): called for each delivery that is not accepted."),
}

---Listens.
---@param inbox riskscreen.Inbox
---@param place { host: string, port: integer, path: string, on_refused?: fun(status, reason, remote) }
---@return riskscreen.InboxListener|nil
---@return riskscreen.Error|nil err
function M.new(inbox, place)
  if not runtime.listen then
    return nil, errors.new("unsupported", "inbox:listen: inside nginx call inbox:serve() in content_by_lua")
  end
  local bounded = { host = place.host, port = place.port, max_body = MAX_BODY }
  local listener, err
  listener, err = runtime.listen("inbox:listen", bounded, function(request)
    local task = runtime.tasks.spawn(respond, listener, request)
    runtime.tasks.on_end(task, function()
      answer_failure(task, request)
    end)
  end)
  if listener then
    listener.inbox, listener.path, listener.url = inbox, place.path, listener.url .. place.path
    listener.on_refused = place.on_refused
  end
  return listener, err
end

return M
