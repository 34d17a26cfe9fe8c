-- Requests of the core's origins and their responses, by names instead of positions.
local core = require("riskscreen.core")

local TIMEOUT = 30 -- seconds

local M = {}

---Sends a request.
---@param origin userdata
---@param request { method?: string, target?: string, headers?: string[], body?: string, timeout?: number,
---connect_timeout?: number, fresh?: boolean, untimed?: boolean }
---@return integer transfer
function M.send(origin, request)
  local method, target, timeout = request.method or "GET", request.target or "/", request.timeout or TIMEOUT
  local fresh, untimed = request.fresh, request.untimed
  return origin:send(method, target, request.headers, timeout, request.connect_timeout, request.body, fresh, untimed)
end

---Takes the response of a finished transfer.
---@param loop userdata
---@param transfer integer
---@return table|nil
---@return table|nil failure
function M.take(loop, transfer)
  local status, body, head = loop:take(transfer, true)
  if not status then
    return nil, body
  end
  local headers, times, http_version = core.details(head)
  return { status = status, body = body, headers = headers, times = times, http_version = http_version }
end

return M
