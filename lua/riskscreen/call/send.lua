-- One request of a call and what its reply means: the key is put in on the way out, and taken out of whatever is said.
local access_key = require "riskscreen.call.access_key"
local errors = require "riskscreen.errors"
local redact = require "riskscreen.call.redact"

-- The kinds of failure that a transport may report.
local transport_kinds = { network = true, timeout = true, tls = true, protocol = true, cancelled = true }

-- How far a request may have got, as errors say it.
local phases = {}
for _, phase in ipairs { "queue", "name_lookup", "connect", "tls", "first_byte", "body" } do
  phases[phase] = phase
end

local M = {}

local function is_reply(value)
  return type(value) == "table" and type(value.status) == "number" and type(value.headers) == "table"
end

-- A transport's failure as an error; `redact_key` because a proxy's words may be in its message.
local function failure_error(failure, redact_key)
  if type(failure) ~= "table" or not transport_kinds[failure.kind] then
    return errors.new("protocol", "the transport returned neither a reply nor a failure", { sent = true })
  end
  local fields = { sent = failure.sent ~= false, phase = phases[failure.phase or false] }
  return errors.new(failure.kind, redact_key(tostring(failure.message)), fields)
end

---What hooks are told of a call: numbers and texts of the library's own, and never a header.
---@param call riskscreen.CallUnderWay
---@param fields table of what is told; gets those of the call
---@return table fields
function M.describe(call, fields)
  local request = call.request
  fields.operation = call.kind.operation
  fields.method = request.method
  fields.path = request.target:match "^[^?]*"
  fields.traceparent = call.options.traceparent
  return fields
end

local function tell_request(call, request, hedged)
  local sent = { attempt = call.attempt, hedge = hedged, timeout = request.timeout, size = #(request.body or "") }
  call.state.hooks:tell("request", M.describe(call, sent))
end

local function tell_response(call, reply, elapsed, hedged)
  local times = {}
  for phase, seconds in pairs(reply.times or {}) do
    times[phase] = seconds
  end
  local received = {
    attempt = call.attempt,
    hedge = hedged,
    status = reply.status,
    size = reply.size,
    http_version = reply.http_version,
    times = times,
    elapsed = elapsed,
  }
  call.state.hooks:tell("response", M.describe(call, received))
end

local function with_key(headers, key)
  local copy = { ["X-Access-Key"] = key }
  for name, value in pairs(headers) do
    copy[name] = value
  end
  return copy
end

-- The headers of a request and the key: nearly always those of the last one. A transport of the operator's, which may
-- do with them what it likes, gets its own.
local function headers_of(state, headers, key)
  if not state.keeps_requests then
    return with_key(headers, key)
  elseif state.bare_headers ~= headers or state.headers["X-Access-Key"] ~= key then
    state.bare_headers, state.headers = headers, with_key(headers, key)
  end
  return state.headers
end

local function request_of(call, key, at)
  local built = call.request
  local timeout = call.attempt_timeout - (at - call.attempt_started)
  return {
    method = built.method,
    target = built.target,
    headers = headers_of(call.state, built.headers, key),
    body = built.body,
    timeout = timeout,
    connect_timeout = math.min(built.connect_timeout, timeout),
    replay = built.replay,
  }
end

-- What takes the key out of a text. A client's key is seldom another than the last one.
local function redactor_of(state, key)
  if state.redacted_key ~= key then
    state.redacted_key, state.redact = key, redact.new(key)
  end
  return state.redact
end

---Sends one request and says what its reply means.
---@param call riskscreen.CallUnderWay
---@param at number when the attempt's time is looked at
---@param hedged boolean whether it is a second one
---@return any value nil where it failed
---@return any result what comes with the value, or the error
function M.send(call, at, hedged)
  local state = call.state
  local key, err = access_key.of(state.settings.access_key)
  if not key then
    return nil, err
  end
  local redact_key = redactor_of(state, key)
  local request = request_of(call, key, at)
  call.requests = call.requests + 1
  state.stats:count "requests"
  state.stats:count("bytes_sent", #(request.body or ""))
  if state.hooks:has "request" then
    tell_request(call, request, hedged)
  end

  local started = state.runtime.now()
  local reply, failure = state.transport(request)
  local elapsed = state.runtime.now() - started

  if not is_reply(reply) then
    return nil, failure_error(failure, redact_key)
  end
  state.stats:answered(reply.status, reply.size, elapsed)
  if state.hooks:has "response" then
    tell_response(call, reply, elapsed, hedged)
  end
  local value, result = call.kind.interpret(call, reply, redact_key)
  if value == nil and result.sent == nil then
    result.sent = true
  end
  return value, result
end

return M
