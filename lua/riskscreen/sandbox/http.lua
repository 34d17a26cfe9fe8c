-- Serves a service over HTTP; faults break real connections.
local runtime = require "riskscreen.runtime"

---@class riskscreen.sandbox.HttpServer: riskscreen.Server
---@field url string
---@field access_key? string the default key, if the service knows it
---@field endpoints table for the client option `endpoints`
---@field service riskscreen.sandbox.Service

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

local function take(server, request)
  local response = server.service:handle {
    method = request.method,
    target = request.path .. (request.query and "?" .. request.query or ""),
    headers = request.headers,
    body = request.body,
  }
  local delay = response.fault and response.fault.delay or 0
  if delay == 0 then
    return answer(request, response)
  end
  server:later(delay, function()
    answer(request, response)
  end)
end

---Serves a service over HTTP; faults break real connections.
---@param service riskscreen.sandbox.Service
---@param place { host: string, port: integer }
---@return riskscreen.sandbox.HttpServer?
---@return riskscreen.Error? err
return function(service, place)
  local server, err
  server, err = runtime.listen("sandbox.serve", place, function(request)
    take(server, request)
  end)
  if server then
    server.service = service
  end
  return server, err
end
