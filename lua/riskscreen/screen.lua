-- client:screen and client:screen_all: look up what a policy needs, then let it decide. Always a decision:
-- a failure of any kind becomes one, and never `allow` by itself.

local check = require "riskscreen.check"
local native = require "riskscreen.runtime.native"
local policies = require "riskscreen.policy"
local text = require "riskscreen.text"

local default_policy = policies.new()

---@class riskscreen.ScreenRequest
---@field address any the address; anything but a proper text makes the decision unknown
---@field network any the chain's short name
---@field policy? riskscreen.Policy the client's, or the default policy
---@field timeout? number seconds for all the lookups of the decision

---@class riskscreen.ScreenAllRequest
---@field source any[]|fun(): any addresses, or tables of `address` and `network`; a function gives one at a call
---@field network? string of the items that name none
---@field policy? riskscreen.Policy
---@field timeout? number seconds for each decision

local common_options = {
  { name = "network", type = "any", doc = "The chain's short name." },
  policies.option,
  { name = "timeout", type = "number", minimum = 0.001, maximum = 86400, unit = "seconds", doc = "For one decision." },
}

local one_options = { { name = "address", type = "any", doc = "The address." } }
local all_options = { { name = "source", type = "table|function", required = true, doc = "What to screen." } }
for index, option in ipairs(common_options) do
  one_options[index + 1], all_options[index + 1] = option, option
end

local function check_request(what, request, options)
  if type(request) ~= "table" then
    return nil, what .. ": expected a table (got " .. text.kind(request) .. ")"
  end
  local checked, problem = check.options(options, request)
  return checked, problem and (what .. ": " .. problem.message)
end

local function look_up(client, subject, policy, deadline)
  local facets = { errors = {} }
  local function fetch(facet, operation)
    local options = { timeout = deadline and math.max(deadline - native.now(), 0.001) }
    local record, err = client:call(operation, subject, options)
    if record then
      facets[facet] = record
    else
      facets.errors[facet] = err
    end
  end
  fetch("risk", "getAddressRisk")
  if facets.risk and policy:needs "entity" then
    fetch("entity", "getAddressEntity")
  end
  return facets
end

local function decide(client, address, network, policy, timeout)
  local started = native.now()
  local subject = { address = address, network = network }
  local decision = policy:decide(look_up(client, subject, policy, timeout and started + timeout))
  decision.address, decision.network = address, network
  decision.elapsed = native.now() - started
  return decision
end

-- A function that gives the source's next item, and nil at the end.
local function items(source)
  if type(source) == "function" then
    return source
  end
  local index = 0
  return function()
    index = index + 1
    return source[index]
  end
end

local M = {}

---Adds `screen` and `screen_all` to the client's methods.
---@param Client table
function M.install(Client)
  ---Screens one address.
  ---@param request riskscreen.ScreenRequest
  ---@return riskscreen.Decision
  function Client:screen(request)
    local checked, problem = check_request("screen", request, one_options)
    if not checked then
      error(problem, 2)
    end
    local policy = checked.policy or self.policy or default_policy
    return (decide(self, checked.address, checked.network, policy, checked.timeout))
  end

  ---Screens every item of a source: an iterator of one decision for each, in the source's order, each with `index`
  ---(its position) and `input` (the item).
  ---@param request riskscreen.ScreenAllRequest
  ---@return fun(): riskscreen.Decision|nil
  function Client:screen_all(request)
    local checked, problem = check_request("screen_all", request, all_options)
    if not checked then
      error(problem, 2)
    end
    local policy = checked.policy or self.policy or default_policy
    local next_item, index = items(checked.source), 0
    return function()
      local item = next_item()
      if item == nil then
        return nil
      end
      index = index + 1
      local address, network = item, checked.network
      if type(item) == "table" then
        address, network = item.address, item.network or network
      end
      local decision = decide(self, address, network, policy, checked.timeout)
      decision.index, decision.input = index, item
      return decision
    end
  end
end

return M
