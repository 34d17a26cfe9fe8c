-- Everything of one client: its settings, its limits and what its calls have in common. A state holds the access key.
-- So no field of a client leads to it: `of` finds it by the client or by one of its namespaces.
local access_key = require "riskscreen.call.access_key"
local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local identity = require "riskscreen.call.identity"
local random = require "riskscreen.util.random"
local response = require "riskscreen.interface.response"
local retry = require "riskscreen.call.retry"
local stats = require "riskscreen.call.stats"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local LONGEST_MESSAGE = 200 -- bytes of the error that a hook raised
local NO_OPTIONS = {} -- a call's options have no defaults
local FAILURE_FIELDS = { "kind", "message", "status", "code", "retryable", "retry_after", "sent", "phase" }

---@class riskscreen.State
---@field settings table the client's checked options
---@field runtime table the client's own: all waits and clock readings of the client go through it
---@field transport? fun(request: riskscreen.Request, key: string, timeout: number, connect_timeout: number, fresh?:
---boolean, body_only?: boolean, target: string): riskscreen.Reply|nil, table|nil absent once closed
---@field owns_replies boolean the transport is the library's own: its replies may be changed
---@field is_sandbox? boolean the sandbox in this process answers
---@field shares_headers? boolean several replies of the transport may have the same table of headers
---@field clock fun(): number Unix seconds
---@field budget riskscreen.RetryBudget
---@field limiter? riskscreen.Limiter
---@field breaker? riskscreen.Breaker
---@field hedge? riskscreen.Hedge
---@field hooks table<string, fun(description: table)> the operator's functions that get a description of what happens
---to a call, by name
---@field hook_failures integer how often a hook raised
---@field last_hook_failure? string the error of the last one
---@field stats riskscreen.Stats
---@field decoders riskscreen.Decoders
---@field routes table<riskscreen.Operation, riskscreen.Route> of the operations called so far
---@field hide_key fun(foreign: string, decision?: table): string removes the keys from a text
---@field redactors? table<table, fun(foreign: string): string> by the value of an answer, where a function gives keys:
---each removes its request's key
---@field clean table reasons of decisions without the key; see client/screen.lua
---@field screening? riskscreen.Screening of the last request without options
---@field pendings? { submissions: riskscreen.TtlQueue, by_name: table<string, riskscreen.Pending> } the transactions

---@type table<table, riskscreen.State> by client and by namespace
local states = setmetatable({}, { __mode = "k" })

local M = {}

---The state of a new client.
---@param settings table the client's checked options
---@param runtime table
---@param transport function
---@return riskscreen.State
function M.new(settings, runtime, transport)
  settings.random = settings.random or random.jitter()
  local shared, name = settings.shared_dict, settings.shared_as
  -- The key may be a function, so it is not read without need.
  if not name and (shared or settings.rate_limit and settings.rate_limit.shared) then
    name = identity.account { settings = settings }
  end
  local owns_replies = not (settings.transport or settings.runtime)
  local state = {
    settings = settings,
    runtime = runtime,
    transport = owns_replies and transport or require "riskscreen.call.transport"(transport, runtime.tasks.pcall),
    owns_replies = owns_replies,
    shares_headers = owns_replies and runtime.shares_headers,
    clock = settings.clock or os.time,
    budget = retry.budget(settings.retry.budget, settings.retry.reserve),
    limiter = settings.rate_limit
      and require("riskscreen.call.limiter").new(settings.rate_limit, runtime, shared, name, settings.clock or os.time),
    breaker = settings.breaker
      and require("riskscreen.call.breaker").new(settings.breaker, runtime.nginx_time or runtime.now, shared, name),
    hedge = settings.hedge and require("riskscreen.call.hedge").new(settings.hedge),
    hooks = settings.on or {},
    hook_failures = 0,
    stats = stats.new(),
    decoders = response.decoders(settings.max_response_size),
    routes = {},
    redactors = type(settings.access_key) == "function" and setmetatable({}, { __mode = "k" }) or nil,
    clean = {},
  }
  function state.hide_key(foreign, decision)
    return access_key.redact(state, foreign, decision)
  end
  return state
end

---Makes a table a handle of a state: a client, or one of its namespaces.
---@param handle table
---@param state riskscreen.State
function M.bind(handle, state)
  states[handle] = state
end

---The state of a handle, or nil.
---@param handle any
---@return riskscreen.State|nil
function M.of(handle)
  return states[handle]
end

---The state of a handle and the checked options of a call. Misuse raises at the caller of a method that calls this.
---@param handle any the `self` of a method
---@param place string such as "client.kya"
---@param parameters? any
---@param specs? riskscreen.Option[]
---@param given? any
---@param what? string the method's name, for messages
---@param depth? integer functions between the method and this one
---@return riskscreen.State
---@return table
function M.open(handle, place, parameters, specs, given, what, depth)
  local state, misuse, checked = states[handle], nil, NO_OPTIONS
  if not state then
    misuse = ("call it with a colon: %s:method(…)"):format(place)
  elseif not state.transport then
    misuse = "the client is closed"
  elseif parameters ~= nil and type(parameters) ~= "table" then
    misuse = "parameters must be a table (got " .. text.kind(parameters) .. ")"
  elseif specs and (given ~= nil or what) then
    checked, misuse = check.options(specs, given)
    misuse = misuse and (what and what .. ": " or "") .. misuse.message
  end
  if misuse then
    error(misuse, 3 + (depth or 0))
  end
  return state, checked
end

---How addresses are checked: as the call says, else as the client's option says, else by `default`.
---@param state riskscreen.State
---@param own? "checksum"|"format"|false
---@param default "checksum"|"format"
---@return "checksum"|"format"|false
function M.address_check(state, own, default)
  if own == nil then
    own = state.settings.address_check
  end
  return own == nil and default or own
end

---The reason why a client cannot make a call at this point of the program, as an error; or nil.
---@param state riskscreen.State
---@return riskscreen.Error|nil
function M.refusal(state)
  -- The library calls later than its caller, and the client may be closed by then.
  if not state.transport then
    return errors.new("cancelled", "the client was closed")
  end
  local reason = state.runtime.refusal()
  return reason and errors.new("unsupported", reason)
end

---Calls the hook of a name with a description: a table of the hook's own, without headers, because one may hold a
---secret. An error that the hook raises is kept for the statistics. A hook that waits blocks.
---@param call riskscreen.Call
---@param name string
---@param fields table given away: it gets the fields of the call, and becomes the description
function M.tell(call, name, fields)
  local route, request, path = call.route, call.request, call.target:match "^[^?]*"
  local state = route.state
  fields.operation, fields.method = route.name, request.method
  fields.path, fields.traceparent = route.operation and path or state.hide_key(path), request.options.traceparent
  local ok, failure = state.runtime.tasks.contain(state.hooks[name], fields)
  if not ok then
    state.hook_failures = state.hook_failures + 1
    state.last_hook_failure = text.printable(tostring(failure), LONGEST_MESSAGE)
  end
end

---The same about a failure, if there is such a hook.
---@param call riskscreen.Call
---@param name "retry"|"error"
---@param err riskscreen.Error
---@param fields table given away
function M.tell_failure(call, name, err, fields)
  if call.route.state.hooks[name] then
    M.tell(call, name, tables.merge(fields, tables.pick(err, FAILURE_FIELDS)))
  end
end

---The statistics of a client, and the status of its limits.
---@param state riskscreen.State
---@return table
function M.stats(state)
  local result = state.stats:snapshot()
  result.retry_budget = state.budget.left
  result.rate_limit = state.limiter and state.limiter:status() or nil
  result.breaker = state.breaker and state.breaker:status() or nil
  result.hook_failures, result.last_hook_failure = state.hook_failures, state.last_hook_failure
  return result
end

return M
