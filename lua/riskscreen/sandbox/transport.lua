-- The in-process transport: hands a client's requests to a service with no socket in between. Bodies are really encoded
-- and decoded, and a fault ends as it would on a network.
local json = require "riskscreen.json"

local EXCERPT = 200 -- bytes

local function failure(kind, message)
  return nil, { kind = kind, message = message, sent = true }
end

local function lower_names(headers)
  local lower = {}
  for name, value in pairs(headers) do
    lower[name:lower()] = value
  end
  return lower
end

-- Seconds until the whole answer is there.
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

local function reply_of(response, elapsed)
  local body = response.body
  local reply = {
    status = response.status,
    headers = response.headers,
    size = #body,
    http_version = "1.1",
    times = { total = elapsed },
  }
  if body ~= "" then
    local value, message, position = json.decode(body)
    if value == nil then
      reply.invalid = { message = message, position = position }
      reply.excerpt = body:sub(1, EXCERPT)
    else
      reply.value = value
    end
  end
  return reply
end

local M = {}

---A transport for a client of a service.
---@param service riskscreen.sandbox.Service
---@param sleep fun(seconds: number) how a delay passes
---@return fun(request: table): table?, table?
function M.new(service, sleep)
  return function(request)
    local response = service:handle {
      method = request.method,
      target = request.target,
      headers = lower_names(request.headers),
      body = request.body,
    }
    local wait = duration(response)
    if wait >= request.timeout then
      sleep(request.timeout)
      return failure("timeout", ("no complete answer within %g s"):format(request.timeout))
    elseif wait > 0 then
      sleep(wait)
    end
    local fault = response.fault and response.fault.kind
    if fault == "reset" then
      return failure("network", "the connection was reset before an answer came")
    elseif fault == "truncate" and response.fault.bytes < #response.body then
      local missing = #response.body - response.fault.bytes
      return failure("network", ("the connection ended with %d bytes of the body missing"):format(missing))
    end
    return reply_of(response, wait)
  end
end

return M
