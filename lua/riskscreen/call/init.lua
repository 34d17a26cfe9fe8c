-- One call, from its parameters to its value: check, build, then the loop admit → send → interpret → learn. The modules
-- beside this one decide the steps of the loop. Nothing here uses pcall or a metamethod around a wait, because PUC Lua
-- 5.1 cannot yield across them. When a task is cancelled, `abandon` releases its call's breaker permit.
local costs = require "riskscreen.options.cost"
local errors = require "riskscreen.errors"
local identity = require "riskscreen.call.identity"
local reliability = require "riskscreen.options.reliability"
local request = require "riskscreen.interface.request"
local response = require "riskscreen.interface.response"
local retry = require "riskscreen.call.retry"
local send = require "riskscreen.call.send"
local states = require "riskscreen.call.state"
local tables = require "riskscreen.util.tables"
local validate = require "riskscreen.interface.validate"

-- The failures that count against the service in the circuit breaker.
local unhealthy = { network = true, timeout = true, tls = true, server = true }

---@class riskscreen.Route what is the same for all calls of an operation by one client
---@field name string of the operation, for errors and hooks
---@field label string the name in the statistics
---@field operation? riskscreen.Operation absent for a request that no operation describes
---@field endpoint? riskscreen.Endpoint|false of the operation
---@field idempotent boolean repeating it changes nothing
---@field reader? riskscreen.Reader of the operation's replies
---@field last? { request?: riskscreen.Request, options?: table } of the last lookup, for request.build

---@class riskscreen.Call
---@field state riskscreen.State
---@field route riskscreen.Route
---@field request riskscreen.Request as it was built; other calls may share it
---@field target string path and query of the request
---@field options table the call's checked options
---@field parameters? table checked
---@field started number
---@field timeout number seconds for the whole call
---@field attempt integer
---@field attempt_started number
---@field attempt_timeout number seconds
---@field answered number when the last request ended
---@field cost? number of a request under `rate_limit`; by default 1
---@field requests integer sent, hedges included
---@field sent? boolean whether a request may have reached the service
---@field permit riskscreen.Permit|false of the attempt
---@field gave_up? string why there was no further attempt
---@field abandon fun(self)

-- Ends a call when its task is cancelled.
local function abandon(call)
  call.state.stats:finish(call, call.route.label, "cancelled")
  if call.permit then
    call.state.breaker:forget(call.permit)
  end
end

local function remaining(call, at)
  return call.timeout - (at - call.started)
end

local function tell_failure(call, name, err, fields)
  for _, field in ipairs { "kind", "message", "status", "code", "retryable", "retry_after", "sent", "phase" } do
    fields[field] = err[field]
  end
  states.tell(call, name, fields)
end

-- Admit

local function circuit_error(call, retry_after)
  call.state.stats:count "circuit_open"
  local message = ("not sent: the service has been failing; it is tried again in %.3g s"):format(retry_after)
  return errors.new("circuit_open", message, { retry_after = retry_after, sent = false })
end

local cap_texts = {
  daily = "rate_limit.daily is used up",
  share = "this program's share of the day is used up while Redis is away",
}

local function limit_error(call, retry_after, cap, cause)
  call.state.stats:count "limited"
  local message
  if cause then
    message = "not sent: the shared rate_limit cannot be reached: " .. cause.message
  elseif cap then
    message = ("not sent: %s for %.0f s"):format(cap_texts[cap], retry_after)
  else
    message = ("not sent: rate_limit allowed no request within %g s"):format(call.timeout)
  end
  return errors.new("rate_limited", message, { retry_after = retry_after, sent = false, cause = cause })
end

-- Waits until a request may be sent. Returns the error if none may.
local function admit(call)
  local state = call.state
  if state.limiter then
    -- Do not queue while the circuit is open.
    local refused = state.breaker and state.breaker:refuses()
    if refused then
      return circuit_error(call, refused)
    end
    local deadline = call.started + call.timeout
    local priority = call.options.priority or "normal"
    local taken, retry_after, cap, cause = state.limiter:acquire(priority, deadline, call.cost)
    if not taken then
      return limit_error(call, retry_after, cap, cause)
    end
  end
  if not state.transport then
    return errors.new("cancelled", "the client was closed", { sent = false })
  elseif call.attempt > 1 and remaining(call, state.runtime.now()) < retry.SHORTEST_ATTEMPT then
    return errors.new("timeout", ("no time was left of %g s"):format(call.timeout), { sent = false })
  end
  if state.breaker then
    local permit, retry_after = state.breaker:admit(call.request.timeout)
    if not permit then
      if state.limiter then
        state.limiter:refund(call.cost)
      end
      return circuit_error(call, retry_after)
    end
    call.permit = permit
  end
end

-- Send

-- Whether a request may be sent again at once, on a new connection. It takes a token of the rate limit as well.
local function may_resend(call)
  local state = call.state
  local left = call.attempt_timeout - (state.runtime.now() - call.attempt_started)
  return call.request.replay
    and state.transport ~= nil
    and left >= retry.SHORTEST_ATTEMPT
    and (not state.limiter or state.limiter:try(call.cost))
end

local function response_of(call, reply, pagination)
  local made = response.response(reply, pagination)
  if call.state.shares_headers then
    -- The caller may change its headers.
    made.headers = tables.copy(made.headers)
  end
  return made
end

-- Sends one request, and interprets its reply.
local function send_one(call, at, hedged)
  local state = call.state
  local reply, other, dead = send.send(call, at, hedged)
  if dead and may_resend(call) then
    call.sent = true
    state.stats:count "resent"
    reply, other = send.send(call, state.runtime.now(), hedged, true)
  end
  if not reply then
    return nil, other
  end
  local value, result
  if call.route.reader then
    value, result = response.interpret(call.route.reader, call.parameters, reply, other)
  else
    value, result = response.raw(reply, other)
  end
  if value == nil then
    result.sent = true
    return nil, result
  end
  if call.options.value_only then
    -- An operator's transport does not know the field.
    return value, call.state.takes_parts and reply.text or nil
  end
  return value, response_of(call, reply, result)
end

-- The seconds after which a second request is sent, or nil.
local function late_after(call)
  local state = call.state
  if not call.route.idempotent or (state.breaker and state.breaker.state ~= "closed") then
    return nil
  end
  local seconds = state.hedge:late_after(call.route.label)
  return seconds and seconds < call.attempt_timeout and seconds or nil
end

local function may_hedge(call)
  local state = call.state
  if state.transport == nil or state.limiter and not state.limiter:try(call.cost) then
    return false
  end
  local may = state.budget:take()
  if state.limiter and not may then
    state.limiter:refund(call.cost)
  end
  return may
end

local function send_hedged(call, at, seconds)
  local state = call.state
  local won, value, result = require("riskscreen.call.hedge").race(state.runtime.tasks, seconds, function(number)
    return send_one(call, number == 1 and at or state.runtime.now(), number == 2)
  end, function()
    local may = may_hedge(call)
    state.stats:count("hedges", may and 1 or 0)
    return may
  end)
  state.stats:count("hedges_won", won == 2 and 1 or 0)
  return value, result
end

-- Sends within the time that is left, and interprets the reply.
local function attempt(call)
  local state, limit = call.state, call.request.timeout
  -- If nothing has waited yet, the start time still holds; this saves a clock read.
  local at = (call.attempt > 1 or state.limiter) and state.runtime.now() or call.started
  local left = call.timeout - (at - call.started)
  call.attempt_started = at
  call.attempt_timeout = left < limit and left or limit
  local seconds = state.hedge and late_after(call)
  if seconds then
    return send_hedged(call, at, seconds)
  end
  return send_one(call, at, false)
end

-- Learn

-- Tells the hedge, the limiter and the breaker how the attempt has ended.
local function learn(call, value, err)
  local state, permit = call.state, call.permit
  local failed = value == nil
  if state.hedge and not failed then
    state.hedge:observe(call.route.label, state.runtime.now() - call.attempt_started)
  end
  if state.limiter and failed and err.kind == "rate_limited" then
    state.limiter:refused(err.retry_after)
  end
  call.permit = false
  if not permit then
    return
  end
  local never_left = failed and (err.phase == "queue" or (err.sent == false and not unhealthy[err.kind]))
  if never_left or (failed and err.kind == "cancelled") then
    state.breaker:forget(permit)
  else
    state.breaker:report(permit, failed and unhealthy[err.kind] or false)
  end
end

-- Whether the attempt ran until the call's deadline. A runtime's timers may be a little ahead of its clock.
local function has_reached_deadline(call, err)
  return err.kind == "timeout"
    and remaining(call, call.attempt_started) <= call.request.timeout
    and (err.phase == "first_byte" or err.phase == "body" or call.request.connect_timeout >= call.attempt_timeout)
end

-- The seconds to wait before the next attempt; nil when there is none.
local function next_attempt(call, err)
  local state = call.state
  local settings = reliability.retry_of(state.settings, call.options.retry)
  local wait, reason = retry.decide(settings, {
    idempotent = call.route.idempotent,
    attempt = call.attempt,
    err = err,
    remaining = has_reached_deadline(call, err) and 0 or remaining(call, state.runtime.now()),
  }, state.settings.random)
  if wait and state.breaker and state.breaker:refuses() then
    wait, reason = nil, "circuit_open"
  elseif wait and not state.budget:take() then
    wait, reason = nil, "budget"
    state.stats:count "budget_exhausted"
  end
  call.gave_up = reason
  return wait
end

local function await_next_attempt(call, err, wait)
  local state = call.state
  state.stats:count "retries"
  if state.hooks.retry then
    tell_failure(call, "retry", err, { attempt = call.attempt, wait = wait })
  end
  state.runtime.sleep(wait)
end

-- The loop

-- Makes an attempt. Returns the value and its response; or nil, the error, and the seconds until the next attempt.
local function try(call, failure)
  local state = call.state
  call.attempt = call.attempt + 1
  local refusal = admit(call)
  if refusal then
    call.gave_up = refusal.kind
    -- Report the first error, not the refused retry.
    return nil, refusal.kind ~= "cancelled" and failure or refusal
  end
  local value, result = attempt(call)
  if call.permit or state.limiter or state.hedge then
    learn(call, value, result)
  end
  if value ~= nil then
    return value, result
  end
  call.sent = call.sent or result.sent
  return nil, result, next_attempt(call, result)
end

local function try_again(call, failure, wait)
  local value, result = nil, failure
  while wait do
    await_next_attempt(call, result, wait)
    value, result, wait = try(call, result)
  end
  return value, result
end

local function run(state, route, built, target, options, parameters)
  local started = state.runtime.now()
  local call = {
    state = state,
    route = route,
    request = built,
    target = target,
    options = options,
    parameters = parameters,
    started = started,
    timeout = options.timeout or state.settings.timeout,
    attempt = 0,
    requests = 0,
    abandon = abandon,
    permit = false,
  }
  local cost = state.limiter
    and route.operation
    and costs.of(state.settings.rate_limit.cost, route.operation, parameters)
  if cost then
    call.cost = cost
  end
  state.stats:begin(call, route.label)
  state.budget:earn()
  local hold = state.runtime.tasks.hold(call)
  local value, result, wait = try(call)
  -- LuaJIT seldom compiles code that enters a loop that ends at once: that was a tenth of a miss of the gate.
  if wait then
    value, result = try_again(call, result, wait)
  end
  state.runtime.tasks.release(call, hold)

  -- One reading of the clock tells when a request ended and when its call did.
  local elapsed = (value ~= nil and call.answered or state.runtime.now()) - started
  if value == nil or not options.value_only then
    result.elapsed = elapsed
    result.attempts = call.requests
  end
  if value ~= nil then
    state.stats:finish(call, route.label, "succeeded", elapsed)
    return value, result
  end
  result.operation = route.name
  result.sent = call.sent or false
  state.stats:finish(call, route.label, "failed", elapsed, result.kind)
  if state.hooks.error then
    tell_failure(call, "error", result, { attempts = call.requests, elapsed = elapsed, gave_up = call.gave_up })
  end
  return nil, result
end

-- The face: from parameters to the built request

local M = {
  new_state = states.new,
  bind = states.bind,
  state_of = states.of,
  open = states.open,
  address_check = states.address_check,
  stats = states.stats,
  identity = identity,
}

local function new_route(state, operation)
  local endpoint = request.endpoint(operation, state.settings)
  local route = {
    name = operation.name,
    label = operation.name,
    operation = operation,
    endpoint = endpoint,
    idempotent = endpoint and endpoint.idempotent,
    reader = response.reader(operation, endpoint and endpoint.envelope or nil, state.settings.extend),
    last = {},
  }
  state.routes[operation] = route
  return route
end

-- The error of a call that sent nothing.
local function unsent(err, name)
  err.operation, err.attempts, err.elapsed, err.sent = name, 0, 0, false
  return nil, err
end

---Checks an operation's parameters as a call does.
---@param state riskscreen.State
---@param operation riskscreen.Operation
---@param parameters table
---@param options table the call's checked options
---@return table|nil checked a copy
---@return riskscreen.Error|nil err
function M.check(state, operation, parameters, options)
  local default = operation.namespace == "kya" and "format" or "checksum"
  local level = states.address_check(state, options.address_check, default)
  local checked, err = validate.parameters(operation, parameters, level, state.settings.extend)
  if not checked then
    return unsent(err, operation.name)
  end
  return checked
end

---Makes a call whose parameters are checked.
---@param state riskscreen.State
---@param operation riskscreen.Operation
---@param parameters table
---@param options table the call's checked options
---@return any value
---@return riskscreen.Response|riskscreen.Error|string|nil with the option `value_only` no response but the answer's
---text, if the transport keeps it
function M.make(state, operation, parameters, options)
  local route = state.routes[operation] or new_route(state, operation)
  local err = states.refusal(state)
  if err or not route.endpoint then
    return unsent(err or request.unpublished(operation), route.name)
  end
  local built, target = request.build(route.endpoint, parameters, state.settings, options, route.last)
  if not built then
    return unsent(target, route.name)
  end
  return run(state, route, built, target, options, parameters)
end

---Makes a call.
---@param state riskscreen.State
---@param operation riskscreen.Operation
---@param parameters table
---@param options table the call's checked options
---@return any value
---@return riskscreen.Response|riskscreen.Error
function M.perform(state, operation, parameters, options)
  local checked, err = M.check(state, operation, parameters, options)
  if not checked then
    return nil, err
  end
  return M.make(state, operation, checked, options)
end

---Sends a request that no operation describes.
---@param state riskscreen.State
---@param name string of the request, for errors and hooks
---@param method string
---@param path string
---@param options table checked
---@return any value
---@return riskscreen.Response|riskscreen.Error
function M.request(state, name, method, path, options)
  local err = states.refusal(state)
  if err then
    return unsent(err, name)
  end
  local built, target = request.raw(method, path, state.settings, options)
  if not built then
    return unsent(target, name)
  end
  local route = { name = name, label = "request", idempotent = built.replay }
  return run(state, route, built, target, options)
end

return M
