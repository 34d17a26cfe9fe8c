-- The runtime inside nginx: requests over cosockets, tasks on light threads. A call yields to nginx in the phases where
-- nginx can wait, and fails in the others.
local clock = require "riskscreen.runtime.nginx.clock"
local cosocket = require "riskscreen.runtime.nginx.http"
local light_threads = require "riskscreen.runtime.nginx.threads"
local request = require "riskscreen.runtime.nginx.serve"
local kind_of = require("riskscreen.util.text").kind

local M = {
  name = "nginx",
  now = light_threads.now,
  nginx_time = clock.now,
  tasks = light_threads.tasks,
  sleep = light_threads.tasks.sleep,
  refusal = light_threads.refusal,
  abortable = light_threads.abortable,
  problem = cosocket.problem,
  serve = request.serve,
  read_body = request.read_body,
  shares_headers = true,
}

---A transport over cosockets, as of runtime.native. A cancelled task aborts its request.
---@param settings table a client's checked options
---@return fun(request: riskscreen.Request, key?: string, timeout?: number, connect_timeout?: number, fresh?: boolean,
---body_only?: boolean): riskscreen.Reply|nil, table|nil
function M.transport(settings)
  return light_threads.abortable(cosocket.transport(settings))
end

---Connections to Redis: see riskscreen.redis.
---@param settings table
---@return riskscreen.runtime.nginx.RedisTransport
function M.redis_transport(settings)
  return require("riskscreen.runtime.nginx.redis").new(settings)
end

---The `lua_shared_dict` of a name.
---@param name string
---@return table|nil
function M.shared_dict(name)
  return _G.ngx.shared[name]
end

---Calls a function soon, apart from the current request. Use it in phases that cannot wait, and for work that the
---request should not wait for. The function is also called when the worker is told to end. An error goes to nginx's
---error log. Pass values as arguments: after an ngx.exit the function must not read locals of the handler.
---@param fn fun(...): any must not use anything of the request
---@return boolean|nil deferred
---@return string|nil message
function M.defer(fn, ...)
  if type(fn) ~= "function" then
    error("defer: expected a function (got " .. kind_of(fn) .. ")", 2)
  end
  return _G.ngx.timer.at(0, function(_, ...)
    fn(...)
  end, ...)
end

return M
