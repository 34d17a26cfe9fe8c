-- The options that say how a client deals with failures, for options.lua's lists: retries, rate limit, circuit breaker,
-- hedging, hooks. What each does is in the module of its name.
local check = require "riskscreen.options.check"
local hooks = require "riskscreen.call.hooks"
local limiter = require "riskscreen.call.limiter"
local text = require "riskscreen.util.text"
local trace = require "riskscreen.options.trace"

local LONGEST_WAIT = 86400 -- seconds
local SHORTEST_WAIT = 0.001 -- seconds
local MOST_ATTEMPTS = 10
local MOST = 1000000 -- of anything counted

local function range(name, type, default, minimum, maximum, unit, doc)
  return { name = name, type = type, default = default, minimum = minimum, maximum = maximum, unit = unit, doc = doc }
end

local function seconds(name, default, minimum, doc)
  return range(name, "number", default, minimum, LONGEST_WAIT, "seconds", doc)
end

-- Of a client and of a call alike.
local repetition = {
  range("attempts", "integer", 3, 1, MOST_ATTEMPTS, "requests", "How often a request is sent at most."),
  seconds("base_delay", 0.1, 0, "The longest pause after the first failure; it doubles with each."),
  seconds("max_delay", 5, 0, "The longest pause."),
  seconds("max_retry_after", 60, 0, "The longest the service may ask to be left alone; for more, the call fails."),
}

local retry = {}
for index, option in ipairs(repetition) do
  retry[index] = option
end
table.insert(retry, range("budget", "number", 0.2, 0, 1, "requests", "Repeated requests that each call earns."))
table.insert(retry, range("reserve", "number", 10, 1, MOST, "requests", "Repeated requests that are saved at most."))

local function without_defaults(specs)
  local bare = {}
  for index, option in ipairs(specs) do
    bare[index] = range(option.name, option.type, nil, option.minimum, option.maximum, option.unit, option.doc)
  end
  return bare
end

local rate_limit = {
  range("rate", "number", nil, 0.001, MOST, "requests a second", "How many on average; required."),
  range("burst", "number", nil, 1, MOST, "requests", "How many at once; by default those of a second."),
}
rate_limit[1].required = true

local breaker = {
  range("failures", "integer", 5, 1, MOST, "requests", "Failures in a row that open the circuit."),
  range("share", "number", 0.5, 0.01, 1, "of the requests", "Failed ones within the window that open it."),
  range("minimum", "integer", 20, 1, MOST, "requests", "Requests within the window without which it says nothing."),
  seconds("window", 10, SHORTEST_WAIT, "The window."),
  seconds("cooldown", 5, SHORTEST_WAIT, "How long nothing is sent before the first probe."),
  range("probes", "integer", 1, 1, MOST, "requests", "Probes that must succeed to close the circuit."),
}

local hedge = {
  {
    name = "delay",
    type = "number|string",
    default = "p95",
    check = function(value)
      if value == "p95" or (type(value) == "number" and value >= SHORTEST_WAIT and value <= LONGEST_WAIT) then
        return value
      end
      return nil, ("must be seconds, or 'p95' (got %s)"):format(text.show(value))
    end,
    doc = "Seconds after which an answer is late; p95: the 95th percentile of the operation's recent ones.",
  },
}

local on = {}
for index, hook in ipairs(hooks.names) do
  on[index] = { name = hook.name, type = "function", doc = hook.doc }
end

-- Workers have nothing else in common.
local function shared_dict(name)
  local ngx = rawget(_G, "ngx")
  if type(ngx) ~= "table" or not ngx.shared then
    return nil, "is for clients inside nginx"
  end
  local dict = ngx.shared[name]
  if not dict then
    return nil, ("must name a lua_shared_dict of the configuration (got %s)"):format(text.show(name))
  end
  return dict
end

-- A table of settings, or a switch.
local function group(name, fields, default, doc)
  return { name = name, type = "table|boolean", fields = fields, default = default, doc = doc }
end

local M = {
  ---@type riskscreen.Option[]
  client = {
    group("retry", retry, true, "When a failed request is sent again; false: never."),
    {
      name = "rate_limit",
      type = "table",
      fields = rate_limit,
      doc = "How many requests are sent: a token bucket at which calls wait for their turn.",
    },
    group(
      "breaker",
      breaker,
      nil,
      "When a failing service is left alone for a while; true: by the defaults. Inside nginx it is on by default."
    ),
    group("hedge", hedge, false, "When a lookup whose answer is late is sent a second time; true: by the defaults."),
    {
      name = "shared_dict",
      type = "string",
      check = shared_dict,
      doc = "Inside nginx: the `lua_shared_dict` in which all workers have one circuit and one `rate_limit`.",
    },
    {
      name = "shared_as",
      type = "string",
      check = function(value)
        return value ~= "" and value or nil, "must not be empty"
      end,
      doc = "What they share it as: so do all clients of one name. By default the base_url.",
    },
    { name = "on", type = "table", fields = on, doc = "Functions that are told what happens to a call." },
  },

  ---@type riskscreen.Option[]
  call = {
    group("retry", without_defaults(repetition), nil, "This call's own; what it does not name is the client's."),
    {
      name = "priority",
      type = "string",
      values = limiter.priorities,
      doc = "Whether the call passes others that wait under rate_limit; by default normal.",
    },
    {
      name = "traceparent",
      type = "string",
      check = function(value)
        if not trace.is_valid(value) then
          return nil, ("must be as W3C Trace Context writes it (got %s)"):format(text.show(value))
        end
        return value
      end,
      doc = "The trace that the call belongs to, passed on to the service.",
    },
  },
}

local function switched(fields, value)
  return value == true and check.options(fields, {}) or value
end

---Puts the settings that a switch stands for in its place.
---@param settings table a client's checked options
---@param inside_nginx boolean
function M.complete(settings, inside_nginx)
  if settings.breaker == nil then
    settings.breaker = inside_nginx
  end
  settings.retry = switched(retry, settings.retry) or check.options(retry, { attempts = 1 })
  settings.breaker = switched(breaker, settings.breaker)
  settings.hedge = switched(hedge, settings.hedge)
end

---How often and when a call's requests are repeated.
---@param settings table a client's checked options
---@param given table|boolean|nil the call's option
---@return riskscreen.RetrySettings
function M.retry_of(settings, given)
  if given == nil or (given == true and settings.retry.attempts > 1) then
    return settings.retry
  elseif type(given) == "boolean" then
    return check.options(repetition, { attempts = given and repetition[1].default or 1 })
  end
  local merged = {}
  for _, option in ipairs(repetition) do
    local own = given[option.name]
    merged[option.name] = own == nil and settings.retry[option.name] or own
  end
  return merged
end

return M
