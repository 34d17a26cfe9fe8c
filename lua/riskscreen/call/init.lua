-- One call, from its parameters to its value: check, build, and attempts (attempts.lua). The modules beside this one
-- decide the steps of an attempt. When a task is cancelled, `abandon` releases its call's breaker permit.
local attempts = require "riskscreen.call.attempts"
local identity = require "riskscreen.call.identity"
local request = require "riskscreen.interface.request"
local response = require "riskscreen.interface.response"
local send = require "riskscreen.call.send"
local states = require "riskscreen.call.state"
local validate = require "riskscreen.interface.validate"

---@class riskscreen.Route: riskscreen.Endpoint what is the same for all calls of an operation by one client
---@field state riskscreen.State
---@field name string of the operation, for errors and hooks
---@field label string the name in the statistics
---@field counts riskscreen.OperationCounts its statistics
---@field operation? riskscreen.Operation absent for a request that no operation describes
---@field attempt fun(call: riskscreen.Call, at: number, timeout: number): any, any, boolean|nil
---@field level "checksum"|"format"|false how addresses are checked, unless the call says it
---@field reader? riskscreen.Reader of the operation's replies

---@class riskscreen.Call
---@field route riskscreen.Route
---@field request riskscreen.Request as it was built; other calls may share it
---@field target string path and query of the request
---@field parameters? table checked
---@field started number
---@field place? integer among the calls under way; nil once it has ended
---@field attempt? integer of the attempts after the first
---@field attempt_started? number of the last attempt but the first; likewise the next one
---@field attempt_timeout? number seconds
---@field cost? number of a request under `rate_limit`
---@field day? integer on which it was taken
---@field requests integer sent, hedges included
---@field sent? boolean whether a request may have reached the service
---@field permit? riskscreen.Permit of the attempt
---@field gave_up? string why there was no further attempt
---@field abandon fun(self)
---@field abandoned? boolean its task is ending

-- Ends a call when its task is cancelled.
local function abandon(call)
  local route = call.route
  call.abandoned = true
  route.state.stats:finish(call, route.counts, "cancelled")
  if call.permit then
    route.state.breaker:forget(call.permit)
  end
end

-- Adds to the error of a call what is known at its end.
local function fail(call, err)
  local route, elapsed = call.route, call.route.state.runtime.now() - call.started
  local state = route.state
  err.operation, err.sent, err.elapsed, err.attempts = route.name, call.sent or false, elapsed, call.requests
  err.is_sandbox = state.is_sandbox
  state.stats:finish(call, route.counts, "failed", elapsed, err.kind)
  states.tell_failure(call, "error", err, { attempts = call.requests, elapsed = elapsed, gave_up = call.gave_up })
  return nil, err
end

-- Makes a call. Nearly every one ends with its first request.
local function run(route, built, target, parameters)
  local state = route.state
  local budget, runtime = state.budget, state.runtime
  local started = runtime.now()
  -- Eight fields: with a ninth, Lua makes a table of twice the size.
  local call = {
    route = route,
    request = built,
    target = target,
    parameters = parameters,
    started = started,
    place = nil,
    requests = 0,
    abandon = abandon,
  }
  state.stats:begin(call, route.counts)
  if budget.left < budget.reserve then
    budget:earn()
  end
  local hold = runtime.tasks.hold(call)
  local value, other, is_refused = route.attempt(call, started, built.timeout)
  -- LuaJIT seldom compiles code that enters a loop that ends at once: that was a tenth of a miss of the gate.
  if value == nil then
    value, other = attempts.again(call, other, is_refused)
  end
  if hold then
    runtime.tasks.release(call, hold)
  end
  if value == nil then
    return fail(call, other)
  elseif call.place then
    state.stats:finish(call, route.counts, "succeeded", runtime.now() - started)
  end
  return value, other
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

-- Adds to a route the part that all routes of a client have. Without a limit, a circuit breaker and hedges an attempt
-- is one request.
local function complete(route, state, name, label)
  route.state, route.name, route.label, route.counts = state, name, label, state.stats:of(label)
  route.attempt = (state.limiter or state.breaker or state.hedge) and attempts.attempt or send.send
  return route
end

local function new_route(state, operation)
  local endpoint = request.endpoint(operation, state.settings) or {}
  local route = complete(endpoint, state, operation.name, operation.name)
  route.operation = operation
  route.level = states.address_check(state, nil, operation.namespace == "kya" and "format" or "checksum")
  route.reader = response.reader(operation, route.envelope, state.settings.extend, state.decoders)
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
  local level = options.address_check
  if level == nil then
    level = (state.routes[operation] or new_route(state, operation)).level
  end
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
---body
function M.make(state, operation, parameters, options)
  local route = state.routes[operation] or new_route(state, operation)
  if not state.transport or state.runtime.refusal() or not route.method then
    return unsent(state, states.refusal(state) or request.unpublished(operation), operation.name)
  end
  local built, target = request.build(route, parameters, options)
  if not built then
    return unsent(state, target, operation.name)
  end
  return run(route, built, target, parameters)
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
  local route = complete({ idempotent = built.replay }, state, name, "request")
  route.reader = { decoder = options.keep_null and state.decoders.keeping or state.decoders.dropping }
  return run(route, built, target)
end

return M
