-- A transport that records what it is asked and answers what the test says: a reply, a failure, or what a function of
-- the request returns. The last answer repeats.

local M = {}

---A reply whose body was the JSON of `value`.
function M.reply(status, value, headers)
  return { status = status, headers = headers or {}, value = value, size = 100, http_version = "1.1" }
end

---A reply whose body was not JSON.
function M.page(status, text, headers)
  local invalid = { message = "unexpected character", position = 1 }
  return { status = status, headers = headers or {}, invalid = invalid, excerpt = text:sub(1, 200), size = #text }
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
