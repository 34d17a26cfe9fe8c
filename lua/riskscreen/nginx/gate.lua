-- The gate denies requests whose address must not pass. It reads the address (input/), gets a decision (cache/), and
-- acts on it (location.lua).
local addresses = require "riskscreen.address"
local check = require "riskscreen.options.check"
local contexts = require "riskscreen.nginx.context"
local decisions = require "riskscreen.policy.decision"
local deny_response = require "riskscreen.nginx.deny_response"
local errors = require "riskscreen.errors"
local input = require "riskscreen.nginx.input"
local locations = require "riskscreen.nginx.location"
local metrics = require "riskscreen.nginx.metrics"
local options = require "riskscreen.nginx.options"
local runtime = require "riskscreen.runtime"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local ngx = _G.ngx
local getmetatable, type = getmetatable, type

local LONGEST_REASON = 200 -- bytes in the log
local UNAVAILABLE = 503
local NO_VARIABLE = "variables.%s names the variable %s, which cannot be set: declare it with `map` or `set` (%s)"

-- A service gets the decision itself, and so does the journal.
local STRICT = { on_unknown = "block", on_review = "review", on_invalid = "block", monitor = false }

local EXEMPT = decisions.new {
  action = "allow",
  reasons = { { action = "allow", message = "the caller is exempt" } },
}

---@class riskscreen.nginx.GateRequest the address, and any option of a location
---@field address? riskscreen.nginx.Source
---@field network? riskscreen.nginx.Source

---@class riskscreen.nginx.Gate
---@field private context riskscreen.nginx.Context shared with its locations
---@field private options table the checked options
---@field private own_location riskscreen.nginx.Location
---@field private policy riskscreen.Policy
---@field private cache riskscreen.nginx.Cache
---@field private recorder riskscreen.nginx.Recorder the context's
---@field private strict? riskscreen.nginx.Gate of the same policy, for services
local Gate = {}
Gate.__index = Gate
Gate.__name = "riskscreen.nginx.Gate"

-- The id of the request. Each reading of nginx's variable makes a new one, unless the configuration names it.
local function request_id()
  local ctx = ngx.ctx
  ctx.riskscreen_request_id = ctx.riskscreen_request_id or ngx.var.request_id
  return ctx.riskscreen_request_id
end

-- The decision of the local lists; or nil. The account's blacklist wins over a local allow list.
local function listed(self, address, network)
  local decision = self.context.local_lists:decide(address, network)
  if decision and decision.action == "allow" then
    return self.cache:blacklisted(address, network) or decision
  end
  return decision
end

local function ask_cache(self, address, network)
  local decision, source = self.cache:get(address, network, self.own_location.timeout)
  return decision, source
end

-- Counts and records a decision.
local function note(self, decision, source, address, canonical)
  self.recorder:decided(decision.action, source)
  local journal = self.context.journal
  if journal then
    journal:record(decision, source, self, request_id(), address, canonical)
  end
  return decision, source
end

local function decide_one(self, address, network, problem)
  local context = self.context
  local decision, source, canonical
  if not problem then
    canonical, problem = context.read_address(address, network)
  end
  if problem then
    decision, source = decisions.invalid(problem, address, network), "invalid"
  elseif context.local_lists then
    decision, source = context.local_lists:before(listed, ask_cache, self, canonical, network)
  else
    decision, source = ask_cache(self, canonical, network)
  end
  return note(self, decision, source or "list", address, canonical)
end

-- Decides about several subjects side by side; the worst decision counts.
local function decide_all(self, subjects)
  local bodies = {}
  for index, subject in ipairs(subjects) do
    bodies[index] = function()
      return decide_one(self, subject.address, subject.network, subject.problem)
    end
  end
  local found, sources = runtime.tasks.gather(bodies)
  local worst = self.own_location:worst(found, sources, #subjects)
  return found[worst], sources[worst]
end

local function set_variable(variable, value)
  ngx.var[variable] = value
end

-- nginx tells no sooner that a variable does not exist. The configuration may depend on its value, so the request must
-- not go on without it.
local function set_variables(location, decision, source, action)
  local reason = text.printable(decision.reasons[1].message, LONGEST_REASON)
  local values = { action = decision.action, source = source, outcome = action, reason = reason }
  for name, variable in pairs(location.variables) do
    local is_set, problem = pcall(set_variable, variable, values[name])
    if not is_set then
      local message = NO_VARIABLE:format(name, variable, tostring(problem))
      if location.monitor then
        error(message, 0)
      end
      ngx.log(ngx.ERR, "riskscreen: ", message, "; request ", request_id())
      return deny_response.send(UNAVAILABLE, request_id(), {}, false)
    end
  end
end

local function find_decision(self, request)
  local exempt = self.own_location.exempt
  request = exempt and request and tables.copy(request) or request -- the caller may change its own while `exempt` waits
  if exempt and exempt() then
    return note(self, EXEMPT, "exempt")
  end
  local address, network, problem, subjects = input.read(self.own_location, request)
  if subjects then
    return decide_all(self, subjects)
  end
  return decide_one(self, address, network, problem)
end

-- Decides about the request that is served, and shows the decision in ngx.ctx and in variables.
local function decide(self, request)
  local decision, source = find_decision(self, request)
  local location = self.own_location
  local action = location:effective_action(decision, source)
  local ctx = ngx.ctx
  ctx.riskscreen, ctx.riskscreen_source = decision, source
  if location.variables then
    set_variables(location, decision, source, action)
  end
  return decision, source, action
end

local function log(location, decision, source, action, id)
  local message = text.printable(decision.reasons[1].message, LONGEST_REASON)
  local verb = location.monitor and "would " or ""
  local subject = decision.address == nil and "no address" or text.show(decision.address)
  if decision.network ~= nil then
    subject = ("%s on %s"):format(subject, text.show(decision.network))
  end
  local differs = decision.action ~= action and source ~= "invalid"
  local origin = differs and source .. ", decision " .. decision.action or source
  ngx.log(location.log, "riskscreen: ", verb, action, " (", origin, "): ", subject, ": ", message, "; request ", id)
end

local function decide_and_log(self, request)
  local decision, source, action = decide(self, request)
  if action ~= "allow" then
    log(self.own_location, decision, source, action, request_id())
  end
  return decision, source, action
end

-- Monitor mode must not fail a request: an error is logged, and the request passes.
local function call_contained(fn, self, request)
  local ok, first, second = pcall(fn, self, request)
  if ok then
    return first, second
  end
  ngx.log(ngx.ERR, "riskscreen: cannot decide: ", errors.text(first))
end

local function new_gate(context, checked)
  local policy = checked.policy or context.policy
  return setmetatable({
    context = context,
    options = checked,
    own_location = locations.new(checked),
    policy = policy,
    cache = context:cache_for(policy),
    recorder = context.recorder,
  }, Gate)
end

-- The gate with other options.
local function derive(self, given, level)
  local checked, problem = check.options(options.location, given)
  if not checked then
    error(problem.message, level + 1)
  end
  if checked.address and checked.subjects then
    error(options.ONE_PLACE, level + 1)
  end
  local base = tables.copy(self.options)
  if checked.address or checked.subjects then
    base.address, base.subjects = nil, nil
  end
  return new_gate(self.context, tables.merge(base, checked))
end

-- Options of a location that stand in a call: what a call has beside the address and the network.
local function options_in(request)
  local given
  if tables.inherits(request) then
    error("the table " .. tables.INHERITS, 4)
  elseif request.address ~= nil and request.subjects ~= nil then
    error(options.ONE_PLACE, 4)
  end
  for name, value in pairs(request) do
    if name ~= "address" and name ~= "network" then
      given = given or {}
      given[name] = value
    end
  end
  return given
end

-- The gate for a call, and the call's own address if it has one. Raises at the line that called the public method.
local function for_call(self, request)
  if request == nil then
    if not self.own_location.subjects then
      error("nothing says where the address is: set `address` or `subjects`", 3)
    end
    return self
  elseif type(request) ~= "table" then
    error("expected a table (got " .. text.kind(request) .. ")", 3)
  end
  local given = options_in(request)
  if not given then
    return self, request
  elseif given.subjects then
    given.network = request.network
    return derive(self, given, 3), nil
  end
  return derive(self, given, 3), request
end

local function check_self(self, method)
  if getmetatable(self) ~= Gate then
    error(("call it with a colon: gate:%s { … }"):format(method), 3)
  end
end

---Decides about the request that is served. The request goes on, or ends here with the location's answer. The address
---is the table's `address`; without a table, the gate's own sources are read.
---@param request? riskscreen.nginx.GateRequest
---@return riskscreen.Decision|nil decision nil if monitor mode failed to decide
---@return string|nil source
function Gate:enforce(request)
  check_self(self, "enforce")
  local gate, given
  if self.own_location.monitor then
    gate, given = call_contained(for_call, self, request)
  else
    gate, given = for_call(self, request)
  end
  if not gate then
    return nil
  elseif gate.own_location.monitor then
    return call_contained(decide_and_log, gate, given)
  end
  local decision, source, action = decide_and_log(gate, given)
  if action ~= "allow" then
    return gate.own_location:deny(decision, source, action, request_id())
  end
  return decision, source
end

---Decides, and leaves acting to the caller: `on_unknown` and the like do not apply.
---@param request? riskscreen.nginx.GateRequest
---@return riskscreen.Decision decision shared: do not change it
---@return string source
function Gate:decide(request)
  check_self(self, "decide")
  local gate, given = for_call(self, request)
  local decision, source = decide(gate, given)
  return decision, source
end

---The same gate with other options, for one location. Make it once, beside the gate.
---@param overrides table
---@return riskscreen.nginx.Gate
function Gate:location(overrides)
  check_self(self, "location")
  if type(overrides) ~= "table" then
    error("location: expected a table of options (got " .. text.kind(overrides) .. ")", 2)
  end
  local gate = derive(self, overrides, 2)
  local problem = options.network_problem(overrides)
  if problem then
    error("location: " .. problem, 2)
  end
  return gate
end

---Answers another server that asks whether a request may pass: a content handler. The gate's own sources are read from
---the request that the client has sent to that server.
function Gate:answer()
  check_self(self, "answer")
  local location = self.own_location
  if not location.monitor then
    for_call(self)
  end
  return require("riskscreen.nginx.answer").serve(location, request_id(), function()
    if location.monitor then
      return call_contained(decide_and_log, self)
    end
    return decide_and_log(self)
  end)
end

---Answers a service that asks about an address in JSON: a content handler. `on_unknown` and the like do not apply.
function Gate:decisions()
  check_self(self, "decisions")
  local service = self.context.decisions or error("decisions: the gate was made without the option `decisions`", 2)
  self.strict = self.strict or new_gate(self.context, tables.merge(self.options, STRICT))
  return service:serve(request_id(), function(address, network)
    return decide_one(self.strict, address, network)
  end)
end

---Forgets what is cached about an address, in all workers, and on all machines that share a Redis.
---@param address string
---@param network? string without it, all networks
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Gate:purge(address, network)
  local context = self.context
  local fault = not addresses.keys(address, network) and "purge: expected an address and, at most, a network"
    or context.is_canonical
      and not addresses.networks_of(address, "format")[1]
      and ("purge: %s is an address of no network"):format(text.show(address))
  if fault then
    return nil, errors.new("invalid_argument", fault, { field = "address" })
  end
  local told, problem = true, nil
  if context.fleet then
    told, problem = context.fleet.purges:publish(address, network)
  end
  local ok, err = context:forget(address, network)
  if ok and not told then
    local message = "this machine has forgotten the address; the others will when Redis answers: %s"
    return nil, errors.new("storage", message:format(problem), { reason = "other", retryable = true })
  end
  return ok, err
end

---Begins to fetch the account's lists, to listen for purges of other machines, and to look at the files of local lists.
---Call it in init_worker_by_lua. Without this call, a worker begins with its first request.
function Gate:start()
  for _, part in ipairs { "local_lists", "lists", "fleet" } do
    if self.context[part] then
      self.context[part]:start()
    end
  end
end

---Writes what the journal has not written yet: for exit_worker_by_lua. Without it a worker that is stopped by SIGTERM
---loses the decisions of the last `journal.interval`. Without the option `journal` it does nothing.
function Gate:stop()
  if self.context.journal then
    self.context.journal:finish()
  end
end

---Serves the metrics for Prometheus: a content handler.
function Gate:metrics()
  ngx.header["Content-Type"] = metrics.CONTENT_TYPE
  ngx.print(self.recorder:render())
end

---Serves the state of the gate, as JSON or, for a browser, as a page: a content handler.
function Gate:status()
  local location = self.own_location
  local actions = location.actions
  require("riskscreen.nginx.metrics.status").serve(self.recorder, {
    monitor = location.monitor,
    outcomes = { unknown = actions.unknown, review = actions.review, invalid = location.on_invalid },
  })
end

---Receives a webhook of the service: a content handler.
function Gate:webhook()
  local inbox = self.context.inbox or error("webhook: the gate was made without the option `webhook`", 2)
  self.recorder:delivered(inbox:serve())
end

local M = {}

---A gate. It sends nothing and waits for nothing: make it in init_by_lua.
---@param given riskscreen.nginx.GateOptions
---@return riskscreen.nginx.Gate
function M.new(given)
  local checked = check.arguments("gate", options.gate, given)
  local message = options.contradiction(checked) or options.network_problem(given)
  local context
  if not message then
    context, message = contexts.new(checked)
  end
  if not context then
    error("gate: " .. message, 2)
  end
  return new_gate(context, tables.pick(checked, tables.pluck(options.location, "name"))) -- the others have secrets
end

return M
