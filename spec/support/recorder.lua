-- A transport that records requests and answers as the test says: with a reply, a failure, or the result of a function
-- of the request. The last answer repeats.
local json = require "riskscreen.json"

local M = {}

---A reply with the JSON of `value` as its body; nil for an empty body.
function M.reply(status, value, headers)
  local body = value ~= nil and assert(json.encode(value)) or ""
  return { status = status, headers = headers or {}, body = body, http_version = "1.1" }
end

---A reply with a body that is not JSON.
function M.page(status, text, headers)
  return { status = status, headers = headers or {}, body = text }
end

---A failure of the transport.
function M.failure(kind, message, sent)
  return { failure = { kind = kind, message = message, sent = sent } }
end

---@return function transport
---@return table[] requests filled as they come
function M.new(...)
  local answers, requests = { ... }, {}
  local function transport(request)
    requests[#requests + 1] = request
    local answer = answers[math.min(#requests, #answers)]
    if type(answer) == "function" then
      return answer(request)
    elseif answer.failure then
      return nil, answer.failure
    end
    return answer
  end
  return transport, requests
end

return M
