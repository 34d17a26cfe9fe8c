-- The runtime of a plain Lua program: requests over the core's HTTP, tasks and time of the scheduler.
local core = assert(require "riskscreen.util.optional"("riskscreen.core"))
local scheduler = require "riskscreen.runtime.native.scheduler"
local kind_of = require("riskscreen.util.text").kind

local MAX_HEADERS = 256 * 1024 -- bytes of an answer's headers

local function new_origin(settings)
  return scheduler.loop():origin {
    base_url = settings.base_url.origin,
    concurrency = settings.concurrency,
    connect_timeout = settings.connect_timeout,
    max_body = settings.max_response_size,
    max_headers = MAX_HEADERS,
    http_version = settings.http_version,
    compression = settings.compression,
    proxy = settings.proxy,
    ca_file = settings.ca_file,
    client_cert = settings.client_cert,
    client_key = settings.client_key,
    unix_socket = settings.unix_socket,
  }
end

-- libcurl's own line of the User-Agent would cost twice as much.
local function lines_of(settings, headers, key)
  local lines = { "User-Agent: " .. (settings.user_agent or "riskscreen/" .. core.version) }
  lines[2] = key and "X-Access-Key: " .. key
  for name, value in pairs(headers) do
    lines[#lines + 1] = name .. ": " .. value
  end
  return lines
end

-- A 200 whose headers and times are made when one of them is read. Nearly no caller reads them, and they cost a
-- twentieth of a call.
local Reply = {}

function Reply.__index(reply, name)
  local text = rawget(reply, "head")
  if text and name == "http_version" then
    return (select(3, core.details(text)))
  elseif text and (name == "headers" or name == "times") then
    reply.headers, reply.times = core.details(text)
    reply.head = nil
  end
  return rawget(reply, name)
end

function Reply.__pairs(reply)
  Reply.__index(reply, "headers")
  return next, reply
end

local function nothing() end

local M = {
  name = "native",
  now = scheduler.now,
  tasks = scheduler.tasks,
  sleep = scheduler.tasks.sleep,
  attach = scheduler.attach,
  detach = scheduler.detach,
  loop = scheduler.pollable,
  refusal = scheduler.refusal,
  ---Why a client with certain settings cannot be here: every client can.
  ---@type fun(): nil
  problem = nothing,
}

---A transport to Redis, or nil and why there is none.
---@param settings table
---@return table|nil
---@return string|nil message
function M.redis_transport(settings)
  return require("riskscreen.runtime.native.redis").transport(settings)
end

---The operator's transport, unchanged: its waits cannot be aborted here.
---@param transport function
---@return function
function M.abortable(transport)
  return transport
end

---Calls a function soon, in a task without a parent. Its failure is reported on stderr.
---@param fn fun(...): any
---@return boolean deferred
function M.defer(fn, ...)
  if type(fn) ~= "function" then
    error("defer: expected a function (got " .. kind_of(fn) .. ")", 2)
  end
  -- A coroutine of its own is not a task.
  coroutine.wrap(scheduler.tasks.spawn)(fn, ...)
  return true
end

---Serves requests over HTTP. Most programs do not load it.
---@return riskscreen.Server|nil
---@return riskscreen.Error|nil err
function M.listen(...)
  return require("riskscreen.runtime.native.server").new(...)
end

---A transport over the library's own HTTP. A call in a task yields until its answer is there. A call elsewhere blocks,
---and tasks go on meanwhile. The arguments after the request are those that differ between the requests of a call: they
---need no table of their own. A 200 makes its headers and times when they are read; with `body_only` it has none.
---@param settings table a client's checked options
---@return fun(request: riskscreen.Request, key?: string, timeout?: number, connect_timeout?: number, fresh?: boolean,
---body_only?: boolean, target?: string): riskscreen.Reply|nil, table|nil
function M.transport(settings)
  local origin
  local last_headers, last_key, lines -- nearly all requests have the headers of the last one
  return function(request, key, timeout, connect_timeout, fresh, body_only, target)
    origin = origin or new_origin(settings)
    local headers = request.headers
    if headers ~= last_headers or key ~= last_key then
      last_headers, last_key, lines = headers, key, lines_of(settings, headers, key)
    end
    timeout, connect_timeout = timeout or request.timeout, connect_timeout or request.connect_timeout
    fresh, target = fresh or request.fresh, target or request.target
    local method, body = request.method, request.body
    local transfer = origin:send(method, target, lines, timeout, connect_timeout, body, fresh, body_only)
    if not transfer then -- the origin is that of a parent process
      origin = new_origin(settings)
      transfer = origin:send(method, target, lines, timeout, connect_timeout, body, fresh, body_only)
    end
    local status, text, head = scheduler.await(transfer, not body_only)
    if not status then
      return nil, text
    elseif not head then
      return { status = 200, body = text }
    elseif status == 200 then
      -- With room for the fields that a response gets.
      local reply = { status = 200, body = text, head = head, elapsed = 0, attempts = 1, cached = false }
      return setmetatable(reply, Reply)
    end
    local own, times, http_version = core.details(head)
    return { status = status, headers = own, body = text, times = times, http_version = http_version }
  end
end

return M
