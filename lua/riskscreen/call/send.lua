-- One request of a call, and its answer. The access key is added here and nowhere else. access_key.lua reads it, and
-- redacts texts.
local access_key = require "riskscreen.call.access_key"
local errors = require "riskscreen.errors"
local response = require "riskscreen.interface.response"
local retry = require "riskscreen.call.retry"
local states = require "riskscreen.call.state"
local tables = require "riskscreen.util.tables"

-- The kinds of failure that a transport may report.
local transport_kinds = tables.set { "network", "timeout", "tls", "protocol", "cancelled" }

-- The phases that a failure may name.
local phases = tables.set { "queue", "name_lookup", "connect", "tls", "first_byte", "body" }

-- PUC Lua 5.1 cannot wait inside pcall. There the error of a transport is the caller's.
local is_puc_5_1 = _VERSION == "Lua 5.1" and rawget(_G, "jit") == nil

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

-- Calls the operator's transport. The end of the task is raised on: it has abandoned the call.
local function ask(call, request)
  if is_puc_5_1 then
    return call.state.transport(request)
  end
  local ok, reply, failure = pcall(call.state.transport, request)
  if ok then
    return reply, failure
  elseif call.abandoned then
    error(reply, 0)
  end
  return nil, { kind = "protocol", message = "the transport raised an error: " .. tostring(reply):match "^[^\n]*" }
end

local function tell_request(call, timeout, hedged, fresh)
  local size = #(call.request.body or "")
  local fields =
    { attempt = call.attempt, hedge = hedged or false, timeout = timeout, size = size, resent = fresh or nil }
  states.tell(call, "request", fields)
end

local function tell_response(call, reply, elapsed, hedged)
  states.tell(call, "response", {
    attempt = call.attempt,
    hedge = hedged or false,
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

local function time_left(call, at)
  return call.attempt_timeout - (at - call.attempt_started)
end

-- Whether a request may be sent again at once, on a new connection. It takes a token of the rate limit as well.
local function may_resend(call)
  local state = call.state
  return call.request.replay
    and state.transport ~= nil
    and time_left(call, state.runtime.now()) >= retry.SHORTEST_ATTEMPT
    and (not state.limiter or state.limiter:try(call.cost))
end

---Gives the token of the rate limit back for a request that is not sent.
---@param call riskscreen.Call
---@param err riskscreen.Error
---@param has_failed? boolean to connect
---@return nil
---@return riskscreen.Error err
function M.unsent(call, err, has_failed)
  if call.state.limiter then
    call.state.limiter:refund(call.cost, has_failed)
  end
  return nil, err
end

---Sends one request and interprets its reply.
---@param call riskscreen.Call
---@param at number now
---@param hedged boolean|nil whether it is the second one of a late answer; nil for a request without another one
---@param fresh? boolean whether it needs a new connection
---@return any value
---@return riskscreen.Response|riskscreen.Error|string|nil
function M.send(call, at, hedged, fresh)
  local state, built = call.state, call.request
  local key = state.settings.access_key
  if key ~= state.redacted_key then
    local given, err = key
    key, err = access_key.of(state)
    if not key then
      return M.unsent(call, err)
    end
    at = given ~= key and state.runtime.now() or at
  end
  local stats, hooks, context = state.stats, state.hooks, state.context
  local value_only, takes_parts = call.options.value_only, state.takes_parts
  if hooks.request then
    tell_request(call, time_left(call, at), hedged, fresh)
    at = state.runtime.now()
  end
  -- The operator's functions may have closed the client, or waited.
  local transport, timeout = state.transport, time_left(call, at)
  if not transport then
    return M.unsent(call, errors.new("cancelled", "the client was closed", { sent = false }))
  elseif timeout <= 0 then
    local message = "no time was left for the request, after the functions access_key and on.request"
    return M.unsent(call, errors.new("timeout", message, { sent = false, phase = "queue" }))
  end
  local connect_timeout = built.connect_timeout < timeout and built.connect_timeout or timeout
  call.requests = call.requests + 1
  stats:sent(built.body)
  local reply, failure
  if takes_parts then
    local rest = not hooks.response and (value_only and "text" or "head") or nil
    reply, failure = transport(built, key, timeout, connect_timeout, fresh, rest, call.target)
  else
    reply, failure = ask(call, {
      method = built.method,
      target = call.target,
      headers = with_key(built.headers, key),
      body = built.body,
      timeout = timeout,
      connect_timeout = connect_timeout,
      replay = built.replay,
      fresh = fresh or nil,
      keep_null = built.keep_null,
    })
  end
  local answered = state.runtime.now()
  if not reply or not (takes_parts or is_reply(reply)) then
    if not fresh and type(failure) == "table" and failure.dead_connection == true and may_resend(call) then
      call.sent = true
      stats:count "resent"
      return M.send(call, state.runtime.now(), hedged, true)
    end
    local err = failure_error(failure, context.redact)
    if not err.sent then
      return M.unsent(call, err, true)
    end
    return nil, err
  end

  local value, other
  if call.route.reader then
    value, other = response.interpret(call.route.reader, call.parameters, reply, context)
  else
    value, other = response.raw(reply, context)
  end
  -- The latency of a call that is this request alone is counted once.
  local is_whole_call = value ~= nil and hedged == nil and at == call.started
  call.has_latency = is_whole_call
  stats:answered(reply.status, reply.size, answered - at, is_whole_call and call.route.label or nil)
  if hooks.response then
    tell_response(call, reply, answered - at, hedged)
  end
  if value == nil then
    other.sent = true
    if state.limiter and other.kind == "rate_limited" then
      -- Here, because a hedge that loses has learned it as well.
      state.limiter:refused(other.retry_after)
    end
    return nil, other
  elseif value_only then
    -- An operator's transport does not know the field.
    return value, takes_parts and reply.text or nil
  end
  -- The reply becomes the response, unless it is the operator's.
  local made = takes_parts and reply or { status = reply.status, headers = reply.headers, times = reply.times }
  if state.shares_headers then
    -- The caller may change its headers.
    made.headers = tables.copy(made.headers)
  end
  made.value, made.size, made.http_version = nil, nil, nil
  made.pagination, made.elapsed, made.attempts, made.cached = other, answered - call.started, call.requests, false
  made.is_sandbox = call.state.is_sandbox
  return value, made
end

return M
