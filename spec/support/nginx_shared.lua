-- Inside nginx: calls of one worker of several; see spec/in_nginx/shared_nginx.lua.
local riskscreen = require "riskscreen"

local ngx = _G.ngx

local clients = {}

local M = {}

local function client_of(given)
  clients[given.id] = clients[given.id] or riskscreen.new(given.options)
  return clients[given.id]
end

-- Each call is about an address of its own: failures about one address count once.
local function one_call(given, index)
  local number = given.first_address + index
  local parameters = { address = ("0x%040x"):format(number), network = "eth" }
  local value, other = client_of(given):call("getAddressRisk", parameters, given.call_options)
  return value and "ok" or other.kind
end

---Makes calls in one worker, one after another or together. Returns nothing in the others.
---@param given { id: integer, options: table, worker: integer, calls: integer, together?: boolean,
---first_address: integer, call_options?: table }
---@return table told { worker, pid, outcomes, breaker, rate_limit }
function M.run(given)
  local told = { worker = ngx.worker.id(), pid = ngx.worker.pid() }
  if told.worker ~= given.worker then
    return told
  end
  local outcomes, bodies = {}, {}
  for index = 1, given.calls do
    bodies[index] = function()
      local outcome = one_call(given, index)
      table.insert(outcomes, outcome)
    end
    if not given.together then
      bodies[index]()
    end
  end
  if given.together then
    riskscreen.gather(bodies)
  end
  local stats = client_of(given):stats()
  told.outcomes, told.breaker, told.rate_limit = outcomes, stats.breaker, stats.rate_limit
  return told
end

return M
