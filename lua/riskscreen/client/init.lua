-- A client. Its methods are built from operations.lua: each checks its own arguments, and call/ makes the call.
local bulk = require "riskscreen.client.bulk"
local calls = require "riskscreen.call"
local errors = require "riskscreen.errors"
local operations = require "riskscreen.interface.operations"
local options = require "riskscreen.options"
local pages = require "riskscreen.client.pages"
local program_runtime = require "riskscreen.runtime"
local screen = require "riskscreen.client.screen"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

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

-- Loads the methods that few programs use when one is first named. Raises the error of a misspelt method where it is
-- named.
local function complete(place, methods, install, more)
  return setmetatable(methods, {
    __index = function(_, name)
      if type(name) == "string" and name ~= "policy" then
        if install then
          install(methods)
        end
        if rawget(methods, name) then
          return rawget(methods, name)
        end
        local hint = text.did_you_mean(name, tables.sorted_keys(methods, more))
        error(("%s has no method %s%s"):format(place, text.show(name), hint), 2)
      end
    end,
  })
end

local function define(operation)
  local split = bulk.of(operation)
  local specs = split and options.split_call or options.call
  local place = "client." .. operation.namespace
  local namespace = namespaces[operation.namespace] or {}
  namespaces[operation.namespace] = namespace
  namespace[operation.method] = function(self, parameters, given)
    local state, call_options = calls.open(self, place, parameters, specs, given)
    if split then
      return split(state, parameters or {}, call_options)
    end
    return calls.perform(state, operation, parameters or {}, call_options)
  end
end

for _, operation in ipairs(operations.list) do
  define(operation)
  for name, method in pairs(operation.paginated and pages.methods(operation) or {}) do
    namespaces[operation.namespace][name] = method
  end
end

local kyt_operations = namespaces.kyt
namespaces.kyt = {}
for name, methods in pairs(namespaces) do
  complete("client." .. name, methods, name == "kyt" and function(kyt)
    for method_name, method in pairs(tables.merge(kyt_operations, require("riskscreen.kyt").methods)) do
      kyt[method_name] = method
    end
  end)
end

---Calls an operation by the interface's own name.
---@param name string
---@param parameters? table
---@param call_options? table the call's options
---@return any value
---@return riskscreen.Response|riskscreen.Error
function Client:call(name, parameters, call_options)
  local state, checked = calls.open(self, "client", parameters, options.call, call_options)
  local operation = operations.by_name[name]
  if not operation then
    local hint = text.did_you_mean(name, tables.sorted_keys(operations.by_name))
    error(("unknown operation %s%s"):format(state.hide_key(text.show(name)), hint), 2)
  end
  return calls.perform(state, operation, parameters or {}, checked)
end

---Sends a request that no operation describes; the value is the decoded body.
---@param method "GET"|"POST"|"PUT"|"PATCH"|"DELETE"
---@param path string beginning with "/", percent-encoded, without a query
---@param call_options? { query?: table, body?: any, headers?: table, timeout?: number }
---@return any value
---@return riskscreen.Response|riskscreen.Error
function Client:request(method, path, call_options)
  local state, checked = calls.open(self, "client", nil, options.request, call_options)
  if not options.methods[method] then
    error(("method must be GET, POST, PUT, PATCH or DELETE (got %s)"):format(text.show(method)), 2)
  elseif type(path) ~= "string" then
    error("path must be a string (got " .. text.kind(path) .. ")", 2)
  end
  local name = method .. " " .. state.hide_key(text.printable(path))
  if not options.is_path(path) then
    local wanted = "path must begin with one '/', be percent-encoded and have no query (got %s)"
    local fields = { operation = name, field = "path", attempts = 0, elapsed = 0, sent = false }
    return nil, errors.new("invalid_argument", wanted:format(state.hide_key(text.show(path))), fields)
  end
  return calls.request(state, name, method, path, checked)
end

---The client's counters and latency histograms, and the status of its rate limit and circuit breaker.
---@return table
function Client:stats()
  local state = calls.state_of(self) or error("call it with a colon: client:stats()", 2)
  local stats = calls.stats(state)
  stats.lists = state.lists and state.lists:facts()
  return stats
end

---Closes the client. Its connections are closed when they are collected, and further calls raise.
function Client:close()
  local state = calls.state_of(self)
  if state then
    state.transport = nil
  end
end

screen.install(Client)
complete("client", Client, function(client)
  require("riskscreen.client.screen_all").install(client)
end, namespaces)

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

-- Loads what calls may need later. Then the program may have no descriptor left, or new files in the place of these.
local function load_modules()
  require "riskscreen.util.decimal"
  require "riskscreen.util.forked"
  require "riskscreen.util.guard"
end

local M = { Client = Client, namespaces = namespaces }

---The option `address_check` of a client, or nil.
---@param client any
---@return "checksum"|"format"|false|nil
function M.address_check(client)
  local state = calls.state_of(client)
  return state and state.settings.address_check
end

---A function that decides about one address after another as the client's `screen` does, without options to check. Its
---caller has checked the address.
---@param client riskscreen.Client
---@param policy riskscreen.Policy
---@param is_canonical boolean its caller gives canonical addresses, and networks of the interface
---@return nil|fun(address: any, network: any, timeout: number): riskscreen.Decision decide nil if it is not a client
function M.decider(client, policy, is_canonical)
  local state = calls.state_of(client)
  local screening = state and screen.new(state, policy, { address_check = is_canonical and "format" })
  return screening
    and function(address, network, timeout)
      return (screening:decide(address, network, nil, is_canonical and address or nil, timeout))
    end
end

local metatable = { __index = Client, __name = "riskscreen.Client" }

---A new client.
---@param given riskscreen.ClientOptions
---@return riskscreen.Client
function M.new(given)
  if type(given) ~= "table" then
    error("options must be a table (got " .. text.kind(given) .. ")", 2)
  end
  load_modules()
  local settings, message = options.check_client(given, program_runtime)
  if not settings then
    error(message, 2)
  end
  local runtime = settings.runtime or program_runtime
  local transport, misuse = transport_of(settings, runtime)
  if not transport then
    error(misuse, 2)
  end
  local state = calls.new_state(settings, runtime, transport)
  misuse = settings.store and calls.identity.misuse(state, true)
  if misuse then
    error("store " .. misuse, 2)
  end
  misuse = settings.shared_dict and not settings.shared_as and calls.identity.misuse(state, false)
  if misuse then
    error("shared_dict " .. misuse, 2)
  end
  if settings.lists then
    state.lists, misuse =
      require("riskscreen.lists").open(settings.lists, state.clock, runtime.now, settings.address_check)
    if not state.lists then
      error(misuse, 2)
    end
  end
  if settings.inbox then
    settings.inbox.account = settings.inbox.account or settings.account -- clients of others are refused from now on
  end
  local client = setmetatable({ policy = settings.policy }, metatable)
  calls.bind(client, state)
  for name, methods in pairs(namespaces) do
    local namespace = setmetatable({}, { __index = methods, __name = "riskscreen." .. name })
    calls.bind(namespace, state)
    client[name] = namespace
  end
  return client
end

return M
