-- A client: its methods are built from operations.lua, and every call is check, build, attempt, interpret. What each of
-- these means is in the module of its name; how bytes travel is the transport's.
local attempts = require "riskscreen.call"
local bulk_addition = require "riskscreen.client.bulk_addition"
local bulk_lookup = require "riskscreen.client.bulk_lookup"
local validate = require "riskscreen.interface.validate"
local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local kyt = require "riskscreen.kyt"
local operations = require "riskscreen.interface.operations"
local options = require "riskscreen.options"
local pages = require "riskscreen.client.pages"
local request = require "riskscreen.interface.request"
local response = require "riskscreen.interface.response"
local runtime = require "riskscreen.runtime"
local screen = require "riskscreen.client.screen"
local screen_all = require "riskscreen.client.screen_all"
local text = require "riskscreen.util.text"

---@class riskscreen.State what belongs to one client; it holds the key, so no field of the client leads to it
---@field settings table
---@field transport? fun(request: riskscreen.Request): riskscreen.Reply|nil, table|nil absent once closed
---@field clock fun(): number Unix seconds
---@field runtime table the client's own: everything of the client waits and tells the time by it
---@field budget riskscreen.RetryBudget
---@field limiter? riskscreen.Limiter
---@field breaker? riskscreen.Breaker
---@field hedge? riskscreen.Hedge
---@field hooks riskscreen.Hooks
---@field stats riskscreen.Stats
---@field keeps_requests boolean its transport changes nothing of a request
---@field shares_headers? boolean its transport may give several replies the same headers
---@field kinds table<riskscreen.Operation, riskscreen.CallKind>
---@field pendings? table<string, riskscreen.Pending> the awaited transactions by requestId; weak

local NO_OPTIONS = {} -- those of a call have no defaults

---@type table<table, riskscreen.State> by client and by namespace
local states = setmetatable({}, { __mode = "k" })

---@class riskscreen.Client
---@field kya riskscreen.kya
---@field kyt riskscreen.kyt
---@field account riskscreen.account
---@field blacklist riskscreen.blacklist
---@field whitelist riskscreen.whitelist
---@field policy? riskscreen.Policy the policy that `screen` decides by
local Client = {}
Client.__index = Client
Client.__name = "riskscreen.Client"

-- Completes an error with what only the call knows.
local function annotate(err, name, count, elapsed)
  err.operation = name
  err.attempts = count
  err.elapsed = elapsed
  return err
end

-- The caller may change what it gets; some transports give the same headers again and again.
local function own_headers(call, result)
  local shared = result.headers
  if not shared or not call.state.shares_headers or call.options.value_only then
    return
  end
  result.headers = {}
  for name, value in pairs(shared) do
    result.headers[name] = value
  end
end

-- What the reply to an operation means.
local function interpret(call, reply, redact_key)
  local kind = call.kind
  local context = kind.context
  if context.redact ~= redact_key then
    context = { clock = context.clock, redact = redact_key, envelope = context.envelope }
    kind.context = context
  end
  local value, result = response.interpret(kind.entry, call.parameters, reply, context)
  own_headers(call, result)
  return value, result
end

-- What a reply that no operation describes means.
local function interpret_raw(call, reply, redact_key)
  local value, result = response.raw(reply, { clock = call.state.clock, redact = redact_key })
  own_headers(call, result)
  return value, result
end

-- What is the same for all calls of an operation, made with the first one.
local function kind_of(state, operation)
  local kind = state.kinds[operation]
  if not kind then
    kind = {
      operation = operation.name,
      label = operation.name,
      idempotent = operation.idempotent,
      interpret = interpret,
      entry = operation,
      context = { clock = state.clock, envelope = request.endpoint(operation, state.settings).envelope },
    }
    state.kinds[operation] = kind
  end
  return kind
end

-- The error of a call where nothing can wait, if so it is here.
local function refused(state, name)
  local why = state.runtime.refusal()
  if why then
    return annotate(errors.new("unsupported", why, { sent = false }), name, 0, 0)
  end
end

-- Makes a call whose options are checked. The client may be closed when the library calls later than its caller.
local function perform(state, operation, parameters, call)
  if not state.transport then
    return nil, annotate(errors.new("cancelled", "the client was closed", { sent = false }), operation.name, 0, 0)
  end
  local refusal = refused(state, operation.name)
  if refusal then
    return nil, refusal
  end
  local checked, err = validate.parameters(operation, parameters)
  local built
  if checked then
    built, err = request.build(operation, checked, state.settings, call)
  end
  if not built then
    err.sent = false
    return nil, annotate(err, operation.name, 0, 0)
  end
  return attempts.run(state, kind_of(state, operation), built, call, checked)
end

-- The state of a client and the checked options of a call; or nil and how the call itself is wrong.
local function open(self, place, parameters, specs, given)
  local state = states[self]
  if not state then
    return nil, ("call it with a colon: %s:method(…)"):format(place)
  elseif not state.transport then
    return nil, "the client is closed"
  elseif parameters ~= nil and type(parameters) ~= "table" then
    return nil, "parameters must be a table (got " .. text.kind(parameters) .. ")"
  elseif given == nil then
    return state, NO_OPTIONS
  elseif type(given) ~= "table" then
    return nil, "options must be a table (got " .. text.kind(given) .. ")"
  end
  local checked, wrong = check.options(specs, given)
  if not checked then
    return nil, wrong.message
  end
  return state, checked
end

---How the other files of client/ and kyt/ reach a client.
---@class riskscreen.Access
---@field open fun(self: any, place: string, parameters?: any, specs?: riskscreen.Option[], given?: any):
---riskscreen.State|nil, table|string the state and the checked options, or nil and how the call is wrong
---@field perform fun(state: riskscreen.State, operation: riskscreen.Operation, parameters: table, options: table):
---any, any a call whose options are checked
local access = { open = open, perform = perform }

---The methods of each namespace, by the namespace's name.
---@type table<string, table<string, function>>
local namespaces = {}

-- A call that may take several requests. What changes something is sent one request after another by default, so that
-- a later item for the same address comes later.
local function perform_split(state, operation, split, parameters, call)
  local concurrency = call.concurrency or (operation.idempotent and state.settings.concurrency or 1)
  local value, other = split(state.runtime, parameters, concurrency, function(part)
    return perform(state, operation, part, call)
  end)
  if value == nil and not other.attempts then
    other.sent = false
    annotate(other, operation.name, 0, 0)
  end
  return value, other
end

local function split_of(operation)
  return operation.aligned and bulk_lookup.of(operation) or operation.reported and bulk_addition.of(operation)
end

local function define(operation)
  local split = split_of(operation)
  local specs = split and options.split_call or options.call
  local place = "client." .. operation.namespace
  local namespace = namespaces[operation.namespace] or {}
  namespaces[operation.namespace] = namespace
  namespace[operation.method] = function(self, parameters, call_options)
    local state, call = open(self, place, parameters, specs, call_options)
    if not state then
      error(call, 2)
    end
    if split then
      return perform_split(state, operation, split, parameters or {}, call)
    end
    return perform(state, operation, parameters or {}, call)
  end
end

local function define_walks(operation)
  local namespace = namespaces[operation.namespace]
  for name, method in pairs(pages.methods(operation, access)) do
    namespace[name] = method
  end
end

for _, operation in ipairs(operations.list) do
  define(operation)
  if operation.paginated then
    define_walks(operation)
  end
end

for name, method in pairs(kyt.methods(access)) do
  namespaces.kyt[name] = method
end

local function operation_names()
  local names = {}
  for _, operation in ipairs(operations.list) do
    names[#names + 1] = operation.name
  end
  return names
end

---Any operation by the interface's own name.
---@param name string
---@param parameters? table
---@param call_options? table
---@return any value
---@return riskscreen.Response|riskscreen.Error
function Client:call(name, parameters, call_options)
  local state, call = open(self, "client", parameters, options.call, call_options)
  if not state then
    error(call, 2)
  end
  local operation = operations.by_name[name]
  if not operation then
    error(("unknown operation %s%s"):format(text.show(name), text.did_you_mean(name, operation_names())), 2)
  end
  return perform(state, operation, parameters or {}, call)
end

---A request that no operation describes; its value is the decoded body as it is.
---@param method "GET"|"POST"|"PUT"|"PATCH"|"DELETE"
---@param path string beginning with "/", percent-encoded, without a query
---@param call_options? { query?: table, body?: any, headers?: table, timeout?: number }
---@return any value
---@return riskscreen.Response|riskscreen.Error
function Client:request(method, path, call_options)
  local state, call = open(self, "client", nil, options.request, call_options)
  if not state then
    error(call, 2)
  elseif not options.methods[method] then
    error(("method must be GET, POST, PUT, PATCH or DELETE (got %s)"):format(text.show(method)), 2)
  elseif type(path) ~= "string" then
    error("path must be a string (got " .. text.kind(path) .. ")", 2)
  end
  local name = method .. " " .. text.printable(path)
  local built, err = nil, refused(state, name)
  if err then
    return nil, err
  end
  if options.is_path(path) then
    built, err = request.raw(method, path, state.settings, call)
  else
    local wanted = "path must begin with one '/', be percent-encoded and have no query (got %s)"
    err = errors.new("invalid_argument", wanted:format(text.show(path)), { field = "path" })
  end
  if not built then
    err.sent = false
    return nil, annotate(err, name, 0, 0)
  end
  local kind = { operation = name, label = "request", idempotent = built.replay, interpret = interpret_raw }
  return attempts.run(state, kind, built, call)
end

---What the client has done since it was made: counters, latency histograms, and how its rate limit and its circuit
---breaker stand.
---@return table
function Client:stats()
  local state = states[self]
  if not state then
    error("call it with a colon: client:stats()", 2)
  end
  return attempts.stats(state)
end

---Ends the client: its connections are closed when they are collected, and further calls raise.
function Client:close()
  local state = states[self]
  if state then
    state.transport = nil
  end
end

screen.install(Client, access)
screen_all.install(Client, access)

-- How a client sends: by the operator's transport, by the runtime that the operator chose, or by this program's.
local function transport_of(settings)
  if settings.transport then
    return (settings.runtime or runtime).abortable(settings.transport)
  end
  local chosen = settings.runtime and settings.runtime.transport and settings.runtime or runtime
  local problem = chosen.problem(settings)
  if problem then
    return nil, problem
  end
  return chosen.transport(settings)
end

local M = { Client = Client, namespaces = namespaces }

---How a client decides about addresses, one after another: as its `screen` does, without options to check each time.
---@param client riskscreen.Client
---@param policy riskscreen.Policy
---@return nil|fun(address: any, network: any, timeout: number): riskscreen.Decision nil where it is no client of ours
function M.decider(client, policy)
  return states[client] and screen.timed_decider(states[client], policy, perform)
end

---A new client.
---@param given riskscreen.ClientOptions
---@return riskscreen.Client
function M.new(given)
  if type(given) ~= "table" then
    error("options must be a table (got " .. text.kind(given) .. ")", 2)
  end
  local settings, wrong = options.check_client(given, runtime)
  if not settings then
    error(wrong, 2)
  end
  local transport, problem = transport_of(settings)
  if not transport then
    error(problem, 2)
  end
  local state = {
    settings = settings,
    transport = transport,
    clock = settings.clock or os.time,
    runtime = settings.runtime or runtime,
    kinds = {},
    keeps_requests = not (settings.transport or settings.runtime),
    shares_headers = not (settings.transport or settings.runtime) and runtime.shares_headers,
  }
  attempts.equip(state)
  local client = setmetatable({ policy = settings.policy }, Client)
  states[client] = state
  for name, methods in pairs(namespaces) do
    local namespace = setmetatable({}, { __index = methods, __name = "riskscreen." .. name })
    states[namespace] = state
    client[name] = namespace
  end
  return client
end

return M
