-- An operator's transport behind the interface of the library's own ones.
local requests = require "riskscreen.interface.request"

local PLAIN_HEADERS = requests.PLAIN_HEADERS

---@param ask fun(request: riskscreen.Request): riskscreen.Reply|nil, table|nil the operator's
---@param protected fun(fn: function, ...): boolean, any pcall of a function that may wait
---@return fun(request: riskscreen.Request, key: string, timeout: number, connect_timeout: number, fresh?: boolean,
---_: any, target: string): riskscreen.Reply|nil, table|nil transport if the operator's raises, the failure has
---`raised`
return function(ask, protected)
  return function(request, key, timeout, connect_timeout, fresh, _, target)
    -- The transport may change its headers, and gets its own.
    local headers = { ["X-Access-Key"] = key, Accept = PLAIN_HEADERS.Accept }
    if request.headers ~= PLAIN_HEADERS then
      for name, value in next, request.headers do
        headers[name] = value
      end
    end
    local own = {
      method = request.method,
      target = target,
      headers = headers,
      timeout = timeout,
      connect_timeout = connect_timeout,
      replay = request.replay,
      body = request.body,
      fresh = fresh,
    }
    local ok, reply, failure = protected(ask, own)
    if not ok then
      local message = "the transport raised an error: " .. tostring(reply):match "^[^\n]*"
      return nil, { kind = "protocol", message = message, raised = reply }
    elseif
      type(reply) == "table"
      and type(reply.status) == "number"
      and type(reply.headers) == "table"
      and (reply.body == nil or type(reply.body) == "string")
    then
      return reply
    end
    return nil, failure
  end
end
