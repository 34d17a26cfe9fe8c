-- Reads from the request that is served the subjects it names: an address and a network each, or a problem. The places
-- where they can stand are in sources.lua and url.lua.
local exempt = require "riskscreen.nginx.input.exempt"
local sources = require "riskscreen.nginx.input.sources"
local tables = require "riskscreen.util.tables"

local M = {
  compile = sources.compile,
  subject_reader = sources.subject_reader,
  exempt = exempt.check,
}

---@class riskscreen.nginx.InputSubject
---@field address any
---@field network any
---@field problem? string

-- A source may give several addresses. None at all is a problem, and so is a hole: the addresses behind it would not be
-- checked.
local function add_subjects(list, address, network, problem)
  if type(address) ~= "table" then
    list[#list + 1] = { address = address, network = network, problem = problem }
    return
  elseif next(address) == nil then
    problem = problem or "there is no address"
  elseif not tables.sequence_length(address) then
    problem = problem or "the addresses are no list without holes"
  end
  if problem then
    list[#list + 1] = { network = network, problem = problem }
    return
  end
  for _, one in ipairs(address) do
    list[#list + 1] = { address = one, network = network }
  end
end

local function read_source(source, name)
  local value, problem, misuse = sources.read(source, name)
  if misuse then
    error(misuse, 0)
  end
  return value, problem
end

-- Reads the sources that stand in a call.
local function read_call(location, request)
  local address, network, problem = request.address, request.network, nil
  if type(address) ~= "string" then
    address, problem = read_source(address, "address")
  end
  if network == nil then
    network = location.network
  end
  if type(network) ~= "string" then
    local network_problem
    network, network_problem = read_source(network, "network")
    problem = problem or network_problem
  end
  return address, network, problem
end

---Reads the subject of the request, or several subjects as a list.
---@param location riskscreen.nginx.Location
---@param request? riskscreen.nginx.GateRequest sources that stand in a call; without it, the location's are read
---@return any address
---@return any network
---@return string|nil problem
---@return riskscreen.nginx.InputSubject[]|nil subjects
function M.read(location, request)
  local address, network, problem
  if request then
    address, network, problem = read_call(location, request)
  elseif not location.subjects[2] then
    address, network, problem = location.subjects[1]()
  else
    local list = {}
    for _, read in ipairs(location.subjects) do
      add_subjects(list, read())
    end
    return nil, nil, nil, list
  end
  if type(address) ~= "table" then
    return address, network, problem
  end
  local list = {}
  add_subjects(list, address, network, problem)
  return nil, nil, nil, list
end

return M
