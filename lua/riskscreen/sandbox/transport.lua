-- The in-process transport of a sandbox client. It hands requests to a service without a socket. A fault ends as it
-- would on a network.
local text = require "riskscreen.util.text"

local function fail(kind, message)
  return nil, { kind = kind, message = message, sent = true }
end

-- Seconds until the answer is complete.
local function duration(response)
  local fault = response.fault
  if not fault then
    return 0
  elseif fault.kind == "hang" then
    return math.huge
  elseif fault.kind == "drip" then
    return fault.delay + math.max(0, math.ceil(#response.body / fault.bytes) - 1) * fault.every
  end
  return fault.delay
end

local M = {}

---A transport for a client of a service.
---@param service riskscreen.sandbox.Service
---@param sleep fun(seconds: number)
---@return fun(request: table): table?, table?
function M.new(service, sleep)
  return function(request)
    local response = service:handle {
      method = request.method,
      target = request.target,
      headers = text.lower_names(request.headers),
      body = request.body,
    }
    local wait = duration(response)
    if wait >= request.timeout then
      sleep(request.timeout)
      return fail("timeout", ("no complete answer within %g s"):format(request.timeout))
    elseif wait > 0 then
      sleep(wait)
    end
    local fault = response.fault and response.fault.kind
    if fault == "reset" then
      return fail("network", "the connection was reset before an answer came")
    elseif fault == "truncate" and response.fault.bytes < #response.body then
      local missing = #response.body - response.fault.bytes
      return fail("network", ("the connection ended with %d bytes of the body missing"):format(missing))
    end
    return {
      status = response.status,
      headers = response.headers,
      body = response.body,
      http_version = "1.1",
      times = { total = wait },
    }
  end
end

return M
