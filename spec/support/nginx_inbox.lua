-- An inbox that the workers of a real nginx share, with its senders and waiters, for spec/in_nginx/inbox*_nginx.lua.
-- The code inside nginx is in nginx_webhooks.lua.
local free_port = require "spec.support.free_port"
local http = require "spec.support.http"
local json = require "riskscreen.json"
local nginx = require "spec.support.nginx"
local riskscreen = require "riskscreen"

local SECONDS = 15 -- for what is expected to come

local HTTP = [[
  lua_shared_dict events %s;
  lua_shared_dict notes 1m;
  init_by_lua_block { require("spec.support.nginx_webhooks").start(%s, %s) }
  %s
]]

-- Any address of this machine's own is one to connect to.
local SERVER = [[
  listen 0.0.0.0:%d reuseport;
  location /webhooks {
    client_max_body_size 1m;
    content_by_lua_block {
      ngx.header["X-Worker"] = ngx.worker.id()
      require("spec.support.nginx_webhooks").inbox:serve()
    }
  }
]]

---@class riskscreen.spec.Inbox
---@field server riskscreen.spec.Nginx
local Bed = {}
Bed.__index = Bed

local M = { TYPE = "getTxHashCustomRiskScore" }

---The text of an event.
function M.event(id, data)
  return json.encode {
    webhookId = id,
    eventType = M.TYPE,
    timestamp = "2026-01-01 00:00:00",
    data = data or { requestId = "r-" .. id, maxScore = "12.50", status = 1003 },
  }
end

---Starts nginx; `dict` is the size of the dict, `inbox` the Lua text of the inbox's options, `redis` the URL of a store
---that takes the place of the dict.
---@param options? { dict?: string, inbox?: string, http?: string, workers?: integer, redis?: string }
---@return riskscreen.spec.Inbox
function M.start(options)
  options = options or {}
  local port = free_port()
  local server = nginx.start {
    workers = options.workers or 4,
    http = HTTP:format(
      options.dict or "4m",
      options.inbox or "{}",
      options.redis and ("%q"):format(options.redis) or "nil",
      options.http or ""
    ),
    server = SERVER:format(port),
  }
  return setmetatable({ server = server, port = port, hosts = 0 }, Bed)
end

---@return integer status
---@return riskscreen.spec.Answer answer
function Bed:deliver(body, get, headers, target)
  local answer, failure = (get or self.server.get)(target or "/webhooks", { body = body, headers = headers })
  assert(answer, failure and failure.message)
  return answer.status, answer
end

---A host with a connection of its own, and so with one worker.
function Bed:connection()
  self.hosts = self.hosts + 1
  local host = ("127.1.%d.%d"):format(math.floor(self.hosts / 250) + 1, self.hosts % 250 + 1)
  return http.origin(("http://%s:%d"):format(host, self.port))
end

---A connection to a worker.
function Bed:at_worker(id)
  return nginx.wait_for("a connection to worker " .. id, function()
    local get = self:connection()
    local answer = assert(get "/webhooks")
    return answer.headers["x-worker"] == tostring(id) and get
  end)
end

---Runs Lua inside nginx, over a connection of one's own.
function Bed:eval(code, argument, get)
  local body = json.encode { code = code, argument = argument }
  local answer = assert((get or self.server.get)("/eval", { body = body }))
  assert(answer.status == 200, answer.body)
  return assert(json.decode(answer.body)).values[1].value
end

---Reads a note that was made inside nginx.
function Bed:note(name)
  return self.server:eval("return ngx.shared.notes:get(...)", name)
end

---Awaits a result inside nginx: see nginx_webhooks.lua.
function Bed:await(request, get)
  request.seconds = request.seconds or SECONDS
  return self:eval("return require('spec.support.nginx_webhooks').await(...)", request, get)
end

---Waits until so many have begun to await a result.
function Bed:waiting(count)
  nginx.wait_for("somebody to wait", function()
    riskscreen.sleep(0.01)
    return self:note "waiting" == count
  end)
end

return M
