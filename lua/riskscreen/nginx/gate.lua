-- The gate: who names an address that must not pass does not get past the access phase. It joins what is beside it:
-- where the address is, what is known of it, what the caller is answered. What a verdict follows from is the policy's.
local address_sources = require "riskscreen.nginx.input.sources"
local check = require "riskscreen.options.check"
local metrics = require "riskscreen.nginx.metrics"
local options = require "riskscreen.nginx.options"
local parts = require "riskscreen.nginx.context"
local plans = require "riskscreen.nginx.location"
local reading = require "riskscreen.nginx.input"
local runtime = require "riskscreen.runtime"
local statuses = require "riskscreen.nginx.metrics.status"
local text = require "riskscreen.util.text"
local unasked = require "riskscreen.nginx.fixed_decisions"

local context_of = require("resty.core.ctx").get_ctx_table

local ngx = _G.ngx

local LONGEST_REASON = 200 -- bytes in the log

---@class riskscreen.nginx.GateRequest the address, or what a location may set besides
---@field address? riskscreen.nginx.Source
---@field network? riskscreen.nginx.Source

---@class riskscreen.nginx.Gate
---@field private shared riskscreen.nginx.Parts what it has in common with its locations
---@field private plan riskscreen.nginx.Plan of this location
---@field private cache riskscreen.nginx.Cache
---@field private recorder riskscreen.nginx.Recorder
local Gate = {}
Gate.__index = Gate
Gate.__name = "riskscreen.nginx.Gate"

-- The decision about one subject.
local function screen(self, address, network, problem)
  local decision, source
  if problem then
    decision, source = unasked.invalid(problem, address, network), "invalid"
  else
    decision, source = self.cache:decide(address, network, self.plan.timeout)
    if decision.action == "unknown" and decision.error and decision.error.kind == "invalid_argument" then
      source = "invalid"
    end
  end
  self.recorder:decided(decision.action, source)
  return decision, source
end

-- All of several subjects, looked up side by side: the one that comes to the worst.
local function screen_all(self, subjects)
  local bodies = {}
  for index, subject in ipairs(subjects) do
    bodies[index] = function()
      return screen(self, subject.address, subject.network, subject.problem)
    end
  end
  local decisions, sources = runtime.tasks.gather(bodies)
  local worst = plans.worst(self.plan, decisions, sources)
  return decisions[worst], sources[worst]
end

local function set_variables(variables, decision, source, outcome)
  local var = ngx.var
  if variables.action then
    var[variables.action] = decision.action
  end
  if variables.source then
    var[variables.source] = source
  end
  if variables.outcome then
    var[variables.outcome] = outcome
  end
  if variables.reason then
    var[variables.reason] = text.printable(decision.reasons[1].message, LONGEST_REASON)
  end
end

-- Puts them into ngx.ctx; a table of their own becomes that where there is none yet, which takes half as long.
local function leave_word(decision, source)
  local word = { riskscreen = decision, riskscreen_source = source }
  local ctx = context_of(word)
  if ctx ~= word then
    ctx.riskscreen, ctx.riskscreen_source = decision, source
  end
end

-- Decides about the request that is served, and leaves word of it.
local function judge(self, request)
  local plan = self.plan
  local decision, source
  if plan.exempt and plan.exempt() then
    decision, source = unasked.exempt, "exempt"
    self.recorder:decided("allow", "exempt")
  else
    local address, network, problem, several
    if request then
      address, network, problem, several = reading.of_call(plan, request)
    else
      address, network, problem, several = reading.of_plan(plan)
    end
    if several then
      decision, source = screen_all(self, several)
    else
      decision, source = screen(self, address, network, problem)
    end
  end
  local outcome = plans.outcome(plan, decision, source)
  leave_word(decision, source)
  if plan.variables then
    set_variables(plan.variables, decision, source, outcome)
  end
  return decision, source, outcome
end

local function log(plan, decision, source, outcome)
  local message = text.printable(decision.reasons[1].message, LONGEST_REASON)
  local what = plan.monitor and "would come to " or "comes to "
  local subject = ("%s on %s"):format(text.show(decision.address), text.show(decision.network))
  ngx.log(plan.log, "riskscreen: ", what, outcome, " (", source, "): ", subject, ": ", message)
end

local function judge_and_log(self, request)
  local decision, source, outcome = judge(self, request)
  if outcome ~= "allow" then
    log(self.plan, decision, source, outcome)
  end
  return decision, source, outcome
end

-- Monitoring must not be what fails a request: what it calls is contained.
local function contained(fn, self, request)
  local ok, first, second = pcall(fn, self, request)
  if not ok then
    ngx.log(ngx.ERR, "riskscreen: cannot decide: ", tostring(first))
    return nil
  end
  return first, second
end

local function has_more_than_an_address(request)
  for name in pairs(request) do
    if name ~= "address" and name ~= "network" then
      return true
    end
  end
  return false
end

local derive

-- The gate for a request that sets more than the address.
local function for_request(self, request)
  if request ~= nil and type(request) ~= "table" then
    error("expected a table (got " .. text.kind(request) .. ")", 3)
  elseif request and has_more_than_an_address(request) then
    return derive(self, request, true), nil
  elseif not request and not self.plan.subjects then
    error("nothing says where the address is: set `address` or `subjects`", 3)
  end
  return self, request
end

---Decides about the request that is served: it goes on, or is answered here and ends. With a table, its `address` is
---the address; without one the gate's own sources are read.
---@param request? riskscreen.nginx.GateRequest
---@return riskscreen.Decision|nil decision nil where monitoring failed
---@return string|nil source
function Gate:enforce(request)
  local gate, given
  if self.plan.monitor then
    gate, given = contained(for_request, self, request)
  else
    gate, given = for_request(self, request)
  end
  if not gate then
    return nil
  elseif gate.plan.monitor then
    return contained(judge_and_log, gate, given)
  end
  local decision, source, outcome = judge_and_log(gate, given)
  if outcome ~= "allow" then
    return plans.refusal(gate.plan, decision, source, outcome)()
  end
  return decision, source
end

---Decides, and leaves acting to the caller: what `unknown` comes to is not considered.
---@param request? riskscreen.nginx.GateRequest
---@return riskscreen.Decision decision shared: nobody may change it
---@return string source
function Gate:decide(request)
  local gate, given = for_request(self, request)
  local decision, source = judge(gate, given)
  return decision, source
end

local function new_gate(shared, checked)
  local policy = checked.policy or shared.policy
  return setmetatable({
    shared = shared,
    checked = checked,
    plan = plans.of(checked),
    cache = shared:cache_for(policy),
    recorder = shared.recorder,
  }, Gate)
end

-- The gate with other options; where they stand in a call, an address that is absent there was not found.
function derive(self, given, is_call)
  local checked, problem = check.options(options.location, given)
  if not checked then
    error(problem.message, 4)
  end
  local merged = {}
  for name, value in pairs(self.checked) do
    merged[name] = value
  end
  if given.address ~= nil or given.subjects ~= nil or is_call then
    merged.address, merged.subjects = nil, nil
  end
  for name, value in pairs(checked) do
    merged[name] = value
  end
  if is_call and not merged.address and not merged.subjects then
    merged.address = address_sources.absent
  end
  return new_gate(self.shared, merged)
end

---The same gate with some options set otherwise, for one location; best made once, beside the gate.
---@param overrides table
---@return riskscreen.nginx.Gate
function Gate:location(overrides)
  if type(overrides) ~= "table" then
    error("location: expected a table of options (got " .. text.kind(overrides) .. ")", 2)
  end
  return derive(self, overrides, false)
end

---Forgets what is remembered of an address, in all workers.
---@param address string
---@param network? string all of them without it
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Gate:purge(address, network)
  for _, cache in pairs(self.shared.caches) do
    local ok, err = cache:purge(address, network)
    if not ok then
      return nil, err
    end
  end
  return true
end

---Has the lists fetched from now on, and not from the worker's first request on: for init_worker_by_lua. Without the
---option `lists` there is nothing to start.
function Gate:start()
  if self.shared.lists then
    self.shared.lists:start()
  end
end

---Answers with what was counted, as Prometheus reads it: a content handler.
function Gate:metrics()
  ngx.header["Content-Type"] = metrics.CONTENT_TYPE
  ngx.print(self.recorder:render())
end

---Answers with how the gate does, as JSON or, for a browser, as a page: a content handler.
function Gate:status()
  local plan = self.plan
  statuses.serve(self.recorder, {
    monitor = plan.monitor,
    outcomes = { unknown = plan.outcomes.unknown, review = plan.outcomes.review, invalid = plan.on_invalid },
  })
end

---Takes a delivery of the service: a content handler.
function Gate:webhook()
  local inbox = self.shared.inbox or error("webhook: the gate was made without the option `webhook`", 2)
  self.recorder:delivered(inbox:serve())
end

local M = {}

---A gate. Nothing is sent and nothing waited for: it is made in init_by_lua.
---@param given table see options.lua
---@return riskscreen.nginx.Gate
function M.new(given)
  if type(given) ~= "table" then
    error("gate: expected a table of options (got " .. text.kind(given) .. ")", 2)
  end
  local checked, problem = check.options(options.gate, given)
  if not checked then
    error("gate: " .. problem.message, 2)
  end
  problem = options.contradiction(checked)
  if problem then
    error("gate: " .. problem, 2)
  end
  local shared, why_not = parts.of(checked)
  if not shared then
    error("gate: " .. why_not, 2)
  end
  return new_gate(shared, checked)
end

return M
