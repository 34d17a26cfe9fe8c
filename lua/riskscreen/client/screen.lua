-- client:screen: look up what a policy needs, side by side, then let it decide. Always a decision: a failure of any
-- kind becomes one, and never `allow` by itself. Many addresses are screen_all.lua's.

local check = require "riskscreen.options.check"
local tables = require "riskscreen.util.tables"
local lookups = require "riskscreen.policy.lookups"
local operations = require "riskscreen.interface.operations"
local policies = require "riskscreen.policy"
local reliability = require "riskscreen.options.reliability"
local text = require "riskscreen.util.text"

local SHORTEST_TIMEOUT = 0.001 -- seconds
local default_policy = policies.new()

---@class riskscreen.ScreenRequest
---@field address any the address; anything but a proper text makes the decision unknown
---@field network any the chain's short name
---@field policy? riskscreen.Policy the client's, or the default policy
---@field include? riskscreen.LookupName[] lookups that the decision shall carry besides those that the policy needs
---@field timeout? number seconds for all the lookups of the decision
---@field retry? table|boolean of the lookups, as a call's
---@field priority? "high"|"normal"|"low" of the lookups, as a call's
---@field traceparent? string of the lookups, as a call's

local is_lookup = {}
for _, name in ipairs(lookups.names) do
  is_lookup[name] = true
end

local function lookup_list(value)
  if not tables.sequence_length(value) then
    return nil, "must be a list"
  end
  for _, name in ipairs(value) do
    if not is_lookup[name] then
      local known = table.concat(lookups.names, ", ")
      local hint = text.did_you_mean(name, lookups.names)
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
  require("riskscreen.options").policy,
  { name = "include", type = "table", default = {}, check = lookup_list, doc = "Lookups to carry." },
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
local function find_wanted(policy, include)
  local included, wanted = { risk = true }, {}
  for _, name in ipairs(include) do
    included[name] = true
  end
  for _, lookup in ipairs(lookups.list) do
    if included[lookup.name] or policy:needs(lookup.name) then
      wanted[#wanted + 1] = lookup
    end
  end
  return wanted
end

-- Those that policies want by themselves, found once.
local wanted_by = setmetatable({}, { __mode = "k" })

local function wanted_lookups(policy, include)
  if include[1] then
    return find_wanted(policy, include)
  end
  local wanted = wanted_by[policy]
  if not wanted then
    wanted = find_wanted(policy, include)
    wanted_by[policy] = wanted
  end
  return wanted
end

local function keep(found, lookup, value, err)
  if value then
    found[lookup.name] = value
  else
    found.errors = found.errors or {}
    found.errors[lookup.name] = err
  end
end

---@class riskscreen.Screening what is the same for every address of a run
---@field state riskscreen.State
---@field perform fun(state: riskscreen.State, operation: riskscreen.Operation, parameters: table, options: table)
---@field policy riskscreen.Policy
---@field wanted riskscreen.Lookup[]
---@field call table the checked options of each lookup's call, and that the answer's headers are of no use

local function look_up_one(screening, lookup, subject, call)
  return screening.perform(screening.state, operations.by_name[lookup.operation], subject, call)
end

local function look_up_side_by_side(screening, offered, subject, call, found)
  local calls = {}
  for index, lookup in ipairs(offered) do
    calls[index] = function()
      return look_up_one(screening, lookup, subject, call)
    end
  end
  local values, errs = screening.state.runtime.tasks.gather(calls)
  for index, lookup in ipairs(offered) do
    keep(found, lookup, values[index], errs[index])
  end
end

-- Those of the lookups that the service offers for the network.
local function offered_of(wanted, network, found)
  local offered = {}
  for _, lookup in ipairs(wanted) do
    if lookups.applies(lookup, network) then
      offered[#offered + 1] = lookup
    else
      found.not_offered = found.not_offered or {}
      found.not_offered[lookup.name] = true
    end
  end
  return offered
end

local function look_up(screening, subject, call)
  local wanted = screening.wanted
  -- A single one needs no task: it is the risk assessment, which is offered everywhere.
  if not wanted[2] then
    local value, err = look_up_one(screening, wanted[1], subject, call)
    return value and { risk = value } or { errors = { risk = err } }
  end
  local found = {}
  local offered = offered_of(wanted, subject.network, found)
  if not screening.state.runtime.refusal() then
    look_up_side_by_side(screening, offered, subject, call, found)
    return found
  end
  -- Where nothing can wait each says so.
  for _, lookup in ipairs(offered) do
    keep(found, lookup, look_up_one(screening, lookup, subject, call))
  end
  return found
end

local function decide(screening, address, network, call)
  local now = screening.state.runtime.now
  local started = now()
  local decision = screening.policy:decide(look_up(screening, { address = address, network = network }, call))
  decision.address, decision.network = address, network
  decision.elapsed = now() - started
  return decision
end

local function new_screening(state, policy, checked, perform)
  policy = checked.policy or policy or default_policy
  local call = { timeout = checked.timeout, value_only = true }
  for _, option in ipairs(reliability.call) do
    call[option.name] = checked[option.name]
  end
  local wanted = wanted_lookups(policy, checked.include)
  return { state = state, perform = perform, policy = policy, wanted = wanted, call = call }
end

---How one address is decided, with everything that is the same for all of a run settled.
---@param state riskscreen.State
---@param policy? riskscreen.Policy the client's
---@param checked { policy?: riskscreen.Policy, include: riskscreen.LookupName[], timeout?: number } and a call's
---@param perform function of riskscreen.Access
---@return fun(address: any, network: any): riskscreen.Decision
function M.decider(state, policy, checked, perform)
  local screening = new_screening(state, policy, checked, perform)
  return function(address, network)
    return decide(screening, address, network, screening.call)
  end
end

---The same where each address comes with a time of its own.
---@param state riskscreen.State
---@param policy riskscreen.Policy
---@param perform function of riskscreen.Access
---@return fun(address: any, network: any, timeout: number): riskscreen.Decision
function M.timed_decider(state, policy, perform)
  local screening = new_screening(state, policy, { include = {} }, perform)
  return function(address, network, timeout)
    return decide(screening, address, network, { timeout = math.max(timeout, SHORTEST_TIMEOUT), value_only = true })
  end
end

---Adds `screen` to the client's methods.
---@param Client table
---@param access riskscreen.Access
function M.install(Client, access)
  ---Screens one address.
  ---@param request riskscreen.ScreenRequest
  ---@return riskscreen.Decision
  function Client:screen(request)
    local checked, problem = M.check("screen", request, one_options)
    local state, misuse = access.open(self, "client")
    if not state or problem then
      error(state and problem or misuse, 2)
    end
    local screening = new_screening(state, self.policy, checked, access.perform)
    return (decide(screening, checked.address, checked.network, screening.call))
  end
end

return M
