-- Sends the bytes of cases (wire.lua) to an HTTP client, and returns its results.
local assert = require "luassert"
local native = require "riskscreen.runtime.native"
local native_driver = require "spec.support.native_driver"
local outcome_of = require "spec.support.wire_outcome"
local peer = require "spec.support.peer"
local wire = require "spec.support.wire"

local SECONDS = 20 -- of a request
local CONCURRENCY = 8 -- requests

local M = {}

---A peer that answers a request for "/N" as the N-th case says. It ends the connection, unless it may be used again.
function M.serve(cases)
  return peer.tcp(native_driver, function(connection, request)
    local case = cases[tonumber(request:match "^%u+ /(%d+)")]
    connection:send(case.bytes)
    if not case.kept then
      connection:finish()
    end
  end)
end

local function requests_for(cases)
  local list = {}
  for number, case in ipairs(cases) do
    list[number] = {
      method = case.method or "GET",
      target = "/" .. number,
      headers = {},
      timeout = SECONDS,
      connect_timeout = SECONDS,
      fresh = case.kept == nil or nil,
    }
  end
  return list
end

---@param options? table of a client, and a `prefix` of the targets
---@return table[] outcomes
function M.native(url, cases, options)
  local settings = {
    base_url = { origin = url },
    concurrency = CONCURRENCY,
    max_response_size = wire.LIMIT,
    compression = true,
    connect_timeout = SECONDS,
  }
  for name, value in pairs(options or {}) do
    settings[name] = value
  end
  local transport = native.transport(settings)
  local bodies = {}
  for number, request in ipairs(requests_for(cases)) do
    request.target = (settings.prefix or "") .. request.target
    bodies[number] = function()
      return outcome_of(transport(request))
    end
  end
  return native.tasks.gather(bodies)
end

---@param server riskscreen.spec.Nginx
---@return table[] outcomes
function M.nginx(server, url, cases)
  local given = { origin = url, concurrency = CONCURRENCY, limit = wire.LIMIT, requests = requests_for(cases) }
  return server:eval("return require('spec.support.nginx_transport').outcomes(...)", given)
end

---Checks that a client made of a case what the table says.
---@param case table
---@param outcome table
---@param client "native"|"nginx"
function M.check(case, outcome, client)
  local wanted = case[client] or case
  local message = ("%s: %s"):format(case.name, outcome.message or outcome.status)
  if wanted.kind then
    assert.equal(wanted.kind == "any" and outcome.kind or wanted.kind, outcome.kind or "none", message)
  else
    assert.same({ wanted.status, wanted.value or nil }, { outcome.status, outcome.value }, message)
    assert.equal(wanted.invalid or false, outcome.invalid, message)
  end
end

return M
