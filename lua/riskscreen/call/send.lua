-- One request of a call. The access key is added here and nowhere else. access_key.lua reads it, and redacts texts.
local access_key = require "riskscreen.call.access_key"
local errors = require "riskscreen.errors"
local states = require "riskscreen.call.state"
local tables = require "riskscreen.util.tables"

-- The kinds of failure that a transport may report.
local transport_kinds = tables.set { "network", "timeout", "tls", "protocol", "cancelled" }

-- The phases that a failure may name.
local phases = tables.set { "queue", "name_lookup", "connect", "tls", "first_byte", "body" }

local M = {}

local function is_reply(value)
  return type(value) == "table" and type(value.status) == "number" and type(value.headers) == "table"
end

-- The error of a transport's failure. A proxy's words may be in its message.
local function failure_error(failure, redact)
  if type(failure) ~= "table" or not transport_kinds[failure.kind] then
    return errors.new("protocol", "the transport returned neither a reply nor a failure", { sent = true })
  end
  local fields = { sent = failure.sent ~= false, phase = phases[failure.phase] and failure.phase }
  return errors.new(failure.kind, redact(tostring(failure.message)), fields)
end

local function tell_request(call, timeout, hedged, fresh)
  local size = #(call.request.body or "")
  local fields = { attempt = call.attempt, hedge = hedged, timeout = timeout, size = size, resent = fresh or nil }
  states.tell(call, "request", fields)
end

local function tell_response(call, reply, elapsed, hedged)
  states.tell(call, "response", {
    attempt = call.attempt,
    hedge = hedged,
    status = reply.status,
    size = reply.size,
    http_version = reply.http_version,
    times = tables.copy(reply.times or {}),
    elapsed = elapsed,
  })
end

-- The operator's transport may change its headers, and gets its own.
local function with_key(headers, key)
  local copy = { ["X-Access-Key"] = key, Accept = headers.Accept }
  for name, value in next, headers do
    copy[name] = value
  end
  return copy
end

-- Sends the request within a time. The library's own transports get the request as it was built.
local function transport(call, key, timeout, fresh)
  local state, built = call.state, call.request
  local connect_timeout = built.connect_timeout < timeout and built.connect_timeout or timeout
  if state.takes_parts then
    local value_only = not state.hooks.response and call.options.value_only
    return state.transport(built, key, timeout, connect_timeout, fresh, value_only, call.target)
  end
  local request = {
    method = built.method,
    target = call.target,
    headers = with_key(built.headers, key),
    body = built.body,
    timeout = timeout,
    connect_timeout = connect_timeout,
    replay = built.replay,
    fresh = fresh or nil,
  }
  request.keep_null = built.keep_null
  return state.transport(request)
end

---Sends one request.
---@param call riskscreen.Call
---@param at number now
---@param hedged boolean whether it is the second one of a late answer
---@param fresh? boolean whether it needs a new connection
---@return riskscreen.Reply|nil reply
---@return riskscreen.Context|riskscreen.Error context of the reply, which removes the request's key from texts
---@return boolean|nil dead whether a kept connection was lost before anything of an answer came
function M.send(call, at, hedged, fresh)
  local state = call.state
  local key = state.settings.access_key
  if key ~= state.redacted_key then
    local err
    key, err = access_key.read(key)
    if not key then
      if state.limiter then
        state.limiter:refund(call.cost)
      end
      return nil, err
    elseif state.redacted_key ~= key then
      state.redacted_key, state.redact = key, access_key.redactor(key)
      state.context = { clock = state.clock, redact = state.redact }
    end
  end
  local context, timeout = state.context, call.attempt_timeout - (at - call.attempt_started)
  call.requests = call.requests + 1
  state.stats:sent(call.request.body)
  if state.hooks.request then
    tell_request(call, timeout, hedged, fresh)
  end

  local reply, failure = transport(call, key, timeout, fresh)
  local answered = state.runtime.now()
  local elapsed = answered - at
  call.answered = answered

  if not reply or not (state.takes_parts or is_reply(reply)) then
    return nil, failure_error(failure, context.redact), type(failure) == "table" and failure.dead_connection == true
  end
  state.stats:answered(reply.status, reply.size, elapsed)
  if state.hooks.response then
    tell_response(call, reply, elapsed, hedged)
  end
  return reply, context
end

return M
