-- Reads from the request that is served the subjects it names: an address and a network each, or a problem. The places
-- where they can stand are in sources.lua and url.lua. The tests of a request's caller and method are here, too.
local build = require "riskscreen.options.build"
local guard = require "riskscreen.util.guard"
local ip = require "riskscreen.util.ip"
local sources = require "riskscreen.nginx.input.sources"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local ngx = _G.ngx

-- Folded names of headers by which some programs let another method stand for the request's own.
local overrides = tables.set { "xhttpmethodoverride", "xhttpmethod", "xmethodoverride" }

local M = {
  compile = sources.compile,
  subject_reader = sources.subject_reader,
}

-- Callers that pass the gate without a lookup: those of some networks, and those that a function accepts. Behind a
-- proxy, nginx's realip module must find the caller's address.

---A test whether the caller of the request is exempt. A function must return true itself; other values are a no.
---@param value table|function addresses and networks such as "192.0.2.0/24", and functions; or one function
---@return (fun(): boolean)|nil
---@return string|nil message
function M.exempt(value)
  local networks, tests = {}, {}
  for index, one in ipairs(type(value) == "function" and { value } or value) do
    if type(one) == "function" then
      tests[#tests + 1] = guard.test("exempt", one)
    else
      networks[#networks + 1] = ip.network(one)
    end
    if #networks + #tests < index then
      return nil, ("must hold functions, addresses and networks such as 192.0.2.0/24 (got %s)"):format(text.show(one))
    end
  end
  if networks[1] then
    table.insert(tests, 1, function()
      local asked, caller = ngx.ctx.riskscreen_asked, ngx.var.remote_addr
      return caller ~= (asked and asked.peer) and ip.is_within(networks, caller)
    end)
  end
  if not tests[1] then
    return nil, "must hold at least one address, network or function"
  end
  return function()
    for index = 1, #tests do
      if tests[index]() then
        return true
      end
    end
    return false
  end
end

-- HEAD counts as GET.
local function method_of(name)
  return name == "HEAD" and "GET" or name
end

---A function that returns why the request's method is refused; nil if it is one of some methods.
---@param value string[]
---@return (fun(asked?: riskscreen.nginx.Asked): string|nil)|nil
---@return string|nil message
function M.methods(value)
  local names, message = build.list_of(value, "HTTP methods such as POST", function(name)
    return type(name) == "string" and name:find "^[A-Z]+$" and method_of(name)
  end, 1)
  if not names then
    return nil, message
  end
  local allowed, wanted = tables.set(names), table.concat(names, ", ")
  return function(asked)
    local method, problem = (asked and asked.method or ngx.req.get_method)()
    if not method then
      return problem
    elseif not allowed[method_of(method)] then
      return ("the method %s is not one of %s"):format(method, wanted)
    end
    for name in pairs(ngx.req.get_headers(0)) do
      if overrides[sources.folded_header(name)] then
        return ("the header %s stands for another method"):format(name)
      end
    end
  end
end

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

-- Reads the sources that stand in a call.
local function read_call(location, request)
  local address, network = request.address, request.network
  local problem
  if address == nil then
    problem = "the call names no address (is its value nil?): only gate:location { … } keeps the gate's own"
  else
    address, problem = sources.read(address, "address")
  end
  if network == nil then
    network = location.network
  end
  local network_problem
  network, network_problem = sources.read(network, "network")
  return address, network, problem or network_problem
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
  local asked = ngx.ctx.riskscreen_asked
  problem = location.methods and location.methods(asked)
  if problem then
    return nil, nil, problem
  elseif request then
    address, network, problem = read_call(location, request)
  elseif not location.subjects[2] then
    address, network, problem = location.subjects[1](asked)
  else
    local list = {}
    for _, read in ipairs(location.subjects) do
      add_subjects(list, read(asked))
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
