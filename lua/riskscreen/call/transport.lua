-- An operator's transport behind the interface of the library's own ones.
local requests = require "riskscreen.interface.request"

-- PUC Lua 5.1 cannot wait inside pcall. There the error of a transport is the caller's.
local is_puc_5_1 = _VERSION == "Lua 5.1" and rawget(_G, "jit") == nil

local function unprotected(fn, ...)
  return true, fn(...)
end

local protected = is_puc_5_1 and unprotected or pcall

local function is_reply(value)
  return type(value) == "table"
    and type(value.status) == "number"
    and type(value.headers) == "table"
    and (value.body == nil or type(value.body) == "string")
end

local PLAIN_HEADERS = requests.PLAIN_HEADERS

---@param ask fun(request: riskscreen.Request): riskscreen.Reply|nil, table|nil the operator's
---@return fun(request: riskscreen.Request, key: string, timeout: number, connect_timeout: number, fresh?: boolean,
---rest: any, target: string): riskscreen.Reply|nil, table|nil transport if the operator's raises, the failure has
---`raised`
return function(ask)
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
    }
    own.body, own.fresh = request.body, fresh
    local ok, reply, failure = protected(ask, own)
    if not ok then
      local message = "the transport raised an error: " .. tostring(reply):match "^[^\n]*"
      return nil, { kind = "protocol", message = message, raised = reply }
    elseif is_reply(reply) then
      return reply
    end
    return nil, failure
  end
end
