-- One cell of the fault matrix: a server with a fault, a client, one call of a class, and the expected outcome.

local client = require "riskscreen.client"
local fault_server = require "spec.support.fault_server"
local native = require "riskscreen.runtime.native"
local patience = require "spec.support.patience"

local LONG = 20 -- seconds; the timeout of calls that must end before it
local LATE = 10 -- seconds after a call's timeout, when it is certain that the timeout did not end it

local M = { key = fault_server.key }

---The options of a client that makes each request once.
---@param given table
---@return table
function M.options(given)
  local all = { access_key = M.key, timeout = LONG, retry = false }
  for name, value in pairs(given) do
    all[name] = value
  end
  return all
end

---@class riskscreen.spec.Caller
---@field call fun(class: riskscreen.spec.Class, timeout: number): any, any
---@field close fun()

---Where the calls are made: a client of this process that makes each request once.
---@param given table options of the client
---@return riskscreen.spec.Caller
function M.here(given)
  local mine = client.new(M.options(given))
  return {
    call = function(class, timeout)
      return class.call(mine, timeout)
    end,
    close = function()
      mine:close()
    end,
  }
end

---The requirements of a fault on a class.
---@param fault riskscreen.spec.Fault
---@param class riskscreen.spec.Class
---@return { kind?: string, sent?: boolean, status?: integer, requests: integer }
function M.expected(fault, class)
  local expected = {}
  for _, name in ipairs { "kind", "sent", "status", "retry_after", "requests" } do
    expected[name] = fault[name]
    if not class.idempotent and fault.unless_idempotent and fault.unless_idempotent[name] ~= nil then
      expected[name] = fault.unless_idempotent[name]
    end
  end
  expected.requests = expected.requests * class.requests + (class.spared or 0)
  return expected
end

---A fault as it is inside nginx.
---@param fault riskscreen.spec.Fault
---@return riskscreen.spec.Fault
function M.over_cosockets(fault)
  local own = {}
  for _, values in ipairs { fault, fault.over_cosockets or {} } do
    for name, value in pairs(values) do
      own[name] = value
    end
  end
  return own
end

---Whether a fault can be tried with a class: to spare some requests, the server must know their operation.
function M.applies(fault, class)
  return not class.spares or (fault.act and not fault.warm)
end

---@class riskscreen.spec.Outcome
---@field results table what the call returned, with their number as `n`
---@field late boolean the call was still under way long after its timeout
---@field requests integer that the server saw
---@field elsewhere integer connections that another host saw

local function pack(...)
  return { n = select("#", ...), ... }
end

-- Whether the machine was fast enough for the timeout of a call that has just returned. The server must have seen the
-- requests whose faults it waited for. The client must have seen the answers to those that were spared.
local function was_in_time(fault, class, server, results)
  if server.struck < (fault.greet and 1 or class.requests) then -- several requests may wait for one connection
    return false
  end
  local failed = 0
  for _ in pairs(class.spares and results[1].errors or {}) do
    failed = failed + 1
  end
  return failed <= class.requests
end

local function attempt(fault, class, seconds, open)
  local server = fault.start(fault, class.spares)
  local given = { base_url = server.url }
  for _, more in ipairs { server.options, fault.options or {} } do
    for name, value in pairs(more) do
      given[name] = value
    end
  end
  local caller = open(given)
  if fault.warm then
    caller.call(class, LONG)
    while fault.settles and server.settled < class.requests do
      native.sleep(0)
    end
    native.sleep(0) -- the client's loop looks at its idle connections
  end
  local outcome = { late = false }
  local alarm = server.drive:after(seconds + LATE, function()
    outcome.late = true
  end)
  outcome.results = pack(caller.call(class, seconds))
  server.drive:forget(alarm)
  outcome.requests, outcome.elsewhere = server.count(), server.elsewhere()
  local in_time = was_in_time(fault, class, server, outcome.results)
  caller.close()
  server.close()
  return in_time, outcome
end

---@param fault riskscreen.spec.Fault
---@param class riskscreen.spec.Class
---@param open? fun(given: table): riskscreen.spec.Caller by default `here`
---@return riskscreen.spec.Outcome
function M.run(fault, class, open)
  open = open or M.here
  if fault.slow then
    return patience(function(seconds)
      return attempt(fault, class, seconds, open)
    end)
  end
  local _, outcome = attempt(fault, class, LONG, open)
  return outcome
end

return M
