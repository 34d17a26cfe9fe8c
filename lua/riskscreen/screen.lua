-- client:screen: look up what a policy needs, side by side, then let it decide. Always a decision: a failure of any
-- kind becomes one, and never `allow` by itself. Many addresses are screen_all.lua's.

local check = require "riskscreen.check"
local facets = require "riskscreen.facets"
local policies = require "riskscreen.policy"
local reliability = require "riskscreen.reliability"
local runtime = require "riskscreen.runtime"
local text = require "riskscreen.text"

local SHORTEST_TIMEOUT = 0.001 -- seconds
local default_policy = policies.new()

---@class riskscreen.ScreenRequest
---@field address any the address; anything but a proper text makes the decision unknown
---@field network any the chain's short name
---@field policy? riskscreen.Policy the client's, or the default policy
---@field include? riskscreen.FacetName[] lookups that the decision shall carry besides those that the policy needs
---@field timeout? number seconds for all the lookups of the decision
---@field retry? table|boolean of the lookups, as a call's
---@field priority? "high"|"normal"|"low" of the lookups, as a call's
---@field traceparent? string of the lookups, as a call's

local is_facet = {}
for _, name in ipairs(facets.names) do
  is_facet[name] = true
end

local function facet_list(value)
  if not check.sequence_length(value) then
    return nil, "must be a list"
  end
  for _, name in ipairs(value) do
    if not is_facet[name] then
      local known = table.concat(facets.names, ", ")
      local hint = text.did_you_mean(name, facets.names)
      return nil, ("must name lookups: %s (got %s%s)"):format(known, text.show(name), hint)
    end
  end
  return value
end

local M = {}

---The options of every screening, of one address or of many.
---@type riskscreen.Option[]
M.options = {
  { name = "network", type = "any", doc = "The chain's short name." },
  policies.option,
  { name = "include", type = "table", default = {}, check = facet_list, doc = "Lookups to carry." },
  {
    name = "timeout",
    type = "number",
    minimum = SHORTEST_TIMEOUT,
    maximum = 86400,
    unit = "seconds",
    doc = "For one decision.",
  },
}

for _, option in ipairs(reliability.call) do
  table.insert(M.options, option)
end

local one_options = { { name = "address", type = "any", doc = "The address." } }
for _, option in ipairs(M.options) do
  one_options[#one_options + 1] = option
end

---Checks the table given to a screening.
---@param what string the method's name
---@param request any
---@param options riskscreen.Option[]
---@return table|nil checked
---@return string|nil message for `error`
function M.check(what, request, options)
  if type(request) ~= "table" then
    return nil, what .. ": expected a table (got " .. text.kind(request) .. ")"
  end
  local checked, problem = check.options(options, request)
  return checked, problem and (what .. ": " .. problem.message)
end

-- The lookups of a screening: the risk assessment always, the others when the policy or the caller wants them.
local function wanted_facets(policy, include)
  local included, wanted = { risk = true }, {}
  for _, name in ipairs(include) do
    included[name] = true
  end
  for _, facet in ipairs(facets.list) do
    if included[facet.name] or policy:needs(facet.name) then
      wanted[#wanted + 1] = facet
    end
  end
  return wanted
end

-- The results of the calls side by side; a single one needs no task, and where nothing can wait each says so.
local function all(calls)
  if #calls > 1 and not runtime.refusal() then
    return runtime.tasks.gather(calls)
  end
  local values, errs = {}, {}
  for index, call in ipairs(calls) do
    values[index], errs[index] = call()
  end
  return values, errs
end

-- The options of one lookup's call.
local function call_options(checked, deadline)
  local call = { timeout = deadline and math.max(deadline - runtime.now(), SHORTEST_TIMEOUT) }
  for _, option in ipairs(reliability.call) do
    call[option.name] = checked[option.name]
  end
  return call
end

local function look_up(client, subject, wanted, checked, deadline)
  local found = { errors = {}, not_offered = {} }
  local names, calls = {}, {}
  for _, facet in ipairs(wanted) do
    if facets.applies(facet, subject.network) then
      names[#names + 1] = facet.name
      calls[#calls + 1] = function()
        return client:call(facet.operation, subject, call_options(checked, deadline))
      end
    else
      found.not_offered[facet.name] = true
    end
  end
  local values, errs = all(calls)
  for index, name in ipairs(names) do
    if values[index] then
      found[name] = values[index]
    else
      found.errors[name] = errs[index]
    end
  end
  return found
end

---How one address is decided, with everything that is the same for all of a run settled.
---@param client riskscreen.Client
---@param checked { policy?: riskscreen.Policy, include: riskscreen.FacetName[], timeout?: number } and a call's
---@return fun(address: any, network: any): riskscreen.Decision
function M.decider(client, checked)
  local policy = checked.policy or client.policy or default_policy
  local wanted = wanted_facets(policy, checked.include)
  return function(address, network)
    local started = runtime.now()
    local subject = { address = address, network = network }
    local deadline = checked.timeout and started + checked.timeout
    local decision = policy:decide(look_up(client, subject, wanted, checked, deadline))
    decision.address, decision.network = address, network
    decision.elapsed = runtime.now() - started
    return decision
  end
end

---Adds `screen` to the client's methods.
---@param Client table
---@param problem_of fun(client: any): string|nil why a client cannot be used
function M.install(Client, problem_of)
  ---Screens one address.
  ---@param request riskscreen.ScreenRequest
  ---@return riskscreen.Decision
  function Client:screen(request)
    local checked, problem = M.check("screen", request, one_options)
    problem = problem_of(self) or problem
    if problem then
      error(problem, 2)
    end
    return (M.decider(self, checked)(checked.address, checked.network))
  end
end

return M
