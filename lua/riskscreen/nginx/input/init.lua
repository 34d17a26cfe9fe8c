-- Reads from the request that is served which subjects it names: an address and a network each, or what is wrong with
-- them. Where each is to be found is address.lua's.
local sources = require "riskscreen.nginx.input.sources"

local M = {}

---@class riskscreen.nginx.Named
---@field address any
---@field network any
---@field problem? string why there is none

-- A source may lead to several addresses, but not to none.
local function add_subjects(list, address, network, problem)
  if type(address) ~= "table" then
    list[#list + 1] = { address = address, network = network, problem = problem }
    return
  elseif address[1] == nil then
    list[#list + 1] = { problem = problem or "there is no address" }
  end
  for _, one in ipairs(address) do
    list[#list + 1] = { address = one, network = network, problem = problem }
  end
end

---What the gate's own sources say: one subject, or a list of them.
---@param plan riskscreen.nginx.Plan
---@return any address
---@return any network
---@return string|nil problem
---@return riskscreen.nginx.Named[]|nil several
function M.of_plan(plan)
  local list = {}
  if plan.subjects[2] then
    for _, read in ipairs(plan.subjects) do
      add_subjects(list, read())
    end
    return nil, nil, nil, list
  end
  local address, network, problem = plan.subjects[1]()
  if type(address) ~= "table" then
    return address, network, problem
  end
  add_subjects(list, address, network, problem)
  return nil, nil, nil, list
end

local function read_source(source, what)
  local value, problem, misuse = sources.read(source, what)
  if misuse then
    error(misuse, 0)
  end
  return value, problem
end

---The same of what stands in a call.
---@param plan riskscreen.nginx.Plan
---@param request riskscreen.nginx.GateRequest
---@return any address
---@return any network
---@return string|nil problem
---@return riskscreen.nginx.Named[]|nil several
function M.of_call(plan, request)
  local address, network, problem = request.address, request.network, nil
  if type(address) ~= "string" then
    address, problem = read_source(address, "address")
  end
  if network == nil then
    network = plan.network
  end
  if type(network) ~= "string" then
    local network_problem
    network, network_problem = read_source(network, "network")
    problem = problem or network_problem
  end
  if type(address) == "table" then
    local list = {}
    add_subjects(list, address, network, problem)
    return nil, nil, nil, list
  end
  return address, network, problem
end

return M
