-- One call, from its parameters to its value: check, build, and attempts: admit → send → learn. The modules beside this
-- one decide the steps of an attempt. Nothing here uses pcall or a metamethod around a wait, because PUC Lua
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
---@field has_latency boolean its statistics have its latency, which is that of its one request
---@field cost? number of a request under `rate_limit`; by default 1
---@field requests integer sent, hedges included
---@field sent? boolean whether a request may have reached the service
---@field permit riskscreen.Permit|false of the attempt
---@field gave_up? string why there was no further attempt
---@field abandon fun(self)
---@field abandoned? boolean its task is ending

-- Ends a call when its task is cancelled.
local function abandon(call)
  call.abandoned = true
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

-- Waits for the rate limit. Returns the error if no request may be sent, or none any longer.
local function await_turn(call)
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
  if call.attempt > 1 and remaining(call, state.runtime.now()) < retry.SHORTEST_ATTEMPT then
    local message = ("no time was left of %g s"):format(call.timeout)
    return select(2, send.unsent(call, errors.new("timeout", message, { sent = false })))
  end
end

-- Hedge

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

-- Sends a request, and a second one when the answer is late.
local function send_hedged(call, at)
  local state, seconds = call.state, late_after(call)
  local won, value, result
  if seconds then
    won, value, result = require("riskscreen.call.hedge").race(state.runtime.tasks, seconds, function(number)
      return send.send(call, number == 1 and at or state.runtime.now(), number == 2)
    end, function()
      local may = may_hedge(call)
      state.stats:count("hedges", may and 1 or 0)
      return may
    end)
    state.stats:count("hedges_won", won == 2 and 1 or 0)
  else
    value, result = send.send(call, at)
  end
  if value ~= nil then
    state.hedge:observe(call.route.label, state.runtime.now() - at)
  end
  return value, result
end

-- Learn

-- Tells the breaker how the attempt has failed.
local function learn(breaker, permit, err)
  local never_left = err.phase == "queue" or (err.sent == false and not unhealthy[err.kind])
  if never_left or err.kind == "cancelled" then
    breaker:forget(permit)
  else
    breaker:report(permit, unhealthy[err.kind] or false)
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

-- The attempts

-- Makes an attempt. Returns the value and its response; or nil, the error, and whether nothing may be sent.
local function attempt(call)
  local state, at = call.state, call.started
  if state.limiter or call.attempt > 1 then
    local refusal = await_turn(call)
    if refusal then
      return nil, refusal, true
    end
    at = state.runtime.now()
  end
  local limit, left = call.request.timeout, call.timeout - (at - call.started)
  local breaker, permit = state.breaker, nil
  if breaker then
    local retry_after
    permit, retry_after = breaker:admit(limit)
    if not permit then
      local _, err = send.unsent(call, circuit_error(call, retry_after))
      return nil, err, true
    end
    call.permit = permit
  end
  call.attempt_started, call.attempt_timeout = at, left < limit and left or limit
  local value, result = (state.hedge and send_hedged or send.send)(call, at)
  call.permit = false
  if permit and value == nil then
    learn(breaker, permit, result)
  elseif permit then
    breaker:report(permit, false)
  end
  return value, result
end

-- Repeats a failed attempt while another one may help.
local function try_again(call, err, is_refused)
  local value, failure = nil, nil
  while value == nil do
    if is_refused then
      call.gave_up = err.kind
      -- Report the first error, not the refused retry.
      return nil, failure or err
    end
    call.sent, failure = call.sent or err.sent, err
    local wait = next_attempt(call, err)
    if not wait then
      return nil, err
    end
    await_next_attempt(call, err, wait)
    call.attempt = call.attempt + 1
    value, err, is_refused = attempt(call)
  end
  return value, err
end

-- Nearly every call ends with its first attempt.
local function run(state, route, built, target, options, parameters)
  local stats, tasks, now = state.stats, state.runtime.tasks, state.runtime.now
  local started = now()
  local call = {
    state = state,
    route = route,
    request = built,
    target = target,
    options = options,
    parameters = parameters,
    started = started,
    timeout = options.timeout or state.settings.timeout,
    attempt = 1,
    requests = 0,
    permit = false,
    has_latency = false,
    abandon = abandon,
  }
  stats:begin(call, route.label)
  if state.limiter then
    call.cost = route.operation and costs.of(state.settings.rate_limit.cost, route.operation, parameters)
  end
  state.budget:earn()
  local hold = tasks.hold(call)
  local value, result, is_refused = attempt(call)
  -- LuaJIT seldom compiles code that enters a loop that ends at once: that was a tenth of a miss of the gate.
  if value == nil then
    value, result = try_again(call, result, is_refused)
  end
  tasks.release(call, hold)
  if value ~= nil then
    stats:finish(call, route.label, "succeeded", not call.has_latency and now() - started or nil)
    return value, result
  end
  local elapsed = now() - started
  result.operation, result.sent, result.elapsed, result.attempts =
    route.name, call.sent or false, elapsed, call.requests
  result.is_sandbox = state.is_sandbox
  stats:finish(call, route.label, "failed", elapsed, result.kind)
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

-- The error of a call that sent nothing. The caller may have taken the key for an address.
local function unsent(state, err, name)
  err.message = state.hide_key(err.message)
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
    return unsent(state, err, operation.name)
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
    return unsent(state, err or request.unpublished(operation), route.name)
  end
  local built, target = request.build(route.endpoint, parameters, state.settings, options, route.last)
  if not built then
    return unsent(state, target, route.name)
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
    return unsent(state, err, name)
  end
  local built, target = request.raw(method, path, state.settings, options)
  if not built then
    return unsent(state, target, name)
  end
  local route = { name = name, label = "request", idempotent = built.replay }
  return run(state, route, built, target, options)
end

return M
