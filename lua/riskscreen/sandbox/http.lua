-- Serves a service over HTTP with riskscreen.server; faults break real connections. The native runtime or the user's
-- own loop polls it and calls `step`.
local errors = require "riskscreen.errors"
local tables = require "riskscreen.util.tables"

---@class riskscreen.sandbox.HttpServer
---@field url string
---@field access_key? string the default key, if the service knows it
---@field endpoints table for the client option `endpoints`
---@field service riskscreen.sandbox.Service
---@field private listener userdata
---@field private now fun(): number monotonic seconds
---@field private waiting { due: number, request: userdata, response: riskscreen.sandbox.Response }[] by due time
local HttpServer = {}
HttpServer.__index = HttpServer

local actions = {}

function actions.hang(request)
  request:stall()
end

function actions.reset(request)
  request:reset()
end

function actions.truncate(request, response)
  local sent = math.min(response.fault.bytes, #response.body)
  request:truncate(response.status, response.headers, response.body, sent)
end

function actions.drip(request, response)
  request:drip(response.status, response.headers, response.body, response.fault.bytes, response.fault.every)
end

local function answer(request, response)
  local act = response.fault and actions[response.fault.kind]
  if act then
    act(request, response)
  else
    request:respond(response.status, response.headers, response.body)
  end
end

function HttpServer:take(request)
  local response = self.service:handle {
    method = request.method,
    target = request.path .. (request.query and "?" .. request.query or ""),
    headers = request.headers,
    body = request.body,
  }
  local delay = response.fault and response.fault.delay or 0
  if delay == 0 then
    return answer(request, response)
  end
  tables.insert_sorted(self.waiting, "due", { due = self.now() + delay, request = request, response = response })
end

---The descriptor to poll.
---@return integer
function HttpServer:pollfd()
  return self.listener:pollfd()
end

---The events to poll for.
---@return string
function HttpServer:events()
  return self.listener:events()
end

---Seconds after which `step` has work although the descriptor is not ready; nil: never.
---@return number?
function HttpServer:timeout()
  local timeout = self.listener:timeout()
  local first = self.waiting[1]
  local due = first and math.max(0, first.due - self.now())
  return timeout and due and math.min(timeout, due) or timeout or due
end

---Reads and answers requests, and sends delayed answers.
---@param seconds number? the longest wait for a request
---@return integer? answered
---@return string? message of a failed listener
function HttpServer:step(seconds)
  local timeout = self:timeout()
  if timeout and (not seconds or timeout < seconds) then
    seconds = timeout
  end
  local stepped, message = self.listener:step(seconds)
  if not stepped then
    return nil, message
  end
  local answered = 0
  local request = self.listener:next()
  while request do
    self:take(request)
    answered = answered + 1
    request = self.listener:next()
  end
  while self.waiting[1] and self.waiting[1].due <= self.now() do
    local entry = table.remove(self.waiting, 1)
    answer(entry.request, entry.response)
  end
  self.listener:step(0)
  return answered
end

---Stops serving. Idempotent.
function HttpServer:close()
  self.waiting = {}
  self.on_close()
  self.listener:close()
end

local M = {}

---Serves a service.
---@param service riskscreen.sandbox.Service
---@param options { host: string, port: integer, now: (fun(): number), on_close: fun() }
---@return riskscreen.sandbox.HttpServer?
---@return riskscreen.Error? err
function M.new(service, options)
  local listener, message = require("riskscreen.server").new { host = options.host, port = options.port }
  if not listener then
    return nil, errors.new("network", "sandbox.serve: " .. message, { sent = false })
  end
  local host = options.host:find(":", 1, true) and "[" .. options.host .. "]" or options.host
  return setmetatable({
    url = "http://" .. host .. ":" .. string.format("%d", listener:port()),
    service = service,
    listener = listener,
    now = options.now,
    on_close = options.on_close,
    waiting = {},
  }, HttpServer)
end

return M
