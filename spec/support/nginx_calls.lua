-- Inside nginx: the calls of the contract; see spec/in_nginx/contract_nginx.lua. Results are converted to JSON. The
-- search for secrets runs here, where the whole result is at hand.
local errors = require "riskscreen.errors"
local riskscreen = require "riskscreen"
local secrecy = require "spec.support.secrecy"

local ERROR_FIELDS = { "kind", "message", "status", "code", "retry_after", "sent", "operation", "elapsed", "attempts" }
local RESPONSE_FIELDS = { "status", "attempts", "elapsed", "pagination", "source" }

local clients = {}

local M = {}

local function fields_of(source, names)
  local told = {}
  for _, name in ipairs(names) do
    told[name] = source[name]
  end
  return told
end

local function pack(...)
  return { n = select("#", ...), ... }
end

---Makes a call.
---@param given table { id, options, operation, parameters, call_options, in_task }
---@return table told { n, value, response, err }
function M.call(given)
  clients[given.id] = clients[given.id] or riskscreen.new(given.options)
  local function call()
    if given.operation == "kyt:screen" then
      return clients[given.id].kyt:screen(given.parameters)
    end
    return clients[given.id]:call(given.operation, given.parameters, given.call_options)
  end
  local results = given.in_task and pack(riskscreen.run(call)) or pack(call())
  local value, other = results[1], results[2]
  if value ~= nil then
    return { n = results.n, value = value, response = fields_of(other, RESPONSE_FIELDS) }
  end
  assert(errors.is(other), "the failure is no error of the library")
  assert(not secrecy.holds(other, given.options.access_key), "the key is in the error")
  return { n = results.n, err = fields_of(other, ERROR_FIELDS) }
end

---Ends a client.
---@param id integer
function M.close(id)
  if clients[id] then
    clients[id]:close()
    clients[id] = nil
  end
end

return M
