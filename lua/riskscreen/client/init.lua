-- A client. Its methods are built from operations.lua: each checks its parameters, builds the request, and has call/
-- send it.
local bulk = require "riskscreen.client.bulk"
local calls = require "riskscreen.call"
local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local kyt = require "riskscreen.kyt"
local operations = require "riskscreen.interface.operations"
local options = require "riskscreen.options"
local pages = require "riskscreen.client.pages"
local program_runtime = require "riskscreen.runtime"
local request = require "riskscreen.interface.request"
local screen = require "riskscreen.client.screen"
local screen_all = require "riskscreen.client.screen_all"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local validate = require "riskscreen.interface.validate"

local NO_OPTIONS = {} -- a call's options have no defaults

---@type table<table, riskscreen.State> by client and by namespace
local states = setmetatable({}, { __mode = "k" })

---@class riskscreen.Client
---@field kya riskscreen.kya
---@field kyt riskscreen.kyt
---@field account riskscreen.account
---@field blacklist riskscreen.blacklist
---@field whitelist riskscreen.whitelist
---@field policy? riskscreen.Policy the policy of `screen`
local Client = {}

---The methods of each namespace, by the namespace's name.
---@type table<string, table<string, function>>
local namespaces = {}

-- Raises the error of a misspelt method at the line that names it.
local function refuse_unknown(place, methods, more)
  return setmetatable(methods, {
    __index = function(_, name)
      if type(name) == "string" and name ~= "policy" then
        local hint = text.did_you_mean(name, tables.sorted_keys(methods, more))
        error(("%s has no method %s%s"):format(place, text.show(name), hint), 2)
      end
    end,
  })
end

-- The error of a call that sent nothing.
local function unsent(err, name)
  err.operation, err.attempts, err.elapsed, err.sent = name, 0, 0, false
  return nil, err
end

-- The reason why a client cannot make a call at this point of the program, as an error; or nil.
local function refusal_of(state)
  -- The library calls later than its caller, and the client may be closed by then.
  if not state.transport then
    return errors.new("cancelled", "the client was closed")
  end
  local reason = state.runtime.refusal()
  return reason and errors.new("unsupported", reason)
end

local function new_route(state, operation)
  local endpoint = request.endpoint(operation, state.settings)
  local route = {
    name = operation.name,
    label = operation.name,
    idempotent = endpoint.idempotent,
    operation = operation,
    context = { envelope = endpoint.envelope },
  }
  state.routes[operation] = route
  return route
end

-- How a call checks its addresses: as its options or the client's say.
local function address_check(state, operation, call_options)
  local level = call_options.address_check
  if level == nil then
    level = state.settings.address_check
  end
  if level == nil then
    level = operation.namespace == "kya" and "format" or "checksum"
  end
  return level
end

-- Makes a call whose options are checked.
local function perform(state, operation, parameters, call_options)
  local err = refusal_of(state)
  if err then
    return unsent(err, operation.name)
  end
  local checked, built
  local level = address_check(state, operation, call_options)
  checked, err = validate.parameters(operation, parameters, level, state.settings.extend)
  if checked then
    built, err = request.build(operation, checked, state.settings, call_options)
  end
  if not built then
    return unsent(err, operation.name)
  end
  return calls.run(state, state.routes[operation] or new_route(state, operation), built, call_options, checked)
end

-- The state of a client and the checked options of a call; or nil and a message for `error`.
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
---riskscreen.State|nil, table|string the state and the checked options; or nil and a message for `error`
---@field perform fun(state: riskscreen.State, operation: riskscreen.Operation, parameters: table, options: table):
---any, any a call whose options are checked
local access = { open = open, perform = perform }

local function define(operation)
  local split = bulk.of(operation, perform, address_check)
  local specs = split and options.split_call or options.call
  local place = "client." .. operation.namespace
  local namespace = namespaces[operation.namespace] or {}
  namespaces[operation.namespace] = namespace
  namespace[operation.method] = function(self, parameters, given)
    local state, call_options = open(self, place, parameters, specs, given)
    if not state then
      error(call_options, 2)
    elseif split then
      return split(state, parameters or {}, call_options)
    end
    return perform(state, operation, parameters or {}, call_options)
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

for name, methods in pairs(namespaces) do
  refuse_unknown("client." .. name, methods)
end

---Calls an operation by the interface's own name.
---@param name string
---@param parameters? table
---@param call_options? table the call's options
---@return any value
---@return riskscreen.Response|riskscreen.Error
function Client:call(name, parameters, call_options)
  local state, checked = open(self, "client", parameters, options.call, call_options)
  if not state then
    error(checked, 2)
  end
  local operation = operations.by_name[name]
  if not operation then
    local hint = text.did_you_mean(name, tables.sorted_keys(operations.by_name))
    error(("unknown operation %s%s"):format(text.show(name), hint), 2)
  end
  return perform(state, operation, parameters or {}, checked)
end

---Sends a request that no operation describes; the value is the decoded body.
---@param method "GET"|"POST"|"PUT"|"PATCH"|"DELETE"
---@param path string beginning with "/", percent-encoded, without a query
---@param call_options? { query?: table, body?: any, headers?: table, timeout?: number }
---@return any value
---@return riskscreen.Response|riskscreen.Error
function Client:request(method, path, call_options)
  local state, checked = open(self, "client", nil, options.request, call_options)
  if not state then
    error(checked, 2)
  elseif not options.methods[method] then
    error(("method must be GET, POST, PUT, PATCH or DELETE (got %s)"):format(text.show(method)), 2)
  elseif type(path) ~= "string" then
    error("path must be a string (got " .. text.kind(path) .. ")", 2)
  end
  local name = method .. " " .. text.printable(path)
  local err, built = refusal_of(state), nil
  if not err and options.is_path(path) then
    built, err = request.raw(method, path, state.settings, checked)
  elseif not err then
    local wanted = "path must begin with one '/', be percent-encoded and have no query (got %s)"
    err = errors.new("invalid_argument", wanted:format(text.show(path)), { field = "path" })
  end
  if not built then
    return unsent(err, name)
  end
  local route = { name = name, label = "request", idempotent = built.replay, context = {} }
  return calls.run(state, route, built, checked)
end

---The client's counters and latency histograms, and the status of its rate limit and circuit breaker.
---@return table
function Client:stats()
  local state = states[self]
  if not state then
    error("call it with a colon: client:stats()", 2)
  end
  return calls.stats(state)
end

---Closes the client. Its connections are closed when they are collected, and further calls raise.
function Client:close()
  local state = states[self]
  if state then
    state.transport = nil
  end
end

screen.install(Client, access)
screen_all.install(Client, access)
refuse_unknown("client", Client, namespaces)

-- The operator's transport, else that of the operator's runtime, else this program's; or nil and a message for `error`.
local function transport_of(settings, runtime)
  if settings.transport then
    return runtime.abortable(settings.transport)
  end
  local sender = runtime.transport and runtime or program_runtime
  local problem = sender.problem(settings)
  if problem then
    return nil, problem
  end
  return sender.transport(settings)
end

local M = { Client = Client, namespaces = namespaces }

---The option `address_check` of a client, or nil.
---@param client any
---@return "checksum"|"format"|false|nil
function M.address_check(client)
  return states[client] and states[client].settings.address_check
end

---A function that decides about one address after another as the client's `screen` does, without options to check. Its
---caller has checked the address.
---@param client riskscreen.Client
---@param policy riskscreen.Policy
---@return nil|fun(address: any, network: any, timeout: number): riskscreen.Decision nil if it is not a client
function M.decider(client, policy)
  return states[client] and screen.decider(states[client], policy, { address_check = false }, perform)
end

local metatable = { __index = Client, __name = "riskscreen.Client" }

---A new client.
---@param given riskscreen.ClientOptions
---@return riskscreen.Client
function M.new(given)
  if type(given) ~= "table" then
    error("options must be a table (got " .. text.kind(given) .. ")", 2)
  end
  local settings, message = options.check_client(given, program_runtime)
  if not settings then
    error(message, 2)
  end
  local runtime = settings.runtime or program_runtime
  local transport, problem = transport_of(settings, runtime)
  if not transport then
    error(problem, 2)
  end
  local state = calls.new_state(settings, runtime, transport)
  local client = setmetatable({ policy = settings.policy }, metatable)
  states[client] = state
  for name, methods in pairs(namespaces) do
    local namespace = setmetatable({}, { __index = methods, __name = "riskscreen." .. name })
    states[namespace] = state
    client[name] = namespace
  end
  return client
end

return M
