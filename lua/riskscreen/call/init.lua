-- One call from its built request to its answer: a turn under the rate limit, a closed circuit, a request or two, and
-- again after a failure that may pass. Each of those is decided in the module of its name.
-- No pcall, no metamethod: whatever waits may yield, and PUC Lua 5.1 cannot yield across those. What a call holds is
-- therefore given up by the task that is stopped (`abandon`), or expires.
local breaker = require "riskscreen.call.breaker"
local errors = require "riskscreen.errors"
local exchange = require "riskscreen.call.send"
local hedge = require "riskscreen.call.hedge"
local hooks = require "riskscreen.call.hooks"
local limiter = require "riskscreen.call.limiter"
local random = require "riskscreen.util.random"
local reliability = require "riskscreen.options.reliability"
local retry = require "riskscreen.call.retry"
local stats = require "riskscreen.call.stats"

-- Failures that speak against the service's health; with any other answer it is at least there.
local unhealthy = { network = true, timeout = true, tls = true, server = true }

---@alias riskscreen.Interpret fun(call: riskscreen.CallUnderWay, reply: riskscreen.Reply, redact: function): any, any

---@class riskscreen.CallKind what is the same for all calls of an operation
---@field operation string its name, for errors and hooks
---@field label string what it is counted as
---@field idempotent boolean repeating it changes nothing
---@field interpret riskscreen.Interpret what a reply means

---@class riskscreen.CallUnderWay
---@field state riskscreen.State
---@field kind riskscreen.CallKind
---@field request riskscreen.Request as it was built; each request is a copy of it
---@field options table the call's checked options
---@field retry riskscreen.RetrySettings
---@field parameters? table what `interpret` has to know of it
---@field started number
---@field timeout number seconds for everything
---@field attempt integer
---@field has_the_rest? boolean whether the attempt under way may take all the time that is left
---@field requests integer sent, hedges included
---@field permit? riskscreen.Permit of the attempt under way
---@field gave_up? string why there was no further attempt
local Call = {}
Call.__index = Call

---What becomes of a call whose task is stopped.
function Call:abandon()
  self.state.stats:finish(self, self.kind.label, "cancelled")
  if self.permit then
    self.state.breaker:forget(self.permit)
  end
end

local function tell_failure(call, name, err, more)
  local failed = exchange.describe(call, more)
  for _, field in ipairs { "kind", "message", "status", "code", "retryable", "retry_after", "sent", "phase" } do
    failed[field] = err[field]
  end
  call.state.hooks:tell(name, failed)
end

-- One attempt

local function remaining(call, at)
  return call.timeout - (at - call.started)
end

-- Seconds after which a second request is sent, or nil.
local function late_after(call)
  local state = call.state
  if not state.hedge or not call.kind.idempotent or (state.breaker and state.breaker.state ~= "closed") then
    return nil
  end
  local seconds = state.hedge:late_after(call.kind.label)
  return seconds and seconds < call.attempt_timeout and seconds or nil
end

local function may_hedge(state)
  return state.transport ~= nil and (not state.limiter or state.limiter:try()) and state.budget:take()
end

local function send_hedged(call, at, seconds)
  local state = call.state
  local won, value, result = hedge.race(state.runtime.tasks, seconds, function(number)
    return exchange.send(call, number == 1 and at or state.runtime.now(), number == 2)
  end, function()
    local may = may_hedge(state)
    state.stats:count("hedges", may and 1 or 0)
    return may
  end)
  state.stats:count("hedges_won", won == 2 and 1 or 0)
  return value, result
end

local function attempt(call)
  local state = call.state
  -- Where nothing was waited for, the time is still that of the call's beginning, and its timeout whole.
  local at = (call.attempt > 1 or state.limiter) and state.runtime.now() or call.started
  local rest = remaining(call, at)
  call.attempt_started = at
  call.attempt_timeout = math.min(call.request.timeout, rest)
  call.has_the_rest = rest <= call.request.timeout
  local seconds = late_after(call)
  local value, result
  if seconds then
    value, result = send_hedged(call, at, seconds)
  else
    value, result = exchange.send(call, at, false)
  end
  if state.hedge and value ~= nil then
    state.hedge:observe(call.kind.label, state.runtime.now() - at)
  end
  return value, result
end

-- What the attempt's end says about the service.
local function learn(call, value, err)
  local state, permit = call.state, call.permit
  local failed = value == nil
  if state.limiter and failed and err.kind == "rate_limited" then
    state.limiter:refused(err.retry_after)
  end
  call.permit = nil
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

-- Before an attempt

local function circuit_error(call, retry_after)
  call.state.stats:count "circuit_open"
  local message = ("not sent: the service has been failing; it is tried again in %.3g s"):format(retry_after)
  return errors.new("circuit_open", message, { retry_after = retry_after, sent = false })
end

local function limit_error(call, retry_after)
  call.state.stats:count "limited"
  local message = ("not sent: no turn under rate_limit within %g s"):format(call.timeout)
  return errors.new("rate_limited", message, { retry_after = retry_after, sent = false })
end

local function closed_error()
  return errors.new("cancelled", "the client was closed", { sent = false })
end

-- Waits until a request may be sent; or nil and why not.
local function admit(call)
  local state = call.state
  if state.limiter then
    -- Who will be refused need not stand in line for it.
    local refused = state.breaker and state.breaker:refuses()
    if refused then
      return nil, circuit_error(call, refused)
    end
    local deadline = call.started + call.timeout
    local taken, retry_after = state.limiter:acquire(call.options.priority or "normal", deadline)
    if not taken then
      return nil, limit_error(call, retry_after)
    end
  end
  if not state.transport then
    return nil, closed_error()
  elseif call.attempt > 1 and remaining(call, state.runtime.now()) < retry.SHORTEST_ATTEMPT then
    return nil, errors.new("timeout", ("no time was left of %g s"):format(call.timeout), { sent = false })
  end
  if state.breaker then
    local permit, retry_after = state.breaker:admit(call.request.timeout)
    if not permit then
      if state.limiter then
        state.limiter:refund()
      end
      return nil, circuit_error(call, retry_after)
    end
    call.permit = permit
  end
  return true
end

-- After a failed attempt

-- Whether an attempt has had all the time that there was, though its runtime's timers are a little ahead of the clock.
local function has_used_the_rest(call, err)
  return err.kind == "timeout"
    and call.has_the_rest
    and (err.phase == "first_byte" or err.phase == "body" or call.request.connect_timeout >= call.attempt_timeout)
end

-- Seconds until the next one, or nil.
local function reconsider(call, err)
  local state = call.state
  local failed = {
    idempotent = call.kind.idempotent,
    attempt = call.attempt,
    err = err,
    remaining = has_used_the_rest(call, err) and 0 or remaining(call, state.runtime.now()),
  }
  local wait, reason = retry.decide(call.retry, failed, state.settings.random)
  if wait and state.breaker and state.breaker:refuses() then
    wait, reason = nil, "circuit_open"
  elseif wait and not state.budget:take() then
    wait, reason = nil, "budget"
    state.stats:count "budget_exhausted"
  end
  call.gave_up = reason
  return wait
end

-- Waits for the next attempt, if there is one.
local function may_try_again(call, err)
  local state = call.state
  call.sent = call.sent or err.sent
  local wait = reconsider(call, err)
  if not wait then
    return false
  end
  state.stats:count "retries"
  if state.hooks:has "retry" then
    tell_failure(call, "retry", err, { attempt = call.attempt, wait = wait })
  end
  state.runtime.sleep(wait)
  return true
end

-- One attempt, if it is admitted; the third result says that it was not.
local function try(call)
  call.attempt = call.attempt + 1
  local admitted, refusal = admit(call)
  if not admitted then
    call.gave_up = refusal.kind
    return nil, refusal, true
  end
  local value, result = attempt(call)
  learn(call, value, result)
  return value, result, false
end

local function pursue(call)
  local value, result, refused = try(call)
  while value == nil and not refused and may_try_again(call, result) do
    local previous = result
    value, result, refused = try(call)
    -- What went wrong first says more than that there was no second time.
    if refused and result.kind ~= "cancelled" then
      result = previous
    end
  end
  return value, result
end

-- Clients of the same name share their limits.
local function shared_name(settings)
  local base_url = settings.base_url
  return settings.shared_as or (base_url and base_url.origin .. base_url.prefix) or "transport"
end

local M = {}

---Gives a client's state what its calls need.
---@param state riskscreen.State with `settings` and `runtime`
function M.equip(state)
  local settings, runtime = state.settings, state.runtime
  settings.random = settings.random or random.new(random.seed(runtime.now()))
  state.budget = retry.budget(settings.retry.budget, settings.retry.reserve)
  local shared, name = settings.shared_dict, shared_name(settings)
  state.limiter = settings.rate_limit and limiter.new(settings.rate_limit, runtime, shared, name)
  state.breaker = settings.breaker and breaker.new(settings.breaker, runtime.now, shared, name)
  state.hedge = settings.hedge and hedge.new(settings.hedge)
  state.hooks = hooks.new(settings.on, runtime.tasks.contain)
  state.stats = stats.new()
end

---Makes a call.
---@param state riskscreen.State
---@param kind riskscreen.CallKind
---@param request riskscreen.Request
---@param options table the call's checked options
---@param parameters? table for `interpret`
---@return any value
---@return riskscreen.Response|riskscreen.Error
function M.run(state, kind, request, options, parameters)
  local started = state.runtime.now()
  local timeout = options.timeout or state.settings.timeout
  local call = setmetatable({
    state = state,
    kind = kind,
    request = request,
    options = options,
    retry = reliability.retry_of(state.settings, options.retry),
    parameters = parameters,
    started = started,
    timeout = timeout,
    attempt = 0,
    requests = 0,
    sent = false,
    attempt_started = started,
    attempt_timeout = timeout,
  }, Call)
  state.stats:begin(call, kind.label)
  state.budget:earn()
  local hold = state.runtime.tasks.hold(call)
  local value, result = pursue(call)
  state.runtime.tasks.release(call, hold)

  result.elapsed = state.runtime.now() - started
  result.attempts = call.requests
  if value ~= nil then
    state.stats:finish(call, kind.label, "succeeded", result.elapsed)
    return value, result
  end
  result.operation = kind.operation
  result.sent = call.sent
  state.stats:finish(call, kind.label, "failed", result.elapsed, result.kind)
  if state.hooks:has "error" then
    local more = { attempts = call.requests, elapsed = result.elapsed, gave_up = call.gave_up }
    tell_failure(call, "error", result, more)
  end
  return nil, result
end

---What a client has done and how it stands.
---@param state riskscreen.State
---@return table
function M.stats(state)
  local result = state.stats:snapshot()
  result.retry_budget = state.budget.left
  result.rate_limit = state.limiter and state.limiter:status() or nil
  result.breaker = state.breaker and state.breaker:status() or nil
  result.hook_failures = state.hooks.failures
  result.last_hook_failure = state.hooks.last_failure
  return result
end

return M
