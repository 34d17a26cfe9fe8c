-- One request of a call, and its answer. The access key is added here and nowhere else. access_key.lua reads it, and
-- redacts texts.
local access_key = require "riskscreen.call.access_key"
local errors = require "riskscreen.errors"
local reliability = require "riskscreen.options.reliability"
local response = require "riskscreen.interface.response"
local retry = require "riskscreen.call.retry"
local states = require "riskscreen.call.state"
local tables = require "riskscreen.util.tables"

-- The kinds of failure that a transport may report.
local transport_kinds = tables.set { "network", "timeout", "tls", "protocol", "cancelled" }

-- The phases that a failure may name.
local phases = tables.set { "queue", "name_lookup", "connect", "tls", "first_byte", "body" }

local SHORTEST_ATTEMPT = retry.SHORTEST_ATTEMPT

local M = {}

-- The error of a transport's failure. A proxy's words may be in its message.
local function failure_error(failure, redact)
  if type(failure) ~= "table" or not transport_kinds[failure.kind] then
    return errors.new("protocol", "the transport returned neither a reply nor a failure", { sent = true })
  end
  local fields = { sent = failure.sent ~= false, phase = phases[failure.phase] and failure.phase }
  return errors.new(failure.kind, redact(tostring(failure.message)), fields)
end

local function tell_response(call, reply, elapsed, hedged)
  states.tell(call, "response", {
    attempt = call.attempt or 1,
    hedge = hedged or false,
    status = reply.status,
    size = #(reply.body or ""),
    http_version = reply.http_version,
    times = tables.copy(reply.times or {}),
    elapsed = elapsed,
  })
end

-- The response of a value: the reply, unless that is the operator's.
local function response_of(call, reply, pagination, elapsed)
  local state = call.route.state
  if not state.owns_replies then
    return {
      status = reply.status,
      headers = reply.headers,
      times = reply.times,
      pagination = pagination,
      elapsed = elapsed,
      attempts = call.requests,
      cached = false,
      is_sandbox = state.is_sandbox,
    }
  elseif state.shares_headers then
    reply.headers = tables.copy(reply.headers) -- the caller may change them
  end
  reply.body, reply.http_version = nil, nil
  reply.pagination, reply.elapsed, reply.attempts, reply.cached = pagination, elapsed, call.requests, false
  return reply
end

---Gives the token of the rate limit back for a request that is not sent.
---@param call riskscreen.Call
---@param err riskscreen.Error
---@param has_failed? boolean to connect
---@return nil
---@return riskscreen.Error err
function M.unsent(call, err, has_failed)
  local limiter = call.route.state.limiter
  if limiter then
    limiter:refund(call.cost, has_failed, call.day)
  end
  return nil, err
end

-- Calls the operator's functions before a request; they may wait, or close the client. Returns the key, the time and
-- the seconds for the request, and the context with this key: other calls take theirs while a hook waits. Or nil and an
-- error.
local function prepare(call, at, timeout, hedged, fresh)
  local state, started = call.route.state, at
  local key, err = access_key.of(state)
  if not key then
    if call.abandoned then
      state.runtime.sleep(0) -- raises: the task was stopped while the function waited
    end
    return nil, err
  end
  local context = state.context
  at = state.settings.access_key ~= key and state.runtime.now() or at
  if state.hooks.request then
    states.tell(call, "request", {
      attempt = call.attempt or 1,
      hedge = hedged or false,
      timeout = timeout - (at - started),
      size = #(call.request.body or ""),
      resent = fresh or nil,
    })
    at = state.runtime.now()
  end
  timeout = timeout - (at - started)
  if not state.transport then
    return nil, errors.new("cancelled", "the client was closed", { sent = false })
  elseif timeout < SHORTEST_ATTEMPT then
    local message = "no time was left for the request, after the rate limit and the functions access_key and on.request"
    return nil, errors.new("timeout", message, { sent = false, phase = "queue" })
  end
  return key, at, timeout, context
end

---Whether a further request of a call may be sent at once. It takes a token of the rate limit.
---@param call riskscreen.Call
---@return boolean
function M.may_send(call)
  local state = call.route.state
  return state.transport ~= nil and (not state.limiter or state.limiter:try(call.cost))
end

-- The outcome of a request without a reply: that of a second one if the kept connection was dead, or an error.
local function without_reply(call, failure, context, at, timeout, hedged, fresh)
  local state = call.route.state
  if call.abandoned and type(failure) == "table" and failure.raised ~= nil then
    error(failure.raised, 0) -- the end of the task
  elseif not fresh and type(failure) == "table" and failure.dead_connection == true then
    local now = state.runtime.now()
    local left = timeout - (now - at)
    if call.request.replay and left >= SHORTEST_ATTEMPT and M.may_send(call) then
      call.sent = true
      state.stats:count "resent"
      return M.send(call, now, left, hedged, true)
    end
  end
  local err = failure_error(failure, context.redact)
  if not err.sent then
    return M.unsent(call, err, true)
  end
  return nil, err
end

---Sends one request and interprets its reply.
---@param call riskscreen.Call
---@param at number now
---@param timeout number seconds
---@param hedged? boolean whether it is the second one of a late answer; nil for a request without another one
---@param fresh? boolean whether it needs a new connection
---@return any value
---@return riskscreen.Response|riskscreen.Error|string|nil
function M.send(call, at, timeout, hedged, fresh)
  local request, route = call.request, call.route
  local state = route.state
  local key, context = state.settings.access_key, state.context
  local hooks, stats, transport = state.hooks, state.stats, state.transport
  if key ~= state.redacted_key or hooks.request or not transport or timeout < SHORTEST_ATTEMPT then
    key, at, timeout, context = prepare(call, at, timeout, hedged, fresh)
    if not key then
      return M.unsent(call, at)
    end
  end
  local counters, requests = stats.counters, call.requests + 1
  counters.requests, call.requests = counters.requests + 1, requests
  if request.body then
    stats:count("bytes_sent", #request.body)
  end
  local connect_timeout = timeout < request.connect_timeout and timeout or request.connect_timeout
  local reply, failure = transport(request, key, timeout, connect_timeout, fresh, request.body_only, call.target)
  local answered = state.runtime.now()
  if not reply then
    return without_reply(call, failure, context, at, timeout, hedged, fresh)
  end
  local body, value, other = reply.body, response.interpret(route.reader, call.parameters, reply, context)
  if value ~= nil and at == call.started and requests == 1 and hedged == nil and call.place then
    stats:succeed_directly(call, route.counts, body and #body or 0, answered - at)
  else
    stats:answered(reply.status, body and #body or 0, answered - at)
  end
  if hooks.response then
    tell_response(call, reply, answered - at, hedged)
  end
  if value == nil then
    other.sent = true
    if state.limiter and other.kind == "rate_limited" then
      -- Here, because a hedge that loses has learned it as well.
      state.limiter:refused(other.retry_after and reliability.asked_pause(state.settings, other))
    end
    return nil, other
  end
  if state.redactors and type(value) == "table" then
    state.redactors[value] = context.redact
  end
  if request.value_only then
    return value, body
  end
  return value, response_of(call, reply, other, answered - call.started)
end

return M
