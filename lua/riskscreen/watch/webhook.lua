-- Sends a change to an HTTP receiver, signed with HMAC-SHA256.
local digest = require "riskscreen.address.digest"
local http = require "riskscreen.options.http"
local text = require "riskscreen.util.text"

local MAX_ANSWER = 65536 -- bytes
local CONNECT_TIMEOUT = 5 -- seconds

local M = {}

---The value of the header X-Riskscreen-Signature: the time of sending, and the authentication code of the time, a point
---and the body.
---@param secret string
---@param body string
---@param time integer Unix seconds
---@return string
function M.signature(secret, body, time)
  return ("t=%d,v1=%s"):format(time, text.hex(digest.hmac(secret):code(("%d.%s"):format(time, body))))
end

---A function that sends a body; true, or nil and the reason.
---@param settings { url: string, secret: string, timeout: number }
---@param runtime table with `transport`
---@param clock fun(): number
---@return fun(id: string, body: string): true|nil, string|nil
function M.sender(settings, runtime, clock)
  local url = http.base_url(settings.url)
  local send = runtime.transport {
    base_url = url,
    concurrency = 1,
    connect_timeout = CONNECT_TIMEOUT,
    max_response_size = MAX_ANSWER,
  }
  return function(id, body)
    local reply, failure = send {
      method = "POST",
      target = url.prefix == "" and "/" or url.prefix,
      headers = {
        ["Content-Type"] = "application/json",
        ["X-Riskscreen-Id"] = id,
        ["X-Riskscreen-Signature"] = M.signature(settings.secret, body, math.floor(clock())),
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

return M
