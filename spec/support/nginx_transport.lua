-- Inside nginx: sends requests by the transport over cosockets; see cosocket_nginx.lua. Its results are what JSON can
-- say.
local cosocket = require "riskscreen.runtime.cosocket"

local transports = {}

local M = {}

-- One for each origin and limit, as a client would keep it.
local function transport_of(given)
  local name = table.concat({ given.origin, given.unix_socket or "", given.concurrency, given.limit }, " ")
  transports[name] = transports[name]
    or cosocket.transport {
      base_url = { origin = given.origin, prefix = "" },
      unix_socket = given.unix_socket,
      concurrency = given.concurrency,
      max_response_size = given.limit,
    }
  return transports[name]
end

---@param given table { origin, unix_socket?, concurrency, limit, request }
---@return table result of the fields `reply` or `failure`
function M.send(given)
  local reply, failure = transport_of(given)(given.request)
  return { reply = reply, failure = failure }
end

return M
