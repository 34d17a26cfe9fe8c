-- The options for failures: retries, rate limit, circuit breaker, hedging, hooks. `call/` has a module for each.
local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local cost = require "riskscreen.options.cost"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local MAX_ATTEMPTS = 10
local MAX_COUNT = 1000000
local MAX_DAILY = 1000000000
local TRACEPARENT = "^([0-9a-f][0-9a-f])%-([0-9a-f]+)%-([0-9a-f]+)%-[0-9a-f][0-9a-f](.*)$"

-- The settings of `retry` that a call may have too.
local call_retry = {
  build.count("attempts", "requests", 3, 1, MAX_ATTEMPTS, "Maximum number of requests of one call."),
  build.seconds("base_delay", 0.1, "Longest pause after the first failure; it doubles with each further one.", 0),
  build.seconds("max_delay", 5, "Longest pause.", 0),
  build.seconds("max_retry_after", 60, "Longest `Retry-After` that a call waits for; a longer one fails the call.", 0),
}

local client_retry = tables.concat(call_retry, {
  build.number("budget", "requests", 0.2, 0, 1, "Repeated requests that each call earns."),
  build.number("reserve", "requests", 10, 1, MAX_COUNT, "Maximum number of repeated requests that are saved."),
})

local function without_defaults(specs)
  local bare = {}
  for index, option in ipairs(specs) do
    bare[index] = tables.copy(option)
    bare[index].default = nil
  end
  return bare
end

local AWAY = "What calls do while Redis cannot be reached: `stop`: they fail. `share`: this program uses its `share`."
local SHARE = "The part for this program alone while Redis cannot be reached: 0.1 where there are ten of them."

-- One limit for all programs and machines that name it.
local shared_limit = {
  build.required(
    build.object("redis", "riskscreen.Redis", "riskscreen.redis.new", "The client of the Redis that keeps the limit.")
  ),
  build.text("name", build.forms.not_empty, "Name of the limit; by default that of `shared_as`."),
  build.choice("away", { "stop", "share" }, "stop", AWAY),
  build.number("share", "of the rate and of what is left of the day", nil, 0.000001, 1, SHARE),
}

local COST = "What a request counts for in `rate`, `burst` and `daily`, by the operation's name: a number, or { "
  .. "request = …, item = … } for a request with many items; by default 1."
local SHARED = "One limit for several machines, in Redis: `rate`, `burst` and `daily` hold for all."

local rate_limit = {
  build.required(build.number("rate", "requests a second", nil, 0.001, MAX_COUNT, "Requests a second on average.")),
  build.number("burst", "requests", nil, 1, MAX_COUNT, "Maximum at once; by default the requests of a second."),
  build.number("daily", "requests", nil, 1, MAX_DAILY, "Maximum in a day (UTC); then calls fail until the next one."),
  build.dictionary("cost", cost.check, COST, {}),
  build.group("shared", shared_limit, SHARED),
}

local breaker = {
  build.count("failures", "requests", 5, 1, MAX_COUNT, "Failures in a row that open the circuit."),
  build.number("share", "of the requests", 0.5, 0.01, 1, "Share of failures within the window that opens it."),
  build.count("minimum", "requests", 20, 1, MAX_COUNT, "Requests within the window from which on `share` counts."),
  build.seconds("window", 10, "The window."),
  build.seconds("cooldown", 5, "Time without requests before the first probe."),
  build.count("probes", "requests", 1, 1, MAX_COUNT, "Probes in a row that must succeed to close the circuit."),
}

local function hedge_delay(value)
  if value == "p95" or (type(value) == "number" and value >= build.SHORTEST_WAIT and value <= build.LONGEST_WAIT) then
    return value
  end
  return nil, ("must be seconds, or 'p95' (got %s)"):format(text.show(value))
end

local DELAY = "Seconds after which an answer is late; p95: the 95th percentile of the operation's recent answers."

local hedge = {
  build.checked("delay", "number|string", hedge_delay, DELAY, "p95"),
}

local hooks = {
  build.callback("request", "A request is about to be sent."),
  build.callback("response", "An answer has come, whatever its status."),
  build.callback("retry", "A request has failed and will be sent again."),
  build.callback("error", "A call has failed."),
}

-- W3C Trace Context, such as "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".
local function is_traceparent(value)
  local version, trace, parent, rest = value:match(TRACEPARENT)
  if not version or version == "ff" or #trace ~= 32 or #parent ~= 16 then
    return false
  elseif not trace:find "[^0]" or not parent:find "[^0]" then
    return false
  end
  -- A later version may have more fields.
  return rest == "" or (version ~= "00" and rest:find "^%-" ~= nil and not rest:find "[^!-~]")
end

local function traceparent(value)
  if not is_traceparent(value) then
    return nil, ("must be as W3C Trace Context writes it (got %s)"):format(text.show(value))
  end
  return value
end

local M = {
  ---The priorities under `rate_limit`, highest first.
  priorities = { "high", "normal", "low" },
}

local BREAKER =
  "When a failing service gets no requests for a while; true: with the defaults. Inside nginx it is on by default."
local SHARED_AS =
  "Name of the shared state; clients with the same name share it. By default clients of one service and account do."

---@type riskscreen.Option[]
M.client = {
  build.switch("retry", client_retry, true, "When a failed request is sent again; false: never."),
  build.group("rate_limit", rate_limit, "The token bucket at which calls wait for their turn."),
  build.switch("breaker", breaker, nil, BREAKER),
  build.switch("hedge", hedge, false, "When a late lookup is sent a second time; true: with the defaults."),
  {
    name = "shared_dict",
    type = "string",
    doc = "Inside nginx: the `lua_shared_dict` in which all workers have one circuit and one `rate_limit`.",
  },
  build.text("shared_as", build.forms.not_empty, SHARED_AS),
  build.group("on", hooks, "Hooks: functions that get a description of what happens to a call."),
}

local TRACEPARENT_TEXT = "The trace of the call in the form of W3C Trace Context, passed on to the service unchanged."

---@type riskscreen.Option[]
M.call = {
  build.switch("retry", without_defaults(call_retry), nil, "This call's settings; the client's hold for the others."),
  build.choice("priority", M.priorities, nil, "The call's turn under `rate_limit`; by default normal."),
  build.checked("traceparent", "string", traceparent, TRACEPARENT_TEXT),
}

local function switched(fields, value)
  return value == true and check.options(fields, {}) or value
end

---Replaces switches by the settings for which they stand.
---@param settings table a client's checked options
---@param inside_nginx boolean
---@return string|nil message for `error` about options that do not go together
function M.complete(settings, inside_nginx)
  local limit = settings.rate_limit
  local shared = limit and limit.shared
  if shared and shared.away == "share" and not shared.share then
    return "rate_limit.shared.away = 'share' needs rate_limit.shared.share, such as 0.1 for ten programs"
  elseif shared and limit.burst and limit.burst < 2 then
    return "rate_limit.burst must be at least 2 with rate_limit.shared: tokens are on their way while they are valid"
  end
  if settings.breaker == nil then
    settings.breaker = inside_nginx
  end
  settings.retry = switched(client_retry, settings.retry) or check.options(client_retry, { attempts = 1 })
  settings.breaker = switched(breaker, settings.breaker)
  settings.hedge = switched(hedge, settings.hedge)
end

---The retry settings of a call.
---@param settings table a client's checked options
---@param given table|boolean|nil the call's option
---@return riskscreen.RetrySettings
function M.retry_of(settings, given)
  if given == nil or (given == true and settings.retry.attempts > 1) then
    return settings.retry
  elseif type(given) == "boolean" then
    return check.options(call_retry, { attempts = given and call_retry[1].default or 1 })
  end
  return tables.merge(settings.retry, given)
end

---The seconds to wait before another request, as far as the service has asked for them: `max_retry_after` at most.
---@param settings table a client's checked options
---@param err riskscreen.Error|nil the failure of the last request
---@param given? table|boolean the call's option `retry`
---@return number
function M.asked_pause(settings, err, given)
  return math.min(err and err.retry_after or 0, M.retry_of(settings, given).max_retry_after)
end

return M
