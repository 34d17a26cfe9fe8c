-- Whole HTTP requests over the native loop, as raw text: what a caller of a gateway sees. In a task a request yields;
-- elsewhere it blocks, and every server of this process is driven meanwhile.
local core = require "riskscreen.core"
local scheduler = require "riskscreen.runtime.native.scheduler"

local MAX_BODY = 16 * 1024 * 1024 -- bytes
local TIMEOUT = 20 -- seconds
local CONCURRENCY = 1024 -- connections

local M = {}

---@class riskscreen.spec.Answer
---@field status integer
---@field headers table<string, string> by lower-case name
---@field body string

---@class riskscreen.spec.Request
---@field method? string
---@field headers? string[] lines
---@field body? string
---@field timeout? number seconds

---Something that sends requests to one origin, over connections that it keeps.
---@param url string scheme, host and port
---@param more? table options of the core's origin
---@return fun(target: string, request?: riskscreen.spec.Request): riskscreen.spec.Answer|nil, table|nil
function M.origin(url, more)
  local settings = { base_url = url, concurrency = CONCURRENCY, connect_timeout = TIMEOUT, max_body = MAX_BODY }
  for name, value in pairs(more or {}) do
    settings[name] = value
  end
  local origin
  return function(target, request)
    request = request or {}
    origin = origin or scheduler.loop():origin(settings)
    local method = request.method or (request.body and "POST") or "GET"
    local timeout = request.timeout or TIMEOUT
    local transfer = origin:send(method, target, request.headers, timeout, TIMEOUT, request.body)
    local status, body, head = scheduler.await(transfer, true)
    if not status then
      return nil, body
    end
    return { status = status, headers = core.details(head), body = body }
  end
end

return M
