-- The webhook of a watch: posts a change, signed.
local digest = require "riskscreen.address.digest"
local text = require "riskscreen.util.text"

local MAX_ANSWER = 65536 -- bytes of a receiver
local CONNECT_TIMEOUT = 5 -- seconds

---A function that posts a change.
---@param settings { url: table, secret: string, timeout: number }
---@param runtime table of the client
---@param clock fun(): number
---@return fun(id: string, body: string): true|nil, string|nil
return function(settings, runtime, clock)
  local url = settings.url
  local send = runtime.transport {
    base_url = url,
    concurrency = 1,
    connect_timeout = CONNECT_TIMEOUT,
    max_response_size = MAX_ANSWER,
  }
  return function(id, body)
    -- The signature: the time of sending, and the authentication code of the time, a point and the body.
    local time = math.floor(clock())
    local code = text.hex(digest.hmac(settings.secret):code(("%d.%s"):format(time, body)))
    local reply, failure = send {
      method = "POST",
      target = url.prefix == "" and "/" or url.prefix,
      headers = {
        ["Content-Type"] = "application/json",
        ["X-Riskscreen-Id"] = id,
        ["X-Riskscreen-Signature"] = ("t=%d,v1=%s"):format(time, code),
      },
      body = body,
      timeout = settings.timeout,
      connect_timeout = CONNECT_TIMEOUT,
      replay = false,
    }
    if not reply then
      return nil, "the webhook cannot be sent: " .. tostring(failure.message or failure.kind)
    elseif reply.status < 200 or reply.status > 299 then
      return nil, ("the webhook's receiver answered %d"):format(reply.status)
    end
    return true
  end
end
