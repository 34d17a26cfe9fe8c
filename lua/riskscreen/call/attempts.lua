-- The attempts of a call: admit → send → learn, and again after a failure that may pass. Nothing here uses pcall or a
-- metamethod around a wait, because PUC Lua 5.1 cannot yield across them.
local addresses = require "riskscreen.address"
local costs = require "riskscreen.options.cost"
local errors = require "riskscreen.errors"
local reliability = require "riskscreen.options.reliability"
local retry = require "riskscreen.call.retry"
local send = require "riskscreen.call.send"
local states = require "riskscreen.call.state"
local text = require "riskscreen.util.text"

-- The failures that count against the service in the circuit breaker.
local unhealthy = { network = true, timeout = true, tls = true, server = true }

local function remaining(call, at)
  return call.request.call_timeout - (at - call.started)
end

-- Admit

local function circuit_error(call, retry_after)
  call.route.state.stats:count "circuit_open"
  local message = ("not sent: the service has been failing; it is tried again in %.3g s"):format(retry_after)
  return errors.new("circuit_open", message, { retry_after = retry_after, sent = false })
end

local cap_texts = {
  daily = "rate_limit.daily is used up",
  share = "this program's share of the day is used up while Redis is away",
}

local function limit_error(call, retry_after, cap, cause)
  call.route.state.stats:count "limited"
  local message
  if cause then
    message = "not sent: the shared rate_limit cannot be reached: " .. cause.message
  elseif cap then
    message = ("not sent: %s for %.0f s"):format(cap_texts[cap], retry_after)
  else
    message = ("not sent: rate_limit allowed no request within %g s"):format(call.request.call_timeout)
  end
  return errors.new("rate_limited", message, { retry_after = retry_after, sent = false, cause = cause })
end

-- Waits for the rate limit. Returns the error if no request may be sent, or none any longer.
local function await_turn(call)
  local route = call.route
  local state = route.state
  if state.limiter then
    call.cost = route.operation and costs.of(state.settings.rate_limit.cost, route.operation, call.parameters) or 1
    -- Do not queue while the circuit is open.
    local refused = state.breaker and state.breaker:refuses()
    if refused then
      return circuit_error(call, refused)
    end
    local deadline = call.started + call.request.call_timeout
    local priority = call.request.options.priority or "normal"
    local taken, retry_after, cap, cause = state.limiter:acquire(priority, deadline, call.cost)
    if not taken then
      return limit_error(call, retry_after, cap, cause)
    end
    call.day = state.limiter:day()
  end
  if call.attempt and remaining(call, state.runtime.now()) < retry.SHORTEST_ATTEMPT then
    local message = ("no time was left of %g s"):format(call.request.call_timeout)
    return select(2, send.unsent(call, errors.new("timeout", message, { sent = false })))
  end
end

-- Hedge

-- The seconds after which a second request is sent, or nil.
local function late_after(call, timeout)
  local route = call.route
  local state = route.state
  if not route.idempotent or (state.breaker and state.breaker.state ~= "closed") then
    return nil
  end
  local seconds = state.hedge:late_after(route.label)
  return seconds and seconds < timeout and seconds or nil
end

-- Sends a request, and a second one when the answer is late.
local function send_hedged(call, at, timeout)
  local route, seconds = call.route, late_after(call, timeout)
  local state = route.state
  local won, value, result
  if seconds then
    local under_way = 0
    won, value, result = require("riskscreen.call.hedge").race(state.runtime.tasks, seconds, function(number)
      local now = number == 1 and at or state.runtime.now()
      under_way = under_way + 1
      local its_value, its_result = send.send(call, now, timeout - (now - at), number == 2)
      under_way = under_way - 1
      call.sent = call.sent or its_value == nil and its_result.sent
      return its_value, its_result
    end, function()
      local may = state.budget.left >= 1 and send.may_send(call) and state.budget:take()
      state.stats:count("hedges", may and 1 or 0)
      return may
    end)
    call.sent = call.sent or under_way > 0 -- the loser was cancelled, and may have reached the service
    state.stats:count("hedges_won", won == 2 and 1 or 0)
  else
    value, result = send.send(call, at, timeout)
  end
  if value ~= nil then
    state.hedge:observe(route.label, state.runtime.now() - at)
  end
  return value, result
end

-- Learn

-- The address or the transaction to which the failure of a sent request may be due: one text for all spellings, because
-- the caller chooses one.
local function subject_of(call, err)
  local parameters = err.sent ~= false and call.parameters
  if not parameters then
    return nil
  end
  local address = parameters.address
  if type(address) == "string" then
    address = addresses.normalize(address, addresses.alike(parameters.network, call.route.state.settings.extend))
  end
  local subject = address or parameters.hash or parameters.requestId
  return type(subject) == "string" and text.lower(subject) or nil
end

-- Tells the breaker how the attempt has failed.
local function learn(breaker, permit, call, err)
  local never_left = err.phase == "queue" or (err.sent == false and not unhealthy[err.kind])
  if never_left or err.kind == "cancelled" then
    breaker:forget(permit)
  else
    breaker:report(permit, unhealthy[err.kind] or false, subject_of(call, err))
  end
end

-- Whether the attempt ran until the call's deadline. A runtime's timers may be a little ahead of its clock.
local function has_reached_deadline(call, err)
  local request = call.request
  local started, timeout = call.attempt_started or call.started, call.attempt_timeout or request.timeout
  return err.kind == "timeout"
    and remaining(call, started) <= request.timeout
    and (err.phase == "first_byte" or err.phase == "body" or request.connect_timeout >= timeout)
end

-- The seconds to wait before the next attempt; nil when there is none.
local function next_attempt(call, err)
  local state = call.route.state
  local settings = reliability.retry_of(state.settings, call.request.options.retry)
  local wait, reason = retry.decide(settings, {
    idempotent = call.route.idempotent,
    attempt = call.attempt or 1,
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

local M = {}

---Makes an attempt.
---@param call riskscreen.Call
---@param at number now
---@param timeout number seconds, of the first attempt
---@return any value
---@return riskscreen.Response|riskscreen.Error|string|nil
---@return boolean|nil is_refused nothing may be sent
function M.attempt(call, at, timeout)
  local state = call.route.state
  local breaker, permit = state.breaker, nil
  if state.limiter or call.attempt then
    local refusal = await_turn(call)
    if refusal then
      return nil, refusal, true
    end
    at = state.runtime.now()
    timeout = math.min(timeout, remaining(call, at))
    call.attempt_started, call.attempt_timeout = at, timeout
  end
  if breaker then
    local retry_after
    permit, retry_after = breaker:admit(call.request.timeout)
    if not permit then
      local _, err = send.unsent(call, circuit_error(call, retry_after))
      return nil, err, true
    end
    call.permit = permit
  end
  local value, result = (state.hedge and send_hedged or send.send)(call, at, timeout)
  call.permit = nil
  if permit and value == nil then
    learn(breaker, permit, call, result)
  elseif permit then
    breaker:report(permit, false)
  end
  return value, result
end

---Repeats a failed attempt while another one may help.
---@param call riskscreen.Call
---@param err riskscreen.Error
---@param is_refused? boolean as `attempt` returned it
---@return any value
---@return riskscreen.Response|riskscreen.Error|string|nil
function M.again(call, err, is_refused)
  local state, value, failure = call.route.state, nil, nil
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
    local attempt = call.attempt or 1
    state.stats:count "retries"
    states.tell_failure(call, "retry", err, { attempt = attempt, wait = wait })
    state.runtime.sleep(wait)
    call.attempt = attempt + 1
    value, err, is_refused = M.attempt(call, nil, call.request.timeout)
  end
  return value, err
end

return M
